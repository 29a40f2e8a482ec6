// Rows of embedding tables that other ranks have: their vectors come here, and their gradients go back.
//
// Note [Exchange of rows]
// A step needs three exchanges, each with all ranks at once and for all tables together. A rank first sends each owner
// the keys of its part of the batch, each key once, or all keys of a bag whose sum it wants (Note [Rows or sums]); the
// owner finds their rows, and sends back vectors. Lookups read these as if they were a table. After backward the sums
// of their gradients go the same way back, and the optimizer of the owner adds up those of all ranks, in the order of
// the ranks. So every row of a batch travels at most once each way to each rank that reads it.
//
// Keys depend on nothing that a step changes: those of the next batch travel during this step. How many there are is
// told during forward, and the keys are sent during backward.
#pragma once

#include <cstddef>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/recsys/embedding/key_exchange.h"

namespace tercel::recsys {

/** Rows of a weight [rows, dim]: those of the keys that this rank is asked for in a request, in their order. */
struct AskedRows {
  size_t request = 0;
  Tensor weight, rows;
  Tensor row_offsets = {};  ///< of AskedKeys
};
/** Sends vectors to the ranks that asked for them; gives for each the vectors that come [v, dim]. Equal dtypes. */
TERCEL_API std::vector<Tensor> send_vectors(const KeyExchange& keys, Span<AskedRows> rows);

/** Gradients [v, dim] of vectors that came. */
struct VectorGradients {
  size_t request = 0;
  Tensor values;
  Tensor row_offsets = {};  ///< of AskedKeys
};
/** Sends gradients to the owners; gives for each those of the keys there, in their order. Equal dtypes. */
TERCEL_API std::vector<Tensor> send_gradients(const KeyExchange& keys, Span<VectorGradients> gradients);

}  // namespace tercel::recsys
