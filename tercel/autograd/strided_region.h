// Parts of a storage as gradients see them.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Where the elements of a tensor lie in its storage, and what they are. */
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
 * Lays g out as elements of `from` in a storage of zeros, adding where elements coincide, and reads `to` off it: with
 * `from` a view and `to` its base that is the gradient of the base; the other way round, the view of a gradient. Where
 * the base, which is `from` or else `to`, names a place several times, those elements share what reaches it. Recorded;
 * the derivative is the same with the two exchanged.
 */
TERCEL_API Tensor as_strided_backward(const Tensor& g, const StridedRegion& from, const StridedRegion& to,
                                      bool from_is_base);

/** g, which has the form of `base`, with the elements of `view` replaced; undefined: by zeros. Recorded. */
TERCEL_API Tensor replace_strided_region(const Tensor& g, const StridedRegion& base, const StridedRegion& view,
                                         const Tensor& elements);

}  // namespace tercel
