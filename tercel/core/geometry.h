// Pure functions on sizes and strides. Sizes are non-negative; strides are in elements and may be negative or zero.
#pragma once

#include <cstdint>
#include <optional>

#include "tercel/core/layout.h"
#include "tercel/util/export.h"
#include "tercel/util/small_vector.h"
#include "tercel/util/span.h"

namespace tercel {

/** Sizes or strides; up to five dimensions need no allocation. */
using DimVector = SmallVector<int64_t, 5>;

/** For TensorImpl::set_sizes_and_strides(): the stride that makes a dimension contiguous with the next one. */
constexpr int64_t kFillStride = INT64_MIN;

/**
 * Product of the sizes. RuntimeError for a negative size, and if the product without zero sizes does not fit int64 (so
 * that the strides fit too).
 */
inline int64_t numel_of(IntSpan sizes);

namespace detail {
[[noreturn]] TERCEL_API void refuse_sizes(IntSpan sizes);
}
/** Product of the sizes. RuntimeError if it does not fit 64 bits. */
inline int64_t numel_of(IntSpan sizes) {
  int64_t product = 1;  // of the sizes that are not 0
  bool valid = true, empty = false;
  for (const int64_t s : sizes) {
    empty |= s == 0;
    valid &= s >= 0 && !__builtin_mul_overflow(product, s == 0 ? 1 : s, &product);
  }
  if (!valid) [[unlikely]]
    detail::refuse_sizes(sizes);
  return empty ? 0 : product;
}

/** Row-major strides; a zero size counts as one, so [3, 0, 5] has strides [5, 5, 1]. RuntimeError as of numel_of(). */
TERCEL_API DimVector contiguous_strides(IntSpan sizes);
/** Strides of a dense tensor in a format; RuntimeError for Preserve, or if channels-last has not 4 (3d: 5) sizes. */
TERCEL_API DimVector strides_for(IntSpan sizes, MemoryFormat format);

/** Row-major and dense; dimensions of size 1 may have any stride, an empty tensor is contiguous. */
TERCEL_API bool is_contiguous_strides(IntSpan sizes, IntSpan strides);
TERCEL_API bool is_channels_last_strides(IntSpan sizes, IntSpan strides);
TERCEL_API bool is_channels_last_3d_strides(IntSpan sizes, IntSpan strides);
/**
 * Whether the order of strides is channels-last, dense or not. False if sizes of 1 leave it ambiguous (an N1HW or N111
 * may be a slice of either format).
 */
TERCEL_API bool is_strides_like_channels_last(IntSpan sizes, IntSpan strides);
TERCEL_API bool is_strides_like_channels_last_3d(IntSpan sizes, IntSpan strides);
/** Channels-last if the strides are like that, else contiguous. */
TERCEL_API MemoryFormat suggest_memory_format(IntSpan sizes, IntSpan strides);
/** Whether it is a permutation of a contiguous tensor. Negative strides are never dense. */
TERCEL_API bool is_non_overlapping_and_dense(IntSpan sizes, IntSpan strides);
/** Strides of a dense tensor whose dimensions have the same order in memory as the given strides. */
TERCEL_API DimVector infer_dense_strides(IntSpan sizes, IntSpan strides);

/** Strides under MemoryFormat::Preserve: the same if they are dense, else infer_dense_strides(). */
TERCEL_API DimVector preserved_strides(IntSpan sizes, IntSpan strides);

/**
 * dim in [0, ndim), negative counted from the end; IndexError (PyTorch's message) out of range. With 0 dimensions, -1
 * and 0 give 0 if wrap_scalar (the op treats a scalar as a vector of one element), else an IndexError.
 */
TERCEL_API int64_t wrap_dim(int64_t dim, int64_t ndim, bool wrap_scalar = true);

/** Replaces one -1 so that the product is numel; RuntimeError (PyTorch's messages) if that is impossible. */
TERCEL_API DimVector infer_size(IntSpan shape, int64_t numel);

/** Strides that view the old layout as the new sizes without a copy; nullopt if there are none. */
TERCEL_API std::optional<DimVector> view_strides(IntSpan sizes, IntSpan strides, IntSpan new_sizes);

/** Sizes that both broadcast to; RuntimeError naming the first pair that does not fit. */
TERCEL_API DimVector broadcast_sizes(IntSpan a, IntSpan b);

/** Offsets, relative to the first element, of the lowest and the highest element touched; {0, -1} when empty. */
struct Extent {
  int64_t lowest = 0, highest = 0;
};
/** RuntimeError if an offset in bytes might not fit int64. */
TERCEL_API Extent extent_of(IntSpan sizes, IntSpan strides);

/** Positions of a tensor's elements, in bytes from a common origin. */
struct ByteLayout {
  int64_t origin = 0;  ///< of the element with index 0
  int64_t item_size = 0;
  IntSpan sizes;
  IntSpan strides;  ///< in elements
};

/** Whether two different indices of one tensor refer to the same memory; exact. */
TERCEL_API bool has_internal_overlap(IntSpan sizes, IntSpan strides);

/** Full: every index refers to the same element in both. Partial: some byte is shared in another way. */
enum class Overlap : uint8_t { None, Partial, Full };
/** How the elements of two tensors in one address space overlap; exact. */
TERCEL_API Overlap overlap_of(const ByteLayout& a, const ByteLayout& b);

}  // namespace tercel
