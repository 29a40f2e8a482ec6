// Row-wise AdaGrad: the mean of squares of a row's gradient, then its step.
#include "tercel/optim/row_wise_kernels.h"

#include <cmath>

#include "tercel/ops/common/cpu/lane_sums.h"
#include "tercel/optim/cpu/step_support.h"

namespace tercel::TERCEL_ISA {

namespace {

template <class T, bool kPrepared>
bool run(const RowWiseUpdate& u) {
  using V = Vec<T>;
  const optim::Step<V> h = step_of<T>(u.step);
  const int64_t n = u.n, dim = u.dim, weight_stride = u.weight_stride, accumulator_stride = u.accumulator_stride;
  const int64_t* const rows = u.rows;
  const T rate = static_cast<T>(u.step.rate), epsilon = static_cast<T>(u.step.epsilon);
  const T share = 1 / static_cast<T>(dim);
  const T* gradient = static_cast<const T*>(u.gradient);
  V sum(0);
  T accumulators = 0;
  for (int64_t i = 0; i < n; ++i, gradient += u.gradient_stride) {
    if (rows && i + kAhead < n) {
      prefetch_row(static_cast<T*>(u.weight) + rows[i + kAhead] * weight_stride, dim);
      __builtin_prefetch(static_cast<T*>(u.accumulator) + rows[i + kAhead] * accumulator_stride, 1);
    }
    const int64_t r = rows ? rows[i] : i;
    T* const weight = static_cast<T*>(u.weight) + r * weight_stride;
    T* const accumulator = static_cast<T*>(u.accumulator) + r * accumulator_stride;
    const auto load = [&](int64_t j, auto vector, V& w, V& g) {
      w = vector.load(weight + j);
      g = vector.load(gradient + j);
      if constexpr (kPrepared) prepare(w, g, h);
    };
    *accumulator += share * lane_sum<T>(dim, [&](int64_t j, auto vector) {
                      V w, g;
                      load(j, vector, w, g);
                      return g * g;
                    });
    const V factor(rate / (std::sqrt(*accumulator) + epsilon));
    for_vectors<T>(dim, [&](int64_t j, auto vector) {
      V w, g;
      load(j, vector, w, g);
      w = w - factor * g;
      vector.store(weight + j, w);
      sum = sum + w * V(0);
    });
    accumulators += *accumulator * 0;
  }
  return all_zero(sum) && accumulators == 0;
}

}  // namespace

bool update_row_wise(const RowWiseUpdate& u) {
  const FlushDenormals scope;
  const bool prepared = is_prepared(u.step);
  if (u.dtype == ScalarType::Float64) return prepared ? run<double, true>(u) : run<double, false>(u);
  return prepared ? run<float, true>(u) : run<float, false>(u);
}

}  // namespace tercel::TERCEL_ISA
