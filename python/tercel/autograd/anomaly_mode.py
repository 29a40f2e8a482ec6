"""Anomaly mode: finds the operation whose backward failed or produced NaN."""

import warnings

from tercel import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:  # noqa: N801
    """Enables or disables anomaly mode immediately; as a context, restores it on exit."""

    def __init__(self, mode, check_nan=True):
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_enabled(bool(mode), bool(check_nan))

    def __enter__(self):
        pass

    def __exit__(self, *_):
        _C._set_anomaly_enabled(self.prev, self.prev_check_nan)


class detect_anomaly:  # noqa: N801
    """
    Inside, nodes store the stack of the call that recorded them, and backward() stops at the first that produces a NaN
    (if check_nan). A warning shows the stack of a node that fails. Slow.
    """

    def __init__(self, check_nan=True):
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        self.check_nan = check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
                      "enabled for debugging.", stacklevel=2)

    def __enter__(self):
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_enabled(True, bool(self.check_nan))

    def __exit__(self, *_):
        _C._set_anomaly_enabled(self.prev, self.prev_check_nan)
