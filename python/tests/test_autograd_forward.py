"""Forward mode: tangents, levels, custom functions, and gradcheck's forward check."""

import threading

import pytest

import tercel as tc
import tercel.autograd.forward_ad as fwAD
from tercel.autograd import Function, gradcheck, gradgradcheck


def numbers(*values, **options):
    return tc.tensor(values, dtype=tc.float64, **options)


def test_tangents_of_results():
    x, v = numbers(1, 2), numbers(1, 10)
    with fwAD.dual_level() as level:
        assert level == 0 == fwAD._current_level
        dual = fwAD.make_dual(x, v)
        assert fwAD.unpack_dual(dual).tangent is v
        y = dual * dual
        primal, tangent = fwAD.unpack_dual(y)
        assert primal.tolist() == [1, 4] and tangent.tolist() == [2, 40]
        assert not y.requires_grad and y.grad_fn is None
        assert fwAD.unpack_dual(x).tangent is None and fwAD.unpack_dual(y.detach()).tangent is None
        with tc.no_grad():
            assert fwAD.unpack_dual(dual.sum()).tangent.item() == 11
        with tc.inference_mode():
            assert fwAD.unpack_dual(dual.sum()).tangent is None
        assert fwAD.unpack_dual(dual.sum()).tangent.item() == 11
        assert "tangent=tensor([ 2., 40.]" in repr(y)
    assert fwAD._current_level == -1
    assert fwAD.unpack_dual(y) == (y, None) and fwAD.unpack_dual(y).primal is y
    assert "tangent" not in repr(y)


def test_levels():
    with pytest.raises(RuntimeError, match="no level exists"):
        fwAD.make_dual(numbers(1), numbers(1))
    with pytest.raises(RuntimeError, match="no level exists"):
        fwAD.exit_dual_level()
    with fwAD.dual_level():
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the moment"):
            fwAD.enter_dual_level()
        with pytest.raises(RuntimeError, match="not the last one that was created"):
            fwAD.exit_dual_level(level=3)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(fwAD._current_level))
        thread.start()
        thread.join()
        assert seen == [-1]
    level = fwAD.enter_dual_level()
    fwAD.exit_dual_level(level=level)
    with pytest.raises(AttributeError):
        fwAD.nothing


def test_what_make_dual_refuses():
    with fwAD.dual_level():
        with pytest.raises(RuntimeError, match="different size than that of the original Tensor"):
            fwAD.make_dual(numbers(1, 2), numbers(1))
        with pytest.raises(RuntimeError, match="dtype"):
            fwAD.make_dual(numbers(1), numbers(1).float())
        with pytest.raises(ValueError, match="Expected primal to be floating point or complex, but got: .*int64"):
            fwAD.make_dual(tc.tensor([1]), numbers(1))
        with pytest.raises(ValueError, match="Expected tangent to be floating point or complex, but got: .*int64"):
            fwAD.make_dual(numbers(1), tc.tensor([1]))
        for wrong in ((1, numbers(1)), (numbers(1), 1)):
            with pytest.raises(TypeError, match="expected a Tensor"):
                fwAD.make_dual(*wrong)
        with pytest.raises(TypeError, match="expected a Tensor"):
            fwAD.unpack_dual(1)


def test_a_view_of_a_base_that_becomes_dual():
    base = tc.zeros(2, 2, dtype=tc.float64)
    view = base[1]
    with fwAD.dual_level():
        view.copy_(fwAD.make_dual(numbers(1, 2), numbers(3, 4)))
        whole, part = fwAD.unpack_dual(base).tangent, fwAD.unpack_dual(view).tangent
        assert whole.tolist() == [[0, 0], [3, 4]] and part.tolist() == [3, 4]
        assert part._base is whole


def test_out_is_refused():
    with fwAD.dual_level():
        dual, plain = fwAD.make_dual(numbers(1, 2), numbers(1, 1)), numbers(1, 2)
        for call in (lambda: tc.add(plain, plain, out=dual), lambda: tc.add(dual, plain, out=plain),
                     lambda: tc.cat([dual, plain], out=tc.empty(4, dtype=tc.float64)),
                     lambda: tc.cumsum(dual, 0, out=plain)):
            with pytest.raises(NotImplementedError, match="out= function"):
                call()


def test_switched_off():
    with fwAD.dual_level():
        dual = fwAD.make_dual(numbers(1), numbers(1))
        with fwAD._set_fwd_grad_enabled(False):
            assert not fwAD._is_fwd_grad_enabled()
            assert fwAD.unpack_dual(dual * 2).tangent is None
        assert fwAD._is_fwd_grad_enabled()
        assert fwAD.unpack_dual(dual * 2).tangent.item() == 2


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * 3 * x ** 2


class Product(Function):
    """A function whose jvp() returns twice the correct value, to show that it is called."""

    @staticmethod
    def forward(ctx, x, y, factor):
        ctx.save_for_forward(x, y)
        ctx.factor = factor
        return x * y * factor, factor

    @staticmethod
    def jvp(ctx, x_t, y_t, factor_t):
        assert factor_t is None
        x, y = ctx.saved_tensors
        return 2 * ctx.factor * (x_t * y + x * y_t), None


def test_functions_without_jvp_differentiate_backward():
    with fwAD.dual_level():
        y = Cube.apply(fwAD.make_dual(numbers(2), numbers(1)))
        assert fwAD.unpack_dual(y).tangent.item() == 12 and not y.requires_grad
    assert gradcheck(Cube.apply, numbers(1, 2, requires_grad=True), check_forward_ad=True)


def test_functions_with_jvp():
    with fwAD.dual_level():
        dual, plain = fwAD.make_dual(numbers(2), numbers(1)), numbers(5)
        out, factor = Product.apply(dual, plain, 3)
        assert fwAD.unpack_dual(out).tangent.item() == 2 * 3 * 5 and factor == 3
        assert fwAD.unpack_dual(Product.apply(plain, plain, 3)[0]).tangent is None
        assert fwAD.unpack_dual(Product.apply(dual, dual, 1)[0]).tangent.item() == 2 * 4


@pytest.mark.parametrize("returned, error", [((1,), TypeError), ((None, None), RuntimeError)])
def test_jvp_that_returns_something_else(returned, error):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def jvp(ctx, x_t):
            return returned

    with fwAD.dual_level(), pytest.raises(error, match="jvp"):
        Wrong.apply(fwAD.make_dual(numbers(1), numbers(1)))


def test_a_jvp_that_fails():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def jvp(ctx, x_t):
            raise KeyError("mine")

    with fwAD.dual_level(), pytest.raises(KeyError, match="mine"):
        Fails.apply(fwAD.make_dual(numbers(1), numbers(1)))


def test_a_hessian_times_a_vector():
    x = numbers(1, 2, requires_grad=True)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, numbers(1, 10))
        gradient, = tc.autograd.grad((dual ** 3).sum(), x)
        assert fwAD.unpack_dual(gradient).tangent.tolist() == pytest.approx([6, 120])


def test_modules_and_losses():
    model = tc.nn.Sequential(tc.nn.Linear(3, 4), tc.nn.LayerNorm(4), tc.nn.GELU(), tc.nn.Linear(4, 2)).double()
    x, target = tc.randn(5, 3, dtype=tc.float64), tc.tensor([0, 1, 1, 0, 1])
    v = tc.randn_like(x)

    def loss(x):
        return tc.nn.functional.cross_entropy(model(x), target)

    with fwAD.dual_level():
        tangent = fwAD.unpack_dual(loss(fwAD.make_dual(x, v))).tangent
    expected = tc.autograd.functional.jvp(loss, x, v)[1]
    assert tc.allclose(tangent, expected)


@pytest.mark.parametrize("layer", [tc.nn.LSTM, tc.nn.GRU, tc.nn.RNN])
def test_recurrent_layers(layer):
    module = layer(2, 3, bidirectional=True).double()
    x = tc.randn(4, 2, 2, dtype=tc.float64, requires_grad=True)
    assert gradcheck(lambda x: module(x)[0], x, check_forward_ad=True)
    assert gradgradcheck(lambda x: module(x)[0], x, check_fwd_over_rev=True)


def square_wrong(x):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * 3 * ctx.saved_tensors[0]

    return Wrong.apply(x)


def test_gradcheck_finds_a_wrong_jvp():
    x = numbers(1, 2, requires_grad=True)
    assert gradcheck(square_wrong, x)
    for fast_mode in (False, True):
        with pytest.raises(RuntimeError, match="Jacobian mismatch"):
            gradcheck(square_wrong, x, check_forward_ad=True, fast_mode=fast_mode)
    assert not gradcheck(square_wrong, x, check_forward_ad=True, check_backward_ad=False, raise_exception=False)


@pytest.mark.parametrize("dtype", [tc.float64, tc.complex128])
@pytest.mark.parametrize("call", [
    lambda x: x.exp() * x.sum(), lambda x: x @ x.mT, lambda x: tc.linalg.det(x @ x.mT + tc.eye(2, dtype=x.dtype)),
    lambda x: x.cumsum(0), lambda x: tc.fft.fft(x).abs(), lambda x: tc.einsum("ij,kj->ik", x, x),
    lambda x: x[:, 1:] * x[:, :2], lambda x: tc.linalg.inv(x[:, 1:] @ x[:, 1:].mH)])
def test_gradcheck_forward(call, dtype):
    x = tc.randn(2, 3, dtype=dtype, requires_grad=True)
    assert gradcheck(call, x, check_forward_ad=True)
    assert gradgradcheck(call, x, check_fwd_over_rev=True)


@pytest.mark.parametrize("call", [
    lambda x: x.sort(1)[0], lambda x: x.softmax(1), lambda x: tc.nn.functional.layer_norm(x, (3,)),
    lambda x: tc.nn.functional.batch_norm(x, None, None, training=True), lambda x: x.median(1)[0],
    lambda x: tc.nn.functional.embedding_bag(tc.tensor([[0, 1]]), x, mode="sum"), lambda x: x.prod(),
    lambda x: tc.nn.functional.conv1d(x[None], x[None])])
def test_gradcheck_forward_of_real_numbers(call):
    x = tc.randn(2, 3, dtype=tc.float64, requires_grad=True)
    assert gradcheck(call, x, check_forward_ad=True)
    assert gradgradcheck(call, x, check_fwd_over_rev=True)
