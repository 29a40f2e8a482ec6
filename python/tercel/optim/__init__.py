"""Optimizers over groups of parameters, and schedules of their learning rates."""

from tercel.optim import lr_scheduler, swa_utils  # noqa: F401
from tercel.optim.lbfgs import LBFGS  # noqa: F401
from tercel.optim.optimizer import Optimizer  # noqa: F401
from tercel.optim.optimizers import *  # noqa: F401,F403
