"""
Collectives of tensors.

Note [Staged tensors]
The group works on contiguous memory, and on one piece for the tensors of a list. Where an argument is no such memory, the
call works on a copy, and its results are copied back when the work is found to be done: in wait() or is_completed().
"""

import datetime
import enum
import math
import threading
from typing import Any, Callable, List, Optional, Sequence, Tuple

from tercel import _C
from tercel._C import Tensor
from tercel.distributed._group import DistBackendError, ProcessGroup, group_of, rank_of, seconds_of


class ReduceOp(enum.Enum):
    """
    How the tensors of all ranks become one, element by element in the order of the ranks. AVG is of floats and complex
    numbers, MIN and MAX are not of complex ones, BAND, BOR and BXOR are of integers and bools.
    """

    SUM = "sum"
    AVG = "mean"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "bitwise_and"
    BOR = "bitwise_or"
    BXOR = "bitwise_xor"
    PREMUL_SUM = "premul_sum"


class Work:
    """A collective that was started with async_op=True; its tensors may be used when it is done."""

    def __init__(self, of: Any, finish: Optional[Callable[[], None]] = None) -> None:
        self._of, self._finish = of, finish
        self._error: Optional[Exception] = None  # of finish
        self._lock = threading.Lock()  # several threads may wait

    def wait(self, timeout: Optional[datetime.timedelta] = None) -> bool:
        """
        Waits until the results are there: True. DistBackendError if the collective failed, or is not done after `timeout`,
        a timedelta. Ctrl-C ends the wait.
        """
        if not self._of.wait(None if timeout is None else seconds_of(timeout)):
            raise DistBackendError(f"Work: the collective is not done after {timeout}")
        with self._lock:
            finish, self._finish = self._finish, None
            if finish is not None:
                try:
                    finish()
                except Exception as error:  # noqa: B902: every wait raises it
                    self._error = error
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether it is done, also with an error; the results are there then."""
        if not self._of.is_completed():
            return False
        self.exception()
        return True

    def is_success(self) -> bool:
        """Whether it is done without an error."""
        return bool(self._of.is_completed()) and self.exception() is None

    def exception(self) -> Optional[Exception]:
        """The error with which it ended, None if there is none; waits for its end."""
        try:
            self.wait()
        except Exception as error:  # noqa: B902: it is the result
            return error
        return None


def started(of: Any, async_op: bool, finish: Optional[Callable[[], None]] = None) -> Optional[Work]:
    """The result of a collective: a Work, or None when it is done."""
    work = Work(of, finish)
    if async_op:
        return work
    work.wait()
    return None


def checked(tensor: Any, name: str) -> Tensor:
    """TypeError for what is no tensor, ValueError for one that has no memory of the CPU that could be sent."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type tercel.Tensor but got "
                        f"{type(tensor).__name__} instead.")
    if tensor.layout != _C.strided:
        raise ValueError(f"{name}: expected a dense tensor, found one of layout {tensor.layout}; gather its indices and values")
    if tensor.device.type != "cpu":
        raise ValueError(f"{name}: expected a tensor on the CPU, found one on {tensor.device}")
    return tensor


def _checked_list(tensors: Any, name: str, like: Tensor, size: int) -> List[Tensor]:
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type List[tercel.Tensor] but got "
                        f"{type(tensors).__name__} instead.")
    if len(tensors) != size:
        raise ValueError(f"{name}: expected {size} tensors, one for each rank, found {len(tensors)}")
    found = [checked(tensor, name) for tensor in tensors]
    for tensor in found:
        _same_dtype(like, tensor, name)
    return found


def _same_dtype(a: Tensor, b: Tensor, name: str) -> None:
    if a.dtype != b.dtype:
        raise ValueError(f"{name}: expected tensors of one dtype, found {a.dtype} and {b.dtype}")


def reduction_of(op: Any, tensor: Tensor) -> str:
    """The library's name of a ReduceOp."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"op: expected a ReduceOp, not {type(op).__name__}")
    if op is ReduceOp.PREMUL_SUM:
        raise ValueError("ReduceOp.PREMUL_SUM: expected SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR; multiply the tensor "
                         "first, and use SUM")
    name: str = op.value
    return name


def _in_place(tensor: Tensor) -> Tuple[Tensor, Optional[Callable[[], None]]]:
    """The contiguous values of a tensor that the collective changes, and what copies them back."""
    if tensor.is_contiguous():
        return tensor, None
    staged = tensor.detach().contiguous()
    return staged, lambda: _copy(tensor, staged)


def _copy(to: Tensor, values: Tensor) -> None:
    to.detach().copy_(values.view(to.shape))


def _flat(tensors: Sequence[Tensor], like: Tensor) -> Tensor:
    """The values of all, one after the other."""
    parts = [tensor.detach().reshape(-1) for tensor in tensors]
    return _C.cat(parts) if parts else _C.empty(0, dtype=like.dtype)


def _sizes(tensors: Sequence[Tensor]) -> List[int]:
    return [tensor.numel() for tensor in tensors]


def _into(tensors: Sequence[Tensor], flat: Tensor) -> Callable[[], None]:
    """Copies the parts of a flat tensor."""
    def finish() -> None:
        for tensor, part in zip(tensors, flat.split(_sizes(tensors))):
            _copy(tensor, part)
    return finish


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Optional[ProcessGroup] = None,
               async_op: bool = False) -> Optional[Work]:
    """Gives the tensor the reduction of all ranks' tensors, with the same bits on all ranks."""
    of = group_of(group)
    name = reduction_of(op, checked(tensor, "tensor"))
    staged, finish = _in_place(tensor)
    return started(of.all_reduce(staged, name), async_op, finish)


def broadcast(tensor: Tensor, src: Optional[int] = None, group: Optional[ProcessGroup] = None, async_op: bool = False,
              group_src: Optional[int] = None) -> Optional[Work]:
    """Gives the tensor the values of rank src's."""
    of = group_of(group)
    root = rank_of(of, src, group_src, "src")
    staged, finish = _in_place(checked(tensor, "tensor"))
    return started(of.broadcast(staged, root), async_op, None if root == of.rank() else finish)


def reduce(tensor: Tensor, dst: Optional[int] = None, op: ReduceOp = ReduceOp.SUM, group: Optional[ProcessGroup] = None,
           async_op: bool = False, group_dst: Optional[int] = None) -> Optional[Work]:
    """Gives the tensor of rank dst the reduction of all ranks' tensors; the others stay as they are."""
    of = group_of(group)
    root = rank_of(of, dst, group_dst, "dst")
    name = reduction_of(op, checked(tensor, "tensor"))
    if of.rank() == root:
        staged, finish = _in_place(tensor)
    else:
        staged, finish = tensor.detach().clone(memory_format=_C.contiguous_format), None
    return started(of.all_reduce(staged, name), async_op, finish)


def all_gather(tensor_list: List[Tensor], tensor: Tensor, group: Optional[ProcessGroup] = None,
               async_op: bool = False) -> Optional[Work]:
    """Gives tensor_list[r] the tensor of rank r, for all ranks; they may have different numbers of elements."""
    of = group_of(group)
    outputs = _checked_list(tensor_list, "tensor_list", checked(tensor, "tensor"), of.size())
    own = outputs[of.rank()].numel()
    if own != tensor.numel():
        raise ValueError(f"tensor_list: expected {tensor.numel()} elements for this rank, as its tensor has, found {own}")
    flat = _C.empty(sum(_sizes(outputs)), dtype=tensor.dtype)
    return started(of.all_gather(flat, tensor.detach().contiguous(), _sizes(outputs)), async_op, _into(outputs, flat))


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Optional[ProcessGroup] = None,
                           async_op: bool = False) -> Optional[Work]:
    """Gives the output all ranks' inputs, one after the other."""
    of = group_of(group)
    checked(output_tensor, "output_tensor")
    _same_dtype(checked(input_tensor, "input_tensor"), output_tensor, "output_tensor")
    if output_tensor.numel() != of.size() * input_tensor.numel():
        raise ValueError(f"output_tensor: expected {of.size()} times the {input_tensor.numel()} elements of input_tensor, found "
                         f"{output_tensor.numel()}")
    staged, finish = _in_place(output_tensor)
    counts = [input_tensor.numel()] * of.size()
    return started(of.all_gather(staged, input_tensor.detach().contiguous(), counts), async_op, finish)


def reduce_scatter(output: Tensor, input_list: List[Tensor], op: ReduceOp = ReduceOp.SUM,
                   group: Optional[ProcessGroup] = None, async_op: bool = False) -> Optional[Work]:
    """Gives the output of rank r the reduction of all ranks' input_list[r]."""
    of = group_of(group)
    inputs = _checked_list(input_list, "input_list", checked(output, "output"), of.size())
    name, sizes, rank = reduction_of(op, output), _sizes(inputs), of.rank()
    if sizes[rank] != output.numel():
        raise ValueError(f"input_list: expected {output.numel()} elements for this rank, as the output has, found {sizes[rank]}")
    flat = _flat(inputs, output)
    if sizes == sizes[:1] * of.size():
        staged, finish = _in_place(output)
        return started(of.reduce_scatter(staged, flat, name), async_op, finish)
    begin = sum(sizes[:rank])
    return started(of.all_reduce(flat, name), async_op, lambda: _copy(output, flat[begin:begin + sizes[rank]]))


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Optional[ProcessGroup] = None,
                          async_op: bool = False) -> Optional[Work]:
    """Gives the output of rank r the r-th part of the reduction of all ranks' inputs."""
    of = group_of(group)
    _same_dtype(checked(input, "input"), checked(output, "output"), "output")
    name = reduction_of(op, output)
    if input.numel() != of.size() * output.numel():
        raise ValueError(f"input: expected {of.size()} times the {output.numel()} elements of output, found {input.numel()}")
    staged, finish = _in_place(output)
    return started(of.reduce_scatter(staged, input.detach().contiguous(), name), async_op, finish)


def all_to_all(output_tensor_list: List[Tensor], input_tensor_list: List[Tensor], group: Optional[ProcessGroup] = None,
               async_op: bool = False) -> Optional[Work]:
    """Sends input_tensor_list[r] to rank r, and gives output_tensor_list[r] what rank r sends."""
    of = group_of(group)
    for name, given in (("output_tensor_list", output_tensor_list), ("input_tensor_list", input_tensor_list)):
        if not isinstance(given, (list, tuple)) or not given:
            raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type List[tercel.Tensor].")
    like = checked(input_tensor_list[0], "input_tensor_list")
    inputs = _checked_list(input_tensor_list, "input_tensor_list", like, of.size())
    outputs = _checked_list(output_tensor_list, "output_tensor_list", like, of.size())
    flat = _C.empty(sum(_sizes(outputs)), dtype=like.dtype)
    return started(of.all_to_all(flat, _flat(inputs, like), _sizes(outputs), _sizes(inputs)), async_op, _into(outputs, flat))


def _splits(tensor: Tensor, sizes: Any, name: str, ranks: int) -> List[int]:
    """The numbers of elements of the parts of a tensor along its first dimension."""
    if tensor.dim() == 0:
        raise RuntimeError(f"{name}: expected a tensor with at least one dimension")
    rows = tensor.shape[0]
    if not sizes:
        if rows % ranks:
            raise RuntimeError(f"{name}: expected a first dimension that {ranks} divides, or split sizes, found {rows}")
        sizes = [rows // ranks] * ranks
    if len(sizes) != ranks:
        raise RuntimeError(f"{name}: expected {ranks} split sizes, one for each rank, found {len(sizes)}")
    sizes = [int(size) for size in sizes]
    if min(sizes) < 0 or sum(sizes) != rows:
        raise RuntimeError(f"{name}: expected split sizes of {rows} together, its first dimension, found {sizes}")
    row = tensor.numel() // rows if rows else 0
    return [size * row for size in sizes]


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Optional[List[int]] = None,
                      input_split_sizes: Optional[List[int]] = None, group: Optional[ProcessGroup] = None,
                      async_op: bool = False) -> Optional[Work]:
    """
    Sends part r of the input, along its first dimension, to rank r, and puts the parts from all ranks together in the
    output, by rank. Split sizes are rows of the parts; without them all have equally many.
    """
    of = group_of(group)
    _same_dtype(checked(input, "input"), checked(output, "output"), "output")
    counts = _splits(input, input_split_sizes, "input", of.size())
    out_counts = _splits(output, output_split_sizes, "output", of.size())
    staged, finish = _in_place(output)
    return started(of.all_to_all(staged, input.detach().contiguous(), out_counts, counts), async_op, finish)


def _only(count: int, rank: int, size: int) -> List[int]:
    """Zeros, but for one rank."""
    return [count if r == rank else 0 for r in range(size)]


def gather(tensor: Tensor, gather_list: Optional[List[Tensor]] = None, dst: Optional[int] = None,
           group: Optional[ProcessGroup] = None, async_op: bool = False, group_dst: Optional[int] = None) -> Optional[Work]:
    """Gives gather_list[r] of rank dst (0) the tensor of rank r; the others give no list."""
    of = group_of(group)
    root, size = rank_of(of, dst, group_dst, "dst", 0), of.size()
    counts = _only(checked(tensor, "tensor").numel(), root, size)
    if of.rank() != root:
        if gather_list:
            raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
        nothing = _C.empty(0, dtype=tensor.dtype)
        return started(of.all_to_all(nothing, tensor.detach().contiguous(), [0] * size, counts), async_op)
    if not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    outputs = _checked_list(gather_list, "gather_list", tensor, size)
    flat = _C.empty(sum(_sizes(outputs)), dtype=tensor.dtype)
    return started(of.all_to_all(flat, tensor.detach().contiguous(), _sizes(outputs), counts), async_op, _into(outputs, flat))


def scatter(tensor: Tensor, scatter_list: Optional[List[Tensor]] = None, src: Optional[int] = None,
            group: Optional[ProcessGroup] = None, async_op: bool = False, group_src: Optional[int] = None) -> Optional[Work]:
    """Gives the tensor of rank r scatter_list[r] of rank src (0); the others give no list."""
    of = group_of(group)
    root, size = rank_of(of, src, group_src, "src", 0), of.size()
    counts = _only(checked(tensor, "tensor").numel(), root, size)
    staged, finish = _in_place(tensor)
    if of.rank() != root:
        if scatter_list:
            raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
        nothing = _C.empty(0, dtype=tensor.dtype)
        return started(of.all_to_all(staged, nothing, counts, [0] * size), async_op, finish)
    if not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    inputs = _checked_list(scatter_list, "scatter_list", tensor, size)
    return started(of.all_to_all(staged, _flat(inputs, tensor), counts, _sizes(inputs)), async_op, finish)


def barrier(group: Optional[ProcessGroup] = None, async_op: bool = False, device_ids: Any = None) -> Optional[Work]:
    """Done when all ranks have called it."""
    if device_ids is not None:
        raise ValueError("barrier: device_ids: expected None, since there are no GPUs")
    return started(group_of(group).barrier(), async_op)


def monitored_barrier(group: Optional[ProcessGroup] = None, timeout: Optional[datetime.timedelta] = None,
                      wait_all_ranks: bool = False) -> None:
    """A barrier that is an error after `timeout`, a timedelta; that of the group names the ranks that are late."""
    seconds = None if timeout is None else seconds_of(timeout)
    if not group_of(group).barrier().wait(seconds):
        raise DistBackendError(f"monitored_barrier: not all ranks have come within {timeout}")


def gather_counts(of: Any, count: int) -> List[int]:
    """The number of each rank."""
    numbers = _C.empty(of.size(), dtype=_C.int64)
    of.all_gather(numbers, _C.tensor([count]), [1] * of.size()).wait(None)
    counts: List[int] = numbers.tolist()
    return counts


def gather_rows(of: Any, rows: Tensor, counts: Sequence[int]) -> Tensor:
    """The rows [n, ...] of all ranks, one after the other, where rank r has counts[r]."""
    own = rows.detach().contiguous()
    row = math.prod(own.shape[1:])
    out = _C.empty([sum(counts), *own.shape[1:]], dtype=own.dtype)
    of.all_gather(out, own, [count * row for count in counts]).wait(None)
    return out
