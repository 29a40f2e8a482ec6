// Views with the dimensions in another order.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Two dimensions exchanged. */
TERCEL_API Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
/** transpose() by NumPy's name, and by the other one. */
TERCEL_API Tensor swapaxes(const Tensor& x, int64_t axis0, int64_t axis1);
TERCEL_API Tensor swapdims(const Tensor& x, int64_t dim0, int64_t dim1);
/** The transpose of a matrix; a scalar or vector stays as it is. */
TERCEL_API Tensor t(const Tensor& x);
/** Dimensions in a new order. */
TERCEL_API Tensor permute(const Tensor& x, IntSpan dims);
/** Dimensions `source` at the places `destination`; the others keep their order. */
TERCEL_API Tensor movedim(const Tensor& x, IntSpan source, IntSpan destination);
TERCEL_API Tensor movedim(const Tensor& x, int64_t source, int64_t destination);
/** movedim() by NumPy's name. */
TERCEL_API Tensor moveaxis(const Tensor& x, IntSpan source, IntSpan destination);
TERCEL_API Tensor moveaxis(const Tensor& x, int64_t source, int64_t destination);

/** x.T of Python: all dimensions in reverse order. */
TERCEL_API Tensor numpy_T(const Tensor& x);
/** x.mT of Python: the last two dimensions exchanged; RuntimeError for a vector. */
TERCEL_API Tensor mT(const Tensor& x);  // NOLINT(readability-identifier-naming): PyTorch's name
/** x.H of Python: the conjugate transpose of a matrix; RuntimeError for other numbers of dimensions but 0. */
TERCEL_API Tensor matrix_H(const Tensor& x);
/** x.mH of Python: the conjugate transpose of each matrix; RuntimeError for a vector. */
TERCEL_API Tensor mH(const Tensor& x);  // NOLINT(readability-identifier-naming): PyTorch's name
/** mH() as a function. */
TERCEL_API Tensor adjoint(const Tensor& x);

}  // namespace tercel
