// What the kernels of the update rules are given.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/scalar_type.h"
#include "tercel/optim/rules.h"

namespace tercel {

/** Rows of elements that lie side by side, `stride` elements from row to row; any floating dtype. */
struct RuleOperand {
  void* data;
  int64_t stride;
  ScalarType dtype;

  void* row(int64_t r) const {
    return static_cast<std::byte*>(data) + r * stride * static_cast<int64_t>(item_size(dtype));
  }
};

/**
 * One step on n rows of `dim` elements each. Row i of the gradient belongs to row i of weight and states, or to row
 * rows[i]. The step is computed in float64 if the weight has that dtype, and else in float32; other dtypes are
 * converted when they are read and written, so weight and states may have different ones, and may be parts of one row.
 */
struct RuleUpdate {
  optim::RuleId rule;
  RuleOperand weight;
  RuleOperand state[optim::kMostStates];  ///< as many as the rule has
  RuleOperand gradient;                   ///< only read
  const int64_t* rows;                    ///< [n], each once; null for all in order
  int64_t n, dim;
  optim::Step<double> step;
};

/** Whether every value that it stored is finite. */
using RuleUpdateFn = bool(const RuleUpdate& update);

TERCEL_DECLARE_KERNELS(RuleUpdateFn, update_by_rule)

}  // namespace tercel
