// Helpers of ops on images: per-dimension arguments, and size arithmetic with overflow checks.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tercel/core/tensor.h"

namespace tercel {

/** A number for depth, height and width; dimensions that an image lacks come first and have a neutral value. */
using Spatial = std::array<int64_t, 3>;

/** Expands a list of one or `dims` numbers to three; missing dimensions get `neutral`. */
inline Spatial spread(IntSpan list, size_t dims, int64_t neutral) {
  Spatial out{neutral, neutral, neutral};
  for (size_t d = 0; d < dims; ++d) out[3 - dims + d] = list.size() == 1 ? list[0] : list[d];
  return out;
}

/** The last `dims` sizes of a tensor. */
inline Spatial spatial_sizes(IntSpan sizes, size_t dims) {
  return spread(sizes.subspan(sizes.size() - dims, dims), dims, 1);
}

/** a * b + c; RuntimeError on overflow. */
inline int64_t checked(const char* op, int64_t a, int64_t b, int64_t c) {
  int64_t out = 0;
  TERCEL_CHECK(!__builtin_mul_overflow(a, b, &out) && !__builtin_add_overflow(out, c, &out), RuntimeError, op,
               ": a size is too large");
  return out;
}

/** a / b, rounded down; b > 0. */
inline int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/** Throws if x with its last `dims` sizes replaced by these is too large, before anything of that size is allocated. */
void check_room(const Tensor& x, size_t dims, const Spatial& out);

/** Whether t [n, channels, `dims` more] is channels-last, and not row-major as well. */
inline bool is_channels_last(const Tensor& t, size_t dims) {
  if (t.is_contiguous() || t.dim() != static_cast<int64_t>(dims) + 2) return false;
  return (dims == 2 && t.is_contiguous(MemoryFormat::ChannelsLast)) ||
         (dims == 3 && t.is_contiguous(MemoryFormat::ChannelsLast3d));
}

/** The channels-last format for four or five dimensions. */
inline MemoryFormat channels_last_format(int64_t dims) {
  return dims == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast;
}

}  // namespace tercel
