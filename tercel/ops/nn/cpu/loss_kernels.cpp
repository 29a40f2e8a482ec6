// Losses with their derivatives, in one pass.
//
//   e = exp(-|x|)
//   loss = x * ((x >= 0 ? 1 : 0) - y) + log1p(e), which subtracts no infinities
//   grad = (x >= 0 ? 1 : e) / (1 + e) - y
#include "tercel/ops/nn/loss_kernels.h"

#include "tercel/ops/common/cpu/vec_math.h"

namespace tercel::TERCEL_ISA {

namespace {

template <class T>
struct Arrays {
  const T *x, *target, *weight;
  T *loss, *grad;
  T scale;

  explicit Arrays(const LossLoop& loop)
      : x(static_cast<const T*>(loop.x)),
        target(static_cast<const T*>(loop.target)),
        weight(static_cast<const T*>(loop.weight)),
        loss(static_cast<T*>(loop.loss)),
        grad(static_cast<T*>(loop.grad)),
        scale(static_cast<T>(loop.scale)) {}
};

// One vector; Load and Store handle partial ones.
template <class T, class Load, class Store>
TERCEL_ALWAYS_INLINE void step(const Arrays<T>& a, int64_t i, Load load_from, Store store_to) {
  using V = Vec<T>;
  const V zero(T(0)), one(T(1));
  const V x = load_from(a.x + i), y = load_from(a.target + i);
  const V weight = a.weight ? load_from(a.weight + i) : one;
  const V e = exp(-abs(x));
  const Mask<T> positive = x >= zero;
  store_to(a.loss + i, weight * (x * (where(positive, one, zero) - y) + log1p(e)));
  if (a.grad) store_to(a.grad + i, V(a.scale) * weight * (where(positive, one, e) / (one + e) - y));
}

template <class T>
void run(const LossLoop& loop, int64_t begin, int64_t end) {
  using V = Vec<T>;
  const Arrays<T> a(loop);
  int64_t i = begin;
  for (; i + V::kSize <= end; i += V::kSize)
    step(
        a, i, [](const T* p) { return V::load(p); }, [](T* p, V v) { v.store(p); });
  const int64_t rest = end - i;
  if (rest > 0)
    step(
        a, i, [rest](const T* p) { return load_partial(p, rest); }, [rest](T* p, V v) { store_partial(p, v, rest); });
}

}  // namespace

void binary_cross_entropy_with_logits(const LossLoop& loop, int64_t begin, int64_t end) {
  if (loop.compute == Compute::F64) return run<double>(loop, begin, end);
  run<float>(loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
