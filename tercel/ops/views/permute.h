// Views with the dimensions in another order.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Two dimensions exchanged. */
TERCEL_OP_API(method, python, cheap) Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
/** transpose() by NumPy's name, and by the other one. */
TERCEL_OP_API(method, python, cheap) Tensor swapaxes(const Tensor& x, int64_t axis0, int64_t axis1);
TERCEL_OP_API(method, python, cheap) Tensor swapdims(const Tensor& x, int64_t dim0, int64_t dim1);
/** The transpose of a matrix; a scalar or vector stays as it is. */
TERCEL_OP_API(method, python, cheap) Tensor t(const Tensor& x);
/** Dimensions in a new order. */
TERCEL_OP_API(method, python, cheap) Tensor permute(const Tensor& x, IntSpan dims);
/** Dimensions `source` at the places `destination`; the others keep their order. */
TERCEL_OP_API(method, python, cheap) Tensor movedim(const Tensor& x, IntSpan source, IntSpan destination);
TERCEL_OP_API(method, python, cheap) Tensor movedim(const Tensor& x, int64_t source, int64_t destination);
/** movedim() by NumPy's name. */
TERCEL_OP_API(method, python, cheap) Tensor moveaxis(const Tensor& x, IntSpan source, IntSpan destination);
TERCEL_OP_API(method, python, cheap) Tensor moveaxis(const Tensor& x, int64_t source, int64_t destination);

/** x.T of Python: all dimensions in reverse order. */
TERCEL_OP_API(method) Tensor numpy_T(const Tensor& x);
/** x.mT of Python: the last two dimensions exchanged; RuntimeError for a vector. */
TERCEL_OP_API(method) Tensor mT(const Tensor& x);  // NOLINT(readability-identifier-naming): PyTorch's name
/** x.H of Python: the conjugate transpose of a matrix; RuntimeError for other numbers of dimensions but 0. */
TERCEL_OP_API(method) Tensor matrix_H(const Tensor& x);
/** x.mH of Python: the conjugate transpose of each matrix; RuntimeError for a vector. */
TERCEL_OP_API(method) Tensor mH(const Tensor& x);  // NOLINT(readability-identifier-naming): PyTorch's name
/** mH() as a function. */
TERCEL_OP_API(method, python, cheap) Tensor adjoint(const Tensor& x);

}  // namespace tercel
