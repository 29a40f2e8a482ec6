// The memory of an embedding table: the weight of each row and the states of its optimizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/util/reserved_memory.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

/**
 * A weight [rows, dim] and states of the same dtype and sizes, or [rows, 1], an array each: lookups read nothing but
 * weights (docs/design/training.md has the figures). Update rules take them by pointer and stride, so that nothing
 * outside depends on this layout.
 */
class TERCEL_API RowStore {
 public:
  /** No rows: weight() is undefined. */
  RowStore() = default;
  /**
   * Allocates rows, which are not filled, with these states, of which the last `per_row` have one number for a row;
   * OutOfMemoryError names the state that does not fit.
   */
  RowStore(int64_t rows, int64_t dim, const TensorOptions& place, Span<const char*> state_names, size_t per_row = 0);
  /** Stands on an existing weight, contiguous [rows, dim], without states; it may be a mapped file. */
  explicit RowStore(Tensor weight) : weight_(std::move(weight)) {}

  /**
   * One without rows that can grow, on the CPU: resize() changes the sizes of these very tensors, and no row ever
   * moves. OutOfMemoryError if there are no addresses for it, NotImplementedError for other devices.
   */
  static RowStore growing(int64_t dim, const TensorOptions& place, Span<const char*> state_names, size_t per_row = 0);
  /** Whether resize() is possible. */
  bool grows() const { return !memory_.empty(); }
  /**
   * Sets the number of rows; new ones that were never used are zero, others are as they were left. RuntimeError unless
   * it grows; OutOfMemoryError, and no change, if the memory is not there.
   */
  void resize(int64_t rows);

  /** [rows, dim]. */
  const Tensor& weight() const { return weight_; }
  /** Each [rows, dim], or [rows, 1] of states with one number for a row. */
  const std::vector<Tensor>& states() const { return states_; }

 private:
  Tensor weight_;
  std::vector<Tensor> states_;
  std::vector<ReservedMemory*> memory_;  // of weight and states, which own it; none unless it grows
};

}  // namespace tercel::recsys
