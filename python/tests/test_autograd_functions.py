"""Custom functions, hooks of nodes, saved tensors, and checkpoints."""

import gc
import warnings
import weakref

import pytest

import tercel as tc
from tercel.autograd import Function, graph
from tercel.autograd.function import once_differentiable
from tercel.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential


class Product(Function):
    @staticmethod
    def forward(ctx, a, factor, b):
        assert not tc.is_grad_enabled()
        ctx.factor = factor
        ctx.save_for_backward(a, b)
        return a * b * factor

    @staticmethod
    def backward(ctx, gradient):
        a, b = ctx.saved_tensors
        return gradient * b * ctx.factor, None, gradient * a * ctx.factor


def leaf(*values):
    return tc.tensor(values, dtype=tc.float64, requires_grad=True)


def test_function():
    a, b = leaf(1, 2), leaf(3, 4)
    y = Product.apply(a, 10, b)
    assert y.tolist() == [30, 80] and y.grad_fn.name() == "ProductBackward" and y.grad_fn is y.grad_fn
    assert y.grad_fn.factor == 10 and y.grad_fn.needs_input_grad == (True, False, True)
    assert y.grad_fn.saved_tensors[1] is b and isinstance(y.grad_fn, graph.Node)
    assert [type(n).__name__ for n, _ in y.grad_fn.next_functions] == ["AccumulateGrad"] * 2
    y.sum().backward()
    assert a.grad.tolist() == [30, 40] and b.grad.tolist() == [10, 20]
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.sum().backward()
    assert tc.autograd.gradcheck(lambda a, b: Product.apply(a, 2, b), (a, b))
    assert tc.autograd.gradgradcheck(lambda a, b: Product.apply(a, 2, b), (a, b))
    assert not Product.apply(a.detach(), 1, b.detach()).requires_grad


def test_setup_context_comes_after_forward():
    class Cube(Function):
        @staticmethod
        def forward(x):
            return x ** 3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 3 * ctx.saved_tensors[0] ** 2

    assert tc.autograd.gradcheck(Cube.apply, leaf(1, 2))


def returning(value):
    class Returns(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * 2

        @staticmethod
        def backward(ctx, gradient):
            return value

    return Returns


@pytest.mark.parametrize("value, b, error, sentence", [
    (tc.ones(2), 1, RuntimeError, r"function ReturnsBackward returned an incorrect number of gradients \(expected 2"),
    ((tc.ones(2), tc.ones(2)), 1, RuntimeError, "a gradient different from None at position 2"),
    ((tc.ones(3), None), 1, RuntimeError, "returned an invalid gradient at index 0"),
    ((3, None), 1, TypeError, r"expected Variable or None \(got int\)"),
])
def test_what_backward_may_not_return(value, b, error, sentence):
    x = tc.ones(2, requires_grad=True)
    with pytest.raises(error, match=sentence):
        returning(value).apply(x, b).sum().backward()


def test_what_backward_may_return():
    x = tc.ones(2, requires_grad=True)
    returning((tc.ones(3, 2, dtype=tc.float64), None, None)).apply(x, 1).sum().backward()
    assert x.grad.tolist() == [3, 3] and x.grad.dtype is tc.float32
    x.grad = None
    returning((None, None)).apply(x, 1).sum().backward()
    assert x.grad is None


def test_missing_methods_are_named():
    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        Function.apply(tc.ones(1))

    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            return x / 2

    with pytest.raises(NotImplementedError, match="either the backward or vjp method"):
        Half.apply(leaf(1)).backward()
    with pytest.raises(RuntimeError, match="Legacy autograd function"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Half()(leaf(1))


def test_several_outputs():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            first, second = x * 2, x.long()
            ctx.mark_non_differentiable(second)
            return first, second, x * 3, "text"

        @staticmethod
        def backward(ctx, *gradients):
            seen.append(gradients)
            return gradients[0] * 2, None

    x = leaf(1, 2)
    for materialize in (True, False):
        first, second, third, text = Two.apply(x, materialize)
        assert first.requires_grad and not second.requires_grad and third.requires_grad and text == "text"
        first.sum().backward()
    assert x.grad.tolist() == [4, 4]
    assert seen[0][2].tolist() == [0, 0] and seen[1][2] is None and seen[1][1] is None


def test_changes_in_place_are_marked():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    x = leaf(1, 2)
    y = x.clone()
    result = Double.apply(y)
    assert result is y and y.grad_fn.name() == "DoubleBackward"
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        Double.apply(leaf(1))


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, gradient):
            assert not tc.is_grad_enabled()
            return gradient * 2 * ctx.saved_tensors[0]

    x = leaf(1, 2)
    (g,) = tc.autograd.grad(Once.apply(x).sum(), x)
    assert g.tolist() == [2, 4]
    (g,) = tc.autograd.grad(Once.apply(x).sum(), x, tc.tensor(1.0, dtype=tc.float64, requires_grad=True),
                            create_graph=True)
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with"):
        g.sum().backward()


def test_a_context_does_not_keep_the_graph():
    a = leaf(1)
    context = Product.apply(a, 1, leaf(2)).grad_fn
    gc.collect()
    assert context.factor == 1
    with pytest.raises(RuntimeError, match="already been freed"):
        context.saved_tensors
    with pytest.raises(RuntimeError, match="next_functions"):
        context.next_functions
    y = Product.apply(a, 1, leaf(2))
    kept = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert kept() is None


def test_errors_of_python_pass_through_backward():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Fails.apply(leaf(1)).backward()


def test_nodes():
    x = leaf(1, 2)
    y = x.exp()
    node = y.grad_fn
    node.metadata["mine"] = 3
    assert y.grad_fn is node and isinstance(node, graph.Node)
    del node
    assert y.grad_fn.metadata == {"mine": 3}
    (accumulate, number), = y.grad_fn.next_functions
    assert accumulate.name() == "AccumulateGrad" and accumulate.variable is x and number == 0
    assert graph.get_gradient_edge(y) == (y.grad_fn, 0)
    with pytest.raises(AttributeError, match="variable"):
        y.grad_fn.variable


def test_hooks_of_nodes():
    x = leaf(1, 2)
    y = x * 3
    calls = []
    before = y.grad_fn.register_prehook(lambda outputs: calls.append("before") or (outputs[0] * 2,))
    after = y.grad_fn.register_hook(lambda inputs, outputs: calls.append(outputs[0].tolist()))
    y.sum().backward(retain_graph=True)
    assert calls == ["before", [2, 2]] and x.grad.tolist() == [6, 6]
    before.remove()
    after.remove()
    y.sum().backward(retain_graph=True)
    assert len(calls) == 2 and x.grad.tolist() == [9, 9]
    y.grad_fn.register_hook(lambda inputs, outputs: inputs + inputs)
    with pytest.raises(RuntimeError, match=r"has returned an incorrect number of values \(got 4, but expected 2\)"):
        y.sum().backward()


@pytest.mark.parametrize("value, error, sentence", [
    (lambda g: 3, TypeError, "expected Variable, but hook returned 'int'"),
    (lambda g: g[:1], RuntimeError, "hook '<lambda>' has changed the size of value"),
    (lambda g: g.float(), RuntimeError, "hook '<lambda>' has changed the type of value"),
])
def test_what_a_hook_may_not_return(value, error, sentence):
    x = leaf(1, 2)
    x.register_hook(value)
    with pytest.raises(error, match=sentence):
        x.sum().backward()


def test_hooks_after_accumulation():
    x = leaf(1, 2)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.tolist())))
    (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    assert seen == [(True, [2, 2])]
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_hooks_of_several_gradients():
    a, b, c = leaf(1), leaf(2), leaf(3)
    seen = []
    handle = graph.register_multi_grad_hook((a, b, c), lambda gs: seen.append([g and g.item() for g in gs]))
    (a * b).sum().backward()
    assert seen == [[2, 1, None]]
    (a * b * c).sum().backward()
    assert seen[1:] == [[6, 3, 2]]
    handle.remove()
    (a * b * c).sum().backward()
    assert len(seen) == 2
    first = []
    graph.register_multi_grad_hook((a, b), lambda g: first.append(g.item()), mode="any")
    (a * b).sum().backward()
    assert len(first) == 1


def test_saved_tensors_hooks():
    x = leaf(1, 2)
    packed = []
    with graph.saved_tensors_hooks(lambda t: packed.append(t) or [t.detach().clone()], lambda kept: kept[0] * 10):
        y = x * x
    y.sum().backward()
    assert len(packed) == 2 and x.grad.tolist() == [20, 40]
    with graph.save_on_cpu():
        y = x.exp()
    x.grad = None
    y.sum().backward()
    assert tc.allclose(x.grad, x.exp())
    with graph.saved_tensors_hooks(lambda t: t, lambda kept: 3):
        y = x.exp()
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type int"):
        y.sum().backward()
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            with graph.save_on_cpu():
                pass
    with graph.save_on_cpu(), pytest.raises(RuntimeError, match="not now"):
        with graph.disable_saved_tensors_hooks("not now"):
            pass


def test_anomaly_mode():
    class NotANumber(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient * float("nan")

    x = leaf(1)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        mode = tc.autograd.detect_anomaly()
    with mode:
        assert tc.is_anomaly_enabled() and tc.is_anomaly_check_nan_enabled()
        y = NotANumber.apply(x)
        with pytest.warns(UserWarning, match=r"(?s)Error detected in NotANumberBackward. Traceback.*test_anomaly_mode"):
            with pytest.raises(RuntimeError,
                               match="Function 'NotANumberBackward' returned nan values in its 0th output."):
                y.backward()
    assert not tc.is_anomaly_enabled()
    with tc.autograd.set_detect_anomaly(True, check_nan=False):
        NotANumber.apply(x).backward()
    assert x.grad.isnan().all() and not tc.is_anomaly_enabled()


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint(reentrant):
    w = leaf(0.5, -0.5)
    calls = []

    def part(x, scale):
        calls.append(1)
        return tc.nn.functional.dropout(tc.tanh(x * w) * scale, 0.5), x * 2

    x = leaf(1, 2)
    tc.manual_seed(7)
    first, second = part(x, 3)
    (first + second).sum().backward()
    expected = x.grad.clone(), w.grad.clone()
    x.grad = w.grad = None
    tc.manual_seed(7)
    first, second = checkpoint(part, x, 3, use_reentrant=reentrant)
    tc.rand(5)
    (first + second).sum().backward()
    assert tc.equal(x.grad, expected[0]) and tc.equal(w.grad, expected[1]) and len(calls) == 3


def test_checkpoint_without_reentry():
    x = leaf(0.5, 0.25)
    y = checkpoint(lambda t, power: (t.exp() ** power).sin(), x, power=2, use_reentrant=False)
    (g,) = tc.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = tc.autograd.grad(g.sum(), x)
    plain = (x.exp() ** 2).sin()
    (p,) = tc.autograd.grad(plain.sum(), x, create_graph=True)
    assert tc.allclose(g, p) and tc.allclose(second, tc.autograd.grad(p.sum(), x)[0])
    calls = []
    y = checkpoint(lambda t: t.exp() if not calls and not calls.append(1) else t.exp().exp(), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="A different number of tensors was saved"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="incompatible with .grad()"):
        tc.autograd.grad(checkpoint(lambda t: t.exp(), x, use_reentrant=True).sum(), x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: power"):
        checkpoint(lambda t: t, x, power=2, use_reentrant=True)
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(lambda t: t, x, use_reentrant=False, determinism_check="some")


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint_sequential(reentrant):
    tc.manual_seed(3)
    model = tc.nn.Sequential(tc.nn.Linear(3, 4), tc.nn.Tanh(), tc.nn.Linear(4, 2), tc.nn.Tanh(), tc.nn.Linear(2, 1))
    x = tc.randn(5, 3, requires_grad=True)
    model(x).sum().backward()
    expected = [x.grad] + [p.grad for p in model.parameters()]
    for segments in (1, 2, 5):
        x.grad = None
        model.zero_grad()
        checkpoint_sequential(model, segments, x, use_reentrant=reentrant).sum().backward()
        for g, p in zip(expected, [x, *model.parameters()]):
            assert tc.allclose(g, p.grad)
    with pytest.raises(ValueError, match="expected 1 to 5 segments but got 6"):
        checkpoint_sequential(model, 6, x)


def test_views_out_of_functions():
    class Same(Function):
        @staticmethod
        def forward(ctx, x, copies):
            views = tuple(x[:] for _ in range(copies))
            return views if copies > 1 else views[0]

        @staticmethod
        def backward(ctx, *gradients):
            return sum(gradients), None

    base = leaf(1, 2) * 1
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        Same.apply(base, 1).add_(1)
    with pytest.raises(RuntimeError, match="This view is the output of a function that returns multiple views"):
        Same.apply(base, 2)[0].add_(1)
    with tc.no_grad():
        part = base.unbind()[0]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace"):
        part.mul_(leaf(2)[0])


def test_only_inputs_are_dirty():
    class Fresh(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    x = leaf(1)
    with pytest.warns(UserWarning, match="Only input Tensors should be given to ctx.mark_dirty"):
        y = Fresh.apply(x)
    y.backward()
    assert x.grad.tolist() == [2]


def test_nodes_may_be_called():
    x = leaf(3)
    y = x ** 2
    assert y.grad_fn(tc.ones(1, dtype=tc.float64)).tolist() == [6]
    for arguments in ((), (x, x)):
        with pytest.raises(TypeError, match="expected 1 arguments, got [02] instead"):
            y.grad_fn(*arguments)


def test_accumulated_gradients_have_a_history():
    x = leaf(3)
    with pytest.warns(UserWarning, match="create_graph=True will create a reference cycle"):
        (x * x).backward(create_graph=True)
    assert x.grad.grad_fn.name() == "CopyBackwards" and x.grad.grad_fn.next_functions[0] == (None, 0)
    x.grad.backward()
    assert x.grad.tolist() == [8]


@pytest.mark.parametrize("backward_first", [False, True])
def test_a_result_among_the_attributes_of_its_context(backward_first):
    class Remember(Function):
        @staticmethod
        def forward(ctx, x, kept):
            ctx.kept = kept
            out = x.clone()
            ctx.save_for_backward(out)
            return out

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.saved_tensors[0] + 0 * ctx.kept["out"], None

    def weak():
        x, kept = leaf(3.0), {}
        kept["out"] = out = Remember.apply(x, kept)
        if backward_first:
            out.sum().backward()
            assert x.grad.tolist() == [3]
        return weakref.ref(out), weakref.ref(out.grad_fn)

    gc.disable()
    try:
        out, context = weak()
        assert out() is not None and context() is not None, "they hold each other"
    finally:
        gc.enable()
    gc.collect()
    assert out() is None and context() is None


def test_contexts_in_use_are_not_collected():
    class Remember(Function):
        @staticmethod
        def forward(ctx, x, kept):
            ctx.kept = kept
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.kept["factor"], None

    def downstream():
        kept = {"factor": 5}
        kept["out"] = out = Remember.apply(x, kept)
        return out.exp()  # the graph owns objects that Python does not

    x = leaf(0.0)
    y = downstream()
    gc.collect()
    y.backward()
    assert x.grad.tolist() == [5]


def test_views_of_functions_and_changed_bases():
    class View(Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(-1)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 7  # which a history rebuilt from the base would bypass

    says = "is a view and its base or another view of its base has been modified inplace. This view "
    base = leaf(1.0, 2.0).clone()
    view = View.apply(base)
    base.mul_(2)
    for use in (lambda: view + 1, lambda: view.grad_fn):
        with pytest.raises(RuntimeError, match="Output 0 of ViewBackward " + says + "was created inside a custom Function"):
            use()
    base = leaf(1.0, 2.0).clone()
    first, _ = base.unbind()
    base.mul_(2)
    with pytest.raises(RuntimeError, match="Output 0 of UnbindBackward0 " + says + "is the output of a function that"):
        first + 1
