// A gradient: a dense tensor, or rows of one.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * The gradient of a tensor X.
 *
 * Dense: `values` has X's sizes. Rows: `rows` [n] int64 names rows of X, `values` [n, ...] adds to them; a row may come
 * several times, in any order, and rows that are not named have gradient zero. Gradients of rows are added by joining
 * them; they are never made dense unless X also has a dense gradient.
 */
struct Gradient {
  Tensor values;
  Tensor rows;

  bool defined() const { return values.defined(); }
  bool is_rows() const { return rows.defined(); }
};

/** into += g, elementwise; same sizes and dtype (floating). Changes `into` in place. */
TERCEL_API void accumulate_dense(const Tensor& into, const Tensor& g);

/** Adds a gradient of rows to a dense one, in place. */
TERCEL_API void add_rows(const Tensor& into, const Gradient& rows);

/**
 * The sum of two gradients of one tensor; consumes both, and their memory where nobody else uses it. Recorded, and
 * neither of them changed, where gradients are on and one requires a gradient itself.
 */
TERCEL_API Gradient add_gradients(Gradient a, Gradient b);

/** Whether g has the strides that a gradient of `variable` is to have: the same if those are dense, else row-major. */
TERCEL_API bool has_layout_of(const Tensor& g, const Tensor& variable);
/** A copy of g with the strides that a gradient of `variable` is to have; recorded. */
TERCEL_API Tensor copy_with_layout_of(const Tensor& g, const Tensor& variable);

/** A row-major copy. */
TERCEL_API Tensor dense_copy(const Tensor& t);

/** target = source, elementwise; same sizes and dtype. */
TERCEL_API void copy_elements(const Tensor& target, const Tensor& source);

}  // namespace tercel
