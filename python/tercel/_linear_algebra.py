"""Linear algebra functions from before torch.linalg that PyTorch has removed; only old programs call them."""

import warnings

from tercel import _C
from tercel import linalg as _linalg
from tercel._C import Tensor

__all__ = ["eig", "lstsq", "matrix_rank", "solve", "symeig"]


def _word(x):
    return x.type().rpartition(".")[2].replace("Tensor", "")


_SYMEIG_FIELDS = ["eigenvalues", "eigenvectors"]


def symeig(input, eigenvectors=False, upper=True, *, out=None):  # noqa: A002
    """linalg.eigh() of the upper triangle; an empty tensor instead of eigenvectors unless they are requested."""
    warnings.warn("symeig is deprecated in favor of linalg.eigh and will be removed. The default behavior has changed from "
                  "using the upper triangular portion of the matrix by default to using the lower triangular portion.",
                  stacklevel=2)
    triangle = "U" if upper else "L"
    if eigenvectors:
        found = tuple(_linalg.eigh(input, triangle))
    else:
        found = (_linalg.eigvalsh(input, triangle), input.new_empty(0))
    if out is not None:
        for name, to, result in zip(_SYMEIG_FIELDS, out, found):
            if not _C.can_cast(result.dtype, to.dtype):
                raise RuntimeError(f"symeig: Expected {name} to be safely castable from {_word(result)} dtype, but got "
                                   f"{name} with dtype {_word(to)}")
        for to, result in zip(out, found):
            _C.add(result, 0, out=to)
        found = tuple(out)
    return _C._return_type("symeig", _SYMEIG_FIELDS)(found)


def _removed(name, advice):
    def function(*args, **kwargs):
        raise RuntimeError("This function was deprecated since version 1.9 and is now removed." + advice)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"RuntimeError: PyTorch has removed it.{advice}"
    return function


eig = _removed("eig", " `linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors "
                      "mimicking complex tensors.")
lstsq = _removed("lstsq", " `lstsq` is deprecated in favor of `linalg.lstsq`.")
matrix_rank = _removed("matrix_rank", " `matrix_rank` is deprecated in favor of `linalg.matrix_rank`.")
solve = _removed("solve", " `solve` is deprecated in favor of `linalg.solve`, whose arguments are reversed and which does "
                          "not return the LU factorization.")

Tensor.symeig = symeig
Tensor.eig, Tensor.lstsq, Tensor.solve, Tensor.matrix_rank = eig, lstsq, solve, matrix_rank
