// Parts of a storage as gradients see them.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** Where the elements of a tensor lie in its storage, and what they are. */
struct TERCEL_API Region {
  DimVector sizes, strides;
  int64_t offset = 0;
  ScalarType dtype = ScalarType::Undefined;  ///< whose elements sizes, strides and offset count; unknown: the other's

  Region() = default;
  explicit Region(const Tensor& t)
      : sizes(t.sizes()), strides(t.strides()), offset(t.storage_offset()), dtype(t.dtype()) {}
  Region(IntSpan s, IntSpan st, int64_t first) : sizes(s), strides(st), offset(first) {}
};

/**
 * Lays g out as elements of `from` in a storage of zeros, adding where elements coincide, and reads `to` off it: with
 * `from` a view and `to` its base that is the gradient of the base; the other way round, the view of a gradient. Where
 * the base, which is `from` or else `to`, names a place several times, those elements share what reaches it. Recorded;
 * the derivative is the same with the two exchanged.
 */
TERCEL_API Tensor regather(const Tensor& g, const Region& from, const Region& to, bool from_is_base);

/** g, which has the form of `base`, with the elements of `view` replaced; undefined: by zeros. Recorded. */
TERCEL_API Tensor replace_region(const Tensor& g, const Region& base, const Region& view, const Tensor& elements);

}  // namespace tercel
