"""Transformers: blocks compared with the formulas, masks, stacks, and errors."""

import copy
import inspect

import numpy as np
import pytest

import tercel as tc
from tercel import nn
from tercel.nn import functional as F


def close(a, b, tolerance=1e-5):
    assert a.shape == b.shape
    assert tc.allclose(a, b, rtol=tolerance, atol=tolerance), (a - b).abs().max().item()


def lively(module):
    """Norms that are not the identity, biases that are not zero."""
    for p in module.parameters():
        if p.dim() == 1:
            nn.init.uniform_(p, 0.5, 1.5)
    return module


def attention(layer, x, memory, forbidden=None):
    """[length, embed] of [length, embed] and [source, embed], head by head, for one sample."""
    q, k, v = (F.linear(y, w, b) for y, w, b in zip((x, memory, memory), layer.in_proj_weight.chunk(3),
                                                  layer.in_proj_bias.chunk(3)))
    parts = []
    for h in range(layer.num_heads):
        own = slice(h * layer.head_dim, (h + 1) * layer.head_dim)
        scores = q[:, own] @ k[:, own].T / layer.head_dim**0.5
        if forbidden is not None:
            scores = scores.masked_fill(forbidden, float("-inf"))
        parts.append(scores.softmax(-1) @ v[:, own])
    return layer.out_proj(tc.cat(parts, 1))


def feed(layer, x, activation=tc.relu):
    return layer.linear2(activation(layer.linear1(x)))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu", F.silu])
def test_encoder_layer(norm_first, activation):
    tc.manual_seed(0)
    layer = lively(nn.TransformerEncoderLayer(8, 2, 16, 0.0, activation, norm_first=norm_first))
    act = getattr(F, activation) if isinstance(activation, str) else activation
    x = tc.randn(5, 8)
    if norm_first:
        y = layer.norm1(x)
        z = x + attention(layer.self_attn, y, y)
        expected = z + feed(layer, layer.norm2(z), act)
    else:
        z = layer.norm1(x + attention(layer.self_attn, x, x))
        expected = layer.norm2(z + feed(layer, z, act))
    close(layer(x), expected)
    close(layer(x.unsqueeze(1)).squeeze(1), expected)


@pytest.mark.parametrize("norm_first", [False, True])
def test_decoder_layer(norm_first):
    tc.manual_seed(1)
    layer = lively(nn.TransformerDecoderLayer(8, 2, 16, 0.0, norm_first=norm_first))
    x, memory = tc.randn(4, 8), tc.randn(6, 8)
    later = tc.ones(4, 4).triu(1).bool()
    if norm_first:
        y = layer.norm1(x)
        z = x + attention(layer.self_attn, y, y, later)
        z = z + attention(layer.multihead_attn, layer.norm2(z), memory)
        expected = z + feed(layer, layer.norm3(z))
    else:
        z = layer.norm1(x + attention(layer.self_attn, x, x, later))
        z = layer.norm2(z + attention(layer.multihead_attn, z, memory))
        expected = layer.norm3(z + feed(layer, z))
    close(layer(x, memory, tgt_mask=later), expected)
    assert list(dict(layer.named_children())) == [
        "self_attn", "multihead_attn", "linear1", "dropout", "linear2", "norm1", "norm2", "norm3", "dropout1",
        "dropout2", "dropout3"]


def test_stacks_are_copies_and_a_norm():
    tc.manual_seed(2)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0)
    stack = nn.TransformerEncoder(layer, 3, nn.LayerNorm(8))
    x = tc.randn(5, 2, 8)
    close(stack(x), stack.norm(layer(layer(layer(x)))))
    assert stack.layers[0].linear1.weight is not layer.linear1.weight
    with tc.no_grad():
        stack.layers[1].linear1.weight.zero_()
    assert stack.layers[2].linear1.weight.abs().sum() > 0 and layer.linear1.weight.abs().sum() > 0
    assert "(0-1): 2 x TransformerDecoderLayer(" in repr(nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2), 2))
    names = list(stack.state_dict())
    assert names[0] == "layers.0.self_attn.in_proj_weight" and names[-2:] == ["norm.weight", "norm.bias"]
    assert nn.TransformerEncoder(layer, 1).norm is None
    again = copy.deepcopy(stack)
    close(again(x), stack(x))

    decoder_layer = nn.TransformerDecoderLayer(8, 2, 16, 0.0)
    memory = tc.randn(3, 2, 8)
    close(nn.TransformerDecoder(decoder_layer, 2)(x, memory), decoder_layer(decoder_layer(x, memory), memory))


@pytest.mark.parametrize("batch_first", [False, True])
def test_masks(batch_first):
    tc.manual_seed(3)
    model = nn.Transformer(8, 2, 2, 2, 16, 0.0, batch_first=batch_first)
    turn = (lambda t: t.transpose(0, 1)) if batch_first else (lambda t: t)
    src, tgt = tc.randn(6, 2, 8), tc.randn(4, 2, 8)
    causal = nn.Transformer.generate_square_subsequent_mask(4)
    out = turn(model(turn(src), turn(tgt), tgt_mask=causal, tgt_is_causal=True))
    # Later positions do not affect earlier ones.
    changed = tgt.clone()
    changed[2:] += 1
    other = turn(model(turn(src), turn(changed), tgt_mask=causal))
    close(out[:2], other[:2])
    assert not tc.allclose(out[2:], other[2:], atol=1e-3)
    # Padding of the source has no effect on the sample that has it.
    padding = tc.tensor([[False] * 6, [False] * 4 + [True] * 2])
    masked = turn(model(turn(src), turn(tgt), src_key_padding_mask=padding, memory_key_padding_mask=padding))
    short = turn(model(turn(src[:4, 1:]), turn(tgt[:, 1:])))
    close(masked[:, 1:], short)
    close(masked[:, 0], turn(model(turn(src), turn(tgt)))[:, 0])
    # The decoder's mask of the encoder's output.
    first = tc.ones(4, 6).bool()
    first[:, 0] = False
    memory = model.encoder(turn(src))
    close(turn(model(turn(src), turn(tgt), memory_mask=first)),
          turn(model.decoder(turn(tgt), turn(turn(memory)[:1]))))


def test_the_causal_mask():
    mask = nn.Transformer.generate_square_subsequent_mask(3, dtype=tc.float64)
    inf = float("inf")
    assert mask.tolist() == [[0, -inf, -inf], [0, 0, -inf], [0, 0, 0]] and mask.dtype is tc.float64
    assert nn.Transformer.generate_square_subsequent_mask(2).dtype is tc.float32


def test_initial_values():
    tc.manual_seed(4)
    model = nn.Transformer(32, 2, 1, 1, 64)
    for name, p in model.named_parameters():
        if p.dim() > 1:
            bound = (6 / sum(p.shape)) ** 0.5
            assert 0.9 * bound < p.abs().max().item() <= bound, name
    assert model.encoder.norm.weight.tolist() == [1] * 32
    assert isinstance(model.decoder.norm, nn.LayerNorm) and model.d_model == 32 and model.nhead == 2
    bare = nn.Transformer(8, 2, 1, 1, 16, bias=False)
    assert not [name for name, _ in bare.named_parameters() if name.endswith("bias")]


def test_own_encoder_and_decoder():
    class Same(nn.Module):
        def forward(self, src, *args, **kwargs):
            return src

    src, tgt = tc.randn(3, 1, 8), tc.randn(2, 1, 8)
    assert nn.Transformer(8, 2, custom_encoder=Same(), custom_decoder=Same())(src, tgt) is tgt


def test_it_learns():
    tc.manual_seed(5)
    model = nn.Transformer(8, 2, 1, 1, 16, 0.1)
    out = nn.Linear(8, 4)
    table = nn.Embedding(5, 8)
    params = [*model.parameters(), *out.parameters(), *table.parameters()]
    optimizer = tc.optim.Adam(params, 0.01)
    words = tc.tensor(np.random.RandomState(0).randint(0, 4, (6, 16)))
    start = tc.full((1, 16), 4)
    mask = nn.Transformer.generate_square_subsequent_mask(6)
    losses = []
    for _ in range(60):
        decoded = model(table(words), table(tc.cat([start, words[:-1]])), tgt_mask=mask)
        loss = F.cross_entropy(out(decoded).flatten(0, 1), words.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(p.grad is not None for p in params) and losses[-1] < 0.8 * losses[0]


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="activation should be relu/gelu, not tanh"):
        nn.TransformerDecoderLayer(8, 2, activation="tanh")
    model = nn.Transformer(8, 2, 1, 1, 16)
    with pytest.raises(RuntimeError, match="the batch number of src and tgt must be equal"):
        model(tc.zeros(3, 2, 8), tc.zeros(3, 1, 8))
    with pytest.raises(RuntimeError, match="the feature number of src and tgt must be equal to d_model"):
        model(tc.zeros(3, 2, 8), tc.zeros(3, 2, 6))
    with pytest.raises(RuntimeError, match="Need attn_mask if specifying the is_causal hint"):
        model(tc.zeros(3, 2, 8), tc.zeros(3, 2, 8), src_is_causal=True)


def test_signatures():
    assert list(inspect.signature(nn.TransformerEncoder).parameters) == [
        "encoder_layer", "num_layers", "norm", "enable_nested_tensor", "mask_check"]
    assert list(inspect.signature(nn.Transformer.forward).parameters)[1:] == [
        "src", "tgt", "src_mask", "tgt_mask", "memory_mask", "src_key_padding_mask", "tgt_key_padding_mask",
        "memory_key_padding_mask", "src_is_causal", "tgt_is_causal", "memory_is_causal"]
