"""The parts of DataLoader: collating, fetching, worker processes."""

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds: how often a worker looks for its parent, and how long it has to end

from tercel.utils.data._utils import collate, fetch, worker  # noqa: E402,F401
from tercel.utils.data._utils.exceptions import ExceptionWrapper  # noqa: E402,F401
