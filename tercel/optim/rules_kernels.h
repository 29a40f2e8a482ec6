// Arguments of the kernels of update rules.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/scalar_type.h"
#include "tercel/optim/rules.h"

namespace tercel {

/** Rows of contiguous elements, `stride` elements from row to row; any floating dtype. */
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
 * rows[i]. The step is computed in float64 if the weight is float64, else in float32; other dtypes are converted on
 * load and store, so weight and states may have different dtypes and may be parts of one row.
 */
struct RuleUpdate {
  optim::RuleId rule;
  RuleOperand weight;
  RuleOperand state[optim::kMostStates];  ///< as many as the rule has
  RuleOperand gradient;                   ///< read-only
  const int64_t* rows;                    ///< [n], without duplicates; null for all rows in order
  int64_t n, dim;
  optim::Step<double> step;
};

/** Returns whether every stored value is finite. */
using RuleUpdateFn = bool(const RuleUpdate& update);

TERCEL_DECLARE_KERNELS(RuleUpdateFn, update_by_rule)

}  // namespace tercel
