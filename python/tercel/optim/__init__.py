"""Optimizers with parameter groups, and learning rate schedules."""

import sys

from tercel.optim import lr_scheduler, optimizers as _optimizers, swa_utils  # noqa: F401
from tercel.optim.lbfgs import LBFGS  # noqa: F401
from tercel.optim.optimizer import Optimizer  # noqa: F401
from tercel.optim.optimizers import *  # noqa: F401,F403

# PyTorch has a module for each: `from torch.optim.adam import Adam`.
for _name in map(str.lower, _optimizers.__all__):
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _optimizers
