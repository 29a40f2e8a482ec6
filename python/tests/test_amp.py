"""Mixed precision: what scales losses, and contexts that are disabled."""

import math

import pytest

import tercel as tc


def step(scaler, optimizer, parameter, factor=1.0):
    optimizer.zero_grad()
    loss = scaler.scale((parameter * parameter).sum() * factor)
    loss.backward()
    scaler.step(optimizer)
    scaler.update()
    return loss.item(), parameter.tolist(), scaler.get_scale(), scaler.state_dict()["_growth_tracker"]


def test_scaled_steps_are_those_without_a_scale():
    parameter = tc.nn.Parameter(tc.ones(2))
    optimizer = tc.optim.SGD([parameter], lr=0.1)
    scaler = tc.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    # Loss, weights, scale and steps since it changed: PyTorch 2.15's.
    expected = [(8, 0.8, 4, 1), (math.inf, 0.8, 2, 0), (2.56, 0.64, 2, 1), (1.6384, 0.512, 4, 0), (2.0972, 0.4096, 4, 1)]
    for i, (loss, weight, scale, tracker) in enumerate(expected):
        got = step(scaler, optimizer, parameter, math.inf if i == 1 else 1.0)
        assert got[0] == pytest.approx(loss, rel=1e-4) and got[1] == pytest.approx([weight] * 2) and got[2:] == (scale, tracker)
    again = tc.amp.GradScaler("cpu")
    again.load_state_dict(scaler.state_dict())
    assert again.state_dict() == scaler.state_dict() == {
        "scale": 4.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2, "_growth_tracker": 1}
    scaled = scaler.scale([tc.ones(1), (tc.ones(1),)])
    assert scaled[0].item() == 4 and type(scaled[1]) is tuple


def test_order_of_calls():
    parameter = tc.nn.Parameter(tc.ones(2))
    optimizer = tc.optim.SGD([parameter], lr=0.1)
    scaler = tc.amp.GradScaler("cpu", init_scale=8.0)
    for call in (lambda: scaler.step(optimizer), lambda: scaler.unscale_(optimizer), scaler.update):
        with pytest.raises(AssertionError, match="Attempted .* but _scale is None"):
            call()
    scaler.scale(parameter.sum()).backward()
    scaler.unscale_(optimizer)
    assert parameter.grad.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) is being called after step\(\)"):
        scaler.unscale_(optimizer)
    scaler.update()
    with pytest.raises(AssertionError, match="No inf checks were recorded"):
        scaler.update()
    scaler.update(2.0)
    assert scaler.get_scale() == 2
    with pytest.raises(RuntimeError, match="The source state dict is empty"):
        scaler.load_state_dict({})


def test_without_a_gpu_it_only_passes_on():
    with pytest.warns(UserWarning, match="CUDA is not available.  Disabling"):
        scaler = tc.amp.GradScaler()
    parameter = tc.nn.Parameter(tc.ones(2))
    optimizer = tc.optim.SGD([parameter], lr=0.5)
    loss = parameter.sum()
    assert scaler.scale(loss) is loss and not scaler.is_enabled() and scaler.get_scale() == 1 and scaler.state_dict() == {}
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert parameter.tolist() == [0.5, 0.5]


def test_contexts_for_a_gpu_disable_themselves():
    with pytest.warns(UserWarning, match="CUDA is not available"), tc.autocast("cuda", dtype=tc.float16):
        assert (tc.ones(2, 2) @ tc.ones(2, 2)).dtype is tc.float32 and not tc.is_autocast_enabled()
    with pytest.warns() as seen:
        with tc.cuda.amp.autocast():
            pass
        tc.cuda.amp.GradScaler()
    assert [w.category for w in seen] == [FutureWarning, UserWarning] * 2

    @tc.amp.autocast("cpu", enabled=False)
    def product(x):
        return x @ x

    assert product(tc.ones(2, 2)).dtype is tc.float32 and product.__name__ == "product"
    with pytest.raises(NotImplementedError, match="expected enabled=False on the CPU"):
        with tc.amp.autocast("cpu"):
            pass
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        tc.amp.autocast(None)


def test_functions_with_casts():
    class Double(tc.autograd.Function):
        @staticmethod
        @tc.amp.custom_fwd(device_type="cuda", cast_inputs=tc.float32)
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @tc.amp.custom_bwd(device_type="cuda")
        def backward(ctx, g):
            return g * 2

    x = tc.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
