"""Mixed precision: autocast and GradScaler."""

import copy
import math
import threading

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


def test_scaler_unscales_gradients_of_rows():
    table = tc.nn.Embedding.from_pretrained(tc.zeros(3, 2), freeze=False, sparse=True)
    optimizer, scaler = tc.optim.SGD(table.parameters(), lr=1.0), tc.amp.GradScaler("cpu")
    scaler.scale(table(tc.tensor([1, 1])).sum()).backward()
    scaler.step(optimizer)
    assert table.weight.tolist() == [[0, 0], [-2, -2], [0, 0]]


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


def test_a_step_without_gradients_is_an_error():
    optimizer, scaler = tc.optim.SGD([tc.nn.Parameter(tc.ones(2))], lr=0.1), tc.amp.GradScaler("cpu")
    scaler.scale(tc.ones(1))
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer."):
        scaler.step(optimizer)
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update."):
        scaler.update()


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


def half(*shape):
    return tc.randn(*shape).bfloat16()


F = tc.nn.functional
# Result dtypes under autocast: PyTorch 2.15's.
POLICIES = [
    (lambda: tc.randn(2, 3) @ tc.randn(3, 2), tc.bfloat16), (lambda: tc.mm(tc.randn(2, 2), half(2, 2)), tc.bfloat16),
    (lambda: tc.randn(3, 3).matmul(tc.randn(3)), tc.bfloat16), (lambda: tc.addmm(tc.randn(2), half(2, 2), tc.randn(2, 2)), tc.bfloat16),
    (lambda: tc.mv(tc.randn(2, 2), tc.randn(2)), tc.float32), (lambda: tc.outer(tc.randn(2), tc.randn(2)), tc.float32),
    (lambda: tc.randn(2, 2).double() @ tc.randn(2, 2).double(), tc.float64),
    (lambda: tc.randn(2, 2).half() @ tc.randn(2, 2).half(), tc.bfloat16),
    (lambda: tc.ones(2, 2, dtype=tc.int64) @ tc.ones(2, 2, dtype=tc.int64), tc.int64),
    (lambda: tc.einsum("ij,jk->ik", tc.randn(2, 2), tc.randn(2, 2)), tc.bfloat16),
    (lambda: tc.einsum("i,j->ij", tc.randn(2), tc.randn(2)), tc.float32), (lambda: tc.einsum("ij->", tc.randn(2, 2)), tc.float32),
    (lambda: tc.tensordot(tc.randn(2, 2), tc.randn(2, 2), 1), tc.bfloat16),
    (lambda: tc.tensordot(tc.randn(2, 2), tc.randn(2, 2), 2), tc.float32),
    (lambda: tc.linalg.multi_dot([tc.randn(2, 2), half(2, 2)]), tc.bfloat16),
    (lambda: F.conv2d(tc.randn(1, 1, 3, 3), tc.randn(1, 1, 2, 2)), tc.bfloat16),
    (lambda: F.scaled_dot_product_attention(tc.randn(1, 2, 4), half(1, 2, 4), half(1, 2, 4), tc.randn(2, 2)), tc.bfloat16),
    (lambda: F.scaled_dot_product_attention(half(1, 2, 4), half(1, 2, 4), half(1, 2, 4), tc.ones(2, 2) > 0), tc.bfloat16),
    (lambda: F.mse_loss(half(3), tc.randn(3)), tc.float32), (lambda: F.cross_entropy(half(2, 3), tc.tensor([0, 1])), tc.float32),
    (lambda: F.mse_loss(half(3), tc.randn(3).double()), tc.float64),
    (lambda: half(3).prod(), tc.float32), (lambda: half(3).prod(dtype=tc.bfloat16), tc.bfloat16),
    (lambda: half(3, 3).trace(), tc.float32), (lambda: tc.linalg.inv(tc.eye(2).bfloat16()), tc.float32),
    (lambda: tc.fft.rfft(half(4)), tc.complex64), (lambda: half(4).quantile(0.5), tc.float32),
    (lambda: F.avg_pool3d(half(1, 2, 2, 2), 2), tc.float32), (lambda: F.avg_pool2d(half(1, 2, 2), 2), tc.bfloat16),
    (lambda: F.pad(half(1, 1, 4), (1, 1), mode="reflect"), tc.float32), (lambda: F.pad(half(1, 1, 4), (1, 1)), tc.bfloat16),
    (lambda: F.interpolate(half(1, 1, 2, 2, 2), scale_factor=2, mode="area"), tc.float32),
    (lambda: F.interpolate(half(1, 1, 2, 2), scale_factor=2, mode="area"), tc.bfloat16),
    (lambda: tc.cat([half(2), tc.randn(2)]), tc.float32), (lambda: tc.stack([half(2), half(2)]), tc.bfloat16),
    (lambda: tc.cat([half(2), tc.randn(2).double()]), tc.float64),
    (lambda: half(3).index_copy(0, tc.tensor([0]), tc.randn(1)), tc.float32),
    (lambda: F.softmax(half(3), 0), tc.bfloat16), (lambda: half(3).exp(), tc.bfloat16), (lambda: half(3) + tc.randn(3), tc.float32),
    (lambda: F.layer_norm(half(2, 3), (3,), tc.ones(3), tc.zeros(3)), tc.bfloat16),
    (lambda: F.group_norm(half(2, 4), 2, tc.ones(4), tc.zeros(4)), tc.bfloat16),
    (lambda: F.batch_norm(half(2, 3), tc.zeros(3), tc.ones(3), tc.ones(3), tc.zeros(3), True), tc.bfloat16),
    (lambda: tc.nn.LSTM(3, 4)(half(5, 2, 3))[0], tc.bfloat16), (lambda: tc.nn.LSTM(3, 4)(tc.randn(5, 2, 3))[1][1], tc.bfloat16),
    (lambda: tc.nn.RNN(3, 4)(tc.randn(5, 2, 3))[0], tc.bfloat16), (lambda: tc.nn.GRU(3, 4)(tc.randn(5, 2, 3))[0], tc.float32),
    (lambda: tc.nn.GRU(3, 4)(half(5, 2, 3))[0], tc.bfloat16), (lambda: tc.nn.LSTMCell(3, 4)(half(2, 3))[0], tc.bfloat16),
    (lambda: tc.nn.LSTMCell(3, 4)(tc.randn(2, 3))[1], tc.float32),
    (lambda: tc.nn.MultiheadAttention(4, 2)(*[tc.randn(3, 2, 4)] * 3)[0], tc.bfloat16),
    (lambda: tc.nn.TransformerEncoderLayer(4, 2, 8)(tc.randn(3, 2, 4)), tc.float32),
    (lambda: tc.linalg.matmul(tc.randn(2, 2), half(2, 2)), tc.bfloat16),
    (lambda: tc.linalg.matrix_power(tc.randn(2, 2), 3), tc.bfloat16), (lambda: tc.matrix_power(tc.eye(2).bfloat16(), -2), tc.bfloat16),
    (lambda: tc.matrix_power(tc.eye(2).bfloat16(), -1), tc.float32), (lambda: tc.matrix_power(tc.eye(2), 1), tc.float32),
    (lambda: tc.matrix_power(tc.eye(2), 3, out=tc.empty(2, 2)), tc.float32), (lambda: tc.linalg.pinv(tc.randn(2, 3)), tc.bfloat16),
    (lambda: tc.linalg.pinv(tc.randn(2, 3).double(), rcond=1e-3), tc.float64), (lambda: tc.pinverse(tc.randn(2, 3)), tc.float32),
    (lambda: tc.cov(tc.randn(2, 3)), tc.bfloat16), (lambda: tc.corrcoef(tc.randn(2, 3)), tc.bfloat16),
    (lambda: tc.linalg.solve_triangular(tc.eye(2), half(2, 2), upper=True), tc.float32),
    (lambda: F.affine_grid(tc.randn(1, 2, 3), (1, 1, 2, 2)), tc.bfloat16), (lambda: F.rms_norm(tc.randn(2, 3), (3,), half(3)), tc.float32),
    (lambda: F.rms_norm(half(2, 3), (3,), tc.randn(3)), tc.bfloat16), (lambda: tc.nn.Bilinear(2, 3, 4)(tc.randn(5, 2), tc.randn(5, 3)), tc.float32),
    (lambda: tc.convolution(tc.randn(1, 2, 4), tc.randn(2, 2, 3), None, [1], [0], [1], False, [0], 1), tc.float32),
    (lambda: tc.mm(tc.eye(2), tc.eye(2), out=tc.empty(2, 2)), tc.float32), (lambda: tc.eye(2).addmm_(tc.eye(2), tc.eye(2)), tc.float32),
]


@pytest.mark.parametrize("case", range(len(POLICIES)))
def test_dtypes_under_autocast(case):
    function, dtype = POLICIES[case]
    with tc.autocast("cpu"):
        assert function().dtype is dtype
        if dtype is not tc.float64:
            with tc.autocast("cpu", enabled=False):
                assert (tc.randn(2, 2) @ tc.randn(2, 2)).dtype is tc.float32


def test_autocast_calculates_as_casts_do():
    tc.manual_seed(3)
    layer, x = tc.nn.Linear(4, 3), tc.randn(2, 4, requires_grad=True)
    with tc.autocast("cpu", dtype=tc.float16):
        y = layer(x)
        loss = F.cross_entropy(y, tc.tensor([0, 2]))
    w, b = (p.detach().clone().requires_grad_() for p in (layer.weight, layer.bias))
    z = x.detach().clone().requires_grad_()
    expected = F.linear(z.half(), w.half(), b.half())
    assert y.dtype is tc.float16 and tc.equal(y, expected) and loss.dtype is tc.float32
    loss.backward()
    F.cross_entropy(expected.float(), tc.tensor([0, 2])).backward()
    for got, want in ((layer.weight, w), (layer.bias, b), (x, z)):
        assert got.grad.dtype is tc.float32 and tc.equal(got.grad, want.grad)


def test_contexts_that_are_left_out_of_order():
    def state():
        return tc.is_autocast_enabled("cpu"), tc.get_autocast_dtype("cpu")

    outer, inner = tc.autocast("cpu", dtype=tc.float16), tc.autocast("cpu", enabled=False)
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert state() == (False, tc.bfloat16)
    inner.__exit__(None, None, None)
    assert state() == (True, tc.float16)  # what it met, as in PyTorch
    tc.set_autocast_enabled("cpu", False)
    tc.set_autocast_dtype("cpu", tc.bfloat16)

    with outer:  # threads share the object, not the state
        thread = threading.Thread(target=lambda: outer.__enter__().__exit__())
        thread.start()
        thread.join()
        assert state() == (True, tc.float16)
    assert state() == (False, tc.bfloat16) and copy.deepcopy(outer).fast_dtype is tc.float16


def casts_of(weight, uses):
    """The number of casts of the weight in a graph."""
    nodes = {use.grad_fn.next_functions[1][0] for use in uses}
    assert all(node.next_functions[0][0].variable is weight for node in nodes)
    return len(nodes)


def test_parameters_are_cast_once():
    weight, x = tc.nn.Parameter(tc.eye(2)), tc.ones(2, 2)
    with tc.autocast("cpu"):
        with tc.no_grad():
            tc.mm(x, weight)
        a = tc.mm(x, weight)
        with tc.autocast("cpu"):
            b = tc.mm(x, weight)
        assert casts_of(weight, [a, b, tc.mm(x, weight)]) == 1
        tc.clear_autocast_cache()
        assert casts_of(weight, [a, tc.mm(x, weight)]) == 2
        with tc.no_grad():
            weight.mul_(2)
        assert tc.mm(x, weight)[0, 0] == 2
        (a.sum() + b.sum()).backward()
    assert weight.grad.tolist() == [[4, 4], [4, 4]] and weight.grad.dtype is tc.float32
    with tc.autocast("cpu", cache_enabled=False):
        assert not tc.is_autocast_cache_enabled() and casts_of(weight, [tc.mm(x, weight), tc.mm(x, weight)]) == 2
    assert tc.is_autocast_cache_enabled()


def test_state_of_autocast():
    x = tc.ones(2, 2)
    with pytest.raises(KeyError):
        with tc.autocast("cpu", dtype=tc.float16):
            assert tc.is_autocast_enabled("cpu") and not tc.is_autocast_enabled()
            assert tc.get_autocast_dtype("cpu") is tc.float16 and (x @ x).dtype is tc.float16
            seen = []
            thread = threading.Thread(target=lambda: seen.append((tc.is_autocast_enabled("cpu"), (x @ x).dtype)))
            thread.start()
            thread.join()
            assert seen == [(False, tc.float32)]
            raise KeyError
    assert not tc.is_autocast_enabled("cpu") and tc.get_autocast_dtype("cpu") is tc.bfloat16
    assert tc.get_autocast_dtype("cuda") is tc.float16 and tc.amp.is_autocast_available("cpu")

    @tc.autocast("cpu")
    def power(n):
        return x @ x if n == 0 else power(n - 1) @ x

    assert power(2).dtype is tc.bfloat16 and not tc.is_autocast_enabled("cpu")
    tc.set_autocast_enabled("cpu", True)
    tc.set_autocast_dtype("cpu", tc.float16)
    try:
        assert (x @ x).dtype is tc.float16
    finally:
        tc.set_autocast_enabled("cpu", False)
        tc.set_autocast_dtype("cpu", tc.bfloat16)
    assert tc.autocast_increment_nesting() == 1 and tc.autocast_decrement_nesting() == 0
    with pytest.warns(UserWarning, match="the target dtype is not supported"), tc.autocast("cpu", dtype=tc.float64):
        assert not tc.is_autocast_enabled("cpu")
    with pytest.raises(TypeError, match="argument 'device_type' \\(position 1\\) must be str, not int"):
        tc.is_autocast_enabled(3)
    with pytest.raises(TypeError, match="argument 'enabled' \\(position 2\\) must be bool, not int"):
        tc.set_autocast_enabled("cpu", 1)
    with pytest.raises(RuntimeError, match="left on a thread that has not entered it"):
        tc.autocast("cpu").__exit__()
    with pytest.warns(FutureWarning, match="`tercel.cpu.amp.autocast"), tc.cpu.amp.autocast():
        assert (x @ x).dtype is tc.bfloat16


@pytest.mark.parametrize("cast_inputs", [None, tc.float32])
def test_functions_know_the_state_of_their_forward(cast_inputs):
    seen = []

    class Product(tc.autograd.Function):
        @staticmethod
        @tc.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
        def forward(ctx, x):
            seen.append((x.dtype, tc.is_autocast_enabled("cpu"), (x @ tc.eye(2)).dtype))
            return x * 2

        @staticmethod
        @tc.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            seen.append((tc.is_autocast_enabled("cpu"), (tc.eye(2) @ tc.eye(2)).dtype))
            return g * 2

    x = tc.ones(2, 2, requires_grad=True)
    with tc.autocast("cpu"):
        y = Product.apply(x.bfloat16())
    y.sum().backward()
    assert seen == ([(tc.bfloat16, True, tc.bfloat16), (True, tc.bfloat16)] if cast_inputs is None else
                    [(tc.float32, False, tc.float32), (False, tc.float32)])


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_run_again_under_the_same_state(reentrant):
    layer, seen = tc.nn.Linear(3, 3), []
    x = tc.randn(2, 3, requires_grad=True)

    def part(x):
        seen.append((tc.is_autocast_enabled("cpu"), layer(x).dtype))
        return layer(layer(x).relu())

    with tc.autocast("cpu", dtype=tc.float16):
        y = tc.utils.checkpoint.checkpoint(part, x, use_reentrant=reentrant)
    y.float().sum().backward()
    got = [p.grad.clone() for p in (x, layer.weight, layer.bias)]
    for p in (x, layer.weight, layer.bias):
        p.grad = None
    with tc.autocast("cpu", dtype=tc.float16):
        y = part(x)
    y.float().sum().backward()
    assert seen == [(True, tc.float16)] * 3
    assert all(tc.allclose(g, p.grad) for g, p in zip(got, (x, layer.weight, layer.bias)))


def test_training_with_a_scaler():
    tc.manual_seed(0)
    model = tc.nn.Sequential(tc.nn.Linear(4, 8), tc.nn.LayerNorm(8), tc.nn.ReLU(), tc.nn.Linear(8, 1))
    optimizer, scaler = tc.optim.SGD(model.parameters(), lr=0.1), tc.amp.GradScaler("cpu", init_scale=1024.0)
    x = tc.randn(64, 4)
    y, losses = x.sum(1, keepdim=True), []
    for _ in range(50):
        optimizer.zero_grad()
        with tc.autocast("cpu", dtype=tc.float16):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0] and scaler.get_scale() >= 1024
