#include "tercel/data/formats/norm_format.h"

#include <emmintrin.h>

#include <cstring>

namespace tercel::data {

// SSE2, which every x86-64 has, sums 8 bytes of each half of a register in one instruction.
uint8_t norm_sum(const void* payload, size_t bytes) {
  const char* p = static_cast<const char*>(payload);
  const char* const end = p + bytes;
  __m128i sums = _mm_setzero_si128();
  for (; end - p >= 16; p += 16)
    sums = _mm_add_epi64(sums, _mm_sad_epu8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), _mm_setzero_si128()));
  if (end != p) {
    alignas(16) char tail[16] = {};
    std::memcpy(tail, p, static_cast<size_t>(end - p));
    sums =
        _mm_add_epi64(sums, _mm_sad_epu8(_mm_load_si128(reinterpret_cast<const __m128i*>(tail)), _mm_setzero_si128()));
  }
  const int64_t sum = _mm_cvtsi128_si64(_mm_add_epi64(sums, _mm_unpackhi_epi64(sums, sums)));
  return static_cast<uint8_t>(sum & 0xff);
}

}  // namespace tercel::data
