"""Optimizers and schedules, compared with their formulas in NumPy."""

import math
import pickle
import warnings

import numpy as np
import pytest

import tercel as tc
from tercel import nn, optim
from tercel.optim import lr_scheduler as schedules


def says(error, sentence, call):
    with pytest.raises(error) as info:
        call()
    assert sentence in str(info.value)


def sgd(p, g, s, t, lr=0.1, momentum=0.9, dampening=0.0, nesterov=False, weight_decay=0.0):
    g = g + weight_decay * p
    s["b"] = g if t == 1 else momentum * s["b"] + (1 - dampening) * g
    return p - lr * (g + momentum * s["b"] if nesterov else s["b"])


def adam(p, g, s, t, lr=0.1, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, decoupled=False, amsgrad=False):
    if decoupled:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
    s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g * g
    s["top"] = np.maximum(s.get("top", 0), s["v"])
    v = s["top"] if amsgrad else s["v"]
    return p - lr * (s["m"] / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)


def adagrad(p, g, s, t, lr=0.1, lr_decay=0.0, start=0.0, eps=1e-10):
    s["sum"] = s.get("sum", start) + g * g
    return p - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(s["sum"]) + eps)


def rmsprop(p, g, s, t, lr=0.1, alpha=0.99, eps=1e-8, momentum=0.0, centered=False):
    s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g * g
    s["m"] = alpha * s.get("m", 0) + (1 - alpha) * g
    step = g / (np.sqrt(s["v"] - s["m"]**2 if centered else s["v"]) + eps)
    s["b"] = momentum * s.get("b", 0) + step
    return p - lr * s["b"]


def adadelta(p, g, s, t, lr=1.0, rho=0.9, eps=1e-6):
    s["v"] = rho * s.get("v", 0) + (1 - rho) * g * g
    d = np.sqrt(s.get("d", 0) + eps) / np.sqrt(s["v"] + eps) * g
    s["d"] = rho * s.get("d", 0) + (1 - rho) * d * d
    return p - lr * d


def adamax(p, g, s, t, lr=0.1, beta1=0.9, beta2=0.999, eps=1e-8):
    s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
    s["u"] = np.maximum(beta2 * s.get("u", 0), abs(g) + eps)
    return p - lr / (1 - beta1**t) * s["m"] / s["u"]


def nadam(p, g, s, t, lr=0.1, beta1=0.9, beta2=0.999, eps=1e-8, decay=4e-3):
    mu = [beta1 * (1 - 0.5 * 0.96 ** (k * decay)) for k in (t, t + 1)]
    s["mu"] = s.get("mu", 1.0) * mu[0]
    s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
    s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g * g
    root = np.sqrt(s["v"] / (1 - beta2**t)) + eps
    return p - lr * ((1 - mu[0]) / (1 - s["mu"]) * g + mu[1] / (1 - s["mu"] * mu[1]) * s["m"]) / root


def ftrl(p, g, s, t, lr=0.1, beta=0.5, lambda1=0.05, lambda2=0.1):
    guard = 1.1920929e-7
    n = s.get("n", np.zeros_like(p))
    s["n"] = n + g * g
    root = np.sqrt(s["n"] + guard)
    s["z"] = s.get("z", 0) + g - (root - np.sqrt(n + guard)) / lr * p
    z = s["z"]
    return np.where(abs(z) <= lambda1, 0, (np.sign(z) * lambda1 - z) / (root / lr + lambda2 + beta / lr))


CASES = [
    (optim.SGD, sgd, dict(lr=0.1, momentum=0.9), {}),
    (optim.SGD, sgd, dict(lr=0.1, momentum=0.5, nesterov=True, weight_decay=0.1),
     dict(momentum=0.5, nesterov=True, weight_decay=0.1)),
    (optim.SGD, sgd, dict(lr=0.1, momentum=0.9, dampening=0.2), dict(dampening=0.2)),
    (optim.Adam, adam, dict(lr=0.1), {}),
    (optim.Adam, adam, dict(lr=0.1, amsgrad=True, weight_decay=0.1), dict(amsgrad=True, weight_decay=0.1)),
    (optim.AdamW, adam, dict(lr=0.1), dict(decoupled=True, weight_decay=0.01)),
    (optim.Adagrad, adagrad, dict(lr=0.1, lr_decay=0.1, initial_accumulator_value=0.5), dict(lr_decay=0.1, start=0.5)),
    (optim.RMSprop, rmsprop, dict(lr=0.1), {}),
    (optim.RMSprop, rmsprop, dict(lr=0.1, centered=True, momentum=0.9), dict(centered=True, momentum=0.9)),
    (optim.Adadelta, adadelta, {}, {}),
    (optim.Adamax, adamax, dict(lr=0.1), {}),
    (optim.NAdam, nadam, dict(lr=0.1), {}),
    (optim.Ftrl, ftrl, dict(lr=0.1, beta=0.5, lambda1=0.05, lambda2=0.1), {}),
]


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("cls, rule, options, numpys", CASES)
def test_formulas(cls, rule, options, numpys, maximize):
    start = np.linspace(-2, 2, 7)
    p = tc.from_numpy(start.copy()).requires_grad_()
    optimizer = cls([p], maximize=maximize, **options)
    expected, state = start, {}
    for t in range(1, 9):
        optimizer.zero_grad()
        loss = (p * p * p + tc.sin(p) * t).sum()
        loss.backward()
        gradient = 3 * expected**2 + np.cos(expected) * t
        expected = rule(expected, -gradient if maximize else gradient, state, t, **numpys)
        optimizer.step()
        np.testing.assert_allclose(p.detach().numpy(), expected, rtol=2e-6, atol=1e-8)


@pytest.mark.parametrize("cls, rule, options, numpys", CASES)
def test_a_state_dict_goes_on_where_it_was(cls, rule, options, numpys):
    def steps(p, optimizer, count):
        for _ in range(count):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()

    one = tc.tensor([1.0, -3.0], requires_grad=True)
    first = cls([one], **options)
    steps(one, first, 3)
    saved = pickle.loads(pickle.dumps(first.state_dict()))
    two = one.detach().clone().requires_grad_()
    second = cls([two], **options)
    second.load_state_dict(saved)
    steps(one, first, 2)
    steps(two, second, 2)
    assert one.tolist() == two.tolist()
    assert second.state_dict()["param_groups"][0]["params"] == [0]


def test_groups():
    a, b = (nn.Parameter(tc.ones(2)) for _ in range(2))
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 1.0}], lr=0.1)
    (a + b).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(a.detach().numpy(), [0.9, 0.9], rtol=1e-6)
    assert b.tolist() == [0, 0]
    optimizer.add_param_group({"params": [nn.Parameter(tc.ones(1))], "lr": 5})
    assert [g["lr"] for g in optimizer.param_groups] == [0.1, 1.0, 5]
    assert "\n\nParameter Group 2\n" in repr(optimizer) and "momentum: 0" in repr(optimizer)
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert a.grad is None


def test_closures():
    p = nn.Parameter(tc.tensor([2.0]))
    optimizer = optim.SGD([p], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4 and p.item() == 1


def test_wrong_arguments():
    p = nn.Parameter(tc.ones(1))
    says(ValueError, "optimizer got an empty parameter list", lambda: optim.SGD([], lr=0.1))
    says(TypeError, "params argument given to the optimizer should be an iterable of Tensors or dicts",
         lambda: optim.SGD(p, lr=0.1))
    says(ValueError, "Invalid learning rate: -1", lambda: optim.Adam([p], lr=-1))
    says(ValueError, "Invalid beta parameter at index 1: 1.0", lambda: optim.Adam([p], betas=(0.9, 1.0)))
    says(ValueError, "Nesterov momentum requires a momentum and zero dampening",
         lambda: optim.SGD([p], lr=1, nesterov=True))
    says(ValueError, "can't optimize a non-leaf Tensor", lambda: optim.SGD([p * 2], lr=1))
    says(ValueError, "some parameters appear in more than one parameter group",
         lambda: optim.SGD([{"params": [p]}, {"params": [p]}], lr=1))
    says(TypeError, "optimizer can only optimize Tensors, but one of the params is int",
         lambda: optim.SGD([3], lr=1))
    optimizer = optim.SGD([p], lr=1)
    says(ValueError, "loaded state dict has a different number of parameter groups",
         lambda: optimizer.load_state_dict({"state": {}, "param_groups": []}))
    says(ValueError, "doesn't match the size of optimizer's group",
         lambda: optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]}))
    says(TypeError, "int is not an Optimizer", lambda: schedules.StepLR(3, 1))


RATES = [
    (lambda o: schedules.StepLR(o, 3, 0.5), lambda e: 0.5 ** (e // 3)),
    (lambda o: schedules.MultiStepLR(o, [2, 5, 5]), lambda e: 0.1 ** (0 if e < 2 else 1 if e < 5 else 3)),
    (lambda o: schedules.ExponentialLR(o, 0.9), lambda e: 0.9**e),
    (lambda o: schedules.CosineAnnealingLR(o, 4, 0.1), lambda e: 0.1 + 0.9 * (1 + math.cos(math.pi * e / 4)) / 2),
    (lambda o: schedules.LinearLR(o), lambda e: 1 / 3 + 2 / 3 * min(e, 5) / 5),
    (lambda o: schedules.ConstantLR(o, 0.5, 4), lambda e: 0.5 if e < 4 else 1.0),
    (lambda o: schedules.LambdaLR(o, lambda e: 1 / (1 + e)), lambda e: 1 / (1 + e)),
    (lambda o: schedules.MultiplicativeLR(o, lambda e: 0.5), lambda e: 0.5**e),
    (lambda o: schedules.PolynomialLR(o, 6, 2.0), lambda e: (1 - min(e, 6) / 6) ** 2),
    (lambda o: schedules.CosineAnnealingWarmRestarts(o, 3, 2),
     lambda e: (1 + math.cos(math.pi * (e / 3 if e < 3 else (e - 3) / 6 if e < 9 else (e - 9) / 12))) / 2),
    (lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(o, 0.1, 9), schedules.ExponentialLR(o, 0.5)], [3]),
     lambda e: 0.1 if e < 3 else 0.5 ** (e - 3)),
    (lambda o: schedules.ChainedScheduler([schedules.ConstantLR(o, 0.1, 2), schedules.ExponentialLR(o, 0.5)]),
     lambda e: (0.1 if e < 2 else 1.0) * 0.5**e),
]


@pytest.mark.parametrize("make, rate", RATES)
def test_rates(make, rate):
    optimizer = optim.SGD([nn.Parameter(tc.ones(1))], lr=1.0)
    scheduler = make(optimizer)
    for epoch in range(12):
        assert optimizer.param_groups[0]["lr"] == pytest.approx(rate(epoch), abs=1e-9), epoch
        assert scheduler.get_last_lr() == [optimizer.param_groups[0]["lr"]]
        if epoch == 6:
            other = make(optim.SGD([nn.Parameter(tc.ones(1))], lr=1.0))
            other.load_state_dict(scheduler.state_dict())
            assert other.last_epoch == scheduler.last_epoch if hasattr(scheduler, "last_epoch") else True
        optimizer.step()
        scheduler.step()


def test_one_cycle():
    optimizer = optim.SGD([nn.Parameter(tc.ones(1))], lr=0.1, momentum=0.9)
    scheduler = schedules.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
    rates, momenta = [], []
    for _ in range(9):
        rates.append(optimizer.param_groups[0]["lr"])
        momenta.append(optimizer.param_groups[0]["momentum"])
        optimizer.step()
        scheduler.step()
    assert rates[0] == pytest.approx(0.04) and rates[2] == pytest.approx(1.0) and max(rates) == rates[2]
    assert momenta[0] == pytest.approx(0.95) and momenta[2] == pytest.approx(0.85)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.04 / 1e4)
    scheduler.step()
    says(ValueError, "Tried to step 11 times. The total number of steps is 10", scheduler.step)


def test_plateaus():
    optimizer = optim.SGD([nn.Parameter(tc.ones(1))], lr=1.0)
    scheduler = schedules.ReduceLROnPlateau(optimizer, patience=1, cooldown=1, min_lr=0.05)
    seen = []
    for metric in [5, 4, 4, 4, 4, 4, 4, 4, 4, 3]:
        scheduler.step(tc.tensor(metric))
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == pytest.approx([1, 1, 1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05])
    up = schedules.ReduceLROnPlateau(optimizer, mode="max", threshold_mode="abs", threshold=0.5)
    assert up.is_better(1.6, 1.0) and not up.is_better(1.4, 1.0)


def test_clipping():
    p, q = nn.Parameter(tc.ones(2)), nn.Parameter(tc.ones(1))
    p.grad, q.grad = tc.tensor([3.0, 0.0]), tc.tensor([4.0])
    assert nn.utils.clip_grad_norm_([p, q], 1.0).item() == 5
    np.testing.assert_allclose(p.grad.numpy(), [0.6, 0], rtol=1e-5)
    assert nn.utils.clip_grad_norm_([p, q], 10.0).item() == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(q.grad.numpy(), [0.8], rtol=1e-5)
    nn.utils.clip_grad_value_(q, 0.5)
    assert q.grad.item() == 0.5
    q.grad = tc.tensor([float("nan")])
    says(RuntimeError, "is non-finite, so it cannot be clipped",
         lambda: nn.utils.clip_grad_norm_([q], 1.0, error_if_nonfinite=True))


def test_cyclic_rates():
    p = tc.ones(1, requires_grad=True)
    optimizer = tc.optim.SGD([p], lr=1.0, momentum=0.5)
    schedule = tc.optim.lr_scheduler.CyclicLR(optimizer, 1, 5, step_size_up=4, step_size_down=2, mode="triangular2",
                                              base_momentum=1, max_momentum=5)
    rates, momenta = [], []
    for _ in range(9):
        rates.append(optimizer.param_groups[0]["lr"])
        momenta.append(optimizer.param_groups[0]["momentum"])
        optimizer.step()
        schedule.step()
    assert rates == [1, 2, 3, 4, 5, 3, 1, 1.5, 2] and momenta == [6 - rate for rate in rates]
    state = schedule.state_dict()
    other = tc.optim.lr_scheduler.CyclicLR(optimizer, 1, 7)
    other.load_state_dict(state)
    assert other.max_lrs == [5] and "optimizer" not in state
    with pytest.raises(ValueError, match="mode is invalid"):
        tc.optim.lr_scheduler.CyclicLR(optimizer, 1, 5, mode="up")
    with pytest.raises(ValueError, match="must support momentum"):
        tc.optim.lr_scheduler.CyclicLR(tc.optim.Adam([p]), 1, 5)


def test_order_of_steps_is_told():
    def made():
        optimizer = tc.optim.SGD([tc.ones(1, requires_grad=True)], lr=1.0)
        return optimizer, tc.optim.lr_scheduler.StepLR(optimizer, 2)

    optimizer, schedule = made()
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()
    optimizer, schedule = made()
    optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()
    with pytest.warns(UserWarning, match="epoch parameter"):
        schedule.step(3)
    optimizer, schedule = made()
    optimizer.step = lambda: None
    with pytest.warns(UserWarning, match="has been overridden"):
        schedule.step()


def test_average_of_weights():
    model = tc.nn.Linear(1, 1, bias=False)
    mean = tc.optim.swa_utils.AveragedModel(model)
    for value in (1.0, 2.0, 6.0):
        tc.nn.init.constant_(model.weight, value)
        mean.update_parameters(model)
    assert mean.n_averaged.item() == 3 and mean(tc.ones(1, 1)).item() == 3
    optimizer = tc.optim.SGD(model.parameters(), lr=1.0)
    schedule = tc.optim.swa_utils.SWALR(optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    rates = []
    for _ in range(4):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates == [1, 0.75, 0.5, 0.5]


def test_statistics_of_batches_anew():
    model = tc.nn.Sequential(tc.nn.BatchNorm1d(1)).eval()
    tc.optim.swa_utils.update_bn([tc.tensor([[1.0], [3.0]]), (tc.tensor([[5.0], [7.0]]), None)], model)
    assert model[0].running_mean.item() == 4 and model[0].momentum == 0.1 and not model.training


def test_complex_parameters_are_updated_as_pairs():
    for make in (tc.optim.SGD, tc.optim.Adam, tc.optim.RMSprop, tc.optim.Adagrad, tc.optim.Rprop, tc.optim.ASGD,
                 tc.optim.RAdam, tc.optim.Adadelta):
        z = tc.tensor([1 + 2j, -3j], requires_grad=True)
        pairs = tc.view_as_real(z.detach()).clone().requires_grad_()
        one, two = make([z], lr=0.1), make([pairs], lr=0.1)
        for _ in range(3):
            z.grad = z.detach() * (2 - 1j)
            pairs.grad = tc.view_as_real(z.grad).clone()
            one.step()
            two.step()
        assert tc.allclose(tc.view_as_real(z.detach()), pairs.detach())
        assert all(v.dtype is tc.complex64 for v in one.state[z].values() if isinstance(v, tc.Tensor) and v.dim() > 0)
        one.load_state_dict(one.state_dict())
        one.step()


def test_differentiable_step():
    start = tc.tensor([1.0, 2.0], requires_grad=True)
    p = start.clone()
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        tc.optim.SGD([p])
    optimizer = tc.optim.SGD([p], lr=0.5, differentiable=True)
    p.grad = start * 3
    optimizer.step()
    p.sum().backward()
    assert start.grad.tolist() == [1 - 1.5] * 2


@pytest.mark.parametrize("make, options", [
    (optim.SGD, {"momentum": 0.9}), (optim.Adam, {"amsgrad": True}), (optim.AdamW, {}), (optim.Adagrad, {}),
    (optim.RMSprop, {"centered": True, "momentum": 0.5}), (optim.Adadelta, {}), (optim.Adamax, {}), (optim.NAdam, {}),
    (optim.RAdam, {}), (optim.ASGD, {}),
])
def test_steps_are_differentiated(make, options):
    def moved(start, scale):
        p = start.clone()
        optimizer = make([p], lr=0.1, differentiable=True, **options)
        for k in range(3):
            p.grad = scale * (k + 1)
            optimizer.step()
        return p

    inputs = tc.tensor([1.0, 2.0], dtype=tc.float64), tc.tensor([0.5, 3.0], dtype=tc.float64)
    assert tc.autograd.gradcheck(moved, [x.requires_grad_() for x in inputs])


def test_old_states_have_the_defaults_of_new_options():
    optimizer = tc.optim.Adam([tc.ones(1, requires_grad=True)], lr=0.1)
    state = optimizer.state_dict()
    for group in state["param_groups"]:
        del group["maximize"]
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["maximize"] is False


def test_sign_steps_and_averages():
    p = tc.tensor([1.0, 1.0], requires_grad=True)
    optimizer = tc.optim.Rprop([p], lr=0.1)
    for g in ([1.0, 1.0], [2.0, -1.0], [1.0, -1.0]):
        p.grad = tc.tensor(g)
        optimizer.step()
    # 0.1, then 0.12 and 0.144; the other one skips the step at the change of sign, then continues with half the step.
    assert tc.allclose(p, tc.tensor([1 - 0.1 - 0.12 - 0.144, 1 - 0.1 + 0.05]))
    q = tc.tensor([1.0], requires_grad=True)
    optimizer = tc.optim.ASGD([q], lr=0.1, lambd=0.0, t0=1)
    seen = []
    for _ in range(4):
        q.grad = tc.ones(1)
        optimizer.step()
        seen.append(q.item())
    assert optimizer.state[q]["ax"].item() == pytest.approx((seen[2] + seen[3]) / 2, abs=1e-6)
    with pytest.raises(ValueError, match="Invalid eta values: 2, 1.2"):
        tc.optim.Rprop([q], etas=(2, 1.2))


def test_factors_of_steps_have_the_parameters_precision():
    w = tc.ones(1, dtype=tc.float64, requires_grad=True)
    made = optim.Rprop([w], lr=0.1)
    for _ in range(2):
        w.grad = tc.ones(1, dtype=tc.float64)
        made.step()
    assert made.state[w]["step_size"].item() == 0.1 * 1.2


def valley(x):
    """Curved, with its least point at ones."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def lbfgs_steps(count, start=(-1.2, 1.0), **options):
    x = tc.tensor(start, dtype=tc.float64, requires_grad=True)
    optimizer = optim.LBFGS([x], **options)
    calls = []

    def closure():
        assert tc.is_grad_enabled()
        optimizer.zero_grad()
        loss = valley(x)
        loss.backward()
        calls.append(loss.item())
        return loss

    losses = [optimizer.step(closure) for _ in range(count)]
    assert optimizer.state[x]["func_evals"] == len(calls)
    return x, losses, calls, optimizer


def test_lbfgs_with_a_line_search():
    x, losses, calls, _ = lbfgs_steps(5, line_search_fn="strong_wolfe")
    assert tc.allclose(x, tc.ones(2).double(), rtol=1e-4) and losses[0].requires_grad
    assert all(later <= sooner for sooner, later in zip(losses, losses[1:])) and losses[0].item() == calls[0]
    few, _, _, _ = lbfgs_steps(8, line_search_fn="strong_wolfe", history_size=2)
    assert tc.allclose(few, tc.ones(2).double(), rtol=1e-4)


def test_lbfgs_is_newtons_method_of_a_parabola():
    x = tc.tensor([3.0, -2.0], dtype=tc.float64, requires_grad=True)
    y = tc.tensor([1 + 2j], requires_grad=True)
    optimizer = optim.LBFGS([x, y], lr=1, tolerance_grad=1e-6)

    def closure():
        optimizer.zero_grad()
        loss = (tc.tensor([1.0, 4.0]).double() * x ** 2).sum() + (y - 1j).abs().square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert closure().item() < 1e-8 and y.is_complex()


def test_limits_of_lbfgs():
    _, _, calls, optimizer = lbfgs_steps(1, lr=1e-3, max_iter=4)
    assert len(calls) == 4 and optimizer.param_groups[0]["max_eval"] == 5
    _, _, calls, _ = lbfgs_steps(1, lr=1e-3, max_iter=100, max_eval=7)
    assert len(calls) == 7
    _, _, calls, _ = lbfgs_steps(1, start=(1.0, 1.0))
    assert len(calls) == 1, "a gradient of zero"
    _, losses, calls, _ = lbfgs_steps(1, start=(1.0, 1.0), tolerance_grad=-math.inf)
    assert len(calls) == 1 and losses[0].item() == 0, "a direction of zero"
    _, _, calls, optimizer = lbfgs_steps(3, lr=1e-3, max_iter=5, history_size=3)
    state, = optimizer.state.values()
    assert len(state["old_dirs"]) == len(state["old_stps"]) == len(state["ro"]) == 3 and state["n_iter"] == 15
    again = optim.LBFGS([tc.ones(2, requires_grad=True)])
    again.load_state_dict(optimizer.state_dict())
    assert next(iter(again.state.values()))["n_iter"] == 15


def test_errors_of_lbfgs():
    p, q = tc.ones(1, requires_grad=True), tc.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match="LBFGS doesn't support per-parameter options"):
        optim.LBFGS([{"params": [p]}, {"params": [q]}])
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        optim.LBFGS([p], lr=-1)
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optim.LBFGS([p], line_search_fn="armijo").step(lambda: p)


@pytest.mark.parametrize("kind", ["default", "ema", "swa", "own"])
def test_averages_of_models(kind):
    swa = tc.optim.swa_utils
    one_by_one = {"default": {}, "ema": {"avg_fn": swa.get_ema_avg_fn(0.75)}, "swa": {"avg_fn": swa.get_swa_avg_fn()},
                  "own": {"avg_fn": lambda mean, value, count: value}}[kind]
    lists = {"default": {}, "ema": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.75)},
             "swa": {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
             "own": {"multi_avg_fn": lambda means, values, count: [m.copy_(v) for m, v in zip(means, values)]}}[kind]
    net = tc.nn.Linear(2, 1)
    means = [swa.AveragedModel(net, **options) for options in (one_by_one, lists)]
    wanted = None
    for step in range(4):
        with tc.no_grad():
            net.weight.fill_(float(step * step))
        for mean in means:
            mean.update_parameters(net)
        if wanted is None or kind == "own":
            wanted = float(step * step)
        else:
            wanted = 0.75 * wanted + 0.25 * step * step if kind == "ema" else wanted + (step * step - wanted) / (step + 1)
        for mean in means:
            assert mean.module.weight.tolist() == [[pytest.approx(wanted)] * 2] and mean.n_averaged == step + 1


def test_averages_of_models_are_one_or_the_other():
    swa, net = tc.optim.swa_utils, tc.nn.Linear(1, 1)
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn should be provided"):
        swa.AveragedModel(net, avg_fn=swa.get_swa_avg_fn(), multi_avg_fn=swa.get_swa_multi_avg_fn())
    for make in (swa.get_ema_avg_fn, swa.get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match=r"Invalid decay value 1.5 provided. Please provide a value in \[0,1\] range"):
            make(1.5)
    counted = swa.AveragedModel(tc.nn.BatchNorm1d(2), multi_avg_fn=swa.get_ema_multi_avg_fn(0.5), use_buffers=True)
    for _ in range(3):
        counted.update_parameters(tc.nn.BatchNorm1d(2))
    assert counted.module.num_batches_tracked.dtype is tc.int64


def test_hooks_around_steps():
    parameter = tc.nn.Parameter(tc.ones(1))
    optimizer, seen = tc.optim.SGD([parameter], lr=0.5), []
    handles = [optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(("pre", o is optimizer, args[1:], kwargs))),
               optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(("post", parameter.item())))]
    parameter.grad = tc.ones(1)
    optimizer.step()
    assert seen == [("pre", True, (), {}), ("post", 0.5)]
    handles[0].remove()
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 7), {}))
    assert optimizer.step() == 7 and len(seen) == 3
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\), but got 3"):
        optimizer.step()

    class Twice(tc.optim.SGD):
        def step(self, closure=None):
            super().step()
            return super().step(closure)

    optimizer, seen = Twice([parameter], lr=0.25), []
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(parameter.item()))
    optimizer.step()
    assert seen == [parameter.item()]  # of the outer step only


def test_hooks_around_state_dicts():
    optimizer, seen = tc.optim.Adam([tc.nn.Parameter(tc.ones(1))]), []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("before"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "note": 1})
    optimizer.register_state_dict_post_hook(lambda o, state: seen.append(sorted(state)), prepend=True)
    optimizer.register_load_state_dict_pre_hook(lambda o, state: state.pop("note") and None)
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("after"))
    state = optimizer.state_dict()
    assert state["note"] == 1 and seen == ["before", ["param_groups", "state"]]
    optimizer.load_state_dict(state)
    assert seen[-1] == "after" and "note" in state  # the hook had a copy
    assert tc.optim.Adam([tc.ones(1)]).state_dict().keys() == {"state", "param_groups"}


def test_steps_are_named_in_profiles():
    optimizer = tc.optim.SGD([tc.nn.Parameter(tc.ones(1))], lr=0.5)
    optimizer.param_groups[0]["params"][0].grad = tc.ones(1)
    with tc.profiler.profile() as recorded:
        optimizer.step()
    assert recorded.events()[0].name == "Optimizer.step#SGD.step" and recorded.events()[0].cpu_children


def test_files_of_pytorch():
    from importlib import import_module
    for name, cls in (("adam", "Adam"), ("adamw", "AdamW"), ("sgd", "SGD"), ("rmsprop", "RMSprop"), ("optimizer", "Optimizer")):
        assert getattr(import_module(f"tercel.optim.{name}"), cls) is getattr(tc.optim, cls)
    assert import_module("tercel.nn.utils.clip_grad").clip_grad_norm_ is tc.nn.utils.clip_grad_norm_


def test_what_keeps_nothing_has_no_state():
    parameter = tc.nn.Parameter(tc.ones(2))
    optimizer = optim.SGD([parameter], lr=0.1)
    for _ in range(2):
        parameter.grad = tc.ones(2)
        optimizer.step()
    assert optimizer.state_dict()["state"] == {} and not optimizer.state and parameter.tolist() == pytest.approx([0.8, 0.8])
