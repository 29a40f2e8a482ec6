"""Where the Arrow that Parquet needs is: in the package pyarrow, which is not imported for it."""

import importlib.util
import os

from tercel import _C


def find() -> None:
    """Tells the library the folder of pyarrow, if there is one."""
    try:
        spec = importlib.util.find_spec("pyarrow")
    except (ImportError, ValueError):  # a stand-in of the name that is no module
        return
    if spec is not None and spec.origin:
        _C._set_arrow_folder(os.path.dirname(spec.origin))
