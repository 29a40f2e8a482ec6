#include "tercel/ops/views/view_scatter.h"

#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/views/diagonals.h"
#include "tercel/ops/views/views.h"
#include "tercel/ops/views/views_impl.h"

namespace tercel {

namespace {

/** A copy of x with part(copy) replaced; an undefined source means zeros. */
template <class Part>
Tensor with_part(const char* name, const Tensor& x, const Tensor& src, Part part) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = clone(x);
    const Tensor at = part(out);
    if (src.defined()) {
      TERCEL_CHECK(at.sizes() == src.sizes(), RuntimeError,
                   "expected src to have a size equal to the slice of self. src size = ", src.sizes(),
                   ", slice size = ", at.sizes());
      copy_elements_out(at, src);
    } else {
      zero_(at);
    }
  }
  if (!(src.defined() ? should_record(x, src) : should_record(x))) return out;
  const auto to_x = [name, part](const Tensor& grad) { return with_part(name, contiguous(grad), Tensor(), part); };
  if (!src.defined())
    record(name, out, {x}, [to_x](BackwardCall& call) { call.set(0, to_x(call.grad())); });
  else
    record(name, out, {x, src}, [to_x, part, dtype = src.dtype()](BackwardCall& call) {
      if (call.needs(0)) call.set(0, to_x(call.grad()));
      if (call.needs(1)) call.set(1, to(part(call.grad()), dtype));
    });
  return out;
}

}  // namespace

Tensor select_scatter(const Tensor& x, const Tensor& src, int64_t dim, int64_t index) {
  check_strided("select_scatter", x);
  check_strided("select_scatter", src);
  return with_part("SelectScatterBackward0", x, src, [=](const Tensor& whole) { return select(whole, dim, index); });
}

Tensor slice_scatter(const Tensor& x, const Tensor& src, int64_t dim, int64_t start, int64_t end, int64_t step) {
  check_strided("slice_scatter", x);
  check_strided("slice_scatter", src);
  return with_part("SliceScatterBackward0", x, src,
                   [=](const Tensor& whole) { return slice(whole, dim, start, end, step); });
}

Tensor diagonal_scatter(const Tensor& x, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
  check_strided("diagonal_scatter", x);
  check_strided("diagonal_scatter", src);
  return with_part("DiagonalScatterBackward0", x, src,
                   [=](const Tensor& whole) { return diagonal(whole, offset, dim1, dim2); });
}

Tensor as_strided_scatter(const Tensor& x, const Tensor& src, IntSpan size, IntSpan stride,
                          std::optional<int64_t> storage_offset) {
  check_strided("as_strided_scatter", x);
  check_strided("as_strided_scatter", src);
  const Geometry base(x), g = restrided(x, size, stride, storage_offset.value_or(x.storage_offset()));
  if (!should_record(x, src)) {
    const auto items = static_cast<int64_t>(x.storage()->nbytes() / x.itemsize());
    const Tensor storage = clone(alias(x, {items}, {1}, 0));
    const Tensor out = base.of(storage);
    const Tensor at = g.of(storage);
    TERCEL_CHECK(at.sizes() == src.sizes(), RuntimeError,
                 "expected src to have a size equal to the slice of self. src size = ", src.sizes(),
                 ", slice size = ", at.sizes());
    copy_elements_out(at, src);
    return out;
  }
  TERCEL_CHECK(x.is_contiguous(), RuntimeError, "as_strided_scatter is currently only supported for contiguous inputs");
  // Gradients are contiguous too, and start at the beginning of their storage.
  return with_part("AsStridedScatterBackward0", x, src, [g, first = x.storage_offset()](const Tensor& whole) {
    const Tensor rows = contiguous(whole);
    return as_strided(rows, g.sizes, g.strides, g.offset - first + rows.storage_offset());
  });
}

}  // namespace tercel
