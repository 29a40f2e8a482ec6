// Plans and unrecorded transforms; see Note [Fourier transforms].
#pragma once

#include <cstdint>
#include <memory>

#include "tercel/core/tensor.h"
#include "tercel/ops/fft/fft_kernels.h"

namespace tercel {
namespace fft {

/** n = n1 n2, and the twiddle factors between the two transforms. */
struct FftSplit {
  int64_t n1, n2;
  const void *near, *far;
  int64_t far_count;
};

/** Whether all prime factors of n are small enough for the passes. */
bool is_smooth(int64_t n);
/** The plan for n <= kFftMaxPoints with small prime factors; float for F32, double for F64. */
std::shared_ptr<const FftPlan> plan_of(int64_t n, Compute compute);
/** The split of a larger n with small prime factors. */
std::shared_ptr<const FftSplit> split_of(int64_t n, Compute compute);
/** exp(-2 pi i k / 2h) for k <= h / 2. */
std::shared_ptr<const void> half_roots_of(int64_t h, Compute compute);

// Unrecorded transforms along dimension `dim`; every output is multiplied by `scale`. The caller has checked dtypes.
Tensor complex_to_complex(const Tensor& x, int64_t dim, bool inverse, double scale);
Tensor real_to_half(const Tensor& x, int64_t dim, bool conjugate, double scale);
/** n is the length of the real lines. */
Tensor half_to_real(const Tensor& x, int64_t dim, int64_t n, bool conjugate, double scale);

}  // namespace fft
}  // namespace tercel
