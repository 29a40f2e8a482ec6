"""Attention in heads, and layers of transformers."""

import numpy as np
import pytest

import tercel as tc
from tercel import nn
from tercel.nn import functional as F

rng = np.random.default_rng(5)


def says(error, sentence, call):
    with pytest.raises(error) as info:
        call()
    assert sentence in str(info.value)


def close(got, expected, tolerance=1e-10):
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def numbered(module):
    """The module with weights -0.5, -0.4 ... 0.5 and again, in their order."""
    at = 0
    with tc.no_grad():
        for p in module.parameters():
            p.copy_((tc.arange(at, at + p.numel(), dtype=tc.float64) % 11 / 10 - 0.5).view_as(p))
            at += p.numel()
    return module


def attention(net, q, k, v, mask=0.0):
    """Output and weights of each head for q [length, embed], k and v [source, embed]."""
    w, b = net.in_proj_weight.detach().numpy(), net.in_proj_bias.detach().numpy()
    e, h = net.embed_dim, net.num_heads
    q, k, v = (x @ w[i * e:(i + 1) * e].T + b[i * e:(i + 1) * e] for i, x in enumerate((q, k, v)))
    outs, weights = [], []
    for i in range(h):
        part = slice(i * e // h, (i + 1) * e // h)
        scores = q[:, part] @ k[:, part].T / np.sqrt(e / h) + mask
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        weights.append(shares)
        outs.append(shares @ v[:, part])
    out = np.concatenate(outs, -1) @ net.out_proj.weight.detach().numpy().T + net.out_proj.bias.detach().numpy()
    return out, np.stack(weights)


def test_against_numpy():
    net = nn.MultiheadAttention(6, 2, dtype=tc.float64)
    q, k = rng.standard_normal((3, 2, 6)), rng.standard_normal((4, 2, 6))
    out, weights = net(*map(tc.from_numpy, (q, k, k)), average_attn_weights=False)
    alone, mean = net(*(tc.from_numpy(x[:, 0].copy()) for x in (q, k, k)))
    bare, nothing = net(*map(tc.from_numpy, (q, k, k)), need_weights=False)
    assert nothing is None
    for n in range(2):
        expected = attention(net, q[:, n], k[:, n], k[:, n])
        close(out[:, n], expected[0])
        close(weights[n], expected[1])
        close(bare[:, n], expected[0])
    expected = attention(net, q[:, 0], k[:, 0], k[:, 0])
    close(alone, expected[0])
    close(mean, expected[1].mean(0))
    net.batch_first = True
    x = tc.from_numpy(q.swapaxes(0, 1).copy())
    close(net(x, x, x)[0][1], attention(net, q[:, 1], q[:, 1], q[:, 1])[0])


def test_masks():
    net = nn.MultiheadAttention(4, 2, dtype=tc.float64)
    x = rng.standard_normal((3, 2, 4))
    t = tc.from_numpy(x)
    later = np.triu(np.ones((3, 3), bool), 1)
    causal = np.where(later, -np.inf, 0)
    added = rng.standard_normal((4, 3, 3))
    ignored = tc.tensor([[False, False, True], [False, False, False]])
    for need in (True, False):
        options = {"need_weights": need}
        close(net(t, t, t, attn_mask=tc.from_numpy(later), is_causal=True, **options)[0][:, 1],
              attention(net, x[:, 1], x[:, 1], x[:, 1], causal)[0])
        got = net(t, t, t, attn_mask=tc.from_numpy(added), key_padding_mask=ignored, **options)[0]
        padding = np.array([0, 0, -np.inf])
        # One mask for each head of each sample: both heads' outputs are of the same projection.
        for n in range(2):
            close(got[:, n], both(net, x[:, n], added[2 * n:2 * n + 2], padding if n == 0 else 0.0))
    nothing = tc.ones(2, 3, dtype=tc.bool)
    assert net(t, t, t, key_padding_mask=nothing)[0].isnan().all().item()
    assert not net(t, t, t, key_padding_mask=nothing, need_weights=False)[0].isnan().any().item()


def both(net, x, masks, padding):
    """The output with a separate mask for each head."""
    one, other = (attention(net, x, x, x, mask + padding)[1] for mask in masks)
    w, b = net.in_proj_weight.detach().numpy()[8:], net.in_proj_bias.detach().numpy()[8:]
    v = x @ w.T + b
    heads = np.concatenate([one[0] @ v[:, :2], other[1] @ v[:, 2:]], -1)
    return heads @ net.out_proj.weight.detach().numpy().T + net.out_proj.bias.detach().numpy()


def test_values_of_pytorch():
    net = numbered(nn.MultiheadAttention(4, 2, kdim=3, vdim=2, add_bias_kv=True, add_zero_attn=True, dtype=tc.float64))
    q = tc.arange(8.0, dtype=tc.float64).view(2, 1, 4) / 4
    k, v = tc.arange(9.0, dtype=tc.float64).view(3, 1, 3) / 5, tc.arange(6.0, dtype=tc.float64).view(3, 1, 2) / 3
    out, weights = net(q, k, v, key_padding_mask=tc.tensor([[False, True, False]]))
    close(out[:, 0], [[0.1257000928, 0.0442325038, 0.6455909535, 0.3803331956],
                      [0.0920152186, 0.0872373455, 0.5816575267, 0.3658207504]], 1e-9)
    close(weights[0], [[0.2400567647, 0, 0.2420258875, 0.2603418316, 0.2575755163],
                       [0.2244901820, 0, 0.1663060823, 0.3068187581, 0.3023849776]], 1e-9)
    layer = numbered(nn.TransformerEncoderLayer(4, 2, 3, dropout=0.0, dtype=tc.float64))
    close(layer(q, tc.tensor([[False, True], [False, False]]))[:, 0],
          [[-0.5123512012, 0.4763060863, -0.3348425683, 0.5165677225],
           [-0.4971727379, 0.4852974658, -0.3125985972, 0.5211441125]], 1e-9)


def test_names_and_errors():
    net = nn.MultiheadAttention(4, 2)
    assert list(net.state_dict()) == ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]
    assert list(nn.MultiheadAttention(4, 2, kdim=3, vdim=5, add_bias_kv=True).state_dict()) == [
        "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias", "bias_k", "bias_v", "out_proj.weight",
        "out_proj.bias"]
    assert "(out_proj): NonDynamicallyQuantizableLinear(in_features=4" in repr(net)
    assert list(nn.TransformerEncoderLayer(4, 2).state_dict())[4:6] == ["linear1.weight", "linear1.bias"]
    q, ones = tc.ones(3, 2, 4), tc.ones
    for error, sentence, call in [
            (AssertionError, "embed_dim must be divisible by num_heads", lambda: nn.MultiheadAttention(5, 2)),
            (ValueError, "embed_dim and num_heads must be greater than 0", lambda: nn.MultiheadAttention(0, 2)),
            (AssertionError, "was expecting embedding dimension of 4, but got 5", lambda: net(ones(3, 2, 5), q, q)),
            (AssertionError, "received 1-D query tensor", lambda: net(ones(4), q, q)),
            (AssertionError, "For unbatched (2-D) `query`, expected `key` and `value` to be 2-D but found 3-D",
             lambda: net(q[:, 0], q, q)),
            (RuntimeError, "The shape of the 2D attn_mask is tercel.Size([2, 2]), but should be (3, 3).",
             lambda: net(q, q, q, attn_mask=ones(2, 2))),
            (RuntimeError, "but should be (4, 3, 3).", lambda: net(q, q, q, attn_mask=ones(2, 3, 3))),
            (AssertionError, "expected `attn_mask` to be `None`, 2-D or 3-D but found 4-D tensor instead",
             lambda: net(q, q, q, attn_mask=ones(2, 2, 2, 2))),
            (AssertionError, "Expected key_padded_mask.shape[1] to be 3, but got 2",
             lambda: net(q, q, q, key_padding_mask=ones(2, 2, dtype=tc.bool))),
            (AssertionError, "only bool and floating types of attn_mask are supported",
             lambda: net(q, q, q, attn_mask=ones(3, 3, dtype=tc.int64))),
            (RuntimeError, "Need attn_mask if specifying the is_causal hint", lambda: net(q, q, q, is_causal=True)),
            (AssertionError, "does not match value shape", lambda: net(q, q[:2], q)),
            (RuntimeError, "activation should be relu/gelu, not tanh",
             lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh"))]:
        says(error, sentence, call)


def test_gradients_and_dropout():
    tc.manual_seed(0)
    net = nn.MultiheadAttention(4, 2, dropout=0.5)
    x = tc.rand(3, 2, 4, requires_grad=True)
    first, second = net(x, x, x)[0], net(x, x, x)[0]
    assert (first != second).any().item()
    first.sum().backward()
    assert all(p.grad is not None for p in net.parameters()) and x.grad.abs().sum().item() > 0
    net.eval()
    assert net(x, x, x)[0].tolist() == net(x, x, x)[0].tolist()
    layer = nn.TransformerEncoderLayer(4, 2, 8, norm_first=True, activation="gelu", batch_first=True).eval()
    assert layer(tc.rand(2, 5, 4)).shape == (2, 5, 4)


def test_positions_that_may_look_at_nothing():
    query = tc.ones(1, 2, 2, dtype=tc.float64, requires_grad=True)
    key, value = tc.rand(1, 3, 2, dtype=tc.float64), tc.arange(6.0).double().view(1, 3, 2)
    seen = tc.tensor([[True, False, True], [False, False, False]])
    added = tc.zeros(2, 3, dtype=tc.float64).masked_fill(~seen, -float("inf")).requires_grad_()
    attend = tc.nn.functional.scaled_dot_product_attention
    by_bool, by_number = attend(query, key, value, seen), attend(query, key, value, added)
    assert by_number[0, 1].tolist() == [0, 0] and tc.allclose(by_bool, by_number)
    for out in (by_bool, by_number):
        (g,) = tc.autograd.grad(out.sum(), query)
        assert not g.isnan().any() and g[0, 1].tolist() == [0, 0] and g[0, 0].abs().sum() > 0
    (g,) = tc.autograd.grad(attend(query, key, value, added).sum(), added)
    assert g[1].tolist() == [0, 0, 0]
