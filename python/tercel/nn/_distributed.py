"""
Modules that several processes train together.

Note [Reduction of gradients]
Parameters are in buckets by dtype, in the reverse order of their registration, which is about the order in which backward
computes gradients. When all gradients of a bucket are there, they are copied to one tensor and its all-reduce begins, while
backward goes on. Buckets begin in the same order on all ranks: each waits for those before it.

Behind its gradients a bucket has a flag for each parameter, 1 if this rank's backward reached it, so that the flag's mean
says whether any rank's did. At the end of backward the rest of the buckets begin, with zeros for gradients that do not
exist. So a rank whose backward does not reach a parameter waits for nobody, and nobody waits for it; parameters that no
rank's backward has reached keep the gradient that they had, or None.

Sparse gradients follow at the end, as all ranks' rows.
"""

import contextlib
import functools
import weakref
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from tercel import _C
from tercel._C import Tensor
from tercel._sparse import sparse_coo_tensor
from tercel.autograd.grad_mode import no_grad
from tercel.distributed import _collectives, _group, _objects
from tercel.nn.parameter import is_lazy
from tercel.nn.linear import Embedding, EmbeddingBag
from tercel.nn.module import Module
from tercel.utils import _pytree

_MIB = 1 << 20
# The first bucket is small, so that its all-reduce begins early.
_FIRST_BYTES = _MIB
_BROADCAST_BYTES = 25 * _MIB


class _Named(NamedTuple):
    name: str
    parameter: Tensor


class _Bucket:
    """Parameters of one dtype, whose gradients are reduced together."""

    def __init__(self, indices: List[int], parameters: List[Tensor]) -> None:
        self.indices, self.parameters = indices, parameters
        sizes = [p.numel() for p in parameters]
        self.flat = _C.zeros(sum(sizes) + len(parameters), dtype=parameters[0].dtype)
        *views, self.flags = self.flat.split([*sizes, len(parameters)])
        self.views = [view.view(p.shape) for view, p in zip(views, parameters)]
        self.work: Any = None
        self.missing = set(indices)


class Reducer:
    """Averages the gradients of parameters over the ranks. See Note [Reduction of gradients]."""

    def __init__(self, group: Any, named: List[_Named], rows: Set[int], bucket_bytes: int, as_views: bool) -> None:
        """`rows`: the ids of parameters with sparse gradients."""
        self.group, self.named, self.as_views = group, named, as_views
        self.is_syncing = True
        self._awaits_backward = False  # of a forward that syncs
        self._used = [False] * len(named)
        self._has_begun = False
        self._next = 0
        self._rows = [i for i, (_, p) in enumerate(named) if id(p) in rows]
        self._buckets = self._fill_buckets([i for i in reversed(range(len(named))) if i not in self._rows], bucket_bytes)
        self._bucket_of = {i: bucket for bucket in self._buckets for i in bucket.indices}
        me = weakref.ref(self)  # parameters hold their hooks
        self._hooks = [p.register_post_accumulate_grad_hook(functools.partial(_mark, me, i))
                       for i, (_, p) in enumerate(named)]

    def __del__(self) -> None:
        for hook in getattr(self, "_hooks", ()):
            hook.remove()

    def _fill_buckets(self, indices: List[int], most: int) -> List[_Bucket]:
        open_ones: Dict[Any, Tuple[List[int], int]] = {}
        full: List[List[int]] = []
        limit = min(_FIRST_BYTES, most)
        for i in indices:
            parameter = self.named[i].parameter
            members, size = open_ones.get(parameter.dtype, ([], 0))
            members, size = [*members, i], size + parameter.nbytes
            open_ones[parameter.dtype] = members, size
            if size >= limit:
                full.append(members)
                limit = most
                del open_ones[parameter.dtype]
        full += [members for members, _ in open_ones.values()]
        return [_Bucket(members, [self.named[i].parameter for i in members]) for members in full]

    def mark(self, index: int) -> None:
        """The gradient of a parameter is there."""
        self._used[index] = True
        if not self.is_syncing:
            return
        self.begin()
        bucket = self._bucket_of.get(index)
        if bucket is None:
            return
        if bucket.work is not None:
            raise RuntimeError(f"DistributedDataParallel: {self.named[index].name} got a gradient twice in one backward pass, "
                               "the second one after its reduction had begun; reentrant checkpoints of a module that is "
                               "used twice do so: use use_reentrant=False")
        bucket.missing.discard(index)
        self._launch()

    def begin(self) -> None:
        """Within a backward pass: its end waits for the reduction."""
        if self.is_syncing and not self._has_begun:
            self._has_begun = True
            _C._queue_callback(self._finish)

    def expect_backward(self, syncs: bool) -> None:
        """Of a forward; one in no_sync() leaves the backward of an earlier one to be averaged, as in PyTorch."""
        if syncs:
            self.is_syncing = self._awaits_backward = True
        elif not self._awaits_backward:
            self.is_syncing = False

    def reset_after_error(self) -> None:
        """Before a forward: the last pass may have ended with an exception."""
        if self._has_begun:
            self._reset()

    def _reset(self) -> None:
        for bucket in self._buckets:
            if bucket.work is not None:
                bucket.work.wait(None)
            bucket.work, bucket.missing = None, set(bucket.indices)
        self._has_begun, self._next, self._used = False, 0, [False] * len(self.named)

    def _launch(self, with_missing: bool = False) -> None:
        while self._next < len(self._buckets) and (with_missing or not self._buckets[self._next].missing):
            self._start(self._buckets[self._next])
            self._next += 1

    @no_grad()
    def _start(self, bucket: _Bucket) -> None:
        for i, parameter, view in zip(bucket.indices, bucket.parameters, bucket.views):
            gradient = parameter.grad
            if gradient is None:
                view.zero_()
            elif gradient.layout != _C.strided:
                raise RuntimeError(f"DistributedDataParallel: {self.named[i].name} has a sparse gradient; only weights of "
                                   "Embedding and EmbeddingBag with sparse=True may have one")
            elif gradient.data_ptr() != view.data_ptr():
                view.copy_(gradient)
        bucket.flags.copy_(_C.tensor([float(self._used[i]) for i in bucket.indices]))
        bucket.work = self.group.all_reduce(bucket.flat, "mean")

    @no_grad()
    def _finish(self) -> None:
        self._launch(with_missing=True)
        for bucket in self._buckets:
            bucket.work.wait(None)
            for parameter, view, flag in zip(bucket.parameters, bucket.views, bucket.flags.abs().tolist()):
                if flag == 0:
                    continue
                if self.as_views:
                    parameter.grad = view
                elif parameter.grad is None:
                    parameter.grad = view.clone()
                else:
                    parameter.grad.copy_(view)
        if self._rows:
            self._reduce_rows()
        self._awaits_backward = False
        self._reset()

    def _reduce_rows(self) -> None:
        own: List[Optional[Tensor]] = []
        for i in self._rows:
            gradient = self.named[i].parameter.grad
            if gradient is not None:
                own.append((gradient if gradient.layout == _C.sparse_coo else gradient.to_sparse(1)).coalesce())
            else:
                own.append(None)
        counts = [0 if rows is None else rows._nnz() for rows in own] + [int(self._used[i]) for i in self._rows]
        numbers = _C.empty([self.group.size(), len(counts)], dtype=_C.int64)
        self.group.all_gather(numbers, _C.tensor(counts), [len(counts)] * self.group.size()).wait(None)
        for k, i in enumerate(self._rows):
            if not any(numbers[:, len(self._rows) + k].tolist()):
                continue
            parameter, rows, of_ranks = self.named[i].parameter, own[k], numbers[:, k].tolist()
            if rows is None:
                rows = sparse_coo_tensor(_C.empty([1, 0], dtype=_C.int64),
                                            _C.empty([0, *parameter.shape[1:]], dtype=parameter.dtype), parameter.shape)
                rows = rows.coalesce()
            indices = _collectives.gather_rows(self.group, rows.indices().t(), of_ranks)
            values = _collectives.gather_rows(self.group, rows.values(), of_ranks)
            total = sparse_coo_tensor(indices.t(), values, parameter.shape).coalesce()
            parameter.grad = total / self.group.size()


def _mark(reducer: Any, index: int, parameter: Tensor) -> None:
    of = reducer()
    if of is not None:
        of.mark(index)


@no_grad()
def _broadcast(group: Any, tensors: List[Tensor]) -> None:
    """Gives tensors the values of rank 0, small ones of a dtype together."""
    parts: List[List[Tensor]] = []
    for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
        size = _BROADCAST_BYTES
        for tensor in tensors:
            if tensor.dtype == dtype:
                if size + tensor.nbytes > _BROADCAST_BYTES:
                    parts.append([])
                    size = 0
                parts[-1].append(tensor)
                size += tensor.nbytes
    for part in parts:
        flat = _C.cat([tensor.detach().reshape(-1) for tensor in part])
        group.broadcast(flat, 0).wait(None)
        if group.rank() != 0:
            for tensor, values in zip(part, flat.split([tensor.numel() for tensor in part])):
                tensor.detach().copy_(values.view(tensor.shape))


class DistributedDataParallel(Module):
    """
    Calls its child `module`; the processes of the group train it together, each on rows of its own. It has rank 0's
    parameters and buffers from the beginning, and backward averages the gradients over the ranks, with the same bits on all
    of them. All ranks must make the same forward and backward calls.

    Buckets of `bucket_cap_mb` MiB (25) are reduced while backward goes on. A parameter that a rank's backward does not
    reach counts as zeros, whatever find_unused_parameters says; if no rank's does, its gradient stays as it was. With
    `find_unused_parameters` a rank whose backward reaches no parameter at all takes part, too. `broadcast_buffers`:
    each forward of training begins with rank 0's buffers. With `gradient_as_bucket_view` gradients are views of the buckets,
    which saves a copy. `static_graph` and `check_reduction` have no effect.

    ValueError without a group; RuntimeError if no parameter needs a gradient, or a rank has other parameters than rank 0.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0,
                 broadcast_buffers: bool = True, init_sync: bool = True, process_group: Any = None,
                 bucket_cap_mb: Optional[float] = None, find_unused_parameters: bool = False, check_reduction: bool = False,
                 gradient_as_bucket_view: bool = False, static_graph: bool = False, delay_all_reduce_named_params: Any = None,
                 param_to_hook_all_reduce: Any = None, mixed_precision: Any = None, device_mesh: Any = None) -> None:
        super().__init__()
        group = _group.group_of(process_group)
        if device_ids or output_device is not None:
            raise ValueError("DistributedDataParallel: expected no device_ids and no output_device for a module on the CPU, found "
                             f"{device_ids} and {output_device}")
        for name, value in (("delay_all_reduce_named_params", delay_all_reduce_named_params), ("device_mesh", device_mesh),
                            ("param_to_hook_all_reduce", param_to_hook_all_reduce), ("mixed_precision", mixed_precision)):
            if value is not None:
                raise ValueError(f"DistributedDataParallel: {name}: expected None; it is not supported")
        bucket_cap_mb = 25 if bucket_cap_mb is None else bucket_cap_mb
        if not bucket_cap_mb > 0:
            raise ValueError(f"DistributedDataParallel: bucket_cap_mb: expected a number above 0, found {bucket_cap_mb}")
        self.module, self.dim, self.device_ids, self.output_device = module, dim, None, None
        self.process_group = _group.group.WORLD
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.broadcast_buffers, self.find_unused_parameters = broadcast_buffers, find_unused_parameters
        self.gradient_as_bucket_view, self.static_graph = gradient_as_bucket_view, static_graph
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.bucket_bytes_cap = int(bucket_cap_mb * _MIB)
        if not self._trained():
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                               "gradient.")
        if init_sync:
            self._check_ranks(group)
            _broadcast(group, [*self._state(self.module.named_parameters()), *self._state(self.module.named_buffers())])
        self._make_reducer(group)

    def _state(self, named: Iterator[Tuple[str, Tensor]]) -> List[Tensor]:
        return [tensor for name, tensor in named if name not in self.parameters_to_ignore]

    def _trained(self) -> List[_Named]:
        named = [_Named(name, p) for name, p in self.module.named_parameters() if name not in self.parameters_to_ignore]
        for name, parameter in named:
            if is_lazy(parameter):
                raise RuntimeError("Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a "
                                   f"dummy forward pass to correctly initialize the modules; {name} is uninitialized")
        return [entry for entry in named if entry.parameter.requires_grad]

    def _check_ranks(self, group: Any) -> None:
        """RuntimeError, on all ranks, if one has other parameters or buffers than rank 0."""
        of_ranks: List[Any] = [None] * group.size()
        _objects.all_gather_object(of_ranks, [
            (name, list(tensor.shape), str(tensor.dtype), tensor.requires_grad)
            for named in (self.module.named_parameters(), self.module.named_buffers()) for name, tensor in named
            if name not in self.parameters_to_ignore])
        for rank, found in enumerate(of_ranks):
            if len(found) != len(of_ranks[0]):
                raise RuntimeError(f"DistributedDataParallel expects the same module on all ranks, but rank {rank} has "
                                   f"{len(found)} parameters and buffers, and rank 0 has {len(of_ranks[0])}")
            for own, first in zip(found, of_ranks[0]):
                if own != first:
                    raise RuntimeError(f"DistributedDataParallel expects the same module on all ranks, but rank {rank} has "
                                       f"{own[0]} of shape {own[1]} and {own[2]}, requires_grad={own[3]}, where rank 0 has "
                                       f"{first[0]} of shape {first[1]} and {first[2]}, requires_grad={first[3]}")

    def _make_reducer(self, group: Any) -> None:
        rows = {id(m.weight) for m in self.module.modules() if isinstance(m, (Embedding, EmbeddingBag)) and m.sparse}
        # The gradients of one process are what they are.
        self._reducer = None if group.size() == 1 else Reducer(group, self._trained(), rows, self.bucket_bytes_cap,
                                                               self.gradient_as_bucket_view)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """module(*inputs, **kwargs)."""
        is_trained = _C.is_grad_enabled() and self.require_backward_grad_sync
        if self._reducer is None:
            return self.module(*inputs, **kwargs)
        if _C.is_grad_enabled():
            self._reducer.reset_after_error()
            self._reducer.expect_backward(self.require_backward_grad_sync)
        if self.broadcast_buffers and self.require_forward_param_sync:
            _broadcast(self._reducer.group, self._state(self.module.named_buffers()))
        self.require_forward_param_sync = is_trained
        output = self.module(*inputs, **kwargs)
        if is_trained and self.find_unused_parameters:
            for leaf in _pytree.tree_leaves(output):
                if isinstance(leaf, Tensor) and leaf.requires_grad:
                    leaf.register_hook(functools.partial(_begin, weakref.ref(self._reducer)))
        return output

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """
        Within it gradients are added up on each rank; the first backward whose forward was outside reduces the sums. The
        forward must be inside, too.
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(self, *args: Any, **kwargs: Any) -> Any:
        """NotImplementedError: all ranks must have equally many batches, as DistributedSampler gives them."""
        raise NotImplementedError("DistributedDataParallel.join: all ranks must have equally many batches; DistributedSampler "
                                  "gives them such")

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """NotImplementedError: gradients are averaged."""
        raise NotImplementedError("DistributedDataParallel.register_comm_hook: gradients are averaged, in their dtype")

    def __getstate__(self) -> Dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_reducer", "process_group")}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__.update(process_group=_group.group.WORLD, require_backward_grad_sync=True, require_forward_param_sync=True)
        self._make_reducer(_group.group_of(None))


def _begin(reducer: Any, gradient: Tensor) -> None:
    of = reducer()
    if of is not None:
        of.begin()
