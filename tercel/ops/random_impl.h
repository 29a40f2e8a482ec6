// How random ops draw.
//
// Note [Random streams]
// Numbers of an op come from blocks of the generator's stream 0 that it has reserved, block i for elements that follow
// from i alone. An element that needs an unknown number of them (a rejection sampler) has a stream of its own instead:
// that of the number of its reserved block, plus one.
#pragma once

#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/core/generator.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/factories.h"
#include "tercel/util/parallel.h"

namespace tercel::detail {

inline uint64_t low_half(PhiloxBlock b) { return random_u64(b.word[0], b.word[1]); }
inline uint64_t high_half(PhiloxBlock b) { return random_u64(b.word[2], b.word[3]); }
/** Uniform in (0, 1), never at an end. */
inline double open_uniform(uint64_t bits) { return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52; }

inline void check_random(const Tensor& x, const char* op) {
  check_defined(x, op, "self");
  check_inplace(x, x.requires_grad());
}

/** Records that x was overwritten with numbers that depend on nothing: its gradient ends here. */
inline const Tensor& record_overwritten(const char* name, const Tensor& x) {
  if (should_record(x)) record_inplace(name, x, {x}, [](BackwardCall& call) { call.set(0, zeros_like(call.grad())); });
  return x;
}

/** Calls write with x, or with a contiguous tensor that is then copied to it. */
template <class Write>
void fill_contiguous(const Tensor& x, Write write) {
  if (x.is_contiguous()) {
    write(x);
    x.impl().bump_version();
    return;
  }
  const Tensor target = empty(x.sizes(), x.options());
  write(target);
  const NoGradGuard no_grad;
  copy_(x, target);
}

/**
 * Fills x in the order of its indices: block i of the generator's range gives numbers i * width to i * width + width,
 * as draw(block, values) writes them. T is x's type, or that of the parts of its complex numbers.
 */
template <class T, int64_t kWidth, class Draw>
void fill_by_blocks(const Tensor& x, Generator& generator, Draw draw) {
  fill_contiguous(x, [&](const Tensor& target) {
    const int64_t count = target.numel() * static_cast<int64_t>(target.itemsize() / sizeof(T));
    const int64_t blocks = (count + kWidth - 1) / kWidth;
    const GeneratorState state = generator.reserve(static_cast<uint64_t>(blocks));
    const Philox philox{state.seed, 0};
    T* out = static_cast<T*>(target.data_ptr());
    parallel_for(0, blocks, 1 << 12, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        T values[kWidth];
        draw(philox(state.offset + static_cast<uint64_t>(b)), values);
        const int64_t at = b * kWidth, n = std::min(kWidth, count - at);
        for (int64_t i = 0; i < n; ++i) out[at + i] = values[i];
      }
    });
  });
}

/** The same with number(bits) for each element, of 64 random bits. */
template <class T, class Number>
void fill_by_number(const Tensor& x, Generator& generator, Number number) {
  fill_by_blocks<T, 2>(x, generator, [number](PhiloxBlock block, T* out) {
    out[0] = number(low_half(block));
    out[1] = number(high_half(block));
  });
}

}  // namespace tercel::detail
