"""torch in a process started by one in which torch is Tercel: its sys.path contains this folder."""

from tercel.torch import install

install()
