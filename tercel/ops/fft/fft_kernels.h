// Decomposition of Fourier transforms.
//
// Note [Fourier transforms]
// A kernel transforms as many lines in parallel as a register has lanes: real and imaginary parts separately, one point
// of all lines per register. Lines are gathered from any strides, go through Stockham passes (radix 4, 2, 3, 5 and odd
// primes up to kFftMaxPrime; from one buffer to another, without bit reversal), and are scaled and scattered. Swapping
// real and imaginary parts of input and output gives the inverse transform.
//
// A line of n = n1 n2 points that is longer than kFftMaxPoints, or lines too few to fill the registers, are treated as
// a matrix [n1, n2]: its columns are transformed, each element (k1, i2) is multiplied by w^(k1 i2), and its rows are
// transformed and written transposed. So every pass over memory is one of the kernel's, and even a single long line
// uses full registers and all threads. A length with a larger prime factor is computed as a convolution (Bluestein)
// whose length is a power of two.
//
// Real lines of even length n are complex lines of n / 2 points, then mapped linearly to the half spectrum.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/ops/common/elementwise_loop_impl.h"

namespace tercel {

constexpr int64_t kFftMaxPoints = 1024;
constexpr int64_t kFftMaxPrime = 31;
constexpr int kFftMaxPasses = 16;
/** Maximum number of lines transformed in parallel; tasks are multiples of it. */
constexpr int64_t kFftLanes = 16;

/** n points as radix times m. Numbers have the transform's type, complex ones are pairs (re, im). */
struct FftPass {
  int64_t radix, m;
  const void* twiddles;  ///< w^(p k) for p < m, 0 < k < radix, w = exp(-2 pi i / n)
  const void* roots;     ///< (cos, sin)(2 pi j / radix) for j < radix, of odd radices
};
/** A transform of up to kFftMaxPoints points. */
struct FftPlan {
  int64_t n;
  int count;
  FftPass passes[kFftMaxPasses];
  const void* half;  ///< exp(-2 pi i k / 2n) for k <= n / 2, for real lines of 2n points
};

enum class FftKind : uint8_t {
  Complex,
  RealToHalf,  ///< n real numbers to n / 2 + 1 complex ones
  HalfToReal,  ///< n / 2 + 1 complex ones to n real numbers
};

/** Lines to transform. Strides and steps count real numbers. */
struct FftLines {
  FftKind kind;
  Compute compute;  ///< F32 or F64
  bool inverse;     ///< Complex: exp(+2 pi i ...); otherwise the half spectrum is conjugated
  bool odd;         ///< the real length is odd: the plan has as many points, else half as many
  double scale;
  const FftPlan* plan;
  int rank;  ///< number of dimensions that enumerate lines
  const int64_t *sizes, *x_strides, *out_strides;
  int64_t lines, x_step, out_step;
  const void* x;
  void* out;
  /** If set, point k of line i is multiplied by near[k][i % kFftLanes] far[k][i / kFftLanes]. */
  const void *near, *far;
  int64_t far_count;
};

constexpr int64_t fft_work_bytes(int64_t points) { return 4 * 64 * (points + 2); }

/** Lines [begin, end) times kFftLanes; `work` has fft_work_bytes(plan.n) bytes, aligned to 64. */
using FftLinesFn = void(const FftLines& loop, void* work, int64_t begin, int64_t end);
TERCEL_DECLARE_KERNELS(FftLinesFn, fft_lines)

/**
 * Lines [begin, end) of h + 1 complex numbers, in place: converts the transform of the h pairs of a real line to its
 * half spectrum, or (to_real) back. `half` is exp(-2 pi i k / 2h) for k <= h / 2.
 */
using FftHalvesFn = void(Compute compute, bool to_real, bool conjugate, void* x, int64_t h, const void* half,
                         int64_t begin, int64_t end);
TERCEL_DECLARE_KERNELS(FftHalvesFn, fft_halves)

}  // namespace tercel
