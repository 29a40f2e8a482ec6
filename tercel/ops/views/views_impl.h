// Construction of views and of their gradients.
//
// Note [Linear pairs]
// The gradient of a view, or of an op that only moves elements, is a linear map, and the gradient of that map is the
// view again: the gradient of reading a part is writing it into zeros, and the gradient of that is reading. So each
// backward here is a function that is itself recorded, with the forward as its backward, and derivatives of any order
// are correct.
#pragma once

#include <utility>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy_impl.h"
#include "tercel/ops/common/view_geometry_impl.h"
#include "tercel/ops/factories/factories.h"

namespace tercel {

/** Makes `out` a view of x whose gradient is the incoming gradient with x's sizes. */
Tensor same_elements(const char* name, const Tensor& x, Tensor out);
Tensor same_elements(const char* name, const Tensor& x, IntSpan sizes, IntSpan strides);

/** Zeros of the given sizes in which part(zeros), a view, is set to x. See Note [Linear pairs]. */
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

/** Makes `out` a view of a part of x, where part(tensor) selects that part of any tensor of x's sizes. */
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
/** Marks the dimensions in the list; RuntimeError for duplicates. */
DimMarks marked_dims(IntSpan dims, int64_t ndim);

// Geometries of views, shared with the in-place variants. They check arguments and create no tensor.
Geometry transposed(const Tensor& x, int64_t dim0, int64_t dim1);
/** Without the marked dimensions of size 1. */
Geometry squeezed(const Tensor& x, const DimMarks& dims);
Geometry unsqueezed(const Tensor& x, int64_t dim);

/** RuntimeError with PyTorch's messages if an element of such a view of x would be outside the storage. */
void check_restrided(const Tensor& x, IntSpan sizes, IntSpan strides, int64_t storage_offset);
inline Geometry restrided(const Tensor& x, IntSpan sizes, IntSpan strides, int64_t storage_offset) {
  check_restrided(x, sizes, strides, storage_offset);
  return {sizes, strides, storage_offset};
}

}  // namespace tercel
