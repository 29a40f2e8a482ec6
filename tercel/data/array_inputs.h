// Batches of rows that are given as arrays, by name.
#pragma once

#include <string>
#include <string_view>

#include "tercel/core/tensor.h"
#include "tercel/data/batch.h"
#include "tercel/data/schema.h"
#include "tercel/data/sparse_input.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::data {

/**
 * Values of an input for B rows. Any strides.
 *
 * - Dense values: [B, dense_dim] f32, f64, i32 or i64.
 * - Keys of a slot, i32 or i64: [B]; [B, n], n for each row; or [nnz] with row_offsets [B + 1].
 * - Keys of a sparse input of S slots: [B, S]; [B, S, n]; or [nnz] with row_offsets [B * S + 1], all slots of a row
 *   together. An input of one slot also takes the forms of a slot.
 *
 * Keys are those of the dataset: in [first_key, first_key + size) of their slot. Keys of weighted slots may have
 * weights; without them each weighs 1.
 */
struct ArrayInput {
  std::string name;
  Tensor values;
  Tensor row_offsets = {};  ///< i32 or i64
  Tensor key_weights = {};  ///< of the shape of the keys and a dtype of dense values; or none
};

/**
 * A batch of arrays for all inputs of a model: the dense values under `dense_name`, and for each sparse input either an
 * array under its name or one under the name of each of its slots. `inputs` cover all slots. A name that is both an
 * input's and a slot's means the input. Without dense values in the schema, that array may be left out. Labels, of the
 * dtypes of dense values, are [B, label_dim], or [B] if there is one; a batch for predictions has none. `weights` are
 * those of the rows, [B], of the same dtypes, finite and not negative; none: 1 each.
 *
 * ValueError that names the input, and the row, for an input that is missing, unknown, given twice, of the wrong shape
 * or another number of rows, for dense values and labels that are not finite, for more keys than the slot's hotness and
 * for keys outside its range or table, and for weights of another shape, of slots that have none, or that are not
 * finite; TypeError for dtypes.
 */
TERCEL_API Batch batch_from_arrays(Span<ArrayInput> arrays, const Schema& schema, Span<SparseInput> inputs,
                                   std::string_view dense_name, const Tensor& labels = {}, const Tensor& weights = {});

}  // namespace tercel::data
