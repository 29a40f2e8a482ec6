#include <algorithm>
#include <bit>

#include "tercel/ops/sort/key_sort_impl.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<KeyRangeFn> key_range_kernels = TERCEL_CPU_KERNELS(key_range);
constinit const KernelTable<SortFewFn> sort_few_kernels = TERCEL_CPU_KERNELS(sort_few);
constinit const KernelTable<RadixCountFn> radix_count_kernels = TERCEL_CPU_KERNELS(radix_count);
constinit const KernelTable<RadixScatterFn> radix_scatter_kernels = TERCEL_CPU_KERNELS(radix_scatter);

// A pass over this many elements costs about ten times as much as starting another thread.
constexpr int64_t kGrainKeys = 16384;

int bits_of(uint64_t x) { return static_cast<int>(std::bit_width(x)); }

// A pass costs about 1.5 ns per element and 1 ns per bucket. For data larger than the L2 cache, 2^11 buckets cost three
// times as much as 2^10.
int best_digit_bits(int key_bits, int64_t n) {
  const int most = n <= (1 << 18) ? kMaxDigitBits : kMaxDigitBits - 1;
  int best = 0;
  double best_cost = 0;
  for (int passes = 1; passes <= 16; ++passes) {
    const int bits = ceil_div(key_bits, passes);
    if (bits > most) continue;
    const double cost = passes * (1.5 * static_cast<double>(n) + static_cast<double>(1 << bits));
    if (best == 0 || cost < best_cost) {
      best = bits;
      best_cost = cost;
    }
  }
  return best;
}

// Converts the counts of all chunks to positions in the target. False if one bucket holds everything.
bool place(uint32_t* counts, int64_t chunks, int64_t buckets, int64_t n) {
  uint32_t next = 0;
  for (int64_t bucket = 0; bucket < buckets; ++bucket) {
    const uint32_t before = next;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      uint32_t& count = counts[chunk * buckets + bucket];
      const uint32_t here = count;
      count = next;
      next += here;
    }
    if (next - before == static_cast<uint32_t>(n)) return false;
  }
  return true;
}

}  // namespace

void* reserve_scratch(Tensor& buffer, int64_t nbytes) {
  if (!buffer.defined() || static_cast<int64_t>(buffer.nbytes()) < nbytes) {
    buffer.reset();
    buffer = empty({nbytes + nbytes / 4}, kUInt8);
  }
  return buffer.data_ptr();
}

SortedKeys KeySorter::sort(const char* op, const int64_t* keys, int64_t n, bool descending) {
  TERCEL_CHECK(n < (int64_t{1} << 32), RuntimeError, op, ": expected fewer than 2^32 keys but got ", n);
  SortedKeys sorted;
  sorted.n = n;
  sorted.descending = descending;
  if (n == 0) return sorted;

  const auto key_range = key_range_kernels[kCpu];
  const auto radix_count = radix_count_kernels[kCpu];
  const auto radix_scatter = radix_scatter_kernels[kCpu];

  const KeyRange range = key_range(keys, n);
  const int key_bits = bits_of(static_cast<uint64_t>(range.largest) - static_cast<uint64_t>(range.smallest));
  sorted.base = descending ? range.largest : range.smallest;
  sorted.position_bits = bits_of(static_cast<uint64_t>(n - 1));
  sorted.wide = key_bits + sorted.position_bits > 64;

  const int64_t element_bytes = sorted.wide ? sizeof(WideElement) : sizeof(uint64_t);
  if (n <= kFewKeys) {
    sort_few_kernels[kCpu](keys, sorted, reserve_scratch(buffers_[0], kFewKeys * int64_t{sizeof(WideElement)}));
    return sorted;
  }
  void* buffers[2] = {reserve_scratch(buffers_[0], n * element_bytes), reserve_scratch(buffers_[1], n * element_bytes)};
  const int digit_bits = key_bits == 0 ? 1 : best_digit_bits(key_bits, n);
  const int64_t buckets = int64_t{1} << digit_bits;
  // Every pass, and the count before it, uses the same chunks.
  const Partition partition(0, n, kGrainKeys);
  const int64_t chunks = partition.chunks();
  // Reserves memory for the widest digit: the width depends on the keys, and later calls should not allocate.
  auto* counts =
      static_cast<uint32_t*>(reserve_scratch(counts_, (chunks << kMaxDigitBits) * int64_t{sizeof(uint32_t)}));

  RadixPass pass{keys, buffers[0], sorted.base, sorted.position_bits, 0, digit_bits, true, sorted.wide, descending};
  int target = 0;
  for (int shift = 0; shift < key_bits || pass.raw; shift += digit_bits) {
    pass.shift = shift;
    pass.target = buffers[target];
    for (int64_t i = 0; i < chunks * buckets; ++i) counts[i] = 0;
    partition.run(
        [&](int64_t chunk, int64_t begin, int64_t end) { radix_count(pass, begin, end, counts + chunk * buckets); });
    // The first pass packs keys, so it runs even if all digits are equal.
    if (!place(counts, chunks, buckets, n) && !pass.raw) continue;
    partition.run(
        [&](int64_t chunk, int64_t begin, int64_t end) { radix_scatter(pass, begin, end, counts + chunk * buckets); });
    pass.source = pass.target;
    pass.raw = false;
    target ^= 1;
  }
  sorted.elements = pass.source;
  return sorted;
}

}  // namespace tercel
