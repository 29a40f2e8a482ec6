// Reading through indices.
//
//   index_select:  for slice (o, k):  out[o, k, :] = in[o, index[k], :]
//   gather:        for line, i:       other[line, i] = indexed[line, index[line, i]]
#include "tercel/ops/indexing_impl.h"

#include <cstring>

#include "tercel/core/convert.h"
#include "tercel/ops/cpu/gather_walk.h"
#include "tercel/ops/cpu/simd.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kPrefetchAhead = 8;
constexpr int64_t kMaxPrefetchBytes = 512;
template <class I>
int64_t select_slices(const SelectLoop& loop, int64_t begin, int64_t end) {
  const auto* index = static_cast<const I*>(loop.index);
  const int64_t fetch = loop.run < kMaxPrefetchBytes ? loop.run : kMaxPrefetchBytes;
  for (int64_t slice = begin; slice < end; ++slice) {
    const int64_t outer = slice / loop.n, k = slice % loop.n;
    const char* in = loop.in + outer * loop.outer_stride;
    if (k + kPrefetchAhead < loop.n) {
      const uintptr_t next = reinterpret_cast<uintptr_t>(in) +
                             static_cast<uintptr_t>(index[k + kPrefetchAhead]) * static_cast<uintptr_t>(loop.stride);
      for (int64_t byte = 0; byte < fetch; byte += 64)
        __builtin_prefetch(reinterpret_cast<const void*>(next + static_cast<uintptr_t>(byte)));
    }
    const int64_t i = static_cast<int64_t>(index[k]);
    if (static_cast<uint64_t>(i) >= static_cast<uint64_t>(loop.size)) [[unlikely]]
      return k;
    const char* from = in + i * loop.stride;
    char* to = loop.out + slice * loop.run;
    switch (loop.run) {
      case 1: *to = *from; break;
      case 2: std::memcpy(to, from, 2); break;
      case 4: std::memcpy(to, from, 4); break;
      case 8: std::memcpy(to, from, 8); break;
      case 16: std::memcpy(to, from, 16); break;
      default: std::memcpy(to, from, static_cast<size_t>(loop.run));
    }
  }
  return -1;
}

template <class I, size_t kItem>
bool gather_items(const GatherLoop& loop, int64_t begin, int64_t end) {
  return walk<I>(loop, begin, end, [](const char* indexed, char* other) { std::memcpy(other, indexed, kItem); });
}

template <class I>
bool gather_lines(const GatherLoop& loop, int64_t begin, int64_t end) {
  switch (item_size(loop.dtype)) {
    case 1: return gather_items<I, 1>(loop, begin, end);
    case 2: return gather_items<I, 2>(loop, begin, end);
    case 4: return gather_items<I, 4>(loop, begin, end);
    case 8: return gather_items<I, 8>(loop, begin, end);
    default: return gather_items<I, 16>(loop, begin, end);
  }
}

}  // namespace

int64_t index_select(const SelectLoop& loop, int64_t begin, int64_t end) {
  return loop.wide ? select_slices<int64_t>(loop, begin, end) : select_slices<int32_t>(loop, begin, end);
}

bool gather(const GatherLoop& loop, int64_t begin, int64_t end) {
  return loop.wide ? gather_lines<int64_t>(loop, begin, end) : gather_lines<int32_t>(loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
