"""Functions whose arguments Python sorts out before the library sees them."""

import warnings

from tercel import _C
from tercel._C import Tensor

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors",
           "cartesian_prod", "chain_matmul", "einsum", "lu", "meshgrid", "tensordot"]


def _letter(subscript):
    if subscript is Ellipsis:
        return "..."
    if not 0 <= subscript < 52:
        raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return chr(ord("A") + subscript) if subscript < 26 else chr(ord("a") + subscript - 26)


def einsum(*args):
    """Sums of products in Einstein's notation: einsum("ij,jk->ik", a, b), or einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one "
                         "operand and its subscripts list")
    if isinstance(args[0], Tensor):
        # Operands and their subscripts take turns; a last list is the output's.
        equation = ",".join("".join(map(_letter, subscripts)) for subscripts in args[1::2])
        operands = args[0:-1:2] if len(args) % 2 else args[::2]
        if len(args) % 2:
            equation += "->" + "".join(map(_letter, args[-1]))
    else:
        equation, *operands = args
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
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
    return _C._tensordot(a, b, left, right, out=out)


def chain_matmul(*matrices, out=None):
    """The product of matrices in the cheapest order."""
    return _C._chain_matmul(matrices, out=out)


def lu(A, pivot=True, get_infos=False, out=None):  # noqa: N803
    """The LU factorization as one matrix, its pivots, and, if asked for, where it met a zero."""
    factor = _C._linalg.lu_factor_ex if get_infos else _C._linalg.lu_factor
    return factor(A, pivot=pivot, out=out)


def _listed(tensors):
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors


def meshgrid(*tensors, indexing=None):
    """Vectors expanded to one shape, in which each changes along a dimension of its own."""
    if indexing is None:
        warnings.warn("tercel.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
                      stacklevel=2)
        indexing = "ij"
    return _C._meshgrid(_listed(tensors), indexing=indexing)


def cartesian_prod(*tensors):
    """All tuples with one element of each vector."""
    return _C._cartesian_prod(tensors)


def block_diag(*tensors):
    """Matrices along the diagonal of one of zeros."""
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
