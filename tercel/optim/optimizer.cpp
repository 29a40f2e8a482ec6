#include "tercel/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/slicing.h"
#include "tercel/optim/apply_rule.h"
#include "tercel/optim/row_wise.h"
#include "tercel/util/profile.h"

namespace tercel::optim {

namespace {

constexpr const char* kMomentum[] = {"momentum"};
constexpr const char* kMoments[] = {"m", "v"};
constexpr const char* kLazyMoments[] = {"m", "v", "last"};
constexpr const char* kAccumulator[] = {"accumulator"};
constexpr const char* kSquare[] = {"square"};
constexpr const char* kFtrl[] = {"n", "z"};

// Ftrl divides by the rate: for rates far below practical ones, this would overflow and turn weights into NaN.
constexpr double kLeastFtrlRate = 1e-30;

bool nothing_to_do(const OptimizerOptions& o, double rate) {
  return o.type == Rule::Ftrl && rate * o.lr_scale < kLeastFtrlRate;
}

/** Whether a step moves rows whose gradient is 0. */
bool drifts(Rule rule) {
  switch (rule) {
    case Rule::MomentumSgd:
    case Rule::Nesterov:
    case Rule::Adam:
    case Rule::AdamW:
    case Rule::RmsProp: return true;  // of RMSProp the state
    case Rule::Sgd:
    case Rule::AdaGrad:
    case Rule::RowWiseAdaGrad:
    case Rule::Ftrl: return false;
  }
  return false;
}

bool is_lazy(const OptimizerOptions& options) {
  return options.update_type == UpdateType::LazyGlobal && options.type == Rule::Adam;
}

RuleId rule_id(Rule rule) {
  switch (rule) {
    case Rule::Sgd: return RuleId::Sgd;
    case Rule::MomentumSgd: return RuleId::Momentum;
    case Rule::Nesterov: return RuleId::Nesterov;
    case Rule::Adam:
    case Rule::AdamW: return RuleId::Adam;
    case Rule::AdaGrad:
    case Rule::RowWiseAdaGrad: return RuleId::AdaGrad;
    case Rule::RmsProp: return RuleId::RmsProp;
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
  rate *= o.lr_scale;
  Step<double> h;
  h.decay = o.l2;
  h.l1 = o.l1;
  h.rate = rate;
  h.epsilon = o.epsilon;
  switch (o.type) {
    case Rule::Sgd:
    case Rule::AdaGrad:
    case Rule::RowWiseAdaGrad: break;
    case Rule::RmsProp:
      h.beta2 = o.alpha;
      h.rest2 = rest(o.alpha, dtype);
      break;
    case Rule::MomentumSgd:
    case Rule::Nesterov:  // the rate is in the momentum; see rules.h
      h.beta1 = o.momentum_factor;
      h.rest1 = -rate;
      h.rate = -1;
      break;
    case Rule::AdamW: h.shrink = 1 - rate * o.weight_decay; [[fallthrough]];
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

/** With the betas that the kernel of a step has. */
LazyAdam lazy_adam(const OptimizerOptions& o, ScalarType dtype) {
  const auto rounded = [dtype](double beta) {
    return dtype == kFloat64 ? beta : static_cast<double>(static_cast<float>(beta));
  };
  return LazyAdam(rounded(o.beta1), rounded(o.beta2), o.epsilon);
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
    case Rule::MomentumSgd:
    case Rule::Nesterov: return kMomentum;
    case Rule::Adam:
    case Rule::AdamW: return kMoments;
    case Rule::AdaGrad:
    case Rule::RowWiseAdaGrad: return kAccumulator;
    case Rule::RmsProp: return kSquare;
    case Rule::Ftrl: return kFtrl;
  }
  return {};
}

Span<const char*> Optimizer::state_names(const OptimizerOptions& options) {
  return is_lazy(options) ? Span<const char*>(kLazyMoments) : state_names(options.type);
}

size_t Optimizer::row_states(const OptimizerOptions& options) {
  return options.type == Rule::RowWiseAdaGrad || is_lazy(options) ? 1 : 0;
}

OptimizerOptions options_of_tables(OptimizerOptions options) {
  options.l1 = options.embedding_l1;
  options.l2 = options.embedding_l2;
  return options;
}

void check_update_type(const OptimizerOptions& options, std::string_view name) {
  TERCEL_CHECK(options.update_type != UpdateType::LazyGlobal || is_lazy(options) || !drifts(options.type), ConfigError,
               name, ": update_type LazyGlobal is not available for ", to_string(options.type),
               ", only for Adam; Global changes all rows in each step, Local those that a batch names");
}

Optimizer::Optimizer(const OptimizerOptions& options, Tensor parameter, ParameterKind kind)
    : options_(options), kind_(kind), parameter_(std::move(parameter)) {
  check_parameter(options_, parameter_);
  TERCEL_CHECK(parameter_.is_contiguous(), RuntimeError, "optimizer: the parameter ", describe(parameter_),
               " is not contiguous");
  const bool is_table = kind == ParameterKind::Table;
  TERCEL_CHECK(!is_table || parameter_.dim() >= 1, RuntimeError, "optimizer: expected a table but got ",
               describe(parameter_));
  if (is_table) check_update_type(options_, "optimizer");
  const Span<const char*> names = is_table ? state_names(options) : state_names(options.type);
  const size_t by_element = names.size() - (is_table ? row_states(options) : 0);
  for (size_t k = 0; k < names.size(); ++k) {
    const DimVector sizes = k < by_element ? DimVector(parameter_.sizes()) : DimVector{parameter_.size(0), 1};
    try {
      states_.push_back(full(sizes, initial_state(options), TensorOptions(parameter_.dtype(), parameter_.device())));
    } catch (const OutOfMemoryError& e) {
      throw_error<OutOfMemoryError>({"optimizer: ", to_string(options.type), "'s '", names[k], "': ", e.what()});
    }
  }
  if (is_table && is_lazy(options_)) lazy_ = lazy_adam(options_, parameter_.dtype());
}

Optimizer::Optimizer(const OptimizerOptions& options, Tensor parameter, std::vector<Tensor> states)
    : options_(options), kind_(ParameterKind::Table), parameter_(std::move(parameter)), states_(std::move(states)) {
  check_parameter(options_, parameter_);
  check_update_type(options_, "optimizer");
  TERCEL_CHECK(row_stride(parameter_) >= 0, RuntimeError, "optimizer: the rows of the parameter ", describe(parameter_),
               " are not contiguous");
  const Span<const char*> names = state_names(options);
  TERCEL_CHECK(states_.size() == names.size(), RuntimeError, "optimizer: ", to_string(options.type), " has ",
               names.size(), " states, got ", states_.size());
  const size_t by_element = names.size() - row_states(options);
  const DimVector row_sizes = parameter_.dim() == 0 ? DimVector{1, 1} : DimVector{parameter_.size(0), 1};
  for (size_t i = 0; i < names.size(); ++i)
    TERCEL_CHECK(states_[i].defined() &&
                     states_[i].sizes() == (i < by_element ? parameter_.sizes() : IntSpan(row_sizes)) &&
                     states_[i].dtype() == parameter_.dtype() && row_stride(states_[i]) >= 0,
                 RuntimeError, "optimizer: ", to_string(options.type), "'s '", names[i], "' ", describe(states_[i]),
                 " does not fit the parameter ", describe(parameter_));
  if (is_lazy(options_)) lazy_ = lazy_adam(options_, parameter_.dtype());
}

void Optimizer::check_gradient(const Tensor& gradient) const {
  TERCEL_CHECK(gradient.defined() && gradient.sizes() == parameter_.sizes() && gradient.dtype() == parameter_.dtype() &&
                   gradient.is_contiguous(),
               RuntimeError, "optimizer: gradient ", describe(gradient), " does not fit parameter ",
               describe(parameter_));
}

Step<double> Optimizer::numbers_of(double rate, int64_t step) const {
  Step<double> h = begin_step(options_, parameter_.dtype(), rate, step);
  h.limit = clip_.limit;
  h.scale = clip_.scale;
  return h;
}

void Optimizer::apply(const Step<double>& numbers, const Tensor& parameter, Span<Tensor> states,
                      const Gradient& gradient) {
  is_finite_ &= is_row_wise() ? apply_row_wise_adagrad("optimizer", numbers, parameter, states[0], gradient)
                              : apply_rule("optimizer", rule_id(options_.type), numbers, parameter, states, gradient);
}

void Optimizer::update_dense(const Tensor& gradient, double rate, int64_t step) {
  const ProfileRange range("update_dense", RangeKind::Op);
  check_gradient(gradient);
  const Step<double> h = numbers_of(rate, step);
  if (parameter_.numel() == 0 || nothing_to_do(options_, rate)) return;
  TERCEL_CHECK(!lazy_, RuntimeError, "optimizer: a table with update_type LazyGlobal takes gradients of rows");
  apply(h, parameter_, states_, {gradient, Tensor()});
}

void Optimizer::update_dense(const Tensor& gradient, double rate, int64_t step, Span<ElementRange> parts) {
  const ProfileRange range("update_dense", RangeKind::Op);
  check_gradient(gradient);
  const Step<double> h = numbers_of(rate, step);
  TERCEL_CHECK(parameter_.dim() == 1 && kind_ == ParameterKind::Dense, RuntimeError,
               "optimizer: expected a parameter with one dimension but got ", describe(parameter_));
  int64_t done = 0;
  for (const ElementRange& part : parts) {
    TERCEL_CHECK(done <= part.begin && part.begin <= part.end && part.end <= parameter_.numel(), RuntimeError,
                 "optimizer: elements [", part.begin, ", ", part.end, ") are not in those from ", done, " on of ",
                 describe(parameter_));
    done = part.end;
  }
  if (nothing_to_do(options_, rate)) return;
  const NoGradGuard no_grad;
  for (const ElementRange& part : parts) {
    if (part.begin == part.end) continue;
    const auto of = [&part](const Tensor& whole) { return whole.narrow(0, part.begin, part.end - part.begin); };
    parts_of_states_.clear();
    for (const Tensor& state : states_) parts_of_states_.push_back(of(state));
    apply(h, of(parameter_), parts_of_states_, {of(gradient), Tensor()});
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
  const Step<double> h = numbers_of(rate, step);
  if (nothing_to_do(options_, rate)) return;
  check_row_range("optimizer", gradient.rows, parameter_);  // before the first block is updated
  if (kind_ == ParameterKind::Table && options_.update_type == UpdateType::Global && drifts(options_.type)) {
    update_all_rows(gradient, h, unique_rows);
    return;
  }
  const NoGradGuard no_grad;
  if (lazy_) {
    lazy_->begin_step();
    is_finite_ &= lazy_->catch_up_some(parameter_, states_);
  }
  const Span<Tensor> states = lazy_ ? Span<Tensor>(states_).subspan(0, 2) : Span<Tensor>(states_);
  unique_rows.reduce_in_blocks(gradient, [&](const Gradient& rows) {
    if (lazy_) is_finite_ &= lazy_->catch_up(parameter_, states_, rows.rows);
    apply(h, parameter_, states, rows);
  });
  if (lazy_) lazy_->end_step(h.rate);
}

/** Update type Global: also rows without a gradient. */
void Optimizer::update_all_rows(const Gradient& gradient, const Step<double>& numbers, UniqueRows& unique_rows) {
  const NoGradGuard no_grad;
  if (parameter_.numel() == 0) return;
  Step<double> rest = numbers;
  rest.limit = std::numeric_limits<double>::infinity();
  rest.scale = rest.shrink = 1;
  rest.decay = rest.l1 = 0;
  if (!zero_row_.defined())
    zero_row_ =
        zeros({parameter_.numel() / parameter_.size(0)}, TensorOptions(parameter_.dtype(), parameter_.device()));
  int64_t done = 0;
  const auto step_of = [&](const Gradient& rows, int64_t end) {
    is_finite_ &= apply_rule_between("optimizer", rule_id(options_.type), numbers, rest, parameter_, states_, rows,
                                     zero_row_, done, end);
    done = end;
  };
  unique_rows.reduce_in_blocks(
      gradient, [&](const Gradient& rows) { step_of(rows, rows.rows.data<int64_t>()[rows.rows.numel() - 1] + 1); });
  step_of({}, parameter_.size(0));
}

}  // namespace tercel::optim
