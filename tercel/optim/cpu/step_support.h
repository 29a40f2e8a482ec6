// What the kernels of steps share: vectors of a step's numbers, subnormal numbers, prefetching, finiteness. Private.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "tercel/ops/common/cpu/vec.h"
#include "tercel/optim/rules.h"

namespace tercel::TERCEL_ISA {

namespace {

template <class T>
optim::Step<Vec<T>> step_of(const optim::Step<double>& s) {
  const auto all = [](double x) { return Vec<T>(static_cast<T>(x)); };
  return {all(s.rate),    all(s.beta1),        all(s.rest1), all(s.beta2),   all(s.rest2),
          all(s.epsilon), all(s.inverse_rate), all(s.beta),  all(s.lambda1), all(s.lambda2),
          all(s.limit),   all(s.scale),        all(s.decay), all(s.l1),      all(s.shrink)};
}

/**
 * Treats subnormal numbers as 0 while it exists. The moments of a unit without gradients decay to such numbers and
 * would stay there, which makes a step slower by a factor of 2 on some processors and of 20 on others.
 */
class FlushDenormals {
 public:
  FlushDenormals() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | kFlushResults | kFlushInputs);
    asm volatile("" ::: "memory");  // nothing is loaded before, and nothing stored after
  }
  ~FlushDenormals() {
    asm volatile("" ::: "memory");
    _mm_setcsr(before_);
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  static constexpr unsigned kFlushResults = 0x8000, kFlushInputs = 0x0040;
  unsigned before_;
};

/** Of a sum of values times 0: whether all of them were finite. */
template <class V>
bool all_zero(V sum) {
  return !any(sum != V(0));
}

/** Number of rows to prefetch ahead: rows are scattered in the table, and a miss costs as much as 16 of them. */
constexpr int64_t kAhead = 16;
/** Bytes of a row to prefetch; the hardware prefetches the rest of longer rows. */
constexpr int64_t kAheadBytes = 512;

/** Prefetches the lines of n elements that will be written. */
template <class T>
inline void prefetch_row(const T* p, int64_t n) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T)), kMost = kAheadBytes / static_cast<int64_t>(sizeof(T));
  const int64_t end = n < kMost ? n : kMost;
  for (int64_t j = 0; j < end; j += kLine) __builtin_prefetch(p + j, 1);
  __builtin_prefetch(p + end - 1, 1);  // a row that begins within a line needs one more
}

}  // namespace

}  // namespace tercel::TERCEL_ISA
