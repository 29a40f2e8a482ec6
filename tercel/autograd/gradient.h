// A gradient: a strided tensor, a sparse tensor, or some rows.
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * The gradient of a tensor X.
 *
 * Dense: `values` has X's sizes. Rows: `rows` [n] int64 names rows of X, and `values` [m, ...] has their gradients:
 * that of entry i is values[sources[i]], or values[i] where `sources` is undefined and m = n. So the keys of a bag
 * share one value. A row may occur several times, in any order; its values are added. Other rows have gradient zero.
 * COO: `values` is a COO tensor of X's sizes; one with a single sparse dimension means the same as rows (to_coo(),
 * to_rows()). Gradients of rows and COO gradients are added by concatenation, and become dense only if X also has a
 * dense gradient. Compressed layouts (CSR ...): `values` is such a tensor; two of one pattern are added by their
 * values, others become COO.
 */
struct Gradient {
  Tensor values;
  Tensor rows;
  Tensor sources = {};  ///< [n] int64, below m; or undefined

  bool defined() const { return values.defined(); }
  bool is_rows() const { return rows.defined(); }
  bool is_coo() const { return values.layout() == Layout::SparseCoo; }
  /** A tensor of a layout such as CSR. */
  bool is_compressed() const { return tercel::is_compressed(values.layout()); }
  /** Neither rows nor sparse. */
  bool is_strided() const { return !is_rows() && values.layout() == Layout::Strided; }
};

/** into += g, elementwise, in place; same sizes and floating dtype. */
TERCEL_API void accumulate_dense(const Tensor& into, const Tensor& g);

/** Records that `sum` is a + b if one of the two requires a gradient. */
void record_sum(const Tensor& sum, const Tensor& a, const Tensor& b);

/**
 * A gradient of rows of a tensor with these sizes as a COO gradient, and a COO gradient with one sparse dimension as
 * rows; others unchanged. Values are shared, not copied, unless the rows have `sources`.
 */
TERCEL_API Gradient to_coo(Gradient g, IntSpan sizes);
TERCEL_API Gradient to_rows(Gradient g);

/** Adds a gradient of rows, or a sparse one, to a dense one, in place. */
TERCEL_API void add_rows(const Tensor& into, const Gradient& rows);

/**
 * The sum of two gradients of one tensor; consumes both, and reuses memory that nothing else refers to. If gradients
 * are on and one requires a gradient itself, the sum is recorded and changes neither.
 */
TERCEL_API Gradient add_gradients(Gradient a, Gradient b);

/** Whether g has the strides of a gradient of `variable`: the same if those are dense, else row-major. */
TERCEL_API bool has_layout_of(const Tensor& g, const Tensor& variable);
/** A copy of g, if it is strided with the strides of a gradient of `variable`; recorded. */
TERCEL_API Tensor copy_with_layout_of(const Tensor& g, const Tensor& variable);

/** g's entries in parts that are shared with no other, copied if they are or if others than the caller hold g. */
TERCEL_API Tensor own_sparse(const Tensor& g);

/** A row-major copy. */
TERCEL_API Tensor dense_copy(const Tensor& t);

/** target = source, elementwise; same sizes and dtype. */
TERCEL_API void copy_elements(const Tensor& target, const Tensor& source);

}  // namespace tercel
