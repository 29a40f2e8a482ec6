// Sums of squares in float64, in lanes whose number does not depend on the instruction set.
#include "tercel/optim/gradient_norm_kernels.h"

#include <limits>

#include "tercel/ops/common/cpu/simd.h"

namespace tercel::TERCEL_ISA {

namespace {

constexpr int64_t kLanes = 16;

template <class T, bool kLimited>
double run(const T* x, int64_t n, [[maybe_unused]] T limit) {
  const auto square = [&](T value) {
    if constexpr (kLimited) value = value > limit ? limit : value < -limit ? -limit : value;  // NaN is kept
    const auto wide = static_cast<double>(value);
    return wide * wide;
  };
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    TERCEL_UNROLL
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] += square(x[i + l]);
  }
  for (int64_t l = 0; i < n; ++i, ++l) lanes[l] += square(x[i]);
  for (int64_t width = kLanes / 2; width > 0; width /= 2)
    for (int64_t l = 0; l < width; ++l) lanes[l] += lanes[l + width];
  return lanes[0];
}

template <class T>
double run(const SquaredNumbers& numbers) {
  const T* const x = static_cast<const T*>(numbers.data);
  if (numbers.limit < std::numeric_limits<double>::infinity())
    return run<T, true>(x, numbers.n, static_cast<T>(numbers.limit));
  return run<T, false>(x, numbers.n, 0);
}

}  // namespace

double sum_squares(const SquaredNumbers& numbers) {
  return numbers.dtype == ScalarType::Float64 ? run<double>(numbers) : run<float>(numbers);
}

}  // namespace tercel::TERCEL_ISA
