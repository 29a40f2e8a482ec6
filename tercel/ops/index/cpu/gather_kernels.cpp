// Reads elements at indices.
//
//   index_select:  for slice (o, k):  out[o, k, :] = in[o, index[k], :]
//   gather:        for line, i:       other[line, i] = indexed[line, index[line, i]]
#include "tercel/ops/index/gather_kernels.h"

#include <cstring>

#include "tercel/core/convert.h"
#include "tercel/ops/common/cpu/simd.h"
#include "tercel/ops/index/cpu/gather_scatter_loop.h"

namespace tercel::TERCEL_ISA {

namespace {

// Cache lines that are fetched ahead: of so many slices, at least the second number.
constexpr int64_t kPrefetchLines = 32, kLeastAhead = 8;
constexpr int64_t kLine = 64;
constexpr int64_t kMaxPrefetchBytes = 512;
// Slices of the outer dimensions up to this many bytes stay in the caches anyway.
constexpr int64_t kNear = 32 * 1024;

/** Slices [first, last) of one outer index; kRun bytes each, or loop.run of them if that is 0. */
template <class I, size_t kRun>
int64_t select_run(const SelectLoop& loop, int64_t outer, int64_t first, int64_t last) {
  const auto* index = static_cast<const I*>(loop.index);
  const int64_t n = loop.n, size = loop.size, stride = loop.stride, run = kRun == 0 ? loop.run : int64_t{kRun};
  const int64_t fetch = size * stride <= kNear ? 0 : run < kMaxPrefetchBytes ? run : kMaxPrefetchBytes;
  const int64_t lines = (fetch + kLine - 1) / kLine;
  const int64_t ahead = lines * kLeastAhead < kPrefetchLines ? kPrefetchLines / (lines > 0 ? lines : 1) : kLeastAhead;
  const char* in = loop.in + outer * loop.outer_stride;
  char* out = loop.out + outer * n * run;
  for (int64_t k = first; k < last; ++k) {
    if (fetch > 0 && k + ahead < n) {
      const uintptr_t next =
          reinterpret_cast<uintptr_t>(in) + static_cast<uintptr_t>(index[k + ahead]) * static_cast<uintptr_t>(stride);
      for (int64_t byte = 0; byte < fetch; byte += kLine)
        __builtin_prefetch(reinterpret_cast<const void*>(next + static_cast<uintptr_t>(byte)));
    }
    const int64_t i = static_cast<int64_t>(index[k]);
    if (static_cast<uint64_t>(i) >= static_cast<uint64_t>(size)) [[unlikely]]
      return k;
    std::memcpy(out + k * run, in + i * stride, kRun == 0 ? static_cast<size_t>(run) : kRun);
  }
  return -1;
}

template <class I>
int64_t select_slices(const SelectLoop& loop, int64_t begin, int64_t end) {
  const auto run = [&](int64_t outer, int64_t first, int64_t last) {
    switch (loop.run) {
      case 1: return select_run<I, 1>(loop, outer, first, last);
      case 2: return select_run<I, 2>(loop, outer, first, last);
      case 4: return select_run<I, 4>(loop, outer, first, last);
      case 8: return select_run<I, 8>(loop, outer, first, last);
      case 16: return select_run<I, 16>(loop, outer, first, last);
      case 32: return select_run<I, 32>(loop, outer, first, last);
      case 64: return select_run<I, 64>(loop, outer, first, last);
      default: return select_run<I, 0>(loop, outer, first, last);
    }
  };
  for (int64_t slice = begin; slice < end;) {
    const int64_t outer = slice / loop.n, first = slice - outer * loop.n;
    const int64_t last = loop.n - first < end - slice ? loop.n : first + (end - slice);
    const int64_t bad = run(outer, first, last);
    if (bad >= 0) return bad;
    slice += last - first;
  }
  return -1;
}

template <class I, size_t kItem>
bool gather_items(const GatherLoop& loop, int64_t begin, int64_t end) {
  return for_each_element<I, kItem>(loop, begin, end,
                                    [](const char* indexed, char* other) { std::memcpy(other, indexed, kItem); });
}

template <class I>
bool gather_range(const GatherLoop& loop, int64_t begin, int64_t end) {
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
  return loop.wide ? gather_range<int64_t>(loop, begin, end) : gather_range<int32_t>(loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
