// Initial values of embedding rows: the numbers of several keys are drawn together, four columns at a time.
#include "tercel/recsys/embedding/initialize_rows_kernels.h"

#include <algorithm>

#include "tercel/ops/random/random_kernels.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/philox.h"

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

/** The words of the blocks of scattered keys, as random_words() has those of consecutive ones; 0 up to `blocks`. */
void words_of_keys(uint64_t seed, uint64_t stream, const int64_t* keys, int64_t count, int64_t blocks,
                   uint32_t* words) {
  const Philox philox{seed, stream};
  for (int64_t i = 0; i < count; ++i) {
    const PhiloxBlock block = philox(static_cast<uint64_t>(keys[i]));
    std::copy(block.word, block.word + kColumns, words + kColumns * i);
  }
  std::fill(words + kColumns * count, words + kColumns * blocks, 0U);
}

template <class T>
void fill(const InitialRowsLoop& loop, int64_t begin, int64_t end) {
  alignas(64) uint32_t words[kColumns * kKeys];
  alignas(64) float numbers[kColumns * kKeys];
  for (int64_t r = begin; r < end; r += kKeys) {
    const int64_t keys = std::min(kKeys, end - r), blocks = round_up(keys, kRandomLanes);
    for (int64_t column = 0; column < loop.dim; column += kColumns) {
      const auto stream = static_cast<uint64_t>(column / kColumns);
      if (loop.keys)
        words_of_keys(loop.seed, stream, loop.keys + r, keys, blocks, words);
      else
        random_words(loop.seed, stream, loop.first_key + static_cast<uint64_t>(r), blocks, words);
      draw(loop, words, kColumns * blocks, numbers);
      const int64_t columns = std::min(kColumns, loop.dim - column);
      const float* from = numbers;
      for (int64_t i = 0; i < keys; ++i, from += kColumns) {
        const int64_t row = loop.keys ? loop.row_numbers[r + i] : r + i;
        std::copy(from, from + columns, static_cast<T*>(loop.rows) + row * loop.stride + column);
      }
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
