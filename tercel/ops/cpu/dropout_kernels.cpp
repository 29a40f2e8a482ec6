// Dropout.
//
//   for group g:  words[4][16] = Philox blocks 16 g ... 16 g + 15
//                 out[64 g + i] = words[i] < threshold ? 0 : x * scale
#include "tercel/ops/dropout_impl.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int kBlocks = static_cast<int>(kDropoutBlocks);

// Philox4x32-10 of consecutive counters, side by side; philox.h has it for one.
void philox_blocks(uint64_t seed, uint64_t first, uint32_t (*words)[kBlocks]) {
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    const uint64_t index = first + static_cast<uint64_t>(i);
    c0[i] = static_cast<uint32_t>(index);
    c1[i] = static_cast<uint32_t>(index >> 32);
    c2[i] = c3[i] = 0;
  }
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kBlocks; ++i) {
      const uint64_t product0 = uint64_t{0xD2511F53u} * c0[i];
      const uint64_t product1 = uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = static_cast<uint32_t>(product1 >> 32) ^ c1[i] ^ key0;
      c1[i] = static_cast<uint32_t>(product1);
      c2[i] = static_cast<uint32_t>(product0 >> 32) ^ c3[i] ^ key1;
      c3[i] = static_cast<uint32_t>(product0);
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  for (int i = 0; i < kBlocks; ++i) {
    words[0][i] = c0[i];
    words[1][i] = c1[i];
    words[2][i] = c2[i];
    words[3][i] = c3[i];
  }
}

template <class T>
void run(const DropoutLoop& loop, int64_t begin, int64_t end) {
  const T scale = static_cast<T>(loop.scale);
  const uint32_t threshold = loop.threshold;
  for (int64_t g = begin; g < end; ++g) {
    uint32_t words[4][kBlocks];
    philox_blocks(loop.seed, loop.offset + static_cast<uint64_t>(g * kDropoutBlocks), words);
    const T* x = static_cast<const T*>(loop.x) + g * kDropoutGroup;
    T* out = static_cast<T*>(loop.out) + g * kDropoutGroup;
    const uint32_t* word = words[0];
    const int64_t n = loop.n - g * kDropoutGroup < kDropoutGroup ? loop.n - g * kDropoutGroup : kDropoutGroup;
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
