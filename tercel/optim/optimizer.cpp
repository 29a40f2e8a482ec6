#include "tercel/optim/optimizer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>

#include "tercel/ops/factories/factories.h"
#include "tercel/optim/rules.h"
#include "tercel/optim/rules_kernels.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel::optim {

namespace {

constinit const KernelTable<RuleUpdateFn> update_dense_kernels = TERCEL_CPU_KERNELS(update_dense);
constinit const KernelTable<RuleUpdateFn> update_rows_kernels = TERCEL_CPU_KERNELS(update_rows);

constexpr const char* kMomentum[] = {"momentum"};
constexpr const char* kMoments[] = {"m", "v"};
constexpr const char* kAccumulator[] = {"accumulator"};
constexpr const char* kFtrl[] = {"n", "z"};

// Ftrl divides by the rate. Far below any use, the quotient would leave the floats and turn weights into NaN.
constexpr double kLeastFtrlRate = 1e-30;

bool nothing_to_do(Rule rule, double rate) { return rule == Rule::Ftrl && rate < kLeastFtrlRate; }

/** All but what is updated: the rule and the step's numbers, in the order of optim::Step. */
RuleUpdate begin_step(const OptimizerOptions& o, ScalarType dtype, double rate, int64_t step) {
  TERCEL_CHECK(step >= 1 && rate >= 0 && std::isfinite(rate), RuntimeError,
               "optimizer: expected a step of at least 1 and "
               "a learning rate that is not negative, but got step ",
               step, " and ", rate);
  RuleUpdate u{};
  u.rule = static_cast<int>(o.type);
  u.is_double = dtype == kFloat64;
  if (o.type == Rule::Adam) {
    const auto t = static_cast<double>(step);
    rate *= std::sqrt(1 - std::pow(o.beta2, t)) / (1 - std::pow(o.beta1, t));
  }
  const double beta1 = o.type == Rule::MomentumSgd ? o.momentum_factor : o.beta1;
  const double inverse = o.type == Rule::Ftrl ? 1 / rate : 0;
  const double values[] = {rate, beta1, o.beta2, o.epsilon, inverse, o.beta, o.lambda1, o.lambda2};
  static_assert(std::size(values) == std::extent_v<decltype(u.step)>);
  std::copy(std::begin(values), std::end(values), u.step);
  return u;
}

void bump_versions(const Tensor& parameter, Span<Tensor> states) {
  parameter.impl().bump_version();
  for (const Tensor& state : states) state.impl().bump_version();
}

}  // namespace

Span<const char*> Optimizer::state_names(Rule rule) {
  switch (rule) {
    case Rule::Sgd: return {};
    case Rule::MomentumSgd: return kMomentum;
    case Rule::Adam: return kMoments;
    case Rule::AdaGrad: return kAccumulator;
    case Rule::Ftrl: return kFtrl;
  }
  return {};
}

void check_update_type(const OptimizerOptions& options, std::string_view name) {
  const bool moves_named_rows_only = options.type == Rule::Sgd || options.type == Rule::AdaGrad;
  TERCEL_CHECK(options.update_type == UpdateType::Local || moves_named_rows_only, ConfigError, name, ": update_type ",
               to_string(options.update_type), " is not available for ", to_string(options.type),
               "; Local changes the rows that a batch names");
}

Optimizer::Optimizer(const OptimizerOptions& options, Tensor parameter)
    : options_(options), parameter_(std::move(parameter)) {
  check_defined("optimizer", parameter_, "parameter");
  check_options(options_, "optimizer");
  TERCEL_CHECK(parameter_.is_contiguous(), RuntimeError, "optimizer: the parameter ", describe(parameter_),
               " is not contiguous");
  TERCEL_CHECK(parameter_.dtype() == kFloat32 || parameter_.dtype() == kFloat64, RuntimeError,
               "optimizer: expected a parameter of float32 or float64 but got ", describe(parameter_));
  const double start = options.type == Rule::AdaGrad ? options.initial_accu_value : 0;
  for (const char* name : state_names(options.type)) {
    try {
      states_.push_back(full(parameter_.sizes(), start, parameter_.options()));
    } catch (const OutOfMemoryError& e) {
      throw_error<OutOfMemoryError>({"optimizer: ", to_string(options.type), "'s '", name, "': ", e.what()});
    }
  }
}

void Optimizer::update_dense(const Tensor& gradient, double rate, int64_t step) {
  const ProfileRange range("update_dense", RangeKind::Op);
  TERCEL_CHECK(gradient.defined() && gradient.sizes() == parameter_.sizes() && gradient.dtype() == parameter_.dtype() &&
                   gradient.is_contiguous(),
               RuntimeError, "optimizer: gradient ", describe(gradient), " does not fit parameter ",
               describe(parameter_));
  const RuleUpdate whole = begin_step(options_, parameter_.dtype(), rate, step);
  if (parameter_.numel() == 0 || nothing_to_do(options_.type, rate)) return;
  const auto kernel = update_dense_kernels[parameter_.device()];
  std::atomic<bool> finite = true;
  parallel_for(0, parameter_.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
    const auto at = [&](const Tensor& t) {
      return static_cast<std::byte*>(t.data_ptr()) + static_cast<size_t>(begin) * t.itemsize();
    };
    RuleUpdate part = whole;
    part.weight = at(parameter_);
    for (size_t k = 0; k < states_.size(); ++k) part.state[k] = at(states_[k]);
    part.gradient = at(gradient);
    part.n = end - begin;
    if (!kernel(part)) finite = false;
  });
  is_finite_ &= finite;
  bump_versions(parameter_, states_);
}

void Optimizer::update_rows(const Gradient& gradient, double rate, int64_t step) {
  const ProfileRange range("update_rows", RangeKind::Op);
  const auto row_sizes = [](const Tensor& t) { return t.sizes().subspan(1, t.sizes().size() - 1); };
  TERCEL_CHECK(gradient.is_rows() && gradient.defined() && parameter_.dim() >= 1 && gradient.values.dim() >= 1 &&
                   row_sizes(gradient.values) == row_sizes(parameter_) && gradient.values.dtype() == parameter_.dtype(),
               RuntimeError, "optimizer: gradient rows ", describe(gradient.values), " do not fit parameter ",
               describe(parameter_));
  check_update_type(options_, "optimizer");
  RuleUpdate whole = begin_step(options_, parameter_.dtype(), rate, step);
  const Gradient unique = unique_rows_.reduce(gradient);
  const int64_t n = unique.rows.numel();
  if (n == 0) return;
  const auto* rows = unique.rows.data<int64_t>();
  // They ascend: the ends tell of all.
  TERCEL_CHECK(rows[0] >= 0 && rows[n - 1] < parameter_.size(0), IndexError, "optimizer: row ",
               rows[0] < 0 ? rows[0] : rows[n - 1], " is out of range for ", describe(parameter_));
  if (parameter_.numel() == 0 || nothing_to_do(options_.type, rate)) return;
  whole.weight = parameter_.data_ptr();
  for (size_t k = 0; k < states_.size(); ++k) whole.state[k] = states_[k].data_ptr();
  whole.dim = parameter_.numel() / parameter_.size(0);
  const auto* values = static_cast<const std::byte*>(unique.values.data_ptr());
  const int64_t row_bytes = whole.dim * static_cast<int64_t>(parameter_.itemsize());
  const auto kernel = update_rows_kernels[parameter_.device()];
  std::atomic<bool> finite = true;
  parallel_for(0, n, 1024, [&](int64_t begin, int64_t end) {
    RuleUpdate part = whole;
    part.rows = rows + begin;
    part.gradient = values + begin * row_bytes;
    part.n = end - begin;
    if (!kernel(part)) finite = false;
  });
  is_finite_ &= finite;
  bump_versions(parameter_, states_);
}

}  // namespace tercel::optim
