"""torch, in a process that was started by one in which torch is Tercel: its search path leads here."""

from tercel.torch import install

install()
