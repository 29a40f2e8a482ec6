"""Version and build information."""

from tercel import _C

__version__ = _C._version()
debug = False
cuda = None
hip = None
git_version = None

__all__ = ["__version__", "debug", "cuda", "git_version", "hip"]
