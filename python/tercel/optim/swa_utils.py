"""Stochastic weight averaging: a model whose parameters are averages of another model's, and its schedule."""

import math
from copy import deepcopy

from tercel import _C
from tercel.autograd import no_grad
from tercel.nn import Module
from tercel.nn.norm import _BatchNorm
from tercel.optim.lr_scheduler import LRScheduler

__all__ = ["AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
           "update_bn"]


def _check_decay(decay):
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay=0.999):
    """An avg_fn for AveragedModel: the exponential moving average decay * mean + (1 - decay) * parameter."""
    _check_decay(decay)

    @no_grad()
    def average(mean, value, count):
        return decay * mean + (1 - decay) * value

    return average


def get_swa_avg_fn():
    """An avg_fn for AveragedModel: the arithmetic mean of all."""
    @no_grad()
    def average(mean, value, count):
        return mean + (value - mean) / (count + 1)

    return average


def _of_lists(average, in_place):
    """Makes a multi_avg_fn, which updates a list of means, from a function of one mean."""
    @no_grad()
    def averages(means, values, count):
        for mean, value in zip(means, values):
            if mean.is_floating_point() or mean.is_complex():
                in_place(mean, value, count)
            else:
                mean.copy_(average(mean, value, count))

    return averages


def get_ema_multi_avg_fn(decay=0.999):
    """A multi_avg_fn for AveragedModel: get_ema_avg_fn() on a list of means, in place."""
    return _of_lists(get_ema_avg_fn(decay), lambda mean, value, count: mean.lerp_(value, 1 - decay))


def get_swa_multi_avg_fn():
    """A multi_avg_fn for AveragedModel: get_swa_avg_fn() on a list of means, in place."""
    return _of_lists(get_swa_avg_fn(), lambda mean, value, count: mean.lerp_(value, 1 / float(count + 1)))


class AveragedModel(Module):
    """
    A copy of the model whose parameters are averages; update_parameters(model) includes the model's current parameters.
    avg_fn(mean, parameter, count so far) returns the next mean, by default the arithmetic one; multi_avg_fn updates a
    list of means from a list of parameters.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        super().__init__()
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _C.tensor(0, dtype=_C.long, device=device))
        self.avg_fn, self.multi_avg_fn = avg_fn, multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _averaged(self, model):
        yield from model.parameters()
        if self.use_buffers:
            yield from model.buffers()

    @no_grad()
    def update_parameters(self, model):
        """Includes the model's parameters in the averages; the first call copies them. Other buffers are copied."""
        means = [mean.detach() for mean in self._averaged(self.module)]
        values = [value.detach().to(mean.device) for value, mean in zip(self._averaged(model), means)]
        count = self.n_averaged
        if count == 0:
            for mean, value in zip(means, values):
                mean.copy_(value)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(means, values, count)
        else:
            average = self.avg_fn or get_swa_avg_fn()
            for mean, value in zip(means, values):
                mean.copy_(average(mean, value, count))
        if not self.use_buffers:
            for mine, other in zip(self.module.buffers(), model.buffers()):
                mine.copy_(other.detach().to(mine.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader, model, device=None):
    """Recomputes the running statistics of batch normalization over the loader's inputs."""
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None  # the mean of all batches
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the current rates to swa_lr in anneal_epochs epochs and keeps them there."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        groups = len(optimizer.param_groups)
        rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * groups
        if len(rates) != groups:
            raise ValueError(f"swa_lr must have the same length as optimizer.param_groups: swa_lr has {len(rates)}, "
                             f"optimizer.param_groups has {groups}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, rate in zip(optimizer.param_groups, rates):
            group["swa_lr"] = rate
        self.anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step):
        """The fraction of the annealing that is done."""
        way = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return way if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * way)) / 2

    def get_lr(self):
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            # The initial rate is computed from the current one, so that other changes of the rate are kept.
            start = group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates
