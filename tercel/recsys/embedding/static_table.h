// An embedding table with a fixed range of keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/nn/init.h"
#include "tercel/recsys/embedding/embedding_table.h"

namespace tercel::recsys {

/** Consecutive rows with initial values of one distribution. */
struct RowsInit {
  int64_t rows = 0;
  nn::Init init;
};

/**
 * Rows for the keys [first_key, first_key + rows): row r is the vector of key first_key + r, unless the table is placed
 * on several ranks. Never inserts.
 */
class TERCEL_API StaticTable final : public EmbeddingTable {
 public:
  /** Not allocated yet. */
  StaticTable(std::string name, int64_t first_key, int64_t rows, int64_t dim, nn::Init init);
  /** Not allocated yet; with the rows of all parts, one after the other. */
  StaticTable(std::string name, int64_t first_key, int64_t dim, std::vector<RowsInit> parts);

  int64_t first_key() const { return first_key_; }
  /** Where the rows of each slot end, ascending, the last one at the end of the table; by default it is one slot. */
  void set_slots(std::vector<int64_t> ends);
  int64_t rows() const override { return shard().is_whole() ? rows_ : shard().rows(); }
  int64_t rows_of_all_ranks() const override { return rows_; }
  Tensor find_rows(const Tensor& keys, NewKeys new_keys, Span<Tensor> in_use = {}) override;
  Tensor keys() const override;
  bool finds_same_rows(const EmbeddingTable& other) const override;
  void place(const TablePlacement& placement, int64_t rank) override;
  bool owners(Span<int64_t> keys, int64_t* ranks) const override;
  void refuse_keys(const Tensor& keys) const override;
  bool allocate(uint64_t seed, const RowStates& states, const TensorOptions& place, FunctionRef<bool()> go_on) override;

 private:
  RowRuns runs() const;
  bool fill(const RowStore& store, uint64_t seed, double initial_state, FunctionRef<bool()> go_on) const;

  int64_t first_key_, rows_;
  std::vector<RowsInit> parts_;
  std::vector<int64_t> slot_ends_;
};

}  // namespace tercel::recsys
