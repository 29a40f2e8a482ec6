"""Hooks before and after the forward and the backward of a module, or of every module."""

import gc
import pickle
import warnings
import weakref

import pytest

import tercel as tc
from tercel import nn
from tercel.nn import module as every


class Mix(nn.Module):
    def forward(self, a, factor, b):
        return a * b * factor, factor, a + b


def leaves(count=2):
    return [tc.full((2,), i + 1.0, requires_grad=True) for i in range(count)]


def test_gradients_of_several_inputs_can_be_replaced():
    a, b = leaves()
    module, seen = Mix(), []
    module.register_full_backward_hook(lambda m, inputs, outputs: (inputs[0] * 10, None, inputs[2] * 100))
    module.register_full_backward_hook(lambda m, inputs, outputs: seen.append((inputs, outputs)))
    product, _, total = module(a, 3, b)
    (product.sum() + total.sum()).backward()
    ((first, missing, last), (of_product, nothing, of_total)), = seen
    assert missing is None and nothing is None and of_product.tolist() == of_total.tolist() == [1, 1]
    assert first.tolist() == a.grad.tolist() == [70, 70] and last.tolist() == b.grad.tolist() == [400, 400]


def test_missing_gradients_are_none():
    a, b = leaves()
    module, seen = Mix(), []
    module.register_full_backward_pre_hook(lambda m, outputs: seen.append(outputs))
    module.register_full_backward_hook(lambda m, inputs, outputs: seen.append(inputs))
    module(a.detach(), 1, b)[2].sum().backward()
    assert [g is None for g in seen[0]] == [True, True, False] and [g is None for g in seen[1]] == [True, True, False]
    with tc.no_grad():
        module(a, 1, b)
    assert len(seen) == 2


def test_wrong_numbers_of_gradients():
    a, b = leaves()
    module = Mix()
    with module.register_full_backward_hook(lambda m, inputs, outputs: inputs[0]), pytest.raises(
            RuntimeError, match="Backward hook returned an invalid number of grad_input, got 1, but expected 3"):
        module(a, 1, b)[0].sum().backward()
    with module.register_full_backward_pre_hook(lambda m, outputs: outputs[0]), pytest.raises(
            RuntimeError, match="Backward pre hook returned an invalid number of grad_output, got 1, but expected 3"):
        module(a, 1, b)[0].sum().backward()


def test_inputs_without_gradients():
    module, seen = nn.Linear(2, 1), []
    with module.register_full_backward_hook(lambda m, inputs, outputs: seen.append((inputs, outputs))):
        with pytest.warns(UserWarning, match="no inputs require gradients"):
            module(tc.ones(1, 2)).sum().backward()
    assert seen[0][0] == (None,) and seen[0][1][0].tolist() == [[1]]
    module.register_full_backward_hook(lambda m, inputs, outputs: (tc.ones(1, 2),))
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="should always return None"):
        module(tc.ones(1, 2)).sum().backward()


def test_what_passed_a_module_is_not_changed_in_place():
    class Grow(nn.Module):
        def forward(self, x, in_place):
            self.given = x
            return x.add_(1) if in_place else x.clone()

    module, refused = Grow(), "Output 0 of BackwardHookFunctionBackward is a view and is being modified inplace"
    module.register_full_backward_hook(lambda *_: None)
    x = tc.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=refused):
        module(x.clone(), True)
    with pytest.raises(RuntimeError, match=refused):
        module(x, False).mul_(2)
    before = x.clone()
    module(before, False)
    before[0] *= 2
    with pytest.raises(RuntimeError, match="is a view and its base or another view of its base has been modified"):
        module.given + 1


def test_hooks_of_the_older_kind():
    x, seen = tc.ones(2, requires_grad=True), []
    module = nn.Sigmoid()
    handle = module.register_backward_hook(lambda m, inputs, outputs: seen.append((m, len(inputs), outputs[0].tolist())))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module(x).sum().backward()
    assert seen == [(module, 1, [1, 1])]
    for register in (module.register_full_backward_hook, nn.Module.register_full_backward_hook.__get__(module)):
        with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full"):
            register(print)
    handle.remove()
    x.grad = None
    module.register_backward_hook(lambda m, inputs, outputs: (inputs[0] * 0,))
    module(x).sum().backward()
    assert x.grad.tolist() == [0, 0] and len(seen) == 1
    full = nn.Sigmoid()
    full.register_full_backward_hook(print)
    with pytest.raises(RuntimeError, match="on a single Module"):
        full.register_backward_hook(print)


@pytest.mark.parametrize("forward, give, says", [
    (lambda x: [x.exp()], lambda x: x, "does not return a single Tensor or a tuple of Tensors"),
    (lambda x: {"out": x.exp()}, lambda x: x, "does not return a single Tensor or a tuple of Tensors"),
    (lambda x: x[0].exp(), lambda x: [x], "does not take as input a single Tensor or a tuple of Tensors"),
    (lambda x: (x.exp(), x.log()), lambda x: x, "outputs are generated by different autograd Nodes"),
    (lambda x: x.exp().log(), lambda x: x, "the forward contains multiple autograd Nodes"),
])
def test_what_hooks_of_the_older_kind_miss(forward, give, says):
    module, seen = nn.Module(), []
    module.forward = forward
    module.register_backward_hook(lambda *_: seen.append(1))
    with pytest.warns(UserWarning, match=says):
        out = module(give(tc.ones(2, requires_grad=True)))
    while not isinstance(out, tc.Tensor):
        out = out["out"] if isinstance(out, dict) else out[0]
    out.sum().backward()
    assert seen == [1]


def test_full_hooks_want_tensors():
    module = nn.Module()
    module.forward = lambda x: {"out": x}
    module.register_full_backward_hook(print)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors but received"):
        module(tc.ones(1, requires_grad=True))


def test_hooks_of_every_module():
    x, calls = tc.ones(1, 2, requires_grad=True), []
    net = nn.Sequential(nn.Tanh(), nn.Sigmoid())
    net[0].register_forward_hook(lambda *_: calls.append("own"))
    with every.register_module_forward_pre_hook(lambda m, args: calls.append("pre " + type(m).__name__)), \
            every.register_module_forward_hook(lambda m, args, out: calls.append(type(m).__name__)):
        net(x)
    assert calls == ["pre Sequential", "pre Tanh", "Tanh", "own", "pre Sigmoid", "Sigmoid", "Sequential"]
    del calls[:]
    with every.register_module_full_backward_hook(lambda m, inputs, outputs: calls.append(type(m).__name__)), \
            every.register_module_full_backward_pre_hook(lambda m, outputs: calls.append("pre " + type(m).__name__)):
        net(x).sum().backward()
        with pytest.raises(RuntimeError, match="as a global Module hook"):
            every.register_module_backward_hook(print)
    assert calls == ["own", "pre Sequential", "pre Sigmoid", "Sigmoid", "pre Tanh", "Tanh", "Sequential"]
    del calls[:]
    with every.register_module_backward_hook(lambda m, inputs, outputs: calls.append(type(m).__name__)):
        net[0](x).sum().backward()
        with pytest.raises(RuntimeError, match="as a global Module hook"):
            every.register_module_full_backward_hook(print)
    net(x).sum().backward()
    assert calls == ["own", "Tanh", "own"], "no hook is left behind"


def test_handles():
    module = nn.Tanh()
    handle = module.register_forward_hook(len)
    assert handle.hooks_dict_ref() is module._forward_hooks and handle.id in module._forward_hooks
    copied, hooks = pickle.loads(pickle.dumps((handle, module._forward_hooks)))
    assert copied.id == handle.id and copied.hooks_dict_ref() is hooks
    copied.remove()
    assert not hooks and module._forward_hooks
    del module
    gc.collect()
    assert handle.hooks_dict_ref() is None
    handle.remove()


@pytest.mark.parametrize("requires_grad", [True, False])
def test_hooks_do_not_keep_the_graph(requires_grad):
    class Marked:
        pass

    def weak():
        module = nn.Tanh()
        module.register_full_backward_hook(lambda *_: None)
        scale, x = tc.ones(2, requires_grad=True), tc.ones(2, requires_grad=requires_grad)
        out = module(x * scale)
        mark = Marked()
        out.grad_fn.metadata["mark"] = mark
        out.exp().sum().backward(create_graph=True)
        x.grad = scale.grad = None  # they hold the graph
        return weakref.ref(mark)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = weak()
    gc.collect()
    assert reference() is None


def test_state_dict_hooks_by_older_names():
    module, seen = nn.Linear(2, 1), []
    module._register_load_state_dict_pre_hook(lambda state, prefix, *_: seen.append((prefix, sorted(state))))
    module._register_load_state_dict_pre_hook(lambda m, *_: seen.append(m), with_module=True)
    module._register_state_dict_hook(lambda m, state, prefix, metadata: state.pop("bias") and None)
    state = module.state_dict()
    assert list(state) == ["weight"]
    module.load_state_dict(state, strict=False)
    assert seen == [("", ["weight"]), module]
