// Strided regions of a storage, for gradients of views.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Position of a tensor's elements in its storage, and their dtype. */
struct TERCEL_API StridedRegion {
  DimVector sizes, strides;
  int64_t offset = 0;
  ScalarType dtype = ScalarType::Undefined;  ///< whose elements sizes, strides and offset count; unknown: the other's

  StridedRegion() = default;
  explicit StridedRegion(const Tensor& t)
      : sizes(t.sizes()), strides(t.strides()), offset(t.storage_offset()), dtype(t.dtype()) {}
  StridedRegion(IntSpan s, IntSpan st, int64_t first) : sizes(s), strides(st), offset(first) {}
};

/**
 * Writes g as the elements of `from` into a storage of zeros, adding where elements coincide, and reads `to` from it.
 * If `from` is a view and `to` its base, that is the base's gradient; the reverse is the view of a gradient. If
 * elements of the base (`from` or `to`) share memory, they share its gradient equally. Recorded; the derivative is the
 * same with `from` and `to` exchanged.
 */
TERCEL_API Tensor as_strided_backward(const Tensor& g, const StridedRegion& from, const StridedRegion& to,
                                      bool from_is_base);

/** g, which has the geometry of `base`, with the elements of `view` replaced; undefined: by zeros. Recorded. */
TERCEL_API Tensor replace_strided_region(const Tensor& g, const StridedRegion& base, const StridedRegion& view,
                                         const Tensor& elements);

}  // namespace tercel
