"""Recurrent networks, with PyTorch's weight names."""

import math
import numbers
import warnings

from tercel import _C
from tercel.nn import init
from tercel.nn.module import Module
from tercel.nn.parameter import Parameter
from tercel.nn.utils.rnn import PackedSequence, _select

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]


def _uniform(module):
    bound = 1.0 / math.sqrt(module.hidden_size) if module.hidden_size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


class RNNBase(Module):
    """Layers of cells over sequences [time, n, in], forward and, if bidirectional, also backward.

    Weights of layer k are weight_ih_lk, weight_hh_lk, bias_ih_lk, bias_hh_lk and, with projections, weight_hr_lk; names for
    the backward direction end in _reverse.
    """

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, proj_size=0, device=None, dtype=None):
        super().__init__()
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element "
                             "being zeroed")
        if dropout > 0 and num_layers == 1:
            warnings.warn("dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                          f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                          stacklevel=3)
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        self._names = []
        gates = {"LSTM": 4, "GRU": 3}.get(mode, 1) * hidden_size
        out = proj_size or hidden_size
        for layer in range(num_layers):
            for suffix in [f"_l{layer}"] + [f"_l{layer}_reverse"] * bidirectional:
                width = input_size if layer == 0 else out * (2 if bidirectional else 1)
                sizes = {"weight_ih": (gates, width), "weight_hh": (gates, out)}
                if bias:
                    sizes.update(bias_ih=(gates,), bias_hh=(gates,))
                if proj_size:
                    sizes["weight_hr"] = (proj_size, hidden_size)
                for name, size in sizes.items():
                    setattr(self, name + suffix, Parameter(_C.empty(size, device=device, dtype=dtype)))
                self._names.append([name + suffix for name in sizes])
        self.reset_parameters()

    def reset_parameters(self):
        """Initializes all weights uniformly in [-1 / sqrt(hidden_size), 1 / sqrt(hidden_size)]."""
        _uniform(self)

    @property
    def all_weights(self):
        """The weights, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._names]

    @property
    def _flat_weights(self):
        return [getattr(self, name) for names in self._names for name in names]

    def flatten_parameters(self):
        """Does nothing: weights need not be contiguous in memory."""

    def get_expected_hidden_size(self, input, batch_sizes):  # noqa: A002
        """The expected sizes of h for an input, which is packed if there are batch_sizes."""
        if batch_sizes is not None:
            count = int(batch_sizes[0])
        else:
            count = input.size(0 if self.batch_first else 1)
        return self.num_layers * (2 if self.bidirectional else 1), count, self.proj_size or self.hidden_size

    def get_expected_cell_size(self, input, batch_sizes):  # noqa: A002
        """The expected sizes of c of an LSTM."""
        return (*self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size)

    def check_input(self, input, batch_sizes):  # noqa: A002
        """ValueError or RuntimeError for an input that does not fit."""
        weight = self._flat_weights[0]
        if input.dtype != weight.dtype and not _C._is_autocast_enabled("cpu"):
            raise ValueError(f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert "
                             f"input: input.to({weight.dtype}), or convert model: model.to({input.dtype})")
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError("input.size(-1) must be equal to input_size. Expected "
                               f"{self.input_size}, got {input.size(-1)}")

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """RuntimeError for a state of other sizes."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):  # noqa: A002
        """check_input(), and RuntimeError for a state of other sizes."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """The state with its sequences permuted."""
        return _select(hx, 1, permutation)

    # Overridden by LSTM, whose state is a pair.

    def _zeros(self, x, batch_sizes):
        return x.new_zeros(self.get_expected_hidden_size(x, batch_sizes))

    @staticmethod
    def _each(hidden, function):
        return function(hidden)

    def _check_unbatched(self, hx, dims):
        if hx.dim() != dims:
            raise RuntimeError(f"For {self._batches(dims)} input, hx should also be {dims}-D but got {hx.dim()}-D "
                               "tensor")

    @staticmethod
    def _batches(dims):
        return "batched 3-D" if dims == 3 else "unbatched 2-D"

    def _run(self, x, batch_sizes, hidden):
        function = getattr(_C, self.mode.lower())
        options = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if batch_sizes is None:
            output, *states = function(x, hidden, *options, self.batch_first)
        else:
            output, *states = function(x, batch_sizes, hidden, *options)
        return output, tuple(states) if len(states) > 1 else states[0]

    def forward(self, input, hx=None):  # noqa: A002
        if isinstance(input, PackedSequence):
            x, sizes, order, back = input
            hx = self._zeros(x, sizes) if hx is None else self.permute_hidden(hx, order)
            self.check_forward_args(x, hx, sizes)
            output, hidden = self._run(x, sizes, hx)
            return PackedSequence(output, sizes, order, back), self.permute_hidden(hidden, back)
        if input.dim() not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        alone, dim = input.dim() == 2, 0 if self.batch_first else 1
        if hx is not None:
            self._check_unbatched(hx, input.dim())
        x = input.unsqueeze(dim) if alone else input
        if hx is None:
            hx = self._zeros(x, None)
        elif alone:
            hx = self._each(hx, lambda state: state.unsqueeze(1))
        self.check_forward_args(x, hx, None)
        output, hidden = self._run(x, None, hx)
        if not alone:
            return output, hidden
        return output.squeeze(dim), self._each(hidden, lambda state: state.squeeze(1))

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False),
                              ("dropout", 0.0), ("bidirectional", False)):
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value}"
        return text


class RNN(RNNBase):
    """h' = tanh(weight_ih x + bias_ih + weight_hh h + bias_hh), or with a ReLU."""

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False,
                 dropout=0.0, bidirectional=False, device=None, dtype=None, **options):
        _refuse_projections(options)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        mode = "RNN_TANH" if nonlinearity == "tanh" else "RNN_RELU"
        super().__init__(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         device=device, dtype=dtype, **options)
        self.nonlinearity = nonlinearity


def _refuse_projections(options):
    if "proj_size" in options:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class GRU(RNNBase):
    """h' = z h + (1 - z) tanh(W x + r U h), with gates r and z."""

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, device=None, dtype=None, **options):
        _refuse_projections(options)
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         device=device, dtype=dtype, **options)


class LSTM(RNNBase):
    """c' = f c + i tanh(g), h' = o tanh(c'), with gates i, f and o; the state is (h, c)."""

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, proj_size=0, device=None, dtype=None):
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         proj_size, device, dtype)

    def check_forward_args(self, input, hidden, batch_sizes):  # noqa: A002
        """check_input(), and RuntimeError for a state of other sizes."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes),
                               "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes),
                               "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx, permutation):
        """The state with its sequences permuted."""
        return _select(hx[0], 1, permutation), _select(hx[1], 1, permutation)

    def _zeros(self, x, batch_sizes):
        return super()._zeros(x, batch_sizes), x.new_zeros(self.get_expected_cell_size(x, batch_sizes))

    @staticmethod
    def _each(hidden, function):
        return function(hidden[0]), function(hidden[1])

    def _check_unbatched(self, hx, dims):
        h, c = hx
        if h.dim() != dims or c.dim() != dims:
            raise RuntimeError(f"For {self._batches(dims)} input, hx and cx should also be {dims}-D but got "
                               f"({h.dim()}-D, {c.dim()}-D) tensors")


class RNNCellBase(Module):
    """One step: weight_ih [gates * hidden, in], weight_hh [gates * hidden, hidden], bias_ih and bias_hh."""

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(_C.empty(rows, input_size, device=device, dtype=dtype))
        self.weight_hh = Parameter(_C.empty(rows, hidden_size, device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            given = Parameter(_C.empty(rows, device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, given)
        self.reset_parameters()

    def reset_parameters(self):
        """Initializes all weights uniformly in [-1 / sqrt(hidden_size), 1 / sqrt(hidden_size)]."""
        _uniform(self)

    def _check(self, x, hidden):
        name = type(self).__name__
        if x.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {x.dim()}D instead")
        for i, state in enumerate(hidden):
            if state.dim() not in (1, 2):
                which = "hidden" if len(hidden) == 1 else f"hx[{i}]"
                raise ValueError(f"{name}: Expected {which} to be 1D or 2D, got {state.dim()}D instead")

    def _step(self, function, x, hidden):
        return function(x, hidden, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class _PlainCell(RNNCellBase):
    """A cell whose state is one tensor."""

    def forward(self, input, hx=None):  # noqa: A002
        self._check(input, [] if hx is None else [hx])
        if hx is None:
            hx = input.new_zeros((*input.shape[:-1], self.hidden_size))
        return self._step(self._function(), input, hx)


class RNNCell(_PlainCell):
    """tanh(weight_ih x + bias_ih + weight_hh h + bias_hh), or with a ReLU."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def _function(self):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return _C.rnn_tanh_cell if self.nonlinearity == "tanh" else _C.rnn_relu_cell


class GRUCell(_PlainCell):
    """z h + (1 - z) tanh(W x + r U h), with gates r and z."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def _function(self):
        return _C.gru_cell


class LSTMCell(RNNCellBase):
    """(h', c') of (h, c): c' = f c + i tanh(g), h' = o tanh(c')."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):  # noqa: A002
        self._check(input, [] if hx is None else list(hx))
        if hx is None:
            zeros = input.new_zeros((*input.shape[:-1], self.hidden_size))
            hx = (zeros, zeros)
        return self._step(_C.lstm_cell, input, hx)
