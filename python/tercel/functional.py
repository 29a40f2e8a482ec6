"""Functions whose arguments are prepared in Python."""

import warnings

from tercel import _C
from tercel._C import Tensor

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors",
           "cartesian_prod", "chain_matmul", "einsum", "fill", "frobenius_norm", "histogramdd", "lu", "meshgrid",
           "nuclear_norm", "tensordot", "unravel_index"]


def _letter(subscript):
    if subscript is Ellipsis:
        return "..."
    if not 0 <= subscript < 52:
        raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return chr(ord("A") + subscript) if subscript < 26 else chr(ord("a") + subscript - 26)


def _contracts(equation):
    """Whether a subscript of several operands is summed over; only such an einsum is a matrix product for autocast."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    operands = inputs.split(",")
    shared = {c for c in inputs if c.isalpha() and sum(c in operand for operand in operands) > 1}
    return any(c not in output for c in shared) if arrow else bool(shared)


def _without_autocast(function, *args, **kwargs):
    before = _C._enter_autocast("cpu", False, _C._get_autocast_dtype("cpu"), _C._is_autocast_cache_enabled())
    try:
        return function(*args, **kwargs)
    finally:
        _C._exit_autocast(*before)


def einsum(*args):
    """Sums of products in Einstein's notation: einsum("ij,jk->ik", a, b), or einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one "
                         "operand and its subscripts list")
    if isinstance(args[0], Tensor):
        # Operands alternate with their subscripts; a final list is the output's.
        equation = ",".join("".join(map(_letter, subscripts)) for subscripts in args[1::2])
        operands = args[0:-1:2] if len(args) % 2 else args[::2]
        if len(args) % 2:
            equation += "->" + "".join(map(_letter, args[-1]))
    else:
        equation, *operands = args
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    if not operands:
        raise ValueError("einsum(): must provide at least one operand")
    if _C._is_autocast_enabled("cpu") and not _contracts(equation):
        return _without_autocast(_C._einsum, equation, tuple(operands))
    return _C._einsum(equation, tuple(operands))


def tensordot(a, b, dims=2, out=None):
    """Sums of products over the last `dims` dimensions of a and the first of b, or over the two lists in `dims`."""
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = list(range(-dims, 0)), list(range(dims))
    elif isinstance(dims, (tuple, list)) and len(dims) == 2:
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    else:
        raise RuntimeError("tensordot expects dims to be int or "
                           "Tuple[List[int], List[int]] or "
                           f"List[List[int]] containing two lists, but got dims={dims}")
    if _C._is_autocast_enabled("cpu") and len(left) == a.dim() == b.dim():  # a sum, not a matrix product
        return _without_autocast(_C._tensordot, a, b, left, right, out=out)
    return _C._tensordot(a, b, left, right, out=out)


def chain_matmul(*matrices, out=None):
    """The product of matrices in the order with the least cost."""
    return _C._chain_matmul(matrices, out=out)


def lu(A, pivot=True, get_infos=False, out=None):  # noqa: N803
    """The LU factorization as one matrix, its pivots, and optionally info: the position of a zero pivot."""
    factor = _C._linalg.lu_factor_ex if get_infos else _C._linalg.lu_factor
    return factor(A, pivot=pivot, out=out)


def _listed(tensors):
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors


def meshgrid(*tensors, indexing=None):
    """Vectors expanded to one shape, in which each varies along a separate dimension."""
    if indexing is None:
        warnings.warn("tercel.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
                      stacklevel=2)
        indexing = "ij"
    return _C._meshgrid(_listed(tensors), indexing=indexing)


def cartesian_prod(*tensors):
    """The Cartesian product: all tuples with one element of each vector."""
    return _C._cartesian_prod(tensors)


def block_diag(*tensors):
    """A block-diagonal matrix of the given matrices."""
    return _C._block_diag(tensors)


def broadcast_tensors(*tensors):
    """Tensors expanded to the sizes that all broadcast to."""
    return _C._broadcast_tensors(_listed(tensors))


def broadcast_shapes(*shapes):
    """The sizes that tensors of those sizes broadcast to."""
    out = []
    for shape in shapes:
        if not isinstance(shape, (int, tuple, list)):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}")
        sizes = [shape] if isinstance(shape, int) else list(shape)
        for size in sizes:
            if not isinstance(size, int):
                raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {size}")
            if size < 0:
                raise RuntimeError(f"Trying to create tensor with negative dimension ({size}): ({size})")
        out[:0] = [1] * (len(sizes) - len(out))
        for i in range(1, len(sizes) + 1):
            if 1 != sizes[-i] != out[-i]:
                if out[-i] != 1:
                    raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape")
                out[-i] = sizes[-i]
    return _C.Size(out)


def _atleast(function, tensors):
    tensors = _listed(tensors)
    if isinstance(tensors, tuple) and len(tensors) == 1:
        return function(tensors[0])
    return function(tensors)


def atleast_1d(*tensors):
    """Tensors with at least one dimension."""
    return _atleast(_C._atleast_1d, tensors)


def atleast_2d(*tensors):
    """Tensors with at least two dimensions."""
    return _atleast(_C._atleast_2d, tensors)


def atleast_3d(*tensors):
    """Tensors with at least three dimensions."""
    return _atleast(_C._atleast_3d, tensors)


Tensor.lu = lu


def fill(input, value):  # noqa: A002
    """A tensor like input in which every element is value."""
    return input.clone().fill_(value)


def frobenius_norm(input, dim=None, keepdim=False, *, out=None):  # noqa: A002
    """The root of the sum of squares over the dimensions: linalg.vector_norm."""
    return _C._linalg.vector_norm(input, 2, None if dim is None or dim == () else dim, keepdim, out=out)


def nuclear_norm(input, dim=(-2, -1), keepdim=False, *, out=None):  # noqa: A002
    """The sum of singular values of matrices: linalg.matrix_norm."""
    return _C._linalg.matrix_norm(input, "nuc", dim, keepdim, out=out)


def unravel_index(indices, shape):
    """Converts flat row-major indices into a tensor of that shape to coordinates, one tensor per dimension."""
    if indices.is_floating_point() or indices.is_complex() or indices.dtype is _C.bool:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = [shape] if isinstance(shape, int) else list(shape)
    if any(not isinstance(size, int) for size in sizes):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {shape}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    places, indices = [], indices.to(_C.int64)
    for size in reversed(sizes):
        places.append(indices % size)
        indices = indices.div(size, rounding_mode="floor")
    return tuple(reversed(places))


def histogramdd(input, bins, *, range=None, weight=None, density=False):  # noqa: A002
    """The histogram of points, the rows of input [..., n], in n dimensions.

    bins: a number of bins, one for each of the n dimensions, or a tensor of edges for each; range: minimum and maximum of
    each dimension in one list, by default those of the data. The last edge belongs to the last bin. `weight` [...] weighs
    the points; density: divides by the sum and the volumes of bins. Returns (hist, bin_edges).
    """
    hist, *edges = _C._histogramdd(input, bins, () if range is None else range, weight, density)
    return _C._return_type("histogramdd", ["hist", "bin_edges"])((hist, tuple(edges)))
