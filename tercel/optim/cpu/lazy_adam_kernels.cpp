// Adam's steps on rows that had no gradient, several at once.
#include "tercel/optim/lazy_adam_kernels.h"

#include "tercel/ops/common/cpu/lane_sums.h"
#include "tercel/optim/cpu/step_support.h"

namespace tercel::TERCEL_ISA {

namespace {

template <class T>
bool run(const SkippedRows& u) {
  using V = Vec<T>;
  const int64_t n = u.n, dim = u.dim;
  const int64_t* const rows = u.rows;
  const auto row_of = [](void* data, int64_t stride, int64_t r) { return static_cast<T*>(data) + r * stride; };
  const V epsilon(u.epsilon);
  V sum(0);
  for (int64_t i = 0; i < n; ++i) {
    if (rows && i + kAhead < n) {
      const int64_t next = rows[i + kAhead];
      prefetch_row(row_of(u.weight, u.weight_stride, next), dim);
      prefetch_row(row_of(u.m, u.m_stride, next), dim);
      prefetch_row(row_of(u.v, u.v_stride, next), dim);
      __builtin_prefetch(row_of(u.last, u.last_stride, next), 1);
    }
    const int64_t r = rows ? rows[i] : i;
    T* const last = row_of(u.last, u.last_stride, r);
    const int64_t skipped = (u.before - static_cast<int64_t>(*last)) & (u.modulus - 1);
    *last = static_cast<T>(u.stamp);
    if (skipped == 0 || skipped > u.known) continue;
    const optim::SkippedSteps& s = u.skipped[skipped];
    const V numerator(s.numerator), root(s.root), decay1(s.decay1), decay2(s.decay2);
    T* const weights = row_of(u.weight, u.weight_stride, r);
    T* const ms = row_of(u.m, u.m_stride, r);
    T* const vs = row_of(u.v, u.v_stride, r);
    for_vectors<T>(dim, [&](int64_t j, auto vector) {
      V w = vector.load(weights + j), m = vector.load(ms + j), v = vector.load(vs + j);
      w = w - numerator * m / (root * sqrt(v) + epsilon);
      m = decay1 * m;
      v = decay2 * v;
      vector.store(weights + j, w);
      vector.store(ms + j, m);
      vector.store(vs + j, v);
      sum = sum + (w * V(0) + m * V(0) + v * V(0));
    });
  }
  return all_zero(sum);
}

}  // namespace

bool catch_up_rows(const SkippedRows& u) {
  const FlushDenormals scope;
  return u.dtype == ScalarType::Float64 ? run<double>(u) : run<float>(u);
}

}  // namespace tercel::TERCEL_ISA
