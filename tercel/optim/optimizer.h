// Optimizers for dense arenas and for rows of embedding tables.
//
// A rule is a type in optim/rules.h; all code here works with any rule. Names, defaults and formulas are HugeCTR's,
// except where HugeCTR is wrong (an initial accumulator set bytewise).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "tercel/autograd/gradient.h"
#include "tercel/core/tensor.h"
#include "tercel/ops/embedding/row_gradient.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/options.h"

namespace tercel::optim {

enum class Rule : uint8_t { Sgd, MomentumSgd, Adam, AdaGrad, Ftrl };

constexpr auto enum_names(Rule) {
  return std::to_array<EnumName<Rule>>({{Rule::Sgd, "SGD"},
                                        {Rule::MomentumSgd, "MomentumSGD"},
                                        {Rule::Adam, "Adam"},
                                        {Rule::AdaGrad, "AdaGrad"},
                                        {Rule::Ftrl, "Ftrl"}});
}

/** The rows of a table that a step changes: those in the batch (Local), or all of them, for rules that change a row
 * even without a gradient. */
enum class UpdateType : uint8_t { Local, Global, LazyGlobal };

constexpr auto enum_names(UpdateType) {
  return std::to_array<EnumName<UpdateType>>(
      {{UpdateType::Local, "Local"}, {UpdateType::Global, "Global"}, {UpdateType::LazyGlobal, "LazyGlobal"}});
}

struct OptimizerOptions {
  Rule type = Rule::Adam;
  UpdateType update_type = UpdateType::Local;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-7;
  double initial_accu_value = 0;
  double momentum_factor = 0.9;
  double beta = 0;
  double lambda1 = 0;
  double lambda2 = 0;

  static constexpr auto fields() {
    return std::tuple(
        Field{"type", &OptimizerOptions::type, "SGD, MomentumSGD, Adam, AdaGrad or Ftrl"},
        Field{"update_type", &OptimizerOptions::update_type, "rows that a step changes"},
        Field{"beta1", &OptimizerOptions::beta1, "Adam: decay of the first moment", at_least(0), below(1)},
        Field{"beta2", &OptimizerOptions::beta2, "Adam: decay of the second moment", at_least(0), below(1)},
        Field{"epsilon", &OptimizerOptions::epsilon, "Adam, AdaGrad: added to the square root", at_least(1e-30)},
        Field{"initial_accu_value", &OptimizerOptions::initial_accu_value, "AdaGrad: initial value of the sum",
              at_least(0)},
        Field{"momentum_factor", &OptimizerOptions::momentum_factor, "MomentumSGD: decay", at_least(0), below(1)},
        Field{"beta", &OptimizerOptions::beta, "Ftrl: smoothing of the rate", at_least(0)},
        Field{"lambda1", &OptimizerOptions::lambda1, "Ftrl: L1 strength", at_least(0)},
        Field{"lambda2", &OptimizerOptions::lambda2, "Ftrl: L2 strength", at_least(0)});
  }
};

/**
 * ConfigError "<name>: ..." for an unsupported update_type: others than Local are supported only for SGD and AdaGrad,
 * where they make no difference.
 */
TERCEL_API void check_update_type(const OptimizerOptions& options, std::string_view name);

/** Elements [begin, end) of a parameter. */
struct ElementRange {
  int64_t begin = 0, end = 0;
};

/**
 * Applies a rule to one parameter, an arena or a table, and the rule's states, each of the parameter's sizes. They are
 * updated in place; results do not depend on the number of threads, nor do elements depend on each other.
 */
class TERCEL_API Optimizer {
 public:
  /**
   * Allocates states, filled with initial_state(). The parameter is contiguous and float32 or float64.
   * OutOfMemoryError names the state that does not fit.
   */
  Optimizer(const OptimizerOptions& options, Tensor parameter);
  /** Uses existing states, with the values of an earlier step or initial_state(); all have contiguous rows. */
  Optimizer(const OptimizerOptions& options, Tensor parameter, std::vector<Tensor> states);

  /**
   * One step with a dense gradient of the parameter's sizes. The rate is not negative; `step` counts from 1. Ftrl
   * divides by the rate, and changes nothing at a rate of 0.
   */
  void update_dense(const Tensor& gradient, double learning_rate, int64_t step);
  /**
   * The same on these elements only, of a parameter with one dimension. RuntimeError unless the ranges are in it,
   * ascending and apart.
   */
  void update_dense(const Tensor& gradient, double learning_rate, int64_t step, Span<ElementRange> parts);
  /** One step on the rows of a row gradient (any order, duplicates are summed); IndexError for a row out of range. */
  void update_rows(const Gradient& gradient, double learning_rate, int64_t step);
  /** The same with a UniqueRows of the caller, which several parameters may share, one after the other. */
  void update_rows(const Gradient& gradient, double learning_rate, int64_t step, UniqueRows& unique_rows);

  /** Whether all values stored by the steps so far, in parameter and states, were finite. Needs no pass over them. */
  bool is_finite() const { return is_finite_; }
  /** Forgets what was stored so far; call it when other values have been loaded. */
  void forget_nonfinite() { is_finite_ = true; }

  const OptimizerOptions& options() const { return options_; }
  /** The rule's states in the order of state_names(). */
  const std::vector<Tensor>& states() const { return states_; }
  /** "m", "v" for Adam; "accumulator" for AdaGrad; "n", "z" for Ftrl; "momentum"; none for SGD. */
  static Span<const char*> state_names(Rule rule);
  /** The value of the states before the first step. */
  static double initial_state(const OptimizerOptions& options) {
    return options.type == Rule::AdaGrad ? options.initial_accu_value : 0;
  }

 private:
  void check_gradient(const Tensor& gradient) const;

  OptimizerOptions options_;
  Tensor parameter_;
  std::vector<Tensor> states_, parts_of_states_;  // the latter a member only to reuse its memory
  UniqueRows unique_rows_;
  bool is_finite_ = true;
};

}  // namespace tercel::optim
