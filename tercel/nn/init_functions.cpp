#include "tercel/nn/init_functions.h"

#include <algorithm>
#include <cmath>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/views/views.h"

namespace tercel::nn::init {

namespace {

struct Fans {
  double in, out;
};

Fans fans_of(const Tensor& x) {
  check_defined("init", x, "tensor");
  TERCEL_CHECK(x.dim() >= 2, ValueError,
               "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  double window = 1;
  for (int64_t d = 2; d < x.dim(); ++d) window *= static_cast<double>(x.size(d));
  return {static_cast<double>(x.size(1)) * window, static_cast<double>(x.size(0)) * window};
}

double kaiming_std(const Tensor& x, double a, FanMode mode, Nonlinearity nonlinearity) {
  const Fans fans = fans_of(x);
  return calculate_gain(nonlinearity, a) / std::sqrt(mode == FanMode::FanIn ? fans.in : fans.out);
}

}  // namespace

double calculate_gain(Nonlinearity nonlinearity, double param) {
  switch (nonlinearity) {
    case Nonlinearity::Linear: return 1;
    case Nonlinearity::Tanh: return 5.0 / 3;
    case Nonlinearity::Relu: return std::sqrt(2.0);
    case Nonlinearity::LeakyRelu: return std::sqrt(2 / (1 + param * param));
    case Nonlinearity::Selu: return 0.75;
  }
  return 1;
}

const Tensor& uniform_(const Tensor& x, double a, double b) {
  const NoGradGuard no_grad;
  return tercel::uniform_(x, a, b);
}

const Tensor& normal_(const Tensor& x, double mean, double std) {
  const NoGradGuard no_grad;
  return tercel::normal_(x, mean, std);
}

const Tensor& trunc_normal_(const Tensor& x, double mean, double std, double a, double b) {
  TERCEL_CHECK(a < b && std > 0, ValueError, "trunc_normal_: expected a < b and std > 0 but got [", a, ", ", b,
               "] and std ", std);
  const NoGradGuard no_grad;
  // The quantile of a uniform number between the two bounds' probabilities, found by bisection.
  const auto probability = [&](double v) { return 0.5 * std::erfc(-(v - mean) / std / std::sqrt(2.0)); };
  const double low = probability(a), high = probability(b);
  const Tensor numbers = rand({x.numel()}, kFloat64);
  auto* p = numbers.data<double>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double want = low + p[i] * (high - low);
    double from = a, until = b;
    for (int step = 0; step < 60; ++step) {
      const double middle = (from + until) / 2;
      (probability(middle) < want ? from : until) = middle;
    }
    p[i] = (from + until) / 2;
  }
  return copy_(x, view(numbers, x.sizes()));
}

const Tensor& constant_(const Tensor& x, double value) {
  const NoGradGuard no_grad;
  return fill_(x, value);
}
const Tensor& zeros_(const Tensor& x) { return constant_(x, 0); }
const Tensor& ones_(const Tensor& x) { return constant_(x, 1); }

const Tensor& eye_(const Tensor& x) {
  TERCEL_CHECK(x.dim() == 2, ValueError, "Only tensors with 2 dimensions are supported");
  const NoGradGuard no_grad;
  return copy_(x, eye(x.size(0), x.size(1)));
}

const Tensor& dirac_(const Tensor& x, int64_t groups) {
  TERCEL_CHECK(x.dim() >= 3 && x.dim() <= 5, ValueError, "Only tensors with 3, 4, or 5 dimensions are supported");
  TERCEL_CHECK(groups > 0 && x.size(0) % groups == 0, ValueError, "dim 0 must be divisible by groups");
  const NoGradGuard no_grad;
  zero_(x);
  const int64_t outputs = x.size(0) / groups;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t d = 0; d < std::min(outputs, x.size(1)); ++d) {
      Tensor at = select(select(x, 0, g * outputs + d), 0, d);
      while (at.dim() > 0) at = select(at, 0, at.size(0) / 2);
      fill_(at, 1);
    }
  return x;
}

const Tensor& xavier_uniform_(const Tensor& x, double gain) {
  const Fans fans = fans_of(x);
  const double bound = gain * std::sqrt(6 / (fans.in + fans.out));
  return init::uniform_(x, -bound, bound);
}
const Tensor& xavier_normal_(const Tensor& x, double gain) {
  const Fans fans = fans_of(x);
  return init::normal_(x, 0, gain * std::sqrt(2 / (fans.in + fans.out)));
}
const Tensor& kaiming_uniform_(const Tensor& x, double a, FanMode mode, Nonlinearity nonlinearity) {
  const double bound = std::sqrt(3.0) * kaiming_std(x, a, mode, nonlinearity);
  return x.numel() == 0 ? x : init::uniform_(x, -bound, bound);
}
const Tensor& kaiming_normal_(const Tensor& x, double a, FanMode mode, Nonlinearity nonlinearity) {
  const double std = kaiming_std(x, a, mode, nonlinearity);
  return x.numel() == 0 ? x : init::normal_(x, 0, std);
}

const Tensor& orthogonal_(const Tensor& x, double gain) {
  TERCEL_CHECK(x.dim() >= 2, ValueError, "Only tensors with 2 or more dimensions are supported");
  if (x.numel() == 0) return x;
  const NoGradGuard no_grad;
  const auto rows = static_cast<size_t>(x.size(0)), cols = static_cast<size_t>(x.numel()) / rows;
  const bool wide = cols >= rows;
  const size_t count = wide ? rows : cols, length = wide ? cols : rows;
  const Tensor numbers = randn({static_cast<int64_t>(count * length)}, kFloat64);
  auto* q = numbers.data<double>();
  // Gram-Schmidt, twice: the second pass removes the rounding errors of the first.
  for (size_t i = 0; i < count; ++i) {
    double* v = q + i * length;
    for (int pass = 0; pass < 2; ++pass)
      for (size_t k = 0; k < i; ++k) {
        double dot = 0;
        for (size_t j = 0; j < length; ++j) dot += v[j] * q[k * length + j];
        for (size_t j = 0; j < length; ++j) v[j] -= dot * q[k * length + j];
      }
    double square = 0;
    for (size_t j = 0; j < length; ++j) square += v[j] * v[j];
    for (size_t j = 0; j < length; ++j) v[j] /= std::sqrt(square);
  }
  for (size_t i = 0; i < count * length; ++i) q[i] *= gain;
  const Tensor matrix = view(numbers, {static_cast<int64_t>(count), static_cast<int64_t>(length)});
  return copy_(x, reshape(wide ? matrix : t(matrix), x.sizes()));
}

}  // namespace tercel::nn::init
