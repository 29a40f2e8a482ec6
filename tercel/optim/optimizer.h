// Optimizers for dense arenas and for rows of embedding tables.
//
// A rule is a type in optim/rules.h; all code here works with any rule, but for row-wise AdaGrad (row_wise.h) and lazy
// steps of Adam (lazy_adam.h). Names, defaults and formulas are HugeCTR's, except where HugeCTR is wrong (an initial
// accumulator set bytewise). RowWiseAdaGrad is FBGEMM's, AdamW that of Loshchilov and Hutter (ICLR 2019).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tercel/autograd/gradient.h"
#include "tercel/core/tensor.h"
#include "tercel/ops/embedding/row_gradient.h"
#include "tercel/optim/gradient_norm.h"
#include "tercel/optim/lazy_adam.h"
#include "tercel/optim/rules.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/options.h"

namespace tercel::optim {

enum class Rule : uint8_t { Sgd, MomentumSgd, Nesterov, Adam, AdamW, AdaGrad, RowWiseAdaGrad, RmsProp, Ftrl };

constexpr auto enum_names(Rule) {
  return std::to_array<EnumName<Rule>>({{Rule::Sgd, "SGD"},
                                        {Rule::MomentumSgd, "MomentumSGD"},
                                        {Rule::Nesterov, "Nesterov"},
                                        {Rule::Adam, "Adam"},
                                        {Rule::AdamW, "AdamW"},
                                        {Rule::AdaGrad, "AdaGrad"},
                                        {Rule::RowWiseAdaGrad, "RowWiseAdaGrad"},
                                        {Rule::RmsProp, "RMSProp"},
                                        {Rule::Ftrl, "Ftrl"}});
}

/**
 * The rows of a table that a step changes: those in the batch (Local); all of them, also without a gradient (Global);
 * or those in the batch, after the steps that they have missed (LazyGlobal, see Note [Lazy steps]).
 */
enum class UpdateType : uint8_t { Local, Global, LazyGlobal };

constexpr auto enum_names(UpdateType) {
  return std::to_array<EnumName<UpdateType>>(
      {{UpdateType::Local, "Local"}, {UpdateType::Global, "Global"}, {UpdateType::LazyGlobal, "LazyGlobal"}});
}

struct OptimizerOptions {
  Rule type = Rule::Adam;
  UpdateType update_type = UpdateType::Local;
  double lr_scale = 1;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-7;
  double initial_accu_value = 0;
  double momentum_factor = 0.9;
  double alpha = 0.9;
  double weight_decay = 0.01;
  double beta = 0;
  double lambda1 = 0;
  double lambda2 = 0;
  double l1 = 0;
  double l2 = 0;
  double embedding_l1 = 0;
  double embedding_l2 = 0;

  static constexpr auto fields() {
    return option_list(
        option_field<&OptimizerOptions::type>("type", "the update rule"),
        option_field<&OptimizerOptions::update_type>("update_type", "rows of a table that a step changes"),
        option_field<&OptimizerOptions::lr_scale>("lr_scale", "factor of the learning rate", at_least(0)),
        option_field<&OptimizerOptions::beta1>("beta1", "Adam, AdamW: decay of the first moment", at_least(0),
                                               below(1)),
        option_field<&OptimizerOptions::beta2>("beta2", "Adam, AdamW: decay of the second moment", at_least(0),
                                               below(1)),
        option_field<&OptimizerOptions::epsilon>(
            "epsilon", "Adam, AdamW, AdaGrad, RowWiseAdaGrad, RMSProp: added to the root", at_least(1e-30)),
        option_field<&OptimizerOptions::initial_accu_value>(
            "initial_accu_value", "AdaGrad, RowWiseAdaGrad: initial value of the sum", at_least(0)),
        option_field<&OptimizerOptions::momentum_factor>("momentum_factor", "MomentumSGD, Nesterov: decay", at_least(0),
                                                         below(1)),
        option_field<&OptimizerOptions::alpha>("alpha", "RMSProp: decay of the mean square", at_least(0), below(1)),
        option_field<&OptimizerOptions::weight_decay>(
            "weight_decay", "AdamW: part of the weight that a step subtracts, times the rate", at_least(0)),
        option_field<&OptimizerOptions::beta>("beta", "Ftrl: smoothing of the rate", at_least(0)),
        option_field<&OptimizerOptions::lambda1>("lambda1", "Ftrl: L1 strength", at_least(0)),
        option_field<&OptimizerOptions::lambda2>("lambda2", "Ftrl: L2 strength", at_least(0)),
        option_field<&OptimizerOptions::l1>(
            "l1", "L1 regularisation: times the sign of the weight, added to the gradient", at_least(0)),
        option_field<&OptimizerOptions::l2>("l2", "L2 regularisation: times the weight, added to the gradient",
                                            at_least(0)),
        option_field<&OptimizerOptions::embedding_l1>("embedding_l1", "l1 of the tables", at_least(0)),
        option_field<&OptimizerOptions::embedding_l2>("embedding_l2", "l2 of the tables", at_least(0)));
  }
};

/** The options of a table that has none of its own: with embedding_l1 and embedding_l2 as l1 and l2. */
TERCEL_API OptimizerOptions options_of_tables(OptimizerOptions options);

/**
 * ConfigError "<name>: ..." for LazyGlobal of a rule that changes rows without a gradient and is not Adam. SGD, the
 * AdaGrads and Ftrl change no such rows, and take any type.
 */
TERCEL_API void check_update_type(const OptimizerOptions& options, std::string_view name);

/** What an optimizer's parameter is. */
enum class ParameterKind : uint8_t {
  Dense,  ///< RowWiseAdaGrad is AdaGrad, and the update type means nothing
  Table   ///< rows of vectors
};

/** Elements [begin, end) of a parameter. */
struct ElementRange {
  int64_t begin = 0, end = 0;
};

/**
 * Applies a rule to one parameter, an arena or a table, and the rule's states, each of the parameter's sizes or, the
 * last row_states() of a table, with a number for each row. They are updated in place; results do not depend on the
 * number of threads, nor do rows depend on each other.
 */
class TERCEL_API Optimizer {
 public:
  /**
   * Allocates states, filled with initial_state(). The parameter is contiguous and float32 or float64.
   * OutOfMemoryError names the state that does not fit; ConfigError as check_update_type() for a table.
   */
  Optimizer(const OptimizerOptions& options, Tensor parameter, ParameterKind kind = ParameterKind::Dense);
  /** Of a table: uses existing states, with the values of an earlier step or initial_state(); all have contiguous rows.
   */
  Optimizer(const OptimizerOptions& options, Tensor parameter, std::vector<Tensor> states);

  /**
   * One step with a dense gradient of the parameter's sizes. The rate, which lr_scale multiplies, is not negative;
   * `step` counts from 1. Ftrl divides by the rate, and changes nothing at a rate of 0. RuntimeError for a table with
   * LazyGlobal.
   */
  void update_dense(const Tensor& gradient, double learning_rate, int64_t step);
  /**
   * The same on these elements only, of a parameter with one dimension. RuntimeError unless the ranges are in it,
   * ascending and apart.
   */
  void update_dense(const Tensor& gradient, double learning_rate, int64_t step, Span<ElementRange> parts);
  /**
   * One step on the rows of a row gradient (any order, duplicates are summed) or, by the update type, also on others:
   * those have a gradient of 0, and neither regularisation nor weight decay. IndexError for a row out of range.
   */
  void update_rows(const Gradient& gradient, double learning_rate, int64_t step);
  /** The same with a UniqueRows of the caller, which several parameters may share, one after the other. */
  void update_rows(const Gradient& gradient, double learning_rate, int64_t step, UniqueRows& unique_rows);

  /** What happens to the gradients of all further steps, before regularisation and the rule. */
  void set_clip(const GradientClip& clip) { clip_ = clip; }

  /** Whether all values stored by the steps so far, in parameter and states, were finite. Needs no pass over them. */
  bool is_finite() const { return is_finite_; }
  /** Forgets what was stored so far; call it when other values have been loaded. */
  void forget_nonfinite() { is_finite_ = true; }

  const OptimizerOptions& options() const { return options_; }
  /** The rule's states in the order of state_names(). */
  const std::vector<Tensor>& states() const { return states_; }
  /** LazyAdam::history() of a table with LazyGlobal, which is a part of the state; else undefined. */
  Tensor history() const { return lazy_ ? lazy_->history() : Tensor(); }
  /**
   * "m", "v" for Adam and AdamW; "accumulator" for the AdaGrads; "square" for RMSProp; "n", "z" for Ftrl; "momentum";
   * none for SGD.
   */
  static Span<const char*> state_names(Rule rule);
  /** Those of a table: with LazyGlobal Adam also has "last", the row's last step. */
  static Span<const char*> state_names(const OptimizerOptions& options);
  /** How many states of a table, the last ones, have a number for each row and not for each element. */
  static size_t row_states(const OptimizerOptions& options);
  /** The value of the states before the first step. */
  static double initial_state(const OptimizerOptions& options) {
    const bool sums = options.type == Rule::AdaGrad || options.type == Rule::RowWiseAdaGrad;
    return sums ? options.initial_accu_value : 0;
  }

 private:
  void check_gradient(const Tensor& gradient) const;
  Step<double> numbers_of(double rate, int64_t step) const;
  bool is_row_wise() const { return kind_ == ParameterKind::Table && options_.type == Rule::RowWiseAdaGrad; }
  void apply(const Step<double>& numbers, const Tensor& parameter, Span<Tensor> states, const Gradient& gradient);
  void update_all_rows(const Gradient& gradient, const Step<double>& numbers, UniqueRows& unique_rows);

  OptimizerOptions options_;
  ParameterKind kind_;
  Tensor parameter_;
  std::vector<Tensor> states_, parts_of_states_;  // the latter a member only to reuse its memory
  UniqueRows unique_rows_;
  GradientClip clip_;
  Tensor zero_row_;               // of Global
  std::optional<LazyAdam> lazy_;  // of LazyGlobal
  bool is_finite_ = true;
};

}  // namespace tercel::optim
