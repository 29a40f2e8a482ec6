"""Linear algebra that PyTorch has beside torch.linalg, older or newer than that, made of operations."""

import warnings

from tercel import _C
from tercel import linalg as _linalg
from tercel._C import Tensor

__all__ = ["eig", "lstsq", "matrix_rank", "ormqr", "solve", "symeig"]


def ormqr(input, tau, other, left=True, transpose=False, *, out=None):  # noqa: A002
    """The product of `other` and Q, all columns of it, or its adjoint (transpose); input and tau are geqrf()'s."""
    def check(fits, sentence):
        if not fits:
            raise RuntimeError(f"torch.ormqr: {sentence}")

    side = "-2" if left else "-1"
    check(input.dim() >= 2, "input must have at least 2 dimensions.")
    check(other.dim() >= 2, "other must have at least 2 dimensions.")
    size = other.shape[-2 if left else -1]
    check(size >= tau.shape[-1], f"other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    check(min(size, input.shape[-1]) == tau.shape[-1],
          f"tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    check(size == input.shape[-2], f"other.shape[{side}] must be equal to input.shape[-2]")
    check(tau.dim() == input.dim() - 1, "Expected tau to have one dimension less than input, but got tau.ndim equal to "
          f"{tau.dim()} and input.ndim is equal to {input.dim()}")
    check(input.dim() == other.dim(), "Expected other to have the same number of dimensions as input, but got other.ndim "
          f"equal to {other.dim()} and input.ndim is equal to {input.dim()}")
    batch = input.shape[:-2]
    for name, shape in (("tau", tau.shape[:-1]), ("other", other.shape[:-2])):
        check(shape == batch, f"Expected batch dimensions of {name} to be equal to input.shape[:-2], but got {list(shape)}")
    for name, one in (("tau", tau), ("other", other)):
        check(one.dtype == input.dtype, f"Expected input and {name} to have the same dtype, but input has dtype"
              f"{input.dtype} and {name} has dtype {one.dtype}")
    if out is not None:
        check(out.dtype == input.dtype, "Expected input and result to have the same dtype, but input has dtype"
              f"{input.dtype} and result has dtype {out.dtype}")
    x, adjoint = (other, transpose) if left else (other.mH, not transpose)
    reflectors = input.tril(-1) + _C.eye(input.shape[-2], input.shape[-1], dtype=input.dtype, device=input.device)
    count = tau.shape[-1]
    for i in range(count) if adjoint else reversed(range(count)):
        v, factor = reflectors[..., i:i + 1], tau[..., i, None, None]
        x = x - v @ (v.mH @ x) * (factor.conj() if adjoint else factor)
    result = x if left else x.mH
    if out is None:
        return result
    return _C.add(result, 0, out=out)


def _word(x):
    return x.type().rpartition(".")[2].replace("Tensor", "")


_SYMEIG_FIELDS = ["eigenvalues", "eigenvectors"]


def symeig(input, eigenvectors=False, upper=True, *, out=None):  # noqa: A002
    """linalg.eigh() of the upper triangle; eigenvalues alone, beside nothing, unless vectors are asked for."""
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
                raise RuntimeError(f"torch.symeig: Expected {name} to be safely castable from {_word(result)} dtype, but got "
                                   f"{name} with dtype {_word(to)}")
        for to, result in zip(out, found):
            _C.add(result, 0, out=to)
        found = tuple(out)
    return _C._return_type("symeig", _SYMEIG_FIELDS)(found)


def _removed(name, advice):
    def function(*args, **kwargs):
        raise RuntimeError("This function was deprecated since version 1.9 and is now removed." + advice)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Refuses: PyTorch has removed it.{advice}"
    return function


eig = _removed("eig", " `linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors "
                      "mimicking complex tensors.")
lstsq = _removed("lstsq", " `lstsq` is deprecated in favor of `linalg.lstsq`.")
matrix_rank = _removed("matrix_rank", " `matrix_rank` is deprecated in favor of `linalg.matrix_rank`.")
solve = _removed("solve", " `solve` is deprecated in favor of `linalg.solve`, whose arguments are reversed and which does "
                          "not return the LU factorization.")

Tensor.ormqr, Tensor.symeig = ormqr, symeig
Tensor.eig, Tensor.lstsq, Tensor.solve, Tensor.matrix_rank = eig, lstsq, solve, matrix_rank
