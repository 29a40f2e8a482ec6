// The keys of a batch that a rank asks the owners of their rows for: each key once, or sums of the rows of a bag.
//
// Note [Rows or sums]
// A slot with one key for a sample needs at most as many rows as vectors, and fewer where keys are frequent: each
// different key is asked for once. A slot with many keys may have fewer sums: one for each bag and rank that has rows
// of it, which the owner adds up. The rank compares what it would send and receive for each slot of a batch, and asks
// for what is fewer bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/recsys/embedding/embedding_table.h"

namespace tercel::recsys {

/** Keys whose rows are where the shard of a table says. */
struct RowRequest {
  const EmbeddingTable* table = nullptr;
  Tensor keys;                  ///< [n] int64 or int32
  bool is_unique = true;        ///< whether each key is sent once, and not as often as it occurs
  Tensor row_offsets = {};      ///< [samples * slots + 1], of the bags, if sums of them may come; else undefined
  int64_t slots = 0;            ///< with row_offsets
  int64_t bytes_of_vector = 0;  ///< with row_offsets: of the vectors of a key, of all tables that are read
};

/** What a request asks for. The vectors of a rank are those of its rows, then its sums. */
struct RowQuestions {
  /** For a rank. */
  struct Part {
    std::vector<int64_t> keys;         // of rows
    std::vector<int64_t> summed_keys;  // of sums, one after the other
    std::vector<int64_t> sum_sizes;    // how many keys each has, at least 1
    int64_t vectors() const { return static_cast<int64_t>(keys.size() + sum_sizes.size()); }
  };
  std::vector<Part> parts;  ///< of each rank
  Tensor positions;         ///< [m] int64: which of the vectors of all ranks, by rank, the bags have
  Tensor row_offsets;  ///< [samples * slots + 1] int64, of the positions of each bag; undefined: those of the batch
};

/** Makes questions; it keeps its memory. */
class TERCEL_API RowAsker {
 public:
  RowAsker();
  ~RowAsker();
  RowAsker(const RowAsker&) = delete;
  RowAsker& operator=(const RowAsker&) = delete;

  /** See Note [Rows or sums]. IndexError that names table and key for a key without a row. */
  RowQuestions ask(const RowRequest& request, int64_t ranks, int64_t rank);

 private:
  struct Bags;
  struct Place;
  struct Rows;
  struct UniqueKeys;
  bool is_less_as_sums(const Bags& bags, int64_t slot, int64_t ranks, int64_t rank, int64_t bytes_of_vector);
  Rows ask_rows(const RowRequest& request, Span<int64_t> keys, RowQuestions& questions);
  static std::vector<Place> ask_sums(const Bags& bags, RowQuestions& questions, std::vector<int64_t>& sums_of_bag);

  std::unique_ptr<UniqueKeys> unique_;
};

}  // namespace tercel::recsys
