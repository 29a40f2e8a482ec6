#include "tercel/core/geometry.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tercel/util/error.h"

namespace tercel {

namespace detail {

void refuse_sizes(IntSpan sizes) {
  for (const int64_t s : sizes)
    TERCEL_CHECK(s >= 0, RuntimeError, "Trying to create tensor with negative dimension ", s, ": ", sizes);
  throw_error<RuntimeError>({"Storage size calculation overflowed with sizes=", sizes});
}

}  // namespace detail

DimVector contiguous_strides(IntSpan sizes) {
  numel_of(sizes);
  DimVector strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
  return strides;
}

namespace {

// Dimensions from the innermost outwards.
constexpr int64_t kChannelsLast[] = {1, 3, 2, 0};
constexpr int64_t kChannelsLast3d[] = {1, 4, 3, 2, 0};

DimVector strides_in_order(IntSpan sizes, IntSpan order) {
  numel_of(sizes);
  DimVector strides(sizes.size(), 1);
  int64_t next = 1;
  for (const int64_t d : order) {
    strides[static_cast<size_t>(d)] = next;
    next *= std::max<int64_t>(sizes[static_cast<size_t>(d)], 1);
  }
  return strides;
}

bool like_order(IntSpan sizes, IntSpan strides, IntSpan order) {
  if (sizes.size() != order.size() || strides[1] == 0) return false;
  int64_t least = 0;
  for (const int64_t d : order) {
    const int64_t size = sizes[static_cast<size_t>(d)], stride = strides[static_cast<size_t>(d)];
    if (size == 0 || stride < least) return false;
    // No inner dimension distinguishes the two formats: row-major.
    if (d == 0 && least == strides[1]) return false;
    if (__builtin_mul_overflow(stride, std::max<int64_t>(size, 1), &least)) return false;
  }
  return true;
}

bool dense_in_order(IntSpan sizes, IntSpan strides, IntSpan order) {
  if (sizes.size() != order.size()) return false;
  int64_t expected = 1;
  for (const int64_t d : order) {
    const int64_t size = sizes[static_cast<size_t>(d)];
    if (size == 1) continue;
    if (strides[static_cast<size_t>(d)] != expected) return false;
    expected *= size;
  }
  return true;
}

}  // namespace

DimVector strides_for(IntSpan sizes, MemoryFormat format) {
  switch (format) {
    case MemoryFormat::Contiguous: break;
    case MemoryFormat::Preserve: throw_error<RuntimeError>({"unsupported memory format Preserve"});
    case MemoryFormat::ChannelsLast:
      TERCEL_CHECK(sizes.size() == 4, RuntimeError, "required rank 4 tensor to use channels_last format, got sizes ",
                   sizes);
      return strides_in_order(sizes, kChannelsLast);
    case MemoryFormat::ChannelsLast3d:
      TERCEL_CHECK(sizes.size() == 5, RuntimeError, "required rank 5 tensor to use channels_last_3d format, got sizes ",
                   sizes);
      return strides_in_order(sizes, kChannelsLast3d);
  }
  return contiguous_strides(sizes);
}

bool is_contiguous_strides(IntSpan sizes, IntSpan strides) {
  int64_t expected = 1;
  bool dense = true;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 0) return true;
    if (sizes[d] == 1) continue;
    dense &= strides[d] == expected;
    expected *= sizes[d];
  }
  return dense;
}

bool is_channels_last_strides(IntSpan sizes, IntSpan strides) { return dense_in_order(sizes, strides, kChannelsLast); }
bool is_channels_last_3d_strides(IntSpan sizes, IntSpan strides) {
  return dense_in_order(sizes, strides, kChannelsLast3d);
}

bool is_strides_like_channels_last(IntSpan sizes, IntSpan strides) { return like_order(sizes, strides, kChannelsLast); }
bool is_strides_like_channels_last_3d(IntSpan sizes, IntSpan strides) {
  return like_order(sizes, strides, kChannelsLast3d);
}
MemoryFormat suggest_memory_format(IntSpan sizes, IntSpan strides) {
  if (is_strides_like_channels_last(sizes, strides)) return MemoryFormat::ChannelsLast;
  if (is_strides_like_channels_last_3d(sizes, strides)) return MemoryFormat::ChannelsLast3d;
  return MemoryFormat::Contiguous;
}

bool is_non_overlapping_and_dense(IntSpan sizes, IntSpan strides) {
  // Every dimension must start where a smaller one ends. `expected` only grows, so none is found twice.
  size_t left = 0;
  for (const int64_t size : sizes) {
    if (size == 0) return true;
    left += size != 1;
  }
  for (int64_t expected = 1; left > 0; --left) {
    size_t d = 0;
    while (d < sizes.size() && (sizes[d] == 1 || strides[d] != expected)) ++d;
    if (d == sizes.size()) return false;
    expected *= sizes[d];
  }
  return true;
}

DimVector infer_dense_strides(IntSpan sizes, IntSpan strides) {
  numel_of(sizes);
  // Dimensions from the innermost outwards: sorted by the magnitude of the stride, ties in row-major order. A broadcast
  // dimension (stride 0) has no order: others move past it, and it keeps its place.
  SmallVector<size_t, 8> order(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t j = i; j-- > 0;) {
      const size_t a = order[j], b = order[at];
      if (strides[a] == 0 || strides[b] == 0) continue;
      const int64_t inner = std::abs(strides[a]), outer = std::abs(strides[b]);
      if (inner < outer || (inner == outer && sizes[a] <= sizes[b])) break;
      std::swap(order[j], order[at]);
      at = j;
    }
  }
  DimVector out(sizes.size(), 1);
  int64_t next = 1;
  for (const size_t d : order) {
    out[d] = next;
    next *= std::max<int64_t>(sizes[d], 1);
  }
  return out;
}

DimVector preserved_strides(IntSpan sizes, IntSpan strides) {
  // A dimension of size 1 may have a negative stride, but new tensors get none.
  const bool descends = std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s < 0; });
  return !descends && is_non_overlapping_and_dense(sizes, strides) ? DimVector(strides)
                                                                   : infer_dense_strides(sizes, strides);
}

int64_t wrap_dim(int64_t dim, int64_t ndim, bool wrap_scalar) {
  TERCEL_CHECK(ndim > 0 || wrap_scalar, IndexError, "Dimension specified as ", dim, " but tensor has no dimensions");
  const int64_t range = std::max<int64_t>(ndim, 1);
  TERCEL_CHECK(dim >= -range && dim < range, IndexError, "Dimension out of range (expected to be in range of [", -range,
               ", ", range - 1, "], but got ", dim, ")");
  return dim < 0 ? dim + range : dim;
}

DimVector infer_size(IntSpan shape, int64_t numel) {
  DimVector out(shape);
  int64_t known = 1;
  ptrdiff_t unknown = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == -1) {
      TERCEL_CHECK(unknown < 0, RuntimeError, "only one dimension can be inferred");
      unknown = static_cast<ptrdiff_t>(d);
      continue;
    }
    TERCEL_CHECK(shape[d] >= 0, RuntimeError, "invalid shape dimension ", shape[d]);
    TERCEL_CHECK(!__builtin_mul_overflow(known, shape[d], &known), RuntimeError, "shape '", shape,
                 "' is invalid for input of size ", numel);
  }
  if (unknown >= 0 && known == 0) {
    TERCEL_CHECK(numel != 0, RuntimeError, "cannot reshape tensor of 0 elements into shape ", shape,
                 " because the unspecified dimension size -1 can be any value and is ambiguous");
  }
  const bool fits = unknown >= 0 ? known > 0 && numel % known == 0 : known == numel;
  TERCEL_CHECK(fits, RuntimeError, "shape '", shape, "' is invalid for input of size ", numel);
  if (unknown >= 0) out[static_cast<size_t>(unknown)] = numel / known;
  return out;
}

std::optional<DimVector> view_strides(IntSpan sizes, IntSpan strides, IntSpan new_sizes) {
  if (numel_of(sizes) == 0) {
    if (sizes == new_sizes) return DimVector(strides);
    return contiguous_strides(new_sizes);
  }
  DimVector out(new_sizes.size(), 1);
  if (sizes.empty()) return out;
  // From the last old dimension: grow a contiguous chunk, then split it into new dimensions.
  size_t next_new = new_sizes.size();
  int64_t chunk_stride = strides.back(), chunk_numel = 1, taken = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    chunk_numel *= sizes[d];
    const bool ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != chunk_numel * chunk_stride);
    if (!ends) continue;
    while (next_new > 0 && (taken < chunk_numel || new_sizes[next_new - 1] == 1)) {
      --next_new;
      out[next_new] = taken * chunk_stride;
      taken *= new_sizes[next_new];
    }
    if (taken != chunk_numel) return std::nullopt;
    if (d > 0) {
      chunk_stride = strides[d - 1];
      chunk_numel = taken = 1;
    }
  }
  if (next_new > 0) return std::nullopt;
  return out;
}

DimVector broadcast_sizes(IntSpan a, IntSpan b) {
  const size_t ndim = std::max(a.size(), b.size());
  DimVector out(ndim);
  for (size_t i = 0; i < ndim; ++i) {  // from the last dimension
    const int64_t sa = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t sb = i < b.size() ? b[b.size() - 1 - i] : 1;
    const size_t d = ndim - 1 - i;
    TERCEL_CHECK(sa == sb || sa == 1 || sb == 1, RuntimeError, "The size of tensor a (", sa,
                 ") must match the size of tensor b (", sb, ") at non-singleton dimension ", d);
    out[d] = sa == 1 ? sb : sa;
  }
  return out;
}

Extent extent_of(IntSpan sizes, IntSpan strides) {
  constexpr int64_t kFarthest = INT64_MAX / 128;  // room for two such extents of elements of 16 bytes
  Extent e;
  bool fits = true;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return {0, -1};
    int64_t reach = 0;
    fits &= !__builtin_mul_overflow(sizes[d] - 1, strides[d], &reach);
    int64_t& end = reach < 0 ? e.lowest : e.highest;
    fits &= !__builtin_add_overflow(end, reach, &end);
  }
  TERCEL_CHECK(fits && e.lowest >= -kFarthest && e.highest <= kFarthest, RuntimeError,
               "Storage size calculation overflowed with sizes=", sizes, " and strides=", strides);
  return e;
}

}  // namespace tercel
