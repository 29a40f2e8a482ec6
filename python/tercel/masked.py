"""Reductions and normalisations of the elements that a mask selects.

A mask is a bool tensor that broadcasts to the input; without one every element counts. Masked-out elements are ignored.
If no element is left, the result is that of an empty reduction: 0 for a sum, NaN for a mean.

sum, prod, amax and amin also take a COO input, with a strided or COO mask, and these and mean a CSR matrix, with
keepdim=True. Their result has the layout of the input, with an entry for each slice in which the mask selects an element.
"""

import builtins

import tercel
from tercel import linalg

__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean",
           "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]


def _lowest(dtype):
    if dtype == tercel.bool:
        return False
    return -float("inf") if dtype.is_floating_point else tercel.iinfo(dtype).min


def _highest(dtype):
    if dtype == tercel.bool:
        return True
    return float("inf") if dtype.is_floating_point else tercel.iinfo(dtype).max


# The identity element of each reduction, for a dtype.
_NEUTRAL = {
    "sum": lambda dtype: 0, "cumsum": lambda dtype: 0, "norm": lambda dtype: 0, "normalize": lambda dtype: 0,
    "prod": lambda dtype: 1, "cumprod": lambda dtype: 1,
    "amax": _lowest, "argmax": _lowest, "logsumexp": _lowest, "logaddexp": _lowest, "softmax": _lowest,
    "log_softmax": _lowest,
    "amin": _highest, "argmin": _highest, "softmin": _highest,
    "median": lambda dtype: float("nan"),
}


def _input_mask(input, *, mask=None):
    """The mask expanded to the input's sizes."""
    if mask is None:
        raise ValueError("masked operations: expected a mask but got None")
    if mask.dim() > input.dim():
        raise IndexError("masked operations: the mask has more dimensions than the input: "
                         f"{mask.dim()} and {input.dim()}")
    if mask.layout is not tercel.strided:
        mask = mask.to_dense()
    return mask.to(tercel.bool).broadcast_to(input.shape)


_REDUCTIONS = ("sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "norm", "var", "std", "logsumexp")


def _output_mask(op, input, *args, mask=None, keepdim=False, **options):
    """Which elements of the result of a function of this module, called with these arguments, depend on an element."""
    inside = _input_mask(input, mask=mask)
    if op.__name__ not in _REDUCTIONS:
        return inside
    given = args[1:] if op.__name__ == "norm" else args
    return inside.any(_dims(given[0] if given else options.get("dim"), input), keepdim=builtins.bool(keepdim))


def _filled(op, input, mask, neutral=None):
    """The input with masked-out elements replaced by the reduction's identity element."""
    if mask is None:
        return input
    value = _NEUTRAL[op](input.dtype) if neutral is None else neutral
    return tercel.where(_input_mask(input, mask=mask), input, tercel.scalar_tensor(value, dtype=input.dtype))


def _selected_coo(op, input, mask):
    """The elements of a COO input that the mask selects, those without an entry too; others are the identity element."""
    if mask is None:
        if op != "sum":
            raise ValueError(f"masked {op} expects explicit mask for sparse_coo tensor input")
        return input.coalesce()
    if mask.is_sparse:
        mask = tercel._sparse_broadcast_to(mask.to(tercel.bool), input.shape).coalesce()
        selects = mask.values().reshape(mask._nnz(), -1).any(1)
        mask = tercel.sparse_coo_tensor(mask.indices()[:, selects], mask.values()[selects], mask.shape, is_coalesced=True)
    else:
        mask = _input_mask(input, mask=mask).to_sparse(input.sparse_dim())
    found = input.sparse_mask(mask)
    if input.dense_dim() == 0:
        return found
    identity = tercel.scalar_tensor(_NEUTRAL[op](input.dtype), dtype=input.dtype)
    values = tercel.where(mask.values(), found.values(), identity)
    return tercel.sparse_coo_tensor(mask.indices(), values, input.shape, is_coalesced=True)


def _grouped(op, values, group, count):
    """The reduction of the rows of `values` that have the same number in `group` [rows], for `count` numbers."""
    sizes = (count, *values.shape[1:])
    # 16-bit floats are rounded once, not after each element.
    wide = values.float() if values.dtype in (tercel.float16, tercel.bfloat16) else values
    if op == "sum":
        return wide.new_zeros(sizes).index_add(0, group, wide).to(values.dtype)
    return wide.new_empty(sizes).index_reduce(0, group, wide, op, include_self=False).to(values.dtype)


def _reduced_coo(op, input, dim, keepdim, mask):
    """A reduction of a COO input: COO."""
    x, dims = _selected_coo(op, input, mask), _dims(dim, input)
    border = x.sparse_dim()
    values, indices = x.values(), x.indices()
    for d in sorted((d for d in dims if d >= border), reverse=True):
        values = getattr(values, op)(d - border + 1, keepdim=keepdim)
    sizes = [1 if d in dims else n for d, n in enumerate(x.shape) if keepdim or d not in dims]
    kept = [d for d in range(border) if d not in dims]
    if not kept:
        if len(values) == 0:
            values = tercel.full(sizes, _NEUTRAL[op](values.dtype), dtype=values.dtype)
        else:
            values = _grouped(op, values, tercel.zeros(len(values), dtype=tercel.int64), 1).reshape(sizes)
        return values.to_sparse()
    if len(kept) < border:
        indices, group = tercel.unique(indices[kept], return_inverse=True, dim=1)
        values = _grouped(op, values, group, indices.shape[1])
        if keepdim:
            rows = [indices[kept.index(d)] if d in kept else indices[0] * 0 for d in range(border)]
            indices = tercel.stack(rows)
    return tercel.sparse_coo_tensor(indices, values, sizes, is_coalesced=True)


def _csr_mask(input, mask):
    """The mask of a CSR matrix as one, with entries where it selects an element."""
    if mask.layout is tercel.strided:
        return _input_mask(input, mask=mask).to_sparse_csr()
    coo = tercel._sparse_broadcast_to(mask.to_sparse().to(tercel.bool), input.shape).coalesce()
    selects = coo.values()
    return tercel.sparse_coo_tensor(coo.indices()[:, selects], selects[selects], coo.shape, is_coalesced=True).to_sparse_csr()


def _reduced_csr(op, input, dim, keepdim, mask):
    """A reduction of a CSR matrix: CSR."""
    if mask is None and op != "sum":
        raise ValueError(f"masked {op} expects explicit mask for sparse_csr tensor input")
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    if input.dim() != 2:
        raise RuntimeError(f"masked {op}: expected a CSR matrix but got sizes {list(input.shape)}")
    x, dims = input if mask is None else input.sparse_mask(_csr_mask(input, mask)), _dims(dim, input)
    rows, columns = tercel._convert_indices_from_csr_to_coo(x.crow_indices(), x.col_indices())
    sizes = [1 if d in dims else n for d, n in enumerate(x.shape)]
    group = rows * (0 not in dims) * sizes[1] + columns * (1 not in dims)
    entries = tercel.bincount(group, minlength=sizes[0] * sizes[1])
    values = x.values().float() if op == "mean" and x.dtype in (tercel.float16, tercel.bfloat16) else x.values()
    found = entries.nonzero().squeeze(1)
    reduced = _grouped("sum" if op == "mean" else op, values, group, sizes[0] * sizes[1])[found]
    if op == "mean":
        reduced = reduced / entries[found]
    indices = tercel.stack([found // sizes[1], found % sizes[1]])
    return tercel.sparse_coo_tensor(indices, reduced.to(x.dtype), sizes, is_coalesced=True).to_sparse_csr()


def _dims(dim, input):
    if dim is None or (isinstance(dim, (tuple, list)) and len(dim) == 0):
        return tuple(range(input.dim()))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    size = builtins.max(input.dim(), 1)
    wrapped = []
    for d in dims:
        if not -size <= d < size:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got {d})")
        if d % size in wrapped:
            raise RuntimeError(f"dim={d % size} appears multiple times in the list of dims")
        wrapped.append(d % size)
    return tuple(wrapped)


def _as(input, dtype):
    return input if dtype is None else input.to(dtype)


def _summed_dtype(input, dtype):
    if dtype is None and not (input.is_floating_point() or input.is_complex()):
        return tercel.int64
    return input.dtype if dtype is None else dtype


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):  # noqa: A001
    """The sum over dimensions (all if none are given); in int64 for integers."""
    if input.is_sparse:
        return _reduced_coo("sum", input.to(_summed_dtype(input, dtype)), dim, builtins.bool(keepdim), mask)
    if input.layout is tercel.sparse_csr:
        return _reduced_csr("sum", input.to(_summed_dtype(input, dtype)), dim, keepdim, mask)
    x = _filled("sum", input.to(_summed_dtype(input, dtype)), mask)
    dims = _dims(dim, input)
    return x.sum(dims, keepdim=builtins.bool(keepdim)) if input.dim() else x.clone()


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The product over dimensions (all if none are given); in int64 for integers."""
    if input.is_sparse:
        return _reduced_coo("prod", input.to(_summed_dtype(input, dtype)), dim, builtins.bool(keepdim), mask)
    if input.layout is tercel.sparse_csr:
        return _reduced_csr("prod", input.to(_summed_dtype(input, dtype)), dim, keepdim, mask)
    x = _filled("prod", input.to(_summed_dtype(input, dtype)), mask)
    for d in sorted(_dims(dim, input), reverse=True):
        x = x.prod(d, keepdim=builtins.bool(keepdim))
    return x


def _scanned(op, input, dim, dtype, mask):
    """A scan: integers are accumulated in int64 and converted back to the input's dtype unless another is given."""
    x = _filled(op, input.to(_summed_dtype(input, dtype)), mask)
    return getattr(x, op)(_dims(dim, input)[0]).to(input.dtype if dtype is None else dtype)


def cumsum(input, dim, *, dtype=None, mask=None):
    """Cumulative sums along a dimension."""
    return _scanned("cumsum", input, dim, dtype, mask)


def cumprod(input, dim, *, dtype=None, mask=None):
    """Cumulative products along a dimension."""
    return _scanned("cumprod", input, dim, dtype, mask)


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The maximum over dimensions (all if none are given)."""
    x = _as(input, dtype)
    if x.is_sparse:
        return _reduced_coo("amax", x, dim, builtins.bool(keepdim), mask)
    if x.layout is tercel.sparse_csr:
        return _reduced_csr("amax", x, dim, keepdim, mask)
    return _filled("amax", x, mask).amax(_dims(dim, input), builtins.bool(keepdim))


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The minimum over dimensions (all if none are given)."""
    x = _as(input, dtype)
    if x.is_sparse:
        return _reduced_coo("amin", x, dim, builtins.bool(keepdim), mask)
    if x.layout is tercel.sparse_csr:
        return _reduced_csr("amin", x, dim, keepdim, mask)
    return _filled("amin", x, mask).amin(_dims(dim, input), builtins.bool(keepdim))


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The index of the maximum along a dimension, or among all, in the input's dtype or the given one."""
    x = _as(input, dtype)
    return _filled("argmax", x, mask).argmax(dim, builtins.bool(keepdim)).to(x.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The index of the minimum along a dimension, or among all, in the input's dtype or the given one."""
    x = _as(input, dtype)
    return _filled("argmin", x, mask).argmin(dim, builtins.bool(keepdim)).to(x.dtype)


def _count(input, dim, keepdim, mask):
    ones = tercel.ones(input.shape, dtype=tercel.int64, device=input.device)
    return sum(ones, dim, keepdim=keepdim, mask=mask)


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The mean over dimensions (all if none are given); ValueError unless floating-point or complex."""
    given = input.dtype if dtype is None else dtype
    if not (given.is_floating_point or given.is_complex):
        raise ValueError("mean(): Could not infer output dtype. Input dtype must be either a floating point or complex "
                         f"dtype. Got: {given}")
    if input.layout is tercel.sparse_csr:
        return _reduced_csr("mean", _as(input, dtype), dim, keepdim, mask)
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _count(input, dim, keepdim, mask)


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The median along a dimension; the lower of the two middle elements."""
    x = _as(input, dtype)
    d = _dims(dim, input)[0]
    if mask is None:
        return x.median(d, builtins.bool(keepdim)).values
    inside = _input_mask(x, mask=mask)
    if not x.is_floating_point():
        if not inside.any(d).all():
            raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
        middle = _filled("median", x.to(tercel.float64), mask).nanmedian(d, builtins.bool(keepdim)).values
        return middle.to(x.dtype)
    result = _filled("median", x, mask).nanmedian(d, builtins.bool(keepdim)).values
    holds_nan = (x.isnan() & inside).any(d, keepdim=builtins.bool(keepdim))
    return tercel.where(holds_nan, tercel.scalar_tensor(float("nan"), dtype=x.dtype), result)


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """log(sum(exp(input))) over dimensions, without intermediate overflow."""
    x = _as(input, dtype)
    result = x.dtype
    if result is tercel.bool:
        raise NotImplementedError("identity of logsumexp on tercel.bool input")
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(tercel.get_default_dtype())
    neutral = -float("inf") if x.is_complex() else None
    return _filled("logsumexp", x, mask, neutral).logsumexp(_dims(dim, input), builtins.bool(keepdim)).to(result)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)), with a separate mask for each."""
    x, y = _as(input, dtype), _as(other, dtype)
    return tercel.logaddexp(_filled("logaddexp", x, input_mask), _filled("logaddexp", y, other_mask))


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The vector norm over dimensions (all if none are given)."""
    order = float(ord)
    x = _as(input, dtype)
    neutral = float("inf") if order == -float("inf") else None
    return linalg.vector_norm(_filled("norm", x, mask, neutral), order, _dims(dim, input), builtins.bool(keepdim))


def _variance(input, dim, unbiased, correction, keepdim, dtype, mask):
    if unbiased is not None and correction is not None:
        raise ValueError("masked.var: at most one of unbiased and correction can be given")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    result = dtype or input.dtype
    if not (result.is_floating_point or result.is_complex):
        result = tercel.float32
    x = input.to(result)
    count = _count(input, dim, True, mask)
    middle = sum(x, dim, keepdim=True, mask=mask) / count
    far = x - middle
    square = (far * far.conj()).real if far.is_complex() else far * far
    total = sum(square, dim, keepdim=keepdim, mask=mask)
    return (total / (count.reshape(total.shape) - correction).clamp_min(0)).to(result)


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The variance over dimensions (all if none are given)."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The standard deviation over dimensions (all if none are given)."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def softmax(input, dim, *, dtype=None, mask=None):
    """The softmax along a dimension; 0 for masked-out elements."""
    x = _as(input, dtype)
    return _filled("softmax", x, mask).softmax(_dims(dim, input)[0])


def log_softmax(input, dim, *, dtype=None, mask=None):
    """The logarithm of the softmax along a dimension; -inf for masked-out elements."""
    x = _as(input, dtype)
    return _filled("log_softmax", x, mask).log_softmax(_dims(dim, input)[0])


def softmin(input, dim, *, dtype=None, mask=None):
    """The softmax of -input; 0 for masked-out elements."""
    x = _as(input, dtype)
    return (-_filled("softmin", x, mask)).softmax(_dims(dim, input)[0])


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """The input divided by max(norm along a dimension, eps); 0 for masked-out elements."""
    x = _as(input, dtype)
    size = norm(x, ord, dim, keepdim=True, mask=mask)
    return _filled("normalize", x, mask) / size.clamp_min(eps)
