// Gradients of rows, made ready for an optimizer.
#pragma once

#include <memory>

#include "tercel/autograd/gradient.h"

namespace tercel {

/**
 * Adds up a gradient of rows, so that every row comes once.
 *
 * The rows come out ascending, and each row's values are added in the order of their positions (16-bit floats in
 * float32), so the result does not depend on the number of threads. An object keeps its memory: one per parameter makes
 * no allocation once it has seen the largest gradient.
 */
class TERCEL_API UniqueRows {
 public:
  UniqueRows();
  ~UniqueRows();
  UniqueRows(UniqueRows&&) noexcept;
  UniqueRows& operator=(UniqueRows&&) noexcept;

  /** Rows [m] ascending and their sums [m, ...]: views of this object's memory, valid until the next call. */
  Gradient reduce(const Gradient& gradient);

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

/** A gradient of rows as a tensor of the given sizes; IndexError for a row outside. */
TERCEL_API Tensor dense_gradient(const Gradient& gradient, IntSpan sizes);

}  // namespace tercel
