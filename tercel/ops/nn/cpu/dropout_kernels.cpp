// Dropout.
//
//   for group g:  words[4][16] = Philox blocks 16 g ... 16 g + 15
//                 out[64 g + i - skip] = words[i] < threshold ? 0 : x * scale      where there is such an element
#include "tercel/ops/nn/dropout_kernels.h"

#include "tercel/ops/common/cpu/philox_lanes.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int kBlocks = static_cast<int>(kDropoutBlocks);

template <class T>
void run(const DropoutLoop& loop, int64_t begin, int64_t end) {
  const T scale = static_cast<T>(loop.scale);
  const uint32_t threshold = loop.threshold;
  for (int64_t g = begin; g < end; ++g) {
    uint32_t words[4][kBlocks];
    philox_lanes<kBlocks>(loop.seed, loop.stream, loop.block + static_cast<uint64_t>(g * kDropoutBlocks), words);
    const int64_t start = g * kDropoutGroup - loop.skip;
    const int64_t before = start < 0 ? -start : 0;
    const T* x = static_cast<const T*>(loop.x) + start + before;
    T* out = static_cast<T*>(loop.out) + start + before;
    const uint32_t* const first = words[0];
    const uint32_t* const word = first + before;
    const int64_t rest = loop.n - (start + before), group = kDropoutGroup - before;
    const int64_t n = rest < group ? rest : group;
    if (n == kDropoutGroup)
      for (int64_t i = 0; i < kDropoutGroup; ++i) out[i] = word[i] < threshold ? T(0) : x[i] * scale;
    else
      for (int64_t i = 0; i < n; ++i) out[i] = word[i] < threshold ? T(0) : x[i] * scale;
  }
}

}  // namespace

void dropout(const DropoutLoop& loop, int64_t begin, int64_t end) {
  if (loop.compute == Compute::F64) return run<double>(loop, begin, end);
  run<float>(loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
