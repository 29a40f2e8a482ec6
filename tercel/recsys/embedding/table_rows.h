// The keys and vectors of an embedding table, out of it and into it.
#pragma once

#include <cstdint>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/recsys/embedding/embedding_table.h"
#include "tercel/util/export.h"

namespace tercel::recsys {

/** Keys of a table and where their vectors are. */
struct KeyRows {
  Tensor keys;  ///< [n] int64, ascending
  Tensor rows;  ///< [n] int64, in the table's weight
};

/** The keys that have a row, on this rank if others have further ones. */
TERCEL_API KeyRows rows_of_keys(EmbeddingTable& table);

/** Keys whose rows this rank has, and their places among all. */
struct OwnKeys {
  std::vector<int64_t> keys, places;
};

/** Of keys [n] int64 of a table whose rows are on several ranks, those of this one; errors of refuse_keys(). */
TERCEL_API OwnKeys keys_of_rank(const EmbeddingTable& table, const Tensor& keys);
/** ValueError that names the table and a key that occurs twice in keys [n] int64. */
TERCEL_API void check_unique_keys(const EmbeddingTable& table, const Tensor& keys);
/** ValueError that names the table and the first key whose vector is not finite. */
TERCEL_API void check_finite_vectors(const EmbeddingTable& table, const Tensor& keys, const Tensor& vectors);

/**
 * Gives keys [n], int64 or int32, the vectors [n, dim], float32 or float64; the states of their optimizer stay as they
 * are. A table that grows first makes rows for keys without one, also if it is frozen and whatever its admission.
 * ValueError for other tensors, a key that occurs twice, or a number that is not finite; IndexError for a key that a
 * table of a range does not have; RuntimeError for more keys than the capacity, and for a table that is mapped from a
 * file. The table is not changed then. Of a table whose rows are on several ranks, each sets its own.
 */
TERCEL_API void set_vectors(EmbeddingTable& table, const Tensor& keys, const Tensor& vectors);

}  // namespace tercel::recsys
