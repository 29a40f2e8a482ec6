#include "tercel/ops/views/diagonals.h"

#include <algorithm>
#include <cstring>

#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/assign_inplace_impl.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/out.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tercel/ops/views/views_impl.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constexpr int64_t kGrainBytes = 1 << 18;

enum class Triangle : uint8_t { Lower, Upper };

/** Copies a triangle of each contiguous matrix of x, and zeros the rest. */
void copy_triangle(Triangle which, const Tensor& out, const Tensor& x, int64_t diagonal) {
  const int64_t rows = x.size(-2), columns = x.size(-1);
  if (x.numel() == 0) return;
  const size_t item = x.itemsize();
  const auto* from = static_cast<const char*>(x.data_ptr());
  auto* to = static_cast<char*>(out.data_ptr());
  const size_t row_bytes = static_cast<size_t>(columns) * item;
  // Beyond these bounds the triangle is everything or nothing; clamping also avoids overflow in the sums below.
  diagonal = std::clamp(diagonal, -rows, columns);
  parallel_for(0, x.numel() / columns, std::max<int64_t>(1, kGrainBytes / static_cast<int64_t>(row_bytes)),
               [&](int64_t first, int64_t last) {
                 for (int64_t i = first; i < last; ++i) {
                   // Columns below `cut` belong to the lower triangle.
                   const int64_t edge = i % rows + diagonal + (which == Triangle::Lower ? 1 : 0);
                   const size_t cut = static_cast<size_t>(std::clamp<int64_t>(edge, 0, columns)) * item;
                   const char* source = from + static_cast<size_t>(i) * row_bytes;
                   char* target = to + static_cast<size_t>(i) * row_bytes;
                   if (which == Triangle::Lower) {
                     std::memcpy(target, source, cut);
                     std::memset(target + cut, 0, row_bytes - cut);
                   } else {
                     std::memset(target, 0, cut);
                     std::memcpy(target + cut, source + cut, row_bytes - cut);
                   }
                 }
               });
}

Tensor triangle(Triangle which, const Tensor& x, int64_t diagonal) {
  const char* op = which == Triangle::Lower ? "tril" : "triu";
  check_strided(op, x);
  check_on_cpu(op, x);
  TERCEL_CHECK(x.dim() >= 2, RuntimeError, op, ": input tensor must have at least 2 dimensions");
  Tensor out;
  {
    const NoRecordGuard no_record;
    const Tensor source = contiguous(x);
    out = empty(x.sizes(), x.options());
    copy_triangle(which, out, source, diagonal);
  }
  if (should_record(x))
    record(which == Triangle::Lower ? "TrilBackward0" : "TriuBackward0", out, {x},
           [which, diagonal](BackwardCall& call) { call.set(0, triangle(which, call.grad(), diagonal)); });
  return out;
}

struct DiagonalPlace {
  size_t dim1, dim2;
  int64_t row = 0, column = 0;  ///< start of the diagonal

  DiagonalPlace(const char* op, int64_t ndim, int64_t offset, int64_t d1, int64_t d2)
      : dim1(static_cast<size_t>(wrap_dim(d1, ndim, false))), dim2(static_cast<size_t>(wrap_dim(d2, ndim, false))) {
    TERCEL_CHECK(dim1 != dim2, RuntimeError, op, ": diagonal dimensions cannot be identical ", d1, ", ", d2);
    // INT64_MIN cannot be negated, and is clamped; no matrix has such a diagonal.
    if (offset >= 0)
      column = offset;
    else
      row = -std::max(offset, -INT64_MAX);
  }
};

}  // namespace

Tensor diagonal(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  check_strided("diagonal", x);
  const DiagonalPlace place("diagonal", x.dim(), offset, dim1, dim2);
  const int64_t rows = x.sizes()[place.dim1], columns = x.sizes()[place.dim2];
  const int64_t length = std::max<int64_t>(
      0, std::min(rows > place.row ? rows - place.row : 0, columns > place.column ? columns - place.column : 0));
  const int64_t row_stride = x.strides()[place.dim1], column_stride = x.strides()[place.dim2];
  Geometry g;
  for (size_t d = 0; d < x.sizes().size(); ++d) {
    if (d == place.dim1 || d == place.dim2) continue;
    g.sizes.push_back(x.sizes()[d]);
    g.strides.push_back(x.strides()[d]);
  }
  g.sizes.push_back(length);
  g.strides.push_back(row_stride + column_stride);
  g.offset = x.storage_offset();
  if (length > 0) g.offset += place.row * row_stride + place.column * column_stride;
  return part_of("DiagonalBackward0", x, g.of(x),
                 [=](const Tensor& whole) { return diagonal(whole, offset, dim1, dim2); });
}

Tensor diag_embed(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  check_strided("diag_embed", x);
  check_on_cpu("diag_embed", x);
  TERCEL_CHECK(x.dim() >= 1, RuntimeError, "diag_embed: expected a tensor of at least 1 dimension");
  const DiagonalPlace place("diag_embed", x.dim() + 1, offset, dim1, dim2);
  int64_t side = 0;
  TERCEL_CHECK(!__builtin_add_overflow(x.size(-1), place.row + place.column, &side), RuntimeError,
               "diag_embed: offset ", offset, " is out of range");
  DimVector sizes;
  size_t next = 0;
  for (size_t d = 0; d <= x.sizes().size(); ++d)
    sizes.push_back(d == place.dim1 || d == place.dim2 ? side : x.sizes()[next++]);
  return among_zeros("DiagEmbedBackward0", x, sizes,
                     [=](const Tensor& whole) { return diagonal(whole, offset, dim1, dim2); });
}

Tensor diag(const Tensor& x, int64_t offset) {
  check_strided("diag", x);
  TERCEL_CHECK(x.dim() == 1 || x.dim() == 2, RuntimeError, "diag(): Supports 1D or 2D tensors. Got ", x.dim(), "D");
  if (x.dim() == 1) return diag_embed(x, offset);
  return clone(diagonal(x, offset), MemoryFormat::Contiguous);
}

Tensor diagflat(const Tensor& x, int64_t offset) { return diag_embed(reshape(x, {-1}), offset); }

const Tensor& fill_diagonal_(const Tensor& x, Scalar fill_value, bool wrap) {
  const char* op = "fill_diagonal_";
  check_strided(op, x);
  TERCEL_CHECK(x.dim() >= 2, RuntimeError, op, ": dimensions must larger than 1, but got ", x.dim());
  const int64_t rows = x.size(0), columns = x.size(1);
  int64_t step = 0;
  for (int64_t d = 0; d < x.dim(); ++d) {
    TERCEL_CHECK(x.dim() == 2 || x.size(d) == rows, RuntimeError, op,
                 ": all dimensions of input must be of equal length, but got ", x.sizes());
    step += x.stride(d);
  }
  const int64_t offset = x.storage_offset(), count = std::min(rows, columns);
  fill_(as_strided(x, {count}, {step}, offset), fill_value);
  if (wrap && x.dim() == 2 && columns > 0)
    // Each part of the diagonal begins columns + 1 rows below the previous one.
    for (int64_t top = columns + 1; top < rows; top += columns + 1)
      fill_(as_strided(x, {std::min(rows - top, columns)}, {step}, offset + top * x.stride(0)), fill_value);
  return x;
}

Tensor trace(const Tensor& x) {
  check_strided("trace", x);
  TERCEL_CHECK(x.dim() == 2, RuntimeError, "trace: expected a matrix, but got tensor with dim ", x.dim());
  return sum(diagonal(x));
}

Tensor tril(const Tensor& x, int64_t d) { return triangle(Triangle::Lower, x, d); }
Tensor triu(const Tensor& x, int64_t d) { return triangle(Triangle::Upper, x, d); }
const Tensor& tril_(const Tensor& x, int64_t d) { return assign_inplace("tril_", x, tril(x, d)); }
const Tensor& triu_(const Tensor& x, int64_t d) { return assign_inplace("triu_", x, triu(x, d)); }
const Tensor& tril_out(const Tensor& out, const Tensor& x, int64_t d) { return put_out("tril", out, tril(x, d)); }
const Tensor& triu_out(const Tensor& out, const Tensor& x, int64_t d) { return put_out("triu", out, triu(x, d)); }

namespace {

Tensor indices_of(const char* op, int64_t rows, int64_t columns, int64_t offset, TensorOptions options, bool lower) {
  TERCEL_CHECK(rows >= 0, RuntimeError, "row must be non-negative, got", rows);
  TERCEL_CHECK(columns >= 0, RuntimeError, "col must be non-negative, got", columns);
  if (options.dtype != kInt64 && options.dtype != kInt32) refuse_dtype(op, options.dtype);
  numel_of({rows, columns});
  offset = std::clamp(offset, -rows, columns);
  // Columns [first, last) of a row are kept.
  const auto first = [&](int64_t r) { return lower ? 0 : std::clamp<int64_t>(r + offset, 0, columns); };
  const auto last = [&](int64_t r) { return lower ? std::clamp<int64_t>(r + offset + 1, 0, columns) : columns; };
  int64_t count = 0;
  for (int64_t r = 0; r < rows && columns > 0; ++r) count += last(r) - first(r);
  options.dtype = kInt64;
  const Tensor out = empty({2, count}, options);
  auto* row = static_cast<int64_t*>(out.data_ptr());
  int64_t* column = row + count;
  for (int64_t r = 0; r < rows && count > 0; ++r)
    for (int64_t c = first(r); c < last(r); ++c) {
      *row++ = r;
      *column++ = c;
    }
  return out;
}

}  // namespace

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, TensorOptions options) {
  return to(indices_of("tril_indices", row, col, offset, options, true), options.dtype);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, TensorOptions options) {
  return to(indices_of("triu_indices", row, col, offset, options, false), options.dtype);
}

}  // namespace tercel
