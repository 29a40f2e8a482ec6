"""Gradients from Python."""

import pytest

import tercel as tc


def test_backward():
    w = tc.tensor([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    assert w.grad.tolist() == [2, 4]
    (w * 3).backward(tc.tensor([1.0, 10.0]))
    assert w.grad.tolist() == [5, 34]
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (w * 2).backward()
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        tc.ones(1).backward()


def test_grad():
    a, b = tc.ones(2, requires_grad=True), tc.ones(2, requires_grad=True)
    (g,) = tc.autograd.grad((a * 3).sum(), a)
    assert g.tolist() == [3, 3] and a.grad is None
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        tc.autograd.grad((a * 3).sum(), b)
    assert tc.autograd.grad((a * 3).sum(), b, allow_unused=True) == (None,)


def test_gradients_of_gradients():
    x = tc.tensor([2.0, 3.0], requires_grad=True)
    (g,) = tc.autograd.grad((x * x * x).sum(), x, create_graph=True)
    assert g.requires_grad and g.tolist() == [12, 27]
    g.sum().backward()
    assert x.grad.tolist() == [12, 18]


def test_backward_into_inputs():
    a, b = tc.ones(2, requires_grad=True), tc.ones(2, requires_grad=True)
    (a * b).sum().backward(inputs=[b])
    assert a.grad is None and b.grad.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (a * b).sum().backward(inputs=[])


def test_modes():
    w = tc.ones(1, requires_grad=True)
    with tc.no_grad():
        assert not (w * 2).requires_grad and not tc.is_grad_enabled()
        with tc.enable_grad():
            assert (w * 2).requires_grad
    with tc.set_grad_enabled(False):
        assert not (w * 2).requires_grad
    with tc.inference_mode():
        assert not (w * 2).requires_grad
    assert tc.is_grad_enabled()

    @tc.no_grad()
    def quiet():
        return w * 2

    @tc.no_grad
    def bare():
        return w * 2

    @tc.no_grad()
    def steps():
        yield tc.is_grad_enabled()

    assert not quiet().requires_grad and not bare().requires_grad
    assert list(steps()) == [False] and tc.is_grad_enabled()


def test_inference_mode():
    w = tc.ones(2, requires_grad=True)
    assert not tc.is_inference_mode_enabled() and not w.is_inference()
    with tc.inference_mode():
        assert tc.is_inference_mode_enabled()
        x = tc.ones(2)
        y = w * x
        assert x.is_inference() and tc.is_inference(y) and not y.requires_grad
        x.add_(1)
        with tc.inference_mode(False):
            assert (w * 2).requires_grad and not tc.ones(1).is_inference()
    assert not tc.is_inference_mode_enabled() and tc.is_grad_enabled()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        w * x

    @tc.inference_mode()
    def made():
        return tc.ones(1)

    assert made().is_inference() and not tc.is_inference_mode_enabled()


def test_extremes_share_a_gradient_also_of_nan():
    for values, places in (([1.0, 0.0, 1.0], 2), ([float("nan")] * 3, 3)):
        x = tc.tensor(values, requires_grad=True)
        x.max().backward()
        assert tc.allclose(x.grad, tc.tensor([0 if v == 0 else 1 / places for v in values]))


def test_hooks():
    w = tc.ones(2, requires_grad=True)
    seen = []
    handle = w.register_hook(lambda g: seen.append(g.tolist()))
    w.sum().backward()
    handle.remove()
    w.sum().backward()
    assert seen == [[1, 1]]
    y = w * 2
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    w.grad = None
    y.sum().backward()
    assert w.grad.tolist() == [20, 20]

    def fails(_):
        raise KeyError("mine")

    w.register_hook(fails)
    with pytest.raises(KeyError, match="mine"):
        w.sum().backward()


def test_attributes():
    w = tc.ones(2, requires_grad=True)
    y = w * 2
    assert w.is_leaf and not y.is_leaf and y.grad_fn.name() == "MulBackward0"
    assert type(y.grad_fn).__name__ == "MulBackward0" and y.grad_fn == y.grad_fn
    assert y.detach().grad_fn is None and w.data.requires_grad is False
    assert w[0]._base is w
    v = tc.empty(2)
    v.add_(1)
    v[0] += 1
    assert v._version >= 2
    with pytest.raises(RuntimeError, match="assigned grad has data of a different size"):
        w.grad = tc.ones(3)
    with pytest.raises(RuntimeError):
        tc.ones(2, dtype=tc.int64).requires_grad_()


def test_gradients_in_batches():
    x = tc.tensor([2.0, 3.0], requires_grad=True)
    y = x * x
    (rows,) = tc.autograd.grad(y, x, tc.eye(2), is_grads_batched=True)
    assert rows.tolist() == [[4, 0], [0, 6]]
    unused = tc.ones(1, requires_grad=True)
    assert tc.autograd.grad(x * x, (x, unused), tc.eye(2), is_grads_batched=True, allow_unused=True)[1] is None
    with pytest.raises(RuntimeError, match="first dimension of each grad_output as the batch dimension"):
        tc.autograd.grad((x * x).sum(), x, is_grads_batched=True)


def test_what_grad_is_given():
    x = tc.ones(2, requires_grad=True)
    y = (x * 2).sum()
    with pytest.raises(ValueError, match="grad requires non-empty inputs."):
        tc.autograd.grad(y, ())
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed when materialize_grads=True"):
        tc.autograd.grad(y, x, materialize_grads=True, allow_unused=False)
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of"):
        tc.autograd.grad(x * 2, x, tc.ones(3))
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got int"):
        tc.autograd.grad(y, x, (1,))
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
        tc.autograd.backward(y, (None, None))
    with pytest.raises(RuntimeError, match="'grad_tensors' and 'grad_variables'"), pytest.warns(FutureWarning):
        tc.autograd.backward(y, tc.ones(()), grad_variables=tc.ones(()))
    (g,) = tc.autograd.grad(x * 2, x, tc.ones(2, dtype=tc.float64))
    assert g.dtype is tc.float32
    assert tc.autograd.grad(y, tc.ones(2, requires_grad=True), materialize_grads=True)[0].tolist() == [0, 0]


def test_the_gradient_attribute():
    x = tc.ones(2, requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert y.grad is None
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1, 1] and x.grad is not None
    del x.grad
    assert x.grad is None
    for name in ("data", "requires_grad"):
        with pytest.raises(RuntimeError, match="Can't delete"):
            delattr(x, name)
    with pytest.raises(RuntimeError, match="data set to a tensor that requires gradients must be floating point"):
        x.data = tc.ones(2, dtype=tc.int64)


def test_index_fill_counts_each_place_once():
    x = tc.randn(3, 4, dtype=tc.float64, requires_grad=True)
    value = tc.tensor(2.0, dtype=tc.float64, requires_grad=True)
    index = tc.tensor([0, 2, 2, -4, -1])
    assert tc.autograd.gradcheck(lambda x, value: x.index_fill(1, index, value), (x, value))
    with pytest.raises(RuntimeError, match="Converting complex Scalar to non-complex type"):
        x.detach().index_fill(1, index, 1j)
    for wrong in (-5, 4):
        with pytest.raises(IndexError, match="out of bounds for dimension 1 with size 4"):
            x.index_fill(1, tc.tensor([0, wrong]), value)
