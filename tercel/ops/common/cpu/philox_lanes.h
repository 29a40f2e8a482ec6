// Philox4x32-10 for consecutive counters in parallel lanes; util/philox.h has the scalar version.
#pragma once

#include <cstdint>

namespace tercel::TERCEL_ISA {
namespace {

/** Writes word w of block first + i to words[w][i]. */
template <int kBlocks>
void philox_lanes(uint64_t seed, uint64_t stream, uint64_t first, uint32_t (*words)[kBlocks]) {
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    const uint64_t index = first + static_cast<uint64_t>(i);
    c0[i] = static_cast<uint32_t>(index);
    c1[i] = static_cast<uint32_t>(index >> 32);
    c2[i] = static_cast<uint32_t>(stream);
    c3[i] = static_cast<uint32_t>(stream >> 32);
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

}  // namespace
}  // namespace tercel::TERCEL_ISA
