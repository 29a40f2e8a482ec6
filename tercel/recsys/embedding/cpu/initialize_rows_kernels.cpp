// Initial values of embedding rows: the numbers of several keys are drawn together, four columns at a time.
#include "tercel/recsys/embedding/initialize_rows_kernels.h"

#include <algorithm>

#include "tercel/ops/random/random_kernels.h"
#include "tercel/util/ceil_div.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kColumns = 4;  // of one Philox block
constexpr int64_t kKeys = 64;    // whose numbers are drawn together: their rows stay in the L1 or L2 cache

/** Numbers of the distribution, one for each word; count is a multiple of kNormalsTogether. */
void draw(const InitialRowsLoop& loop, const uint32_t* words, int64_t count, float* out) {
  if (!loop.normal) {
    uniform_numbers_f32(words, count, loop.a, loop.b - loop.a, loop.b, out);
    return;
  }
  normal_numbers_f32(words, count, out);
  for (int64_t i = 0; i < count; ++i) out[i] = loop.a + loop.b * out[i];
}

template <class T>
void fill(const InitialRowsLoop& loop, int64_t begin, int64_t end) {
  alignas(64) uint32_t words[kColumns * kKeys];
  alignas(64) float numbers[kColumns * kKeys];
  const int64_t together = loop.keys ? 1 : kKeys;
  for (int64_t r = begin; r < end; r += together) {
    const int64_t keys = std::min(together, end - r), blocks = round_up(keys, kRandomLanes);
    const uint64_t key = loop.keys ? static_cast<uint64_t>(loop.keys[r]) : loop.first_key + static_cast<uint64_t>(r);
    const int64_t row = loop.keys ? loop.row_numbers[r] : r;
    for (int64_t column = 0; column < loop.dim; column += kColumns) {
      random_words(loop.seed, static_cast<uint64_t>(column / kColumns), key, blocks, words);
      draw(loop, words, kColumns * blocks, numbers);
      T* to = static_cast<T*>(loop.rows) + row * loop.stride + column;
      const float* from = numbers;
      if (const int64_t columns = loop.dim - column; columns >= kColumns)
        for (int64_t i = 0; i < keys; ++i, to += loop.stride, from += kColumns) std::copy(from, from + kColumns, to);
      else
        for (int64_t i = 0; i < keys; ++i, to += loop.stride, from += kColumns) std::copy(from, from + columns, to);
    }
  }
}

}  // namespace

void initialize_rows(const InitialRowsLoop& loop, int64_t begin, int64_t end) {
  if (loop.dtype == kFloat64)
    fill<double>(loop, begin, end);
  else
    fill<float>(loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
