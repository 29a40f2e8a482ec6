// Rows of embedding tables that other ranks have: their vectors come here, and their gradients go back.
//
// Note [Exchange of rows]
// A step needs three exchanges, each with all ranks at once and for all tables together. A rank first sends each owner
// the keys of its part of the batch, each key once; the owner finds their rows, and sends back their vectors. Lookups
// read these as if they were a table. After backward the sums of their gradients go the same way back, and the
// optimizer of the owner adds up those of all ranks, in the order of the ranks. So every row of a batch travels once
// each way to each rank that reads it, as in a parameter server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/distributed/process_group.h"
#include "tercel/recsys/embedding/embedding_table.h"

namespace tercel::recsys {

/** The exchanges of a step; all ranks make the same calls. DistributedError if a rank is lost. */
class TERCEL_API RowExchange {
 public:
  /** The group must outlive it. */
  explicit RowExchange(distributed::ProcessGroup& group);
  ~RowExchange();
  RowExchange(const RowExchange&) = delete;
  RowExchange& operator=(const RowExchange&) = delete;

  /** Keys [n] int64, whose rows are where the shard of a table says. */
  struct Request {
    const EmbeddingTable* table = nullptr;
    Tensor keys;
    bool is_unique = true;  ///< whether each key is sent once, and not as often as it occurs
  };
  /**
   * Sends keys to the owners of their rows. Gives for each request the keys that all ranks ask this one for, by rank
   * and in the order of each. IndexError that names table and key for a key without a row.
   */
  std::vector<Tensor> send_keys(Span<Request> requests);
  /** Of the keys of a request: the number of each one's vector among those that come [n] int64. */
  const Tensor& positions(size_t request) const { return positions_[request]; }

  /** Rows of a weight [rows, dim]: those of the keys that send_keys() gave for the request. */
  struct Rows {
    size_t request = 0;
    Tensor weight, rows;
  };
  /** Sends vectors to the ranks that asked for them; gives for each the vectors that come [u, dim]. Equal dtypes. */
  std::vector<Tensor> send_vectors(Span<Rows> rows);

  /** Gradients [u, dim] of vectors that came. */
  struct Gradients {
    size_t request = 0;
    Tensor values;
  };
  /** Sends gradients to the owners; gives for each those of the rows there, in the order of the rows. Equal dtypes. */
  std::vector<Tensor> send_gradients(Span<Gradients> gradients);

 private:
  /** How many keys of each request come from, or go to, a rank. */
  class Counts;
  struct UniqueKeys;

  void number_keys(const Request& request, std::vector<std::vector<int64_t>>& keys_for);
  std::vector<Tensor> send_rows(Span<size_t> requests, Span<Tensor> rows, const Counts& sent, const Counts& received);

  distributed::ProcessGroup& group_;
  std::vector<Tensor> positions_;
  std::unique_ptr<Counts> asked_, given_;  // keys that this rank has asked for, and that it was asked for
  std::unique_ptr<UniqueKeys> unique_;     // to reuse its memory
};

}  // namespace tercel::recsys
