"""The graph from Python: saved tensors, several outputs, missing gradients, callbacks, nested passes."""

import threading
import warnings

import pytest

import tercel as tc
from tercel.autograd import Function, Variable

FREED = "after they have already been freed"


def leaf(*values):
    return tc.tensor(values, requires_grad=True)


def twice(tensor):
    """Runs backward twice without keeping the graph."""
    one = tc.ones_like(tensor)
    tensor.backward(one)
    tensor.backward(one)


@pytest.mark.parametrize("f", [
    lambda x: x.sum(), lambda x: x.view(2, 2), lambda x: x.reshape(4, 1), lambda x: x.expand(3, 4), lambda x: x[1:3],
    lambda x: x.mean(), lambda x: tc.cat([x, x]), lambda x: x + 1, lambda x: x.flip(0), lambda x: x.unbind()[1],
    lambda x: x.split(2)[0], lambda x: tc.roll(x, 1), lambda x: x.as_strided((2,), (2,)),
], ids=range(13))
def test_what_saved_no_tensor_runs_again(f):
    x = leaf(1.0, 2.0, 3.0, 4.0)
    out = f(x)
    twice(out)
    once = leaf(1.0, 2.0, 3.0, 4.0)
    f(once).backward(tc.ones_like(out))
    assert x.grad.tolist() == (2 * once.grad).tolist()


@pytest.mark.parametrize("f", [
    lambda x: x * x, lambda x: x.exp(), lambda x: x[tc.tensor([0, 2])], lambda x: x.var(), lambda x: x @ x,
    lambda x: tc.nn.functional.linear(x.view(1, 4), tc.ones(2, 4, requires_grad=True)), lambda x: x.prod(),
    lambda x: x.gather(0, tc.tensor([1])),
    lambda x: tc.nn.functional.ctc_loss(x.view(4, 1, 1).expand(4, 1, 3).log_softmax(2), tc.tensor([[1]]), (4,), (1,)),
], ids=range(9))
def test_what_saved_a_tensor_does_not(f):
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        twice(f(leaf(1.0, 2.0, 3.0, 4.0)))


def test_saved_attributes():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = a * b
    assert y.grad_fn._saved_self is a and y.grad_fn._saved_other is b
    assert {"_saved_self", "_raw_saved_other", "next_functions"} <= set(dir(y.grad_fn))
    assert (a * b.detach()).grad_fn._saved_self is None, "only what a gradient needs"
    e = a.exp()
    assert e.grad_fn._saved_result.equal(e) and e.grad_fn._saved_result.grad_fn is e.grad_fn
    with tc.no_grad():
        assert e.grad_fn._saved_result.grad_fn is e.grad_fn
    assert (a.view(1, 2) @ b.view(2, 1)).grad_fn._saved_mat2.shape == (2, 1)
    at = tc.tensor([1])
    saved = tc.ones(2, 2, requires_grad=True)[:, at].grad_fn._saved_indices
    assert saved[0] is None and saved[1].equal(at)
    for name in ("_saved_other", "_saved_", "nothing"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(e.grad_fn, name)
    y.sum().backward()
    with pytest.raises(RuntimeError, match=FREED):
        y.grad_fn._saved_self
    assert "_saved_self" not in dir(y.grad_fn)


def test_hooks_of_a_saved_tensor():
    a = leaf(1.0, 2.0)
    y = a * a
    saved = y.grad_fn._raw_saved_self
    assert type(saved) is tc.autograd.SavedTensor
    saved.register_hooks(lambda x: 2 * x, lambda x: x)
    assert y.grad_fn._saved_self.tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        saved.register_hooks(lambda x: x, lambda x: x)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        y.grad_fn._raw_saved_other.register_hooks(lambda x: x)
    y.sum().backward()
    assert a.grad.tolist() == [3, 6]
    with pytest.raises(RuntimeError, match="after it has been freed"):
        y.grad_fn._raw_saved_other.register_hooks(lambda x: x, lambda x: x)
    with pytest.raises(RuntimeError, match="value None is forbidden"):
        (a * tc.ones(2)).grad_fn._raw_saved_self.register_hooks(lambda x: x, lambda x: x)
    with pytest.raises(RuntimeError, match="from Python is forbidden"):
        tc.autograd.SavedTensor()

    def halved(x):
        x *= 0.5
        return x

    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        (leaf(1.0) + 0).exp().grad_fn._raw_saved_result.register_hooks(halved, lambda x: x)


def test_raw_saved_tensors_of_a_function():
    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf(1.0, 2.0)
    y = Keep.apply(x)
    first, second = y.grad_fn._raw_saved_tensors
    first.register_hooks(lambda t: t * 3, lambda t: t)
    with pytest.raises(RuntimeError, match="value None is forbidden"):
        second.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert x.grad.tolist() == [3, 6]
    with pytest.raises(RuntimeError, match=FREED):
        y.grad_fn._raw_saved_tensors


def test_parts_are_results_of_one_node():
    x = tc.arange(6.0).requires_grad_()
    parts = x.unbind()
    assert len({part.grad_fn for part in parts}) == 1 and [part.output_nr for part in parts] == list(range(6))
    (parts[1] * 2 + parts[4] * 3).backward()
    assert x.grad.tolist() == [0, 2, 0, 0, 3, 0]
    with pytest.raises(RuntimeError, match="Output 4 of UnbindBackward0 is a view and is being modified inplace"):
        parts[4].add_(1)
    for parts, name in ((x.split(4), "SplitBackward0"), (x.split([1, 5]), "SplitWithSizesBackward0"),
                        (x.chunk(2), "SplitBackward0")):
        assert parts[0].grad_fn is parts[1].grad_fn and parts[0].grad_fn.name() == name
        (g,) = tc.autograd.grad((parts[1] ** 2).sum(), x, create_graph=True)
        (h,) = tc.autograd.grad(g.sum(), x)
        start = 6 - parts[1].numel()
        assert g.tolist() == [0] * start + [2 * i for i in range(start, 6)]
        assert h.tolist() == [0] * start + [2] * parts[1].numel()


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
def test_spread_and_mean_are_results_of_one_node(name):
    x = tc.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 4.0]], dtype=tc.double, requires_grad=True)
    spread, mean = getattr(tc, name)(x, 1)
    assert spread.grad_fn is mean.grad_fn
    for out in ((spread,), (mean,), (spread, mean)):
        alone = (getattr(tc, name[:3])(x, 1), x.mean(1))
        expected = tc.autograd.grad([alone[(spread, mean).index(o) if o is spread else 1] for o in out], x,
                                    [tc.ones(2, dtype=tc.double) for _ in out])
        found = tc.autograd.grad(list(out), x, [tc.ones(2, dtype=tc.double) for _ in out], retain_graph=True)
        assert tc.allclose(found[0], expected[0])
    assert tc.autograd.gradgradcheck(lambda t: getattr(tc, name)(t, 1), x)


def test_hooks_see_that_there_is_no_gradient():
    x = tc.arange(2.0).requires_grad_()
    first, second = x.unbind()
    seen = []
    first.register_hook(seen.append)
    second.backward()
    assert seen == [None] and x.grad.tolist() == [0, 1]
    first.register_hook(lambda g: tc.tensor(5.0))
    second.backward()
    assert x.grad.tolist() == [5, 2]


def test_functions_run_without_a_gradient():
    seen = []

    class Look(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            seen.append(None if g is None else g.tolist())
            return g, None

    x = leaf(1.0, 2.0)
    for materialize in (True, False):
        missing = tc._C._functions.UndefinedGrad()(Look.apply(x, materialize))
        missing.sum().backward()
    assert seen == [[0, 0], None] and x.grad.tolist() == [0, 0]


def test_accumulate_grad_is_a_class():
    node = (leaf(1.0) * 2).grad_fn.next_functions[0][0]
    assert isinstance(node, tc._C._functions.AccumulateGrad)


def test_callbacks_at_the_end_of_a_pass():
    said = []

    def again():
        said.append("again")
        Variable._execution_engine.queue_callback(lambda: said.append("last"))

    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: Variable._execution_engine.queue_callback(again))
    x.register_hook(lambda g: said.append("leaf"))
    y.backward()
    assert said == ["leaf", "again", "last"]
    with pytest.raises(RuntimeError, match="only be installed during backward pass"):
        Variable._execution_engine.queue_callback(again)


def test_fate_of_nodes():
    a, b = leaf(1.0), leaf(2.0)
    y = a * b
    other = a * 3
    kept = y.clone().grad_fn.next_functions[0][0]
    seen = {}
    ask = tc._C._will_engine_execute_node

    def look(_):
        seen["y"], seen["other"] = ask(kept), ask(other.grad_fn)

    y.register_hook(look)
    y.backward(retain_graph=True)
    assert seen == {"y": True, "other": False}
    leaf_node = a.view_as(a).grad_fn.next_functions[0][0]
    y.register_hook(lambda _: seen.update(leaf=ask(leaf_node)))
    y.backward(inputs=[a], retain_graph=True)
    assert seen["leaf"]
    with pytest.raises(RuntimeError, match="currently running autograd.grad"):
        tc.autograd.grad(y, a)
    with pytest.raises(RuntimeError, match="only be called during the backward pass"):
        ask(kept)
    with pytest.raises(RuntimeError, match="expects an grad_fn"):
        ask(y)


def test_passes_inside_passes_leave_the_stack():
    depth, threads = 300, set()

    class Nested(Function):
        @staticmethod
        def forward(ctx, x, left):
            ctx.left = left
            return x * 1

        @staticmethod
        def backward(ctx, g):
            threads.add(threading.get_ident())
            if ctx.left > 0:
                with tc.enable_grad():
                    inner = leaf(1.0)
                    Nested.apply(inner, ctx.left - 1).sum().backward()
                return inner.grad, None
            return g * 2, None

    x = leaf(1.0)
    Nested.apply(x, depth).backward()
    assert x.grad.tolist() == [2] and len(threads) > 1

    class Failing(Nested):
        @staticmethod
        def backward(ctx, g):
            if ctx.left == 0:
                raise KeyError("deep down")
            with tc.enable_grad():
                Failing.apply(leaf(1.0), ctx.left - 1).sum().backward()

    with pytest.raises(KeyError, match="deep down"):
        Failing.apply(x, 100).backward()


def test_a_complex_scalar_begins_with_one():
    z = tc.tensor(1 + 2j, requires_grad=True)
    (z * 3).backward()
    assert z.grad.item() == 3


def test_numpy_of_a_leaf_where_nothing_is_recorded():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()
    with tc.no_grad():
        assert x.numpy().tolist() == [1]


def test_anomaly_names_the_backward_that_recorded_a_node():
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * float("nan")

    class Outer(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return Bad.apply(g * 2)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError, match="Function 'BadBackward' returned nan values in its 0th output"):
            with tc.autograd.detect_anomaly():
                x = leaf(1.0)
                out = Outer.apply(x)
                seed = leaf(1.0)
                (g,) = tc.autograd.grad(out, x, seed, create_graph=True)
                g.backward()
    texts = [str(w.message) for w in said]
    assert any("Error detected in BadBackward" in text and "Bad.apply" in text for text in texts)
    assert any("induced by OuterBackward" in text and "Outer.apply" in text for text in texts)


def test_retains_grad():
    x = leaf(1.0)
    y = x * 2
    assert not y.retains_grad
    y.retain_grad()
    assert y.retains_grad


def test_a_view_of_a_leaf_that_was_made_before_it_was_one():
    x = tc.zeros(2, 3)
    view = x[:]
    view.add_(1)
    x.requires_grad = True
    for t in (x, view):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation"):
            t.add_(1)
    with tc.no_grad():
        view.add_(1)
    assert x.tolist() == [[2] * 3] * 2


CHANGES = [lambda base, view: base.detach().mul_(0.5), lambda base, view: view.detach().mul_(0.5), lambda base, view: base.mul_(1),
           lambda base, view: view.mul_(1)]
LOOKS = [lambda t: None, repr, lambda t: t.grad_fn, lambda t: t.is_leaf, lambda t: t.register_hook(lambda g: None), lambda t: t.retain_grad(),
         lambda t: t + 1, lambda t: t.detach()]


@pytest.mark.parametrize("mode", [tc.no_grad, tc.inference_mode, tc.enable_grad])
@pytest.mark.parametrize("look", range(len(LOOKS)))
@pytest.mark.parametrize("change", range(len(CHANGES)))
def test_a_view_whose_base_has_changed_keeps_its_history(change, look, mode):
    x = leaf(1.0, 2.0, 3.0)
    base = x * tc.arange(3.0)
    view = base[1:]
    CHANGES[change](base, view)
    with mode():
        LOOKS[look](view)
    view.backward(tc.tensor([2.0, 3.0]))
    assert x.grad.tolist() == [0, 2, 6]


@pytest.mark.parametrize("f", [
    lambda x: (x * 1)[0], lambda x: x.view(2, 2).mv(tc.ones(2)), lambda x: x.dot(tc.ones(4)), lambda x: x.take(tc.tensor([2, 1])),
    lambda x: tc.nn.functional.layer_norm(x.view(2, 2), (2,), tc.tensor([1.0, 3.0])), lambda x: tc.nn.functional.linear(x, tc.eye(4)),
    lambda x: tc.nn.functional.scaled_dot_product_attention(*[x.view(1, 1, 2, 2)] * 3), lambda x: tc.nn.functional.conv1d(x.view(1, 4), tc.ones(1, 1, 2)),
], ids=range(8))
def test_gradients_of_a_result_that_was_changed_unseen(f):
    x, other = leaf(1.0, 2.0, 3.0, 5.0), leaf(1.0, 2.0, 3.0, 5.0)
    y, plain = f(x), f(other)
    gradient = tc.rand_like(plain).detach()
    with tc.no_grad():
        y.mul_(0.5)
    found, = tc.autograd.grad(y, x, gradient)
    expected, = tc.autograd.grad(plain, other, gradient)
    assert found.tolist() == expected.tolist()


def test_hooks_that_are_removed_by_others():
    y = leaf(1.0) * 2
    said = []
    y.grad_fn.register_prehook(lambda g: (said.append("first"), second.remove())[:0] or None)
    second = y.grad_fn.register_prehook(lambda g: said.append("second"))
    y.backward()
    assert said == ["first", "second"], "removed for later passes only"
    y = leaf(1.0) + 2
    y.register_hook(lambda g: other.remove())
    other = y.register_hook(lambda g: said.append("other"))
    y.backward()
    y.backward()
    assert said == ["first", "second", "other"]


def test_contexts_without_a_node():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.warns(DeprecationWarning):
        instance = Same()
    for name in ("name", "next_functions", "register_hook"):
        with pytest.raises(RuntimeError, match=f"Attribute '{name}' is invalid"):
            getattr(instance, name)
    with pytest.raises(RuntimeError, match="has already been deallocated"):
        instance.metadata
    with pytest.raises(AttributeError, match="'Same' object has no attribute 'other'"):
        instance.other
    y = Same.apply(leaf(1.0))
    node = y.grad_fn
    node.metadata["kept"] = 1
    assert node.metadata == {"kept": 1}
    del y
    with pytest.raises(RuntimeError, match="has already been deallocated"):
        node.metadata


def test_history_can_be_dropped_by_attribute():
    y = leaf(1.0) * 2
    assert y._grad_fn is y.grad_fn
    with pytest.raises(RuntimeError, match="can be only set to None"):
        y._grad_fn = 3
    with pytest.raises(RuntimeError, match="Can't delete Tensor._grad_fn"):
        del y._grad_fn
    y._grad_fn = None
    assert y.grad_fn is None and not y.requires_grad


def test_weak_references_to_tensors():
    x = leaf(1.0)
    ref = tc._C._WeakTensorRef(x)
    assert not ref.expired()
    del x
    assert ref.expired()


def test_saved_tensors_hooks_say_whether_they_are_enabled():
    enabled = tc._C._autograd._saved_tensors_hooks_is_enabled
    assert enabled()
    with tc.autograd.graph.disable_saved_tensors_hooks("not here"):
        assert not enabled()
    assert enabled()


def test_no_derivative():
    x = leaf(1.0)
    y = tc.heaviside(x, x)
    with pytest.raises(NotImplementedError, match="the derivative for 'self' of 'heaviside' is not implemented"):
        y.backward()


def test_out_in_inference_mode():
    with tc.inference_mode():
        out = tc.ones(2)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        tc.mul(tc.ones(2), 2.0, out=out)
    with tc.inference_mode():
        assert tc.mul(tc.ones(2), 2.0, out=out).tolist() == [2, 2]


def test_numbers_among_the_operands_have_an_edge_that_leads_nowhere():
    x = leaf(1.0)
    for y in (x + 2, x - 2, x * 2, x / 2):
        assert [node for node, _ in y.grad_fn.next_functions][1:] == [None]
        y.backward()
    for y in (2 - x, x**2, 2**x):
        assert len(y.grad_fn.next_functions) == 1
    z = x.clone()
    z.mul_(3).backward()
    assert x.grad.tolist() == [1 + 1 + 2 + 0.5 + 3]


def test_views_of_inference_tensors_have_no_history():
    with tc.inference_mode():
        x = tc.ones(2, 3, requires_grad=True)
    for out in (x.view(6), *x.unbind()):
        assert out.is_inference() and not out.requires_grad and out.is_leaf and not out._is_view()


def test_hooks_in_a_dict():
    x = leaf(1.0)
    seen = []
    x._backward_hooks = {0: seen.append}
    (x * 2).backward()
    assert [g.tolist() for g in seen] == [[2]]
    with pytest.raises(RuntimeError, match="Can't delete Tensor._backward_hooks"):
        del x._backward_hooks


def test_to_dense_of_a_gradient_of_rows():
    table = tc.nn.Embedding(3, 2, sparse=True)
    table(tc.tensor([1, 1])).sum().backward()
    assert table.weight.grad.to_dense().tolist() == [[0, 0], [2, 2], [0, 0]]
    assert tc.ones(1).to_dense(tc.float64).dtype is tc.float64


def test_in_place_changes_of_a_gradient_of_rows_stay():
    table = tc.nn.Embedding(3, 2, sparse=True)
    table(tc.tensor([1, 1])).sum().backward()
    assert table.weight.grad is table.weight.grad
    table.weight.grad.mul_(0.5)
    assert table.weight.grad.to_dense().tolist() == [[0, 0], [1, 1], [0, 0]]
    table(tc.tensor([2])).sum().backward()  # rows are added to it
    assert table.weight.grad.to_dense().tolist() == [[0, 0], [1, 1], [1, 1]]
    tc.nn.utils.clip_grad_value_(table.parameters(), 0.25)
    assert table.weight.grad.to_dense().tolist() == [[0, 0], [0.25, 0.25], [0.25, 0.25]]
    assert tc.nn.utils.clip_grad_norm_(table.parameters(), 0.25).item() == pytest.approx(0.5)
    assert table.weight.grad.norm().item() == pytest.approx(0.25, rel=1e-4)


def test_random_numbers_are_new():
    for x in (tc.rand(2), tc.randn(2), tc.randint(3, (2,)), tc.randperm(3), tc.rand_like(tc.ones(2))):
        assert x._version == 0
    with tc.inference_mode():
        assert tc.rand(2).is_inference()
