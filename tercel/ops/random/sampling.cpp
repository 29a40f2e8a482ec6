#include "tercel/ops/random/sampling.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tercel/autograd/not_implemented.h"
#include "tercel/core/convert.h"
#include "tercel/core/dtype_words.h"
#include "tercel/core/tensor_meta.h"
#include "tercel/ops/common/new_tensor_impl.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/random/random_impl.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/special/special_math_impl.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/** An element's stream of random numbers; see Note [Random streams]. */
class ElementDraws {
 public:
  ElementDraws(uint64_t seed, uint64_t element) : philox_{seed, element + 1} {}
  /** Uniform in (0, 1). */
  double next() {
    const uint64_t at = count_++;
    const PhiloxBlock block = philox_(at / 2);
    return detail::open_uniform(at % 2 == 0 ? detail::low_half(block) : detail::high_half(block));
  }

 private:
  Philox philox_;
  uint64_t count_ = 0;
};

/** For small rates, multiplies uniform numbers (Knuth); otherwise Hoermann's transformed rejection (PTRS, 1993). */
double draw_poisson(double rate, ElementDraws& draws) {
  if (rate == 0) return 0;
  if (rate < 10) {
    const double limit = std::exp(-rate);
    double count = 0;
    for (double product = draws.next(); product > limit; product *= draws.next()) ++count;
    return count;
  }
  const double root = std::sqrt(rate), log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), squeeze = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = draws.next() - 0.5, v = draws.next(), s = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / s + b) * u + rate + 0.43);
    if (s >= 0.07 && v <= squeeze) return k;
    if (k < 0 || (s < 0.013 && v > s)) continue;
    if (std::log(v * inverse_alpha / (a / (s * s) + b)) <= k * log_rate - rate - special::lgamma(k + 1)) return k;
  }
}

/** For p <= 1/2: geometric jumps between successes if few are expected, else Hoermann's rejection (BTRS, 1993). */
double draw_binomial_half(double n, double p, ElementDraws& draws) {
  if (p == 0) return 0;
  const double q = 1 - p;
  if (n * p < 10) {
    const double log_q = std::log1p(-p);
    double count = 0;
    for (double at = std::ceil(std::log(draws.next()) / log_q); at <= n;
         at += std::max(1.0, std::ceil(std::log(draws.next()) / log_q)))
      ++count;
    return count;
  }
  const double root = std::sqrt(n * p * q), b = 1.15 + 2.53 * root, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = n * p + 0.5, squeeze = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * root;
  const double log_odds = std::log(p / q), m = std::floor((n + 1) * p);
  const double at_mode = special::lgamma(m + 1) + special::lgamma(n - m + 1);
  for (;;) {
    const double u = draws.next() - 0.5, v = draws.next(), s = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / s + b) * u + c);
    if (k < 0 || k > n) continue;
    if (s >= 0.07 && v <= squeeze) return k;
    if (std::log(v * alpha / (a / (s * s) + b)) <=
        at_mode - special::lgamma(k + 1) - special::lgamma(n - k + 1) + (k - m) * log_odds)
      return k;
  }
}

double draw_binomial(double n, double p, ElementDraws& draws) {
  return p <= 0.5 ? draw_binomial_half(n, p, draws) : n - draw_binomial_half(n, 1 - p, draws);
}

/** A contiguous float64 tensor of a parameter's values, without history. */
Tensor values_of(const Tensor& parameter) { return to(parameter.detach(), kFloat64).contiguous(); }

/** A new tensor of the dtype; element i is draw(i, its random numbers). */
template <class Draw>
Tensor draw_each(IntSpan sizes, ScalarType type, Generator& generator, Draw draw) {
  const Tensor out = empty(sizes, type);
  const GeneratorState state = generator.reserve(static_cast<uint64_t>(out.numel()));
  visit_floating_types("sample", type, [&]<class T> {
    T* values = out.data<T>();
    parallel_for(0, out.numel(), 1 << 10, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        ElementDraws draws(state.seed, state.offset + static_cast<uint64_t>(i));
        values[i] = convert<T>(draw(i, draws));
      }
    });
  });
  return out;
}

/** Records that `out` was sampled from parameters x but is not differentiable: x's gradient is 0. */
void record_constant(const char* name, const Tensor& out, const Tensor& x) {
  if (should_record(x))
    record(name, out, {x}, [like = TensorMeta(x)](BackwardCall& call) { call.set(0, detail::zeros_like(like)); });
}

bool all_within(const Tensor& values, double low, double high) {
  const double* v = values.data<double>();
  return std::all_of(v, v + values.numel(), [=](double x) { return x >= low && x <= high; });
}

/** Normal numbers of the mean's dtype, with the given deviation (a tensor or a number) and mean; without history. */
template <class Deviation>
Tensor scaled_normal(IntSpan sizes, const Tensor& mean, const Deviation& stddev, Generator& generator) {
  const NoRecordGuard no_record;
  return add_(mul_(randn(sizes, mean.dtype(), generator), stddev), mean);
}

/** Draws without replacement: the indices of the `samples` largest values of weight / exponential number. */
void draw_different(const double* weights, int64_t categories, Philox philox, uint64_t offset, int64_t samples,
                    int64_t* out) {
  std::vector<double> keys(static_cast<size_t>(categories));
  for (int64_t i = 0; i < categories; ++i) {
    const PhiloxBlock block = philox(offset + static_cast<uint64_t>(i));
    const double waiting = -std::log(detail::open_uniform(detail::low_half(block)));
    keys[static_cast<size_t>(i)] = weights[i] > 0 ? waiting / weights[i] : kInfinity;
  }
  std::vector<int64_t> order(static_cast<size_t>(categories));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::partial_sort(order.begin(), order.begin() + samples, order.end(), [&](int64_t a, int64_t b) {
    const double x = keys[static_cast<size_t>(a)], y = keys[static_cast<size_t>(b)];
    return x < y || (x == y && a < b);
  });
  std::copy_n(order.begin(), samples, out);
}

void draw_with_replacement(const double* weights, int64_t categories, Philox philox, uint64_t offset, int64_t samples,
                           int64_t* out) {
  std::vector<double> upto(static_cast<size_t>(categories));
  std::partial_sum(weights, weights + categories, upto.begin());
  int64_t last = categories - 1;
  while (last > 0 && weights[last] == 0) --last;  // rounding may select the end
  for (int64_t s = 0; s < samples; ++s) {
    const PhiloxBlock block = philox(offset + static_cast<uint64_t>(s));
    const double at = uniform_f64(detail::low_half(block)) * upto.back();
    out[s] = std::min(last, static_cast<int64_t>(std::upper_bound(upto.begin(), upto.end(), at) - upto.begin()));
  }
}

void check_weights(const double* weights, int64_t categories, bool replacement) {
  constexpr const char* kInvalid = "invalid multinomial distribution (";
  double sum = 0;
  for (int64_t i = 0; i < categories; ++i) {
    TERCEL_CHECK(replacement || (weights[i] >= 0 && weights[i] < kInfinity), RuntimeError,
                 "probability tensor contains either `inf`, `nan` or element < 0");
    TERCEL_CHECK(!(weights[i] < 0), RuntimeError, kInvalid, "encountering probability entry < 0)");
    TERCEL_CHECK(std::isfinite(weights[i]), RuntimeError, kInvalid,
                 "encountering probability entry = infinity or NaN)");
    sum += weights[i];
  }
  TERCEL_CHECK(sum > 0, RuntimeError, kInvalid, "sum of probabilities <= 0)");
}

}  // namespace

Tensor bernoulli(const Tensor& p, Generator& generator) {
  check_floating_point("bernoulli", p, "self");
  const Tensor out = bernoulli_(empty(p.sizes(), p.dtype()), p, generator);
  record_constant("BernoulliBackward0", out, p);
  return out;
}

const Tensor& bernoulli_(const Tensor& x, const Tensor& p, Generator& generator) {
  detail::check_random("bernoulli_", x);
  check_floating_point("bernoulli_", p, "p");
  const Tensor chances = values_of(expand(p.detach(), x.sizes()));
  TERCEL_CHECK(all_within(chances, 0, 1), RuntimeError, "Expected p_in >= 0 && p_in <= 1 to be true, but got false: ",
               "bernoulli_ expects all elements of p to be in [0, 1]");
  const double* at = chances.data<double>();
  detail::fill_contiguous(x, [&](const Tensor& target) {
    const GeneratorState state = generator.reserve(static_cast<uint64_t>(target.numel() + 1) / 2);
    const Philox philox{state.seed, 0};
    visit_all_types("bernoulli_", target.dtype(), [&]<class T> {
      T* out = target.data<T>();
      parallel_for(0, target.numel(), 1 << 12, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          const PhiloxBlock block = philox(state.offset + static_cast<uint64_t>(i) / 2);
          const uint64_t bits = i % 2 == 0 ? detail::low_half(block) : detail::high_half(block);
          out[i] = convert<T>(uniform_f64(bits) < at[i]);
        }
      });
    });
  });
  return detail::record_overwritten("BernoulliBackward0", x);
}

Tensor normal(const Tensor& mean, double std, Generator& generator) {
  check_strided("normal", mean, "mean");
  TERCEL_CHECK(std >= 0, RuntimeError, "normal expects std >= 0.0, but found std ", std);
  const Tensor out = scaled_normal(mean.sizes(), mean, std, generator);
  record_constant("NormalBackward1", out, mean);
  return out;
}

Tensor normal(double mean, const Tensor& std, Generator& generator) {
  check_strided("normal", std, "std");
  const Tensor out = normal(full_like(std.detach(), mean), std.detach(), generator);
  record_constant("NormalBackward2", out, std);
  return out;
}

Tensor normal(const Tensor& mean, const Tensor& std, Generator& generator) {
  check_strided("normal", mean, "mean");
  check_strided("normal", std, "std");
  TERCEL_CHECK(!is_complex(std.dtype()), RuntimeError, "normal expects standard deviation to be non-complex");
  TERCEL_CHECK(std.numel() == 0 || all_within(values_of(std), 0, kInfinity), RuntimeError,
               "normal expects all elements of std >= 0.0");
  const Tensor out = scaled_normal(broadcast_sizes(mean.sizes(), std.sizes()), mean, std, generator);
  if (should_record(mean, std))
    record("NormalBackward3", out, {mean, std},
           [mean_like = TensorMeta(mean), stddev_like = TensorMeta(std)](BackwardCall& call) {
             if (call.needs(0)) call.set(0, detail::zeros_like(mean_like));
             if (call.needs(1)) call.set(1, detail::zeros_like(stddev_like));
           });
  return out;
}

Tensor poisson(const Tensor& input, Generator& generator) {
  check_floating_point("poisson", input, "self");
  const Tensor rates = values_of(input);
  TERCEL_CHECK(all_within(rates, 0, std::numeric_limits<double>::max()), RuntimeError,
               "invalid Poisson rate, expected rate to be non-negative");
  const double* at = rates.data<double>();
  const Tensor out = draw_each(input.sizes(), input.dtype(), generator,
                               [at](int64_t i, ElementDraws& draws) { return draw_poisson(at[i], draws); });
  record_constant("PoissonBackward0", out, input);
  return out;
}

Tensor binomial(const Tensor& count, const Tensor& prob, Generator& generator) {
  check_floating_point("binomial", count, "count");
  check_floating_point("binomial", prob, "prob");
  const DimVector sizes = broadcast_sizes(count.sizes(), prob.sizes());
  const Tensor counts = values_of(expand(count.detach(), sizes)), chances = values_of(expand(prob.detach(), sizes));
  TERCEL_CHECK(all_within(counts, 0, std::numeric_limits<double>::max()), RuntimeError,
               "binomial expects all elements of count to be non-negative");
  TERCEL_CHECK(all_within(chances, 0, 1), RuntimeError, "binomial expects all elements of prob to be in [0, 1]");
  const double *n = counts.data<double>(), *at = chances.data<double>();
  const Tensor out = draw_each(sizes, count.dtype(), generator, [n, at](int64_t i, ElementDraws& draws) {
    return draw_binomial(std::floor(n[i]), at[i], draws);
  });
  record_not_implemented("NotImplemented", {out}, {count, prob}, "binomial");
  return out;
}

Tensor multinomial(const Tensor& weights, int64_t samples, bool replacement, Generator& generator) {
  check_strided("multinomial", weights);
  TERCEL_CHECK(weights.dim() == 1 || weights.dim() == 2, RuntimeError, "prob_dist must be 1 or 2 dim");
  TERCEL_CHECK(is_floating(weights.dtype()), RuntimeError,
               "multinomial only supports floating-point dtypes for input, got: ", scalar_type_word(weights.dtype()));
  TERCEL_CHECK(samples > 0, RuntimeError, "cannot sample n_sample <= 0 samples");
  const int64_t categories = weights.size(-1), rows = weights.dim() == 2 ? weights.size(0) : 1;
  TERCEL_CHECK(categories > 0 && (replacement || samples <= categories), RuntimeError,
               "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  const Tensor table = values_of(weights);
  const double* w = table.data<double>();
  for (int64_t r = 0; r < rows; ++r) check_weights(w + r * categories, categories, replacement);
  const Tensor out = weights.dim() == 2 ? empty({rows, samples}, kInt64) : empty({samples}, kInt64);
  int64_t* indices = out.data<int64_t>();
  const int64_t blocks = replacement ? samples : categories;  // per row
  const GeneratorState state = generator.reserve(static_cast<uint64_t>(rows * blocks));
  const Philox philox{state.seed, 0};
  const auto draw = replacement ? draw_with_replacement : draw_different;
  parallel_for(0, rows, std::max<int64_t>(1, (1 << 12) / (categories + samples)), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r)
      draw(w + r * categories, categories, philox, state.offset + static_cast<uint64_t>(r * blocks), samples,
           indices + r * samples);
  });
  return out;
}

}  // namespace tercel
