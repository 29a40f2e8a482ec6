"""Steps by the extension's rules: compared with recorded ones, for other dtypes and strides, and their states."""

import pytest

import tercel as tc
from tercel import optim

RULES = [
    (optim.SGD, {}), (optim.SGD, {"momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1}),
    (optim.SGD, {"momentum": 0.9, "nesterov": True}), (optim.Adam, {"weight_decay": 0.1}), (optim.Adam, {"amsgrad": True}),
    (optim.AdamW, {"weight_decay": 0.1}), (optim.AdamW, {"amsgrad": True}), (optim.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.1}),
    (optim.RMSprop, {"weight_decay": 0.1}), (optim.RMSprop, {"centered": True}), (optim.RMSprop, {"momentum": 0.5}),
    (optim.RMSprop, {"centered": True, "momentum": 0.5}),
]


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("make, options", RULES)
def test_recorded_steps_are_those_of_the_rules(make, options, maximize):
    start, gradients = tc.linspace(-2, 2, 75, dtype=tc.float64), [tc.randn(75, dtype=tc.float64) for _ in range(4)]
    ends, states = [], []
    for differentiable in (False, True):
        p = start.clone().requires_grad_(not differentiable)
        optimizer = make([p], lr=0.1, maximize=maximize, differentiable=differentiable, **options)
        for g in gradients:
            p.grad = g
            optimizer.step()
        ends.append(p.detach())
        states.append(optimizer.state_dict()["state"].get(0, {}))
    assert tc.allclose(*ends, rtol=1e-12, atol=1e-14)
    assert set(states[0]) == set(states[1])
    for name, value in states[0].items():
        assert value.dtype == states[1][name].dtype and tc.allclose(value, states[1][name], rtol=1e-12, atol=1e-14), name


@pytest.mark.parametrize("make, options", RULES)
@pytest.mark.parametrize("dtype", [tc.float16, tc.bfloat16])
def test_narrow_parameters_are_updated_in_float32(make, options, dtype):
    start, g = tc.linspace(-2, 2, 300).to(dtype), tc.linspace(-1, 1, 300).to(dtype)
    narrow, wide = (start.clone().to(t).requires_grad_() for t in (dtype, tc.float32))
    for p in (narrow, wide):
        p.grad = g.to(p.dtype)
        make([p], lr=0.1, **options).step()
    assert narrow.dtype is dtype and tc.equal(narrow.detach(), wide.detach().to(dtype))


@pytest.mark.parametrize("make, options", RULES)
def test_parameters_of_any_strides(make, options):
    base = tc.linspace(-2, 2, 60).reshape(6, 10)
    for view in (lambda x: x.t(), lambda x: x[::2], lambda x: x[:, 1:8], lambda x: x[:, ::3]):
        p, q = view(base.clone()).detach().requires_grad_(), view(base).clone().requires_grad_()
        one, two = make([p], lr=0.1, **options), make([q], lr=0.1, **options)
        for k in range(2):
            p.grad, q.grad = tc.full_like(p, k + 0.5).contiguous(), tc.full((), k + 0.5).expand(q.shape)
            one.step()
            two.step()
        assert tc.equal(p.detach(), q.detach())


def test_states_have_pytorchs_names():
    for make, options, names in [
            (optim.SGD, {"momentum": 0.5}, ["momentum_buffer"]), (optim.Adam, {}, ["step", "exp_avg", "exp_avg_sq"]),
            (optim.AdamW, {"amsgrad": True}, ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]), (optim.Adagrad, {}, ["step", "sum"]),
            (optim.RMSprop, {"momentum": 0.5, "centered": True}, ["step", "square_avg", "grad_avg", "momentum_buffer"]),
            (optim.Ftrl, {}, ["n", "z"])]:
        p, idle = tc.ones(2, requires_grad=True), tc.ones(2, requires_grad=True)
        optimizer = make([p, idle], **options)
        p.grad = tc.ones(2)
        version = p._version
        optimizer.step()
        (kept,) = optimizer.state_dict()["state"].values()
        assert sorted(kept) == sorted(names) and p._version == version + 1
        if "step" in kept:
            assert kept["step"].item() == 1 and kept["step"].dtype is tc.float32 and kept["step"].shape == ()


def test_steps_of_old_states_are_numbers():
    p = tc.ones(1, requires_grad=True)
    optimizer = optim.Adam([p], lr=0.1)
    optimizer.state[p] = {"step": 3, "exp_avg": tc.zeros(1), "exp_avg_sq": tc.zeros(1)}
    p.grad = tc.ones(1)
    optimizer.step()
    assert optimizer.state[p]["step"].item() == 4
    assert p.item() == pytest.approx(1 - 0.1 * (0.1 / (1 - 0.9**4)) / (0.001 / (1 - 0.999**4)) ** 0.5, rel=1e-5)


def test_states_that_do_not_fit_change_nothing():
    p, q = tc.ones(2, requires_grad=True), tc.ones(2, requires_grad=True)
    optimizer = optim.Adam([p, q], lr=0.1)
    p.grad, q.grad = tc.ones(2), tc.ones(2)
    optimizer.state[q]["exp_avg"] = tc.zeros(3)
    with pytest.raises(RuntimeError, match=r"Adam: state \[3\] float32 on cpu does not fit parameter \[2\] float32 on cpu"):
        optimizer.step()
    assert p.tolist() == [1, 1] and optimizer.state[p]["step"].item() == 0
    optimizer = optim.SGD([p], lr=0.5, momentum=0.9, dampening=0.5)
    good, p.grad = p.grad, tc.ones(2)
    p.grad.untyped_storage().resize_(4)
    with pytest.raises(RuntimeError):
        optimizer.step()
    assert not optimizer.state[p]
    p.grad = good
    optimizer.step()
    assert p.tolist() == [0.5, 0.5]  # the first step has no dampening


def test_decoupled_decay_is_an_option_of_a_group():
    def stepped(optimizer, w):
        for _ in range(2):
            w.grad = tc.ones(2)
            optimizer.step()
        return w.tolist()

    def leaf():
        return tc.tensor([2.0, -3.0], requires_grad=True)

    a, b, c = leaf(), leaf(), leaf()
    decoupled = tc.optim.Adam([a], lr=0.1, weight_decay=0.5, decoupled_weight_decay=True)
    assert stepped(decoupled, a) == stepped(tc.optim.AdamW([b], lr=0.1, weight_decay=0.5), b)
    coupled = tc.optim.Adam([c], lr=0.1, weight_decay=0.5)
    assert stepped(coupled, c) != a.tolist()
    coupled.load_state_dict(decoupled.state_dict())
    assert coupled.param_groups[0]["decoupled_weight_decay"] is True
    adamw = tc.optim.AdamW([leaf()])
    adamw.load_state_dict(tc.optim.Adam([leaf()]).state_dict())
    assert adamw.param_groups[0]["decoupled_weight_decay"] is True
