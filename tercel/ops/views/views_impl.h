// What makes views, and their gradients.
//
// Note [Linear pairs]
// The gradient of a view, or of an op that only moves elements, is a linear map, and the gradient of that map is the
// first one again: a part is read out, its gradient is put back among zeros, the gradient of putting back is reading
// out. So each backward here is a function that is recorded itself, with the forward as its own backward, and
// derivatives of any order are right.
#pragma once

#include <utility>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy_impl.h"
#include "tercel/ops/common/view_geometry_impl.h"
#include "tercel/ops/factories/factories.h"

namespace tercel {

/** Makes `out` a view of x whose gradient is the incoming one under the old sizes. */
Tensor same_elements(const char* name, const Tensor& x, Tensor out);
Tensor same_elements(const char* name, const Tensor& x, IntSpan sizes, IntSpan strides);

/** Zeros of those sizes in which part(zeros), a view, is x. See Note [Linear pairs]. */
template <class Part>
Tensor among_zeros(const char* name, const Tensor& x, IntSpan sizes, Part part) {
  Tensor whole;
  {
    const NoRecordGuard no_record;
    whole = zeros(sizes, x.options());
    copy_elements_out(part(whole), x);
  }
  if (should_record(x)) record(name, whole, {x}, [part](BackwardCall& call) { call.set(0, part(call.grad())); });
  return whole;
}

/** Makes `out` a view of a part of x, as part(tensor) makes one of any tensor of x's sizes. */
template <class Part>
Tensor part_of(const char* name, const Tensor& x, Tensor out, Part part, ViewOrigin origin = ViewOrigin::Ordinary) {
  make_view(
      name, out, x,
      [&x, &part] {
        return [sizes = DimVector(x.sizes()), part](BackwardCall& call) {
          call.set(0, among_zeros("PartBackwardBackward0", call.grad(), sizes, part));
        };
      },
      origin);
  return out;
}

using DimMarks = SmallVector<bool, 8>;
/** The dimensions that the list names; RuntimeError for one that is named twice. */
DimMarks marked_dims(IntSpan dims, int64_t ndim);

// The geometries of views, for views and for the in-place variants alike: checked, nothing made.
Geometry transposed(const Tensor& x, int64_t dim0, int64_t dim1);
/** Without the marked dimensions of size 1. */
Geometry squeezed(const Tensor& x, const DimMarks& dims);
Geometry unsqueezed(const Tensor& x, int64_t dim);

/** RuntimeError with PyTorch's sentences when an element of such a view of x would lie outside the storage. */
void check_restrided(const Tensor& x, IntSpan sizes, IntSpan strides, int64_t storage_offset);
inline Geometry restrided(const Tensor& x, IntSpan sizes, IntSpan strides, int64_t storage_offset) {
  check_restrided(x, sizes, strides, storage_offset);
  return {sizes, strides, storage_offset};
}

}  // namespace tercel
