// Other sizes and strides over the same storage. Nothing is copied; writing to a view writes to its base.
#pragma once

#include <vector>

#include "tercel/core/tensor.h"

namespace tercel {

/** The same elements in row-major order as other sizes (one may be -1); ValueError when that needs a copy. */
TERCEL_API Tensor view(const Tensor& x, IntSpan sizes);
/** view() where possible, else a copy. */
TERCEL_API Tensor reshape(const Tensor& x, IntSpan sizes);
/** Dimensions start_dim to end_dim as one. */
TERCEL_API Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1);

/** Two dimensions exchanged. */
TERCEL_API Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
/** The transpose of a matrix; a scalar or vector stays as it is. */
TERCEL_API Tensor t(const Tensor& x);
/** Dimensions in a new order. */
TERCEL_API Tensor permute(const Tensor& x, IntSpan dims);

/** Elements start to start + length of a dimension. */
TERCEL_API Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
/** One index of a dimension, which goes. IndexError when it is out of range. */
TERCEL_API Tensor select(const Tensor& x, int64_t dim, int64_t index);
/**
 * Every step-th element of a dimension from start to before end, with Python's clamping of negative and large bounds.
 * A negative step runs backwards (start defaults to the last then, with start = INT64_MAX), and the view has a negative
 * stride: to reach element 0, end is INT64_MIN.
 */
TERCEL_API Tensor slice(const Tensor& x, int64_t dim, int64_t start = 0, int64_t end = INT64_MAX, int64_t step = 1);

/** Without the dimensions of size 1. */
TERCEL_API Tensor squeeze(const Tensor& x);
/** Without that dimension if its size is 1. */
TERCEL_API Tensor squeeze(const Tensor& x, int64_t dim);
/** With a dimension of size 1 put in before `dim` (-1: at the end). */
TERCEL_API Tensor unsqueeze(const Tensor& x, int64_t dim);
/** Dimensions of size 1, and new leading ones, repeated with stride 0; -1 keeps a size. */
TERCEL_API Tensor expand(const Tensor& x, IntSpan sizes);

/** Any sizes and strides from an offset in the storage; ValueError when an element would lie outside it. */
TERCEL_API Tensor as_strided(const Tensor& x, IntSpan sizes, IntSpan strides, int64_t storage_offset);

/** Pieces of split_size along a dimension, the last perhaps smaller. */
TERCEL_API std::vector<Tensor> split(const Tensor& x, int64_t split_size, int64_t dim = 0);
/** Pieces of the given sizes, which add up to the dimension's. */
TERCEL_API std::vector<Tensor> split(const Tensor& x, IntSpan sizes, int64_t dim = 0);
/** Every index of a dimension, as select() gives it. */
TERCEL_API std::vector<Tensor> unbind(const Tensor& x, int64_t dim = 0);

}  // namespace tercel
