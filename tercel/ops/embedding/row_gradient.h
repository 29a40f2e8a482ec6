// Row gradients with unique rows, and dense copies of row gradients.
#pragma once

#include <memory>

#include "tercel/autograd/gradient.h"
#include "tercel/util/function_ref.h"

namespace tercel {

struct SortedKeys;

/**
 * Adds up a row gradient so that every row occurs once.
 *
 * Rows come out in ascending order, and the values of a row are added in the order of their positions (16-bit floats in
 * float32), so the result does not depend on the number of threads. An object reuses its memory: nothing is allocated
 * once it has seen the largest gradient of each dtype and row size.
 */
class TERCEL_API UniqueRows {
 public:
  UniqueRows();
  ~UniqueRows();
  UniqueRows(UniqueRows&&) noexcept;
  UniqueRows& operator=(UniqueRows&&) noexcept;

  /** Unique rows [u], ascending, and their sums [u, ...]: views of this object's memory, valid until the next call. */
  Gradient reduce(const Gradient& gradient);
  /**
   * The same in blocks of ascending rows, one after the other, each valid until visit() returns: memory for the sums is
   * bounded, however many rows the gradient has. No call if there are none.
   */
  void reduce_in_blocks(const Gradient& gradient, FunctionRef<void(const Gradient& block)> visit);
  /**
   * Sorts rows [n] int64 that several gradients have in common. Until release(), or a gradient with other rows,
   * gradients whose rows are this very memory are not sorted again; the rows must not change meanwhile.
   */
  void share(const Tensor& rows);
  /** Drops the shared rows. */
  void release();

 private:
  struct Scratch;
  struct Entries;
  Scratch& scratch();
  SortedKeys sorted(const Tensor& rows);
  Entries sort(const Gradient& gradient);
  Gradient sum(const Entries& entries, int64_t begin, int64_t end);

  std::unique_ptr<Scratch> scratch_;
};

/** A row gradient as a dense tensor of the given sizes; IndexError for a row outside them. */
TERCEL_API Tensor dense_gradient(const Gradient& gradient, IntSpan sizes);

}  // namespace tercel
