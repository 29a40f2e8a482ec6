// Views with the dimensions in a different order.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Swaps two dimensions. */
TERCEL_OP_API(method, python, cheap, layout_sparse) Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
/** Aliases of transpose(). */
TERCEL_OP_API(method, python, cheap, layout_sparse) Tensor swapaxes(const Tensor& x, int64_t axis0, int64_t axis1);
TERCEL_OP_API(method, python, cheap, layout_sparse) Tensor swapdims(const Tensor& x, int64_t dim0, int64_t dim1);
/** The transpose of a matrix; a scalar or vector is returned unchanged. */
TERCEL_OP_API(method, python, cheap, layout_sparse) Tensor t(const Tensor& x);
/** Reorders the dimensions. */
TERCEL_OP_API(method, python, cheap, layout_sparse) Tensor permute(const Tensor& x, IntSpan dims);
/** Moves dimensions `source` to positions `destination`; the others keep their order. */
TERCEL_OP_API(method, python, cheap, layout_sparse)
Tensor movedim(const Tensor& x, IntSpan source, IntSpan destination);
TERCEL_OP_API(method, python, cheap, layout_sparse)
Tensor movedim(const Tensor& x, int64_t source, int64_t destination);
/** Alias of movedim(), with NumPy's name. */
TERCEL_OP_API(method, python, cheap, layout_sparse)
Tensor moveaxis(const Tensor& x, IntSpan source, IntSpan destination);
TERCEL_OP_API(method, python, cheap, layout_sparse)
Tensor moveaxis(const Tensor& x, int64_t source, int64_t destination);

/** x.T in Python: all dimensions in reverse order. */
TERCEL_OP_API(method) Tensor numpy_T(const Tensor& x);
/** x.mT in Python: swaps the last two dimensions; RuntimeError for a vector. */
TERCEL_OP_API(method) Tensor mT(const Tensor& x);  // NOLINT(readability-identifier-naming): PyTorch's name
/** x.H in Python: the conjugate transpose of a matrix; RuntimeError unless x has 0 or 2 dimensions. */
TERCEL_OP_API(method) Tensor matrix_H(const Tensor& x);
/** x.mH in Python: the conjugate transpose of each matrix; RuntimeError for a vector. */
TERCEL_OP_API(method) Tensor mH(const Tensor& x);  // NOLINT(readability-identifier-naming): PyTorch's name
/** mH() as a function. */
TERCEL_OP_API(method, python, cheap, layout_sparse) Tensor adjoint(const Tensor& x);

}  // namespace tercel
