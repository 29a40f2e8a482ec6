// What the kernels of the update rules are given.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"

namespace tercel {

/** One step on `n` elements in a row, or on `n` rows of `dim` elements each. */
struct RuleUpdate {
  int rule;              ///< index in optim::Rules
  void* weight;          ///< dense: [n]; rows: the table
  void* state[2];        ///< the same sizes as the weight
  const void* gradient;  ///< dense: [n]; rows: [n, dim]
  const int64_t* rows;   ///< rows only: [n], ascending, each once
  int64_t n, dim;
  bool is_double;
  /** rate, beta1, beta2, epsilon, inverse_rate, beta, lambda1, lambda2; see optim::Step. */
  double step[8];
};

/** Whether every value that it stored is finite. */
using RuleUpdateFn = bool(const RuleUpdate& update);

TERCEL_DECLARE_KERNELS(RuleUpdateFn, update_dense)
TERCEL_DECLARE_KERNELS(RuleUpdateFn, update_rows)

}  // namespace tercel
