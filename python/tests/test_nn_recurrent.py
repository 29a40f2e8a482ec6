"""Recurrent networks compared with a recurrence in NumPy, and with PyTorch's results for the same weights."""

import numpy as np
import pytest

import tercel as tc
from tercel import nn
from tercel.nn.utils import rnn as sequences

rng = np.random.default_rng(11)


def says(error, sentence, call):
    with pytest.raises(error) as info:
        call()
    assert sentence in str(info.value)


def close(got, expected, tolerance=1e-12):
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(kind, x, state, w_ih, w_hh, b_ih=0.0, b_hh=0.0, w_hr=None):
    """The next state (h, c) of rows x."""
    h, c = state
    a, b = x @ w_ih.T + b_ih, h @ w_hh.T + b_hh
    if kind is nn.LSTM:
        i, f, g, o = np.split(a + b, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return (h if w_hr is None else h @ w_hr.T), c
    if kind is nn.GRU:
        (ar, az, an), (br, bz, bn) = np.split(a, 3, -1), np.split(b, 3, -1)
        z, fresh = sigmoid(az + bz), np.tanh(an + sigmoid(ar + br) * bn)
        return z * h + (1 - z) * fresh, c
    return np.tanh(a + b), c


def run(net, x, h, c):
    """output, h and c of x [time, n, in]."""
    directions = 2 if net.bidirectional else 1
    last = []
    for layer in range(net.num_layers):
        outs = []
        for d in range(directions):
            at = layer * directions + d
            weights = [w.detach().numpy() for w in net.all_weights[at]]
            if net.proj_size:
                weights, named = weights[:-1], {"w_hr": weights[-1]}
            else:
                named = {}
            state, out = (h[at], c[at]), [None] * len(x)
            for t in range(len(x))[::-1 if d else 1]:
                state = step(type(net), x[t], state, *weights, **named)
                out[t] = state[0]
            outs.append(np.stack(out))
            last.append(state)
        x = np.concatenate(outs, -1)
    return x, np.stack([s[0] for s in last]), np.stack([s[1] for s in last])


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"num_layers": 2, "bidirectional": True},
                                     {"batch_first": True, "num_layers": 2}, {"proj_size": 2, "bidirectional": True}])
def test_layers(kind, options):
    if "proj_size" in options and kind is not nn.LSTM:
        says(ValueError, "proj_size argument is only supported for LSTM", lambda: kind(3, 4, **options))
        return
    net = kind(3, 4, dtype=tc.float64, **options)
    states = net.num_layers * (1 + net.bidirectional)
    out = net.proj_size or 4
    x, h, c = rng.standard_normal((5, 2, 3)), rng.standard_normal((states, 2, out)), rng.standard_normal((states, 2, 4))
    expected = run(net, x, h, c)
    first = [tc.from_numpy(h), tc.from_numpy(c)]
    given = tc.from_numpy(x.swapaxes(0, 1).copy() if net.batch_first else x)
    output, state = net(given, tuple(first) if kind is nn.LSTM else first[0])
    close(output.transpose(0, 1) if net.batch_first else output, expected[0])
    for got, e in zip(state if kind is nn.LSTM else [state], expected[1:]):
        close(got, e)
    # Without a state it begins with zeros, and a sequence may come without a batch.
    zeros = run(net, x, h * 0, c * 0)[0]
    close(net(given)[0], zeros.swapaxes(0, 1) if net.batch_first else zeros)
    alone, last = net(tc.from_numpy(x[:, 0].copy()))
    close(alone, zeros[:, 0])
    assert (last[0] if kind is nn.LSTM else last).shape == (states, out)


def test_a_relu():
    net = nn.RNN(2, 2, nonlinearity="relu", dtype=tc.float64)
    w_ih, w_hh, b_ih, b_hh = [w.detach().numpy() for w in net.all_weights[0]]
    x = rng.standard_normal((1, 1, 2))
    close(net(tc.from_numpy(x))[0], np.maximum(x @ w_ih.T + b_ih + b_hh, 0))
    assert nn.RNNCell(2, 2, nonlinearity="relu")(tc.ones(1, 2)).min().item() >= 0


@pytest.mark.parametrize("kind, cell", [(nn.RNN, nn.RNNCell), (nn.GRU, nn.GRUCell), (nn.LSTM, nn.LSTMCell)])
def test_cells(kind, cell):
    net = cell(3, 4, dtype=tc.float64)
    x, h, c = rng.standard_normal((2, 3)), rng.standard_normal((2, 4)), rng.standard_normal((2, 4))
    weights = [w.detach().numpy() for w in net.parameters()]
    expected = step(kind, x, (h, c), *weights)
    state = (tc.from_numpy(h), tc.from_numpy(c)) if cell is nn.LSTMCell else tc.from_numpy(h)
    got = net(tc.from_numpy(x), state)
    for g, e in zip(got if cell is nn.LSTMCell else [got], expected):
        close(g, e)
    bare = cell(3, 4, bias=False, dtype=tc.float64)
    assert list(bare.state_dict()) == ["weight_ih", "weight_hh"]
    alone = bare(tc.from_numpy(x[0].copy()))
    assert (alone[0] if cell is nn.LSTMCell else alone).shape == (4,)


def test_values_of_pytorch():
    net = nn.LSTM(2, 2, bidirectional=True, dtype=tc.float64)
    at = 0
    for p in net.parameters():
        with tc.no_grad():
            p.copy_((tc.arange(at, at + p.numel(), dtype=tc.float64) % 13 / 10 - 0.6).view_as(p))
        at += p.numel()
    x = tc.arange(6.0, dtype=tc.float64).view(3, 1, 2) / 5
    output, (h, c) = net(x)
    close(output[:, 0], [[0.078029392348, 0.083021543328, -0.230340337190, -0.201895787655],
                         [0.123548869694, 0.103267011327, -0.245401208170, -0.187363377158],
                         [0.128081792949, 0.093535572402, -0.233682692035, -0.107638884164]], 1e-11)
    close(c[:, 0], [[0.208779912712, 0.441827377470], [-0.595201735098, -0.344854236166]], 1e-11)
    (output.sum() + h.sum()).backward()
    close(net.weight_hh_l0_reverse.grad[0], [0.047606355363, 0.027939005344], 1e-11)


def test_packed_sequences():
    parts = [tc.from_numpy(rng.standard_normal((n, 3))) for n in (2, 4, 1)]
    packed = sequences.pack_sequence(parts, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1] and packed.sorted_indices.tolist() == [1, 0, 2]
    assert packed.unsorted_indices.tolist() == [1, 0, 2] and not packed.is_cuda and packed.float().data.dtype is tc.float32
    for kind in (nn.RNN, nn.GRU, nn.LSTM):
        net = kind(3, 4, 2, bidirectional=True, dtype=tc.float64)
        h = tc.from_numpy(rng.standard_normal((4, 3, 4)))
        output, state = net(packed, (h, h) if kind is nn.LSTM else h)
        padded, lengths = sequences.pad_packed_sequence(output, batch_first=True)
        assert lengths.tolist() == [2, 4, 1] and padded.shape == (3, 4, 8)
        for i, part in enumerate(parts):
            single = h[:, i]
            expected, last = net(part, (single, single) if kind is nn.LSTM else single)
            close(padded[i, :len(part)], expected.detach().numpy())
            assert padded[i, len(part):].abs().sum().item() == 0
            for got, want in zip(state if kind is nn.LSTM else [state], last if kind is nn.LSTM else [last]):
                close(got[:, i], want.detach().numpy())
    says(RuntimeError, "Expected hidden size (4, 3, 4), got [2, 3, 4]",
         lambda: nn.GRU(3, 4, 2, bidirectional=True, dtype=tc.float64)(packed, h[:2]))


def test_padding_and_packing():
    parts = [tc.arange(3.0), tc.arange(5.0), tc.arange(2.0)]
    padded = sequences.pad_sequence(parts, batch_first=True, padding_value=-1)
    assert padded.tolist() == [[0, 1, 2, -1, -1], [0, 1, 2, 3, 4], [0, 1, -1, -1, -1]]
    assert sequences.pad_sequence(parts).shape == (5, 3)
    assert sequences.pad_sequence(parts[::2], True, padding_side="left").tolist() == [[0, 1, 2], [0, 0, 1]]
    lengths = tc.tensor([3, 5, 2])
    assert [s.tolist() for s in sequences.unpad_sequence(padded, lengths, True)] == [p.tolist() for p in parts]
    packed = sequences.pack_sequence(parts, enforce_sorted=False)
    assert packed.data.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 3, 4]
    assert [s.tolist() for s in sequences.unpack_sequence(packed)] == [p.tolist() for p in parts]
    whole, sizes = sequences.pad_packed_sequence(packed, True, -1, total_length=6)
    assert whole[:, :5].tolist() == padded.tolist() and whole[:, 5].tolist() == [-1] * 3 and sizes.tolist() == [3, 5, 2]
    says(RuntimeError, "`lengths` array must be sorted in decreasing order", lambda: sequences.pack_sequence(parts))
    says(ValueError, "total_length=2 and max sequence length being 5",
         lambda: sequences.pad_packed_sequence(packed, total_length=2))
    says(RuntimeError, "Length of all samples has to be greater than 0",
         lambda: sequences.pack_padded_sequence(tc.ones(3, 2), [3, 0]))
    says(RuntimeError, "Expected `len(lengths)` to be equal to batch_size, but got 1 (batch_size=2)",
         lambda: sequences.pack_padded_sequence(tc.ones(3, 2), [3]))


def test_names_and_errors():
    net = nn.LSTM(3, 4, 1, bidirectional=True, proj_size=2)
    names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0"]
    assert list(net.state_dict()) == names + [n + "_reverse" for n in names]
    assert repr(nn.LSTM(3, 4, 2, dropout=0.1, bidirectional=True)) == (
        "LSTM(3, 4, num_layers=2, dropout=0.1, bidirectional=True)")
    assert repr(nn.LSTM(3, 4, proj_size=2, batch_first=True)) == "LSTM(3, 4, proj_size=2, batch_first=True)"
    assert repr(nn.RNNCell(3, 4, nonlinearity="relu")) == "RNNCell(3, 4, nonlinearity=relu)"
    assert repr(nn.GRUCell(2, 3, bias=False)) == "GRUCell(2, 3, bias=False)"
    assert max(p.abs().max().item() for p in nn.GRU(3, 16).parameters()) <= 0.25
    x, ones = tc.ones(2, 3, 3), tc.ones
    lstm, gru = nn.LSTM(3, 4), nn.GRU(3, 4)
    for error, sentence, call in [
            (ValueError, "LSTM: Expected input to be 2D or 3D, got 1D instead", lambda: lstm(ones(2))),
            (RuntimeError, "input.size(-1) must be equal to input_size. Expected 3, got 4", lambda: lstm(ones(2, 3, 4))),
            (RuntimeError, "Expected hidden[0] size (1, 3, 4), got [1, 2, 4]",
             lambda: lstm(x, (ones(1, 2, 4), ones(1, 3, 4)))),
            (RuntimeError, "For unbatched 2-D input, hx and cx should also be 2-D but got (3-D, 3-D) tensors",
             lambda: lstm(ones(2, 3), (ones(1, 2, 4), ones(1, 3, 4)))),
            (RuntimeError, "For batched 3-D input, hx should also be 3-D but got 2-D tensor", lambda: gru(x, ones(1, 4))),
            (RuntimeError, "Expected hidden size (1, 3, 4), got [2, 3, 4]", lambda: gru(x, ones(2, 3, 4))),
            (ValueError, "RNN input dtype (tercel.float64) does not match weight dtype", lambda: gru(x.double())),
            (RuntimeError, "Expected sequence length to be larger than 0 in RNN", lambda: gru(ones(0, 2, 3))),
            (ValueError, "Unknown nonlinearity 'x'", lambda: nn.RNN(3, 4, nonlinearity="x")),
            (RuntimeError, "Unknown nonlinearity: x", lambda: nn.RNNCell(3, 4, nonlinearity="x")(ones(2, 3))),
            (ValueError, "proj_size has to be smaller than hidden_size", lambda: nn.LSTM(3, 4, proj_size=5)),
            (ValueError, "dropout should be a number in range [0, 1]", lambda: nn.GRU(3, 4, dropout=2)),
            (ValueError, "hidden_size must be greater than zero", lambda: nn.GRU(3, 0)),
            (TypeError, "hidden_size should be of type int, got: float", lambda: nn.GRU(3, 4.5)),
            (ValueError, "LSTMCell: Expected input to be 1D or 2D, got 3D instead", lambda: nn.LSTMCell(3, 4)(x)),
            (RuntimeError, "input has inconsistent input_size: got 2 expected 3",
             lambda: nn.LSTMCell(3, 4)(ones(2, 2))),
            (RuntimeError, "lstm_cell expects two hidden states",
             lambda: tc.lstm_cell(ones(2, 3), [ones(2, 4)], ones(16, 3), ones(16, 4)))]:
        says(error, sentence, call)
    with pytest.warns(UserWarning, match="non-zero dropout expects num_layers greater than 1"):
        nn.GRU(3, 4, dropout=0.2)


def test_dropout_is_between_layers():
    tc.manual_seed(0)
    net = nn.GRU(3, 8, 2, dropout=0.5)
    x = tc.rand(4, 2, 3)
    a, b = net(x)[0], net(x)[0]
    assert (a != b).any().item()
    net.eval()
    assert (net(x)[0] == net(x)[0]).all().item()


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_networks_learn_to_remember(kind):
    x = (tc.rand(8, 64, 1, generator=tc.Generator().manual_seed(1)) > 0.5).float()
    y = x[0, :, 0].long()  # the first of eight bits

    def trained(seed):
        tc.manual_seed(seed)
        net, head = kind(1, 16), nn.Linear(16, 2)
        optimizer = tc.optim.Adam([*net.parameters(), *head.parameters()], lr=0.03)
        for _ in range(80):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(head(net(x)[0][-1]), y)
            loss.backward()
            optimizer.step()
        return loss.item()

    # From some initial values it takes longer; which ones depends on the last bits, as in PyTorch.
    assert sum(trained(seed) < 0.1 for seed in range(6)) >= 3
