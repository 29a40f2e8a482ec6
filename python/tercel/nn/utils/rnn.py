"""Sequences of several lengths in one tensor: padded, or packed step by step."""

import collections

from tercel import _C
from tercel._C import Tensor

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pad_packed_sequence", "pad_sequence",
           "unpad_sequence", "pack_sequence", "unpack_sequence"]

_Packed = collections.namedtuple("PackedSequence_", "data batch_sizes sorted_indices unsorted_indices")


def _select(x, dim, index):
    return x if index is None else x.index_select(dim, index)


class PackedSequence(_Packed):
    """data [sum of batch_sizes, ...]: the elements of the sequences, longest first, at step 0, at step 1, and so on.

    sorted_indices are the sequences' positions before sorting; unsorted_indices is the inverse permutation.
    """

    __slots__ = ()

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, data):
        return self if data is self.data else type(self)(data, *self[1:])

    def to(self, *args, **kwargs):
        """Converts data with Tensor.to()."""
        return self._with(self.data.to(*args, **kwargs))

    def cpu(self):
        """Moves data to the CPU."""
        return self.to("cpu")

    def double(self):
        """Converts data to float64."""
        return self._with(self.data.double())

    def float(self):
        """Converts data to float32."""
        return self._with(self.data.float())

    def half(self):
        """Converts data to float16."""
        return self._with(self.data.half())

    def long(self):
        """Converts data to int64."""
        return self._with(self.data.long())

    def int(self):
        """Converts data to int32."""
        return self._with(self.data.int())

    @property
    def is_cuda(self):
        """Whether data is on a GPU."""
        return self.data.is_cuda


def invert_permutation(permutation):
    """The inverse of a permutation."""
    if permutation is None:
        return None
    return permutation.argsort()


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):  # noqa: A002
    """A PackedSequence of padded sequences [time, n, ...]."""
    lengths = _C.tensor(list(lengths), dtype=_C.int64) if not isinstance(lengths, Tensor) else lengths.long()
    if enforce_sorted:
        order = None
    else:
        lengths, order = lengths.sort(descending=True)
        input = input.index_select(0 if batch_first else 1, order)  # noqa: A001
    x = input.transpose(0, 1) if batch_first else input
    sizes = lengths.tolist()
    if len(sizes) != x.size(1):
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} "
                           f"(batch_size={x.size(1)})")
    if any(a < b for a, b in zip(sizes, sizes[1:])):
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can "
                           "pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this "
                           "requirement if you do not need ONNX exportability.")
    if not sizes or sizes[-1] <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is "
                           "<= 0")
    if sizes[0] > x.size(0):
        raise RuntimeError(f"pack_padded_sequence: expected lengths of at most {x.size(0)}, the steps of the input, but "
                           f"got {sizes[0]}")
    there = [sum(size > t for size in sizes) for t in range(sizes[0])]
    data = _C.cat([x[t, :count] for t, count in enumerate(there)])
    return PackedSequence(data, _C.tensor(there), order)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The sequences [time, n, ...], padded at their ends, and their lengths."""
    there = sequence.batch_sizes.tolist()
    longest, count = len(there), there[0]
    if total_length is not None:
        if total_length < longest:
            raise ValueError("Expected total_length to be at least the length of the longest sequence in input, but got "
                             f"total_length={total_length} and max sequence length being {longest}")
    steps = []
    for x in sequence.data.split(there):
        missing = count - x.size(0)
        steps.append(_C.cat([x, x.new_full((missing, *x.shape[1:]), padding_value)]) if missing else x)
    for _ in range(longest, total_length or longest):
        steps.append(sequence.data.new_full((count, *sequence.data.shape[1:]), padding_value))
    padded = _C.stack(steps)
    lengths = _C.tensor([sum(size > i for size in there) for i in range(count)])
    back = sequence.unsorted_indices
    padded = _select(padded, 1, back)
    return padded.transpose(0, 1) if batch_first else padded, _select(lengths, 0, back)


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Stacks sequences [length, ...] to [time, n, ...] with padding."""
    if not hasattr(sequences, "__iter__"):
        raise RuntimeError("pad_sequence: Expected iterable for input sequences, but got arg of type: "
                           f"{type(sequences)}")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"pad_sequence: Expected padding_side to be 'left' or 'right', but got {padding_side}")
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("pad_sequence: Expected at least one sequence")
    longest = max(s.size(0) for s in sequences)
    padded = []
    for s in sequences:
        missing = longest - s.size(0)
        both = [s, s.new_full((missing, *s.shape[1:]), padding_value)]
        padded.append(_C.cat(both if padding_side == "right" else both[::-1]) if missing else s)
    return _C.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences without their padding, as a list."""
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(x.unbind(), lengths.tolist())]


def pack_sequence(sequences, enforce_sorted=True):
    """A PackedSequence of sequences [length, ...]."""
    sequences = list(sequences)
    return pack_padded_sequence(pad_sequence(sequences), [s.size(0) for s in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The sequences of a PackedSequence as a list."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences))
