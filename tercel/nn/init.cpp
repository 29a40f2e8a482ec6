#include "tercel/nn/init.h"

#include <algorithm>
#include <cmath>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/random/random.h"

namespace tercel::nn {

namespace {

/** 1 / mean of the fans; a bias may have no fan-in. */
double xavier_variance(int64_t fan_in, int64_t fan_out) {
  return 1 / std::max(1.0, static_cast<double>(fan_in + fan_out) / 2);
}

}  // namespace

Init Init::xavier_uniform(int64_t fan_in, int64_t fan_out) {
  return uniform(std::sqrt(3 * xavier_variance(fan_in, fan_out)));
}

// As HugeCTR: divides by the standard deviation of a normal distribution truncated at 2, but does not truncate.
Init Init::xavier_normal(int64_t fan_in, int64_t fan_out) {
  return normal(std::sqrt(xavier_variance(fan_in, fan_out)) / 0.87962566103423978);
}

void initialize(const Tensor& x, const Init& init, Generator& generator) {
  const bool draws = init.kind == Init::Kind::Uniform || init.kind == Init::Kind::Normal;
  if (draws && x.dtype() == kFloat64) {
    const Tensor numbers = empty(x.sizes(), TensorOptions(kFloat32, x.device()));
    initialize(numbers, init, generator);
    copy_(x, numbers);
    return;
  }
  switch (init.kind) {
    case Init::Kind::Zero: zero_(x); return;
    case Init::Kind::Constant: fill_(x, init.a); return;
    case Init::Kind::Uniform: uniform_(x, init.a, init.b, generator); return;
    case Init::Kind::Normal: normal_(x, init.a, init.b, generator); return;
  }
}

}  // namespace tercel::nn
