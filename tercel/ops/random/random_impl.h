// Generation of random numbers in ops.
//
// Note [Random streams]
// An op reserves blocks of the generator's stream 0, with a fixed mapping from blocks to elements. An element that
// needs an unknown number of blocks (rejection sampling) has a separate stream instead, whose number is the index of
// its reserved block, plus one.
#pragma once

#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/core/generator.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/random/random_kernels.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/parallel.h"

namespace tercel::detail {

inline constexpr KernelTable<RandomWordsFn> random_words_kernels = TERCEL_CPU_KERNELS(random_words);

inline uint64_t low_half(PhiloxBlock b) { return random_u64(b.word[0], b.word[1]); }
inline uint64_t high_half(PhiloxBlock b) { return random_u64(b.word[2], b.word[3]); }
/** Uniform in the open interval (0, 1). */
inline double open_uniform(uint64_t bits) { return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52; }

inline void check_random(const char* op, const Tensor& x) {
  check_strided(op, x);
  check_inplace(x, x.requires_grad());
}

/** Records that x was overwritten with constants, so its gradient is zero. */
inline const Tensor& record_overwritten(const char* name, const Tensor& x) {
  if (should_record(x)) record_inplace(name, x, {x}, [](BackwardCall& call) { call.set(0, zeros_like(call.grad())); });
  return x;
}

/** Calls write with x, or with a contiguous tensor that is then copied to x. */
template <class Write>
void fill_contiguous(const Tensor& x, Write write) {
  if (x.is_contiguous()) {
    write(x);
    x.impl().bump_version();
    return;
  }
  const Tensor target = empty(x.sizes(), x.options());
  write(target);
  const NoRecordGuard no_record;
  copy_(x, target);
}

/** Blocks of random words generated at a time. */
constexpr int64_t kBatchBlocks = 256;
constexpr int64_t kBatchWords = 4 * kBatchBlocks;

/** Converts words to the next `count` numbers in `out`; see fill_by_words(). */
using FillBatch = FunctionRef<void(const uint32_t* words, int64_t count, void* out)>;
/**
 * Fills x in row-major order with numbers of `size` bytes: fill(words, count, out) writes the next `count` numbers,
 * each from the next `each` words (1 or 2). There are kBatchWords words, of which those for count, rounded up to whole
 * blocks, are random.
 */
void fill_by_words(const Tensor& x, Generator& generator, int64_t each, size_t size, FillBatch fill);
/** The same for numbers of type T: x's dtype, or the type of its complex numbers' parts. */
template <class T, int64_t kWords, class Fill>
void fill_by_words(const Tensor& x, Generator& generator, Fill fill) {
  fill_by_words(x, generator, kWords, sizeof(T),
                [&fill](const uint32_t* words, int64_t count, void* out) { fill(words, count, static_cast<T*>(out)); });
}

/** The same with number(bits) for each element, given 64 random bits. */
template <class T, class Number>
void fill_by_number(const Tensor& x, Generator& generator, Number number) {
  fill_by_words<T, 2>(x, generator, [number](const uint32_t* words, int64_t count, T* out) {
    for (int64_t i = 0; i < count; ++i) out[i] = number(random_u64(words[2 * i], words[2 * i + 1]));
  });
}

}  // namespace tercel::detail
