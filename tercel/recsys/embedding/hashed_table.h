// An embedding table of any keys, which grows.
//
// Note [Rows of a hashed table]
// Row 0 has the default value and is that of all keys without a row. The row of a key does not move, so that the
// tensors of weight and states stay the same; they become longer (RowStore::resize()). Keys get rows in the order in
// which they occur in training, whatever the number of threads. Rows of evicted keys are given to others, lowest first.
//
// Keys that wait for admission are forgotten in the order in which they came, once there are more than most_waiting: a
// key gets a row if it occurs often enough before that many others come.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tercel/nn/init.h"
#include "tercel/recsys/embedding/embedding_table.h"
#include "tercel/recsys/embedding/key_index.h"
#include "tercel/recsys/embedding/waiting_keys.h"
#include "tercel/util/enum_names.h"

namespace tercel::recsys {

/** Which keys lose their rows when a table is full. */
enum class Eviction : uint8_t {
  None,       ///< none: a further key is an error
  Frequency,  ///< those that occurred least often since they have a row
  Age         ///< those that did not occur for the longest time
};

constexpr auto enum_names(Eviction) {
  return std::to_array<EnumName<Eviction>>(
      {{Eviction::None, "none"}, {Eviction::Frequency, "frequency"}, {Eviction::Age, "age"}});
}

struct HashedTableOptions {
  int64_t capacity = 0;  ///< most keys with a row; 0: as many as there is memory for
  Eviction eviction = Eviction::None;
  int64_t admission = 1;     ///< a key gets a row when it occurs for this time in training
  double default_value = 0;  ///< of the vectors of keys without a row
  int64_t most_waiting = 0;  ///< most keys that wait for admission; 0: kMostWaiting, or as many as have a row
};

/** About 100 bytes each. */
constexpr int64_t kMostWaiting = int64_t{1} << 20;

/** What happened in a hashed table since it was made, in training; a checkpoint keeps it. */
struct HashedTableStatistics {
  int64_t keys = 0;       ///< that have a row
  int64_t waiting = 0;    ///< that occurred too rarely to have one
  int64_t admitted = 0;   ///< how often a key got a row
  int64_t refused = 0;    ///< occurrences of keys that had no row yet
  int64_t evicted = 0;    ///< how often a key lost its row
  int64_t forgotten = 0;  ///< how often a key stopped waiting without a row
  double load = 0;        ///< of the index: entries in use, of all

  /** Adds those of another part of the table, but for the load. */
  HashedTableStatistics& operator+=(const HashedTableStatistics& other);
};

/** See Note [Rows of a hashed table]. Keys without a row have vectors of the default value, which are not trained. */
class TERCEL_API HashedTable final : public EmbeddingTable {
 public:
  /**
   * Not allocated yet. RuntimeError for a negative capacity or most_waiting, an admission below 1, or eviction without
   * capacity.
   */
  HashedTable(std::string name, int64_t dim, nn::Init init, const HashedTableOptions& options = {});

  /** As they were given; with several ranks, of all of them together. */
  const HashedTableOptions& options() const { return options_; }
  HashedTableStatistics statistics() const;
  /** Including row 0 and those of evicted keys. */
  int64_t rows() const override { return rows_; }
  std::string size_text() const override;
  /**
   * With Insert, keys get rows unless the weight is frozen. RuntimeError if there are more keys than capacity; the
   * table then has none of the new keys of this call.
   */
  Tensor find_rows(const Tensor& keys, NewKeys new_keys, Span<Tensor> in_use = {}) override;
  bool grows() const override { return true; }
  bool evicts() const override { return options_.eviction != Eviction::None; }
  bool is_limited() const override { return capacity_ > 0; }
  bool counts_keys() const override { return evicts() || options_.admission > 1; }
  int64_t rows_without_key() const override { return 1; }
  Tensor keys() const override;
  bool finds_same_rows(const EmbeddingTable& other) const override { return this == &other; }
  /** Distributed: each rank may have its part of the capacity. */
  void place(const TablePlacement& placement, int64_t rank) override;
  bool owners(Span<int64_t> keys, int64_t* ranks) const override;
  /** Every key has a vector. */
  void refuse_keys(const Tensor& /*keys*/) const override {}
  bool allocate(uint64_t seed, const RowStates& states, const TensorOptions& place, FunctionRef<bool()> go_on) override;
  /** Restores row 0, which is not trained. */
  void updated() override;

  /** "keys" of the rows, "free" rows, "waiting" keys and their counts, the oldest first, "scores" of rows, "counters".
   */
  Span<const char*> key_state_names() const override;
  std::vector<Tensor> key_state() const override;
  void set_key_state(Span<Tensor> state) override;

 private:
  struct NewRows {
    std::vector<int64_t> keys, rows;
  };
  struct Counters {
    int64_t calls = 0, admitted = 0, refused = 0, evicted = 0, forgotten = 0;
  };

  /** Rows that a batch needs. */
  struct InUse {
    Span<int64_t> rows;
    Span<Tensor> of_others;
  };

  void insert(Span<int64_t> keys, int64_t* rows, Span<Tensor> in_use, int64_t admission);
  void give_rows(Span<int64_t> keys, int64_t* rows, Span<Tensor> in_use, int64_t admission);
  bool wait(int64_t key, int64_t number, int64_t admission);
  int64_t take_row(const InUse& in_use);
  void evict(const InUse& in_use);
  void undo(int64_t rows_before);
  int64_t bytes_of_row() const;
  void fill_new_rows();
  void score(Span<int64_t> rows);

  nn::Init init_;
  HashedTableOptions options_;
  int64_t capacity_;     // of this rank
  KeyIndex index_;       // rows; of a key that waits -1 - its place there
  WaitingKeys waiting_;  // with how often they occurred
  int64_t rows_ = 1;
  int64_t touched_rows_ = 1;                // most that there ever were: set_key_state() may leave fewer
  std::vector<int64_t> free_;               // descending
  std::vector<int64_t> row_keys_, scores_;  // with eviction, of each row
  NewRows new_;                             // of this call; this and the next are members to reuse their memory
  std::vector<int64_t> used_again_;
  Counters counters_;
  uint64_t seed_ = 0;
  double initial_state_ = 0;
};

}  // namespace tercel::recsys
