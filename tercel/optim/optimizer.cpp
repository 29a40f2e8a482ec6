#include "tercel/optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/slicing.h"
#include "tercel/optim/apply_rule.h"
#include "tercel/util/profile.h"

namespace tercel::optim {

namespace {

constexpr const char* kMomentum[] = {"momentum"};
constexpr const char* kMoments[] = {"m", "v"};
constexpr const char* kAccumulator[] = {"accumulator"};
constexpr const char* kFtrl[] = {"n", "z"};

// Ftrl divides by the rate: for rates far below practical ones, this would overflow and turn weights into NaN.
constexpr double kLeastFtrlRate = 1e-30;

bool nothing_to_do(Rule rule, double rate) { return rule == Rule::Ftrl && rate < kLeastFtrlRate; }

RuleId rule_id(Rule rule) {
  switch (rule) {
    case Rule::Sgd: return RuleId::Sgd;
    case Rule::MomentumSgd: return RuleId::Momentum;
    case Rule::Adam: return RuleId::Adam;
    case Rule::AdaGrad: return RuleId::AdaGrad;
    case Rule::Ftrl: return RuleId::Ftrl;
  }
  return RuleId::Sgd;
}

/** 1 - beta in the step's precision, so that it and beta add up to 1. */
double rest(double beta, ScalarType dtype) {
  return dtype == kFloat64 ? 1 - beta : static_cast<double>(1 - static_cast<float>(beta));
}

/** The numbers of a step. */
Step<double> begin_step(const OptimizerOptions& o, ScalarType dtype, double rate, int64_t step) {
  TERCEL_CHECK(step >= 1 && rate >= 0 && std::isfinite(rate), RuntimeError,
               "optimizer: expected a step of at least 1 and "
               "a learning rate that is not negative, but got step ",
               step, " and ", rate);
  Step<double> h;
  h.rate = rate;
  h.epsilon = o.epsilon;
  switch (o.type) {
    case Rule::Sgd:
    case Rule::AdaGrad: break;
    case Rule::MomentumSgd:  // the rate is in the momentum; see rules.h
      h.beta1 = o.momentum_factor;
      h.rest1 = -rate;
      h.rate = -1;
      break;
    case Rule::Adam: {
      const auto t = static_cast<double>(step);
      h.rate *= std::sqrt(1 - std::pow(o.beta2, t)) / (1 - std::pow(o.beta1, t));
      h.beta1 = o.beta1;
      h.rest1 = rest(o.beta1, dtype);
      h.beta2 = o.beta2;
      h.rest2 = rest(o.beta2, dtype);
      break;
    }
    case Rule::Ftrl:
      h.inverse_rate = 1 / rate;
      h.beta = o.beta;
      h.lambda1 = o.lambda1;
      h.lambda2 = o.lambda2;
      break;
  }
  return h;
}

void check_parameter(const OptimizerOptions& options, const Tensor& parameter) {
  check_defined("optimizer", parameter, "parameter");
  check_options(options, "optimizer");
  TERCEL_CHECK(parameter.dtype() == kFloat32 || parameter.dtype() == kFloat64, RuntimeError,
               "optimizer: expected a parameter of float32 or float64 but got ", describe(parameter));
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
  check_parameter(options_, parameter_);
  TERCEL_CHECK(parameter_.is_contiguous(), RuntimeError, "optimizer: the parameter ", describe(parameter_),
               " is not contiguous");
  for (const char* name : state_names(options.type)) {
    try {
      states_.push_back(full(parameter_.sizes(), initial_state(options), parameter_.options()));
    } catch (const OutOfMemoryError& e) {
      throw_error<OutOfMemoryError>({"optimizer: ", to_string(options.type), "'s '", name, "': ", e.what()});
    }
  }
}

Optimizer::Optimizer(const OptimizerOptions& options, Tensor parameter, std::vector<Tensor> states)
    : options_(options), parameter_(std::move(parameter)), states_(std::move(states)) {
  check_parameter(options_, parameter_);
  TERCEL_CHECK(row_stride(parameter_) >= 0, RuntimeError, "optimizer: the rows of the parameter ", describe(parameter_),
               " are not contiguous");
  const Span<const char*> names = state_names(options.type);
  TERCEL_CHECK(states_.size() == names.size(), RuntimeError, "optimizer: ", to_string(options.type), " has ",
               names.size(), " states, got ", states_.size());
  for (size_t i = 0; i < names.size(); ++i)
    TERCEL_CHECK(states_[i].defined() && states_[i].sizes() == parameter_.sizes() &&
                     states_[i].dtype() == parameter_.dtype() && row_stride(states_[i]) >= 0,
                 RuntimeError, "optimizer: ", to_string(options.type), "'s '", names[i], "' ", describe(states_[i]),
                 " does not fit the parameter ", describe(parameter_));
}

void Optimizer::check_gradient(const Tensor& gradient) const {
  TERCEL_CHECK(gradient.defined() && gradient.sizes() == parameter_.sizes() && gradient.dtype() == parameter_.dtype() &&
                   gradient.is_contiguous(),
               RuntimeError, "optimizer: gradient ", describe(gradient), " does not fit parameter ",
               describe(parameter_));
}

void Optimizer::update_dense(const Tensor& gradient, double rate, int64_t step) {
  const ProfileRange range("update_dense", RangeKind::Op);
  check_gradient(gradient);
  const Step<double> h = begin_step(options_, parameter_.dtype(), rate, step);
  if (parameter_.numel() == 0 || nothing_to_do(options_.type, rate)) return;
  is_finite_ &= apply_rule("optimizer", rule_id(options_.type), h, parameter_, states_, {gradient, Tensor()});
}

void Optimizer::update_dense(const Tensor& gradient, double rate, int64_t step, Span<ElementRange> parts) {
  const ProfileRange range("update_dense", RangeKind::Op);
  check_gradient(gradient);
  const Step<double> h = begin_step(options_, parameter_.dtype(), rate, step);
  TERCEL_CHECK(parameter_.dim() == 1, RuntimeError, "optimizer: expected a parameter with one dimension but got ",
               describe(parameter_));
  int64_t done = 0;
  for (const ElementRange& part : parts) {
    TERCEL_CHECK(done <= part.begin && part.begin <= part.end && part.end <= parameter_.numel(), RuntimeError,
                 "optimizer: elements [", part.begin, ", ", part.end, ") are not in those from ", done, " on of ",
                 describe(parameter_));
    done = part.end;
  }
  if (nothing_to_do(options_.type, rate)) return;
  const NoGradGuard no_grad;
  for (const ElementRange& part : parts) {
    if (part.begin == part.end) continue;
    const auto of = [&part](const Tensor& whole) { return whole.narrow(0, part.begin, part.end - part.begin); };
    parts_of_states_.clear();
    for (const Tensor& state : states_) parts_of_states_.push_back(of(state));
    is_finite_ &=
        apply_rule("optimizer", rule_id(options_.type), h, of(parameter_), parts_of_states_, {of(gradient), Tensor()});
  }
  parts_of_states_.clear();
}

void Optimizer::update_rows(const Gradient& gradient, double rate, int64_t step) {
  update_rows(gradient, rate, step, unique_rows_);
}

void Optimizer::update_rows(const Gradient& gradient, double rate, int64_t step, UniqueRows& unique_rows) {
  const ProfileRange range("update_rows", RangeKind::Op);
  const auto row_sizes = [](const Tensor& t) { return t.sizes().subspan(1, t.sizes().size() - 1); };
  TERCEL_CHECK(gradient.is_rows() && gradient.defined() && parameter_.dim() >= 1 && gradient.values.dim() >= 1 &&
                   row_sizes(gradient.values) == row_sizes(parameter_) && gradient.values.dtype() == parameter_.dtype(),
               RuntimeError, "optimizer: gradient rows ", describe(gradient.values), " do not fit parameter ",
               describe(parameter_));
  check_update_type(options_, "optimizer");
  const Step<double> h = begin_step(options_, parameter_.dtype(), rate, step);
  if (nothing_to_do(options_.type, rate)) return;
  check_row_range("optimizer", gradient.rows, parameter_);  // before the first block is updated
  unique_rows.reduce_in_blocks(gradient, [&](const Gradient& rows) {
    is_finite_ &= apply_rule("optimizer", rule_id(options_.type), h, parameter_, states_, rows);
  });
}

}  // namespace tercel::optim
