// The embedding tables of a model, and the lookups that read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tercel/data/batch.h"
#include "tercel/distributed/process_group.h"
#include "tercel/ops/embedding/embedding_bag.h"
#include "tercel/optim/optimizer.h"
#include "tercel/recsys/embedding/embedding_table.h"
#include "tercel/recsys/embedding/key_exchange.h"
#include "tercel/recsys/embedding/row_questions.h"

namespace tercel::recsys {

/**
 * A sparse input, read from a table: the vectors of a slot's keys, times the keys' weights if the input has any, are
 * combined.
 */
struct Lookup {
  std::string name;  ///< of the layer
  size_t table = 0;  ///< its number in the collection
  std::string input;
  BagMode combiner = BagMode::Sum;  ///< Sum or Mean
  int64_t slots = 0;                ///< of the input
  /** Above 0: vectors are not combined, but side by side, those of so many keys of a slot; zeros for missing ones. */
  int64_t places = 0;
};

/**
 * Tables with their optimizers, and lookups, which may share tables. All lookups of a step are one group, in two
 * phases: keys to rows, then rows to vectors. Keys are resolved once for all lookups that read one input from tables
 * with the same rows for its keys, and the update finds their unique rows once.
 */
class TERCEL_API EmbeddingCollection {
 public:
  /** Adds a table and returns its number. */
  size_t add_table(std::unique_ptr<EmbeddingTable> table, const optim::OptimizerOptions& optimizer);
  /** Adds a lookup in a table of the collection and returns its number. */
  size_t add_lookup(Lookup lookup);

  const std::vector<std::unique_ptr<EmbeddingTable>>& tables() const { return tables_; }
  const std::vector<Lookup>& lookups() const { return lookups_; }
  const optim::OptimizerOptions& optimizer(size_t table) const { return options_[table]; }

  /** EmbeddingTable::allocate() for each table; false if go_on() was false. ConfigError for wrong optimizer options. */
  bool allocate(uint64_t seed, const TensorOptions& place, FunctionRef<bool()> go_on);

  /**
   * From now on batches are the parts of this rank, and tables are where their placements say, one for each; with none,
   * each rank has all rows. Before allocate(), after all lookups are added. The group must outlive the collection.
   * ConfigError for a placement that a table cannot have.
   */
  void set_group(distributed::ProcessGroup& group, Span<TablePlacement> placements = {});
  /** Whether this rank has all rows of all tables. */
  bool has_all_rows() const;

  /**
   * Says which batch will be trained after the next one, so that its keys travel during the next find_rows() and what
   * follows; null if that is not known here. With tables whose rows are on several ranks, all of these must call it.
   */
  void announce(const data::Batch* next);
  /** Between forward and backward: sends the keys of the batch that was announced, if there is one. */
  void send_announced();
  /** The next find_rows() is for the batch that was announced. All ranks must call it. */
  void take_announced();
  /** The batch that was announced will not be trained next. All ranks must call it. */
  void forget_announced();

  /**
   * First phase: the rows of a batch's keys, for look_up(). With NewKeys::Insert and several ranks, new keys of all
   * ranks get rows, in the order of the ranks: the tables stay equal. Of tables with rows on several ranks, it brings
   * the vectors here, so that all ranks must call it. ConfigError for a batch without an input that is read,
   * RuntimeError unless its order is SampleMajor; IndexError for a key without a row in such a table.
   */
  void find_rows(const data::Batch& batch, NewKeys new_keys, std::vector<Tensor>& rows);
  /**
   * Second phase: vectors [B, slots, dim] of a lookup, or [B, slots, places * dim] side by side, recorded like any op.
   * IndexError that names table and key for a key without a row; RuntimeError for more keys in a slot than places.
   */
  Tensor look_up(size_t lookup, const data::Batch& batch, Span<Tensor> rows) const;

  /**
   * Gives each table the gradients of all ranks for the rows that it has here: for each rank, in their order, the sums
   * of its unique rows. All ranks must call it; no effect without set_group().
   */
  void reduce_gradients();
  /** One step of every table that has a gradient, which is cleared; RuntimeError for tables without states. */
  void update(double learning_rate, int64_t step);
  /** Adds the gradients of all tables to a norm, of all ranks' rows; they stay. All ranks must call it. */
  void add_to(optim::GradientNorm& norm);
  /** What happens to the gradients of all further steps. */
  void set_clip(const optim::GradientClip& clip);
  /** Optimizer::history() of a table; undefined before allocate(), too. */
  Tensor history(size_t table) const;
  void clear_gradients();
  /** Whether all values stored by the steps so far were finite, on this rank. */
  bool is_finite() const;
  /** Forgets what was stored so far; call it when other values have been loaded. */
  void forget_nonfinite();

 private:
  /** Lookups of one input with the same rows. */
  struct Group {
    std::string input;
    size_t table;  // one of those that are read
    UniqueRows unique_rows = {};
    bool is_remote = false;   // rows are on several ranks; if so:
    size_t request = 0;       // in the exchange of keys
    bool may_sum = false;     // whether sums of rows may travel
    int64_t slots = 0;        // of the input
    Tensor rows = {};         // of the keys that ranks ask this one for
    Tensor row_offsets = {};  // of AskedKeys
  };

  /** How many lookups read the table, and the group of the first one. */
  struct Readers {
    size_t count = 0, group = 0;
  };

  /** Vectors of a table's rows that came from their ranks, for the lookups of a group. */
  struct RemoteVectors {
    size_t table = 0, group = 0;
    Tensor vectors = {};
  };
  static constexpr size_t kLocal = static_cast<size_t>(-1);

  void group_lookup(const Lookup& lookup);
  Tensor keys_of(const Group& group, const data::Batch& batch) const;
  void find_local_rows(const data::Batch& batch, NewKeys new_keys, std::vector<Tensor>& rows);
  std::vector<RowQuestions> ask(const data::Batch& batch, NewKeys new_keys);
  void bring_vectors(const data::Batch& batch, NewKeys new_keys, std::vector<Tensor>& rows);
  void begin_announced();
  std::vector<Tensor> rows_in_use(size_t group, NewKeys new_keys, const std::vector<Tensor>& rows) const;
  Gradient row_gradient(size_t table) const;
  UniqueRows& unique_rows(size_t table, const Gradient& gradient);
  void gather_gradients();
  void send_back_gradients();

  std::vector<std::unique_ptr<EmbeddingTable>> tables_;
  std::vector<optim::OptimizerOptions> options_;
  std::vector<optim::Optimizer> optimizers_;  // none before allocate()
  std::vector<Lookup> lookups_;
  std::vector<size_t> group_of_;  // of each lookup
  std::vector<Group> groups_;
  std::vector<Readers> readers_;  // of each table
  UniqueRows unique_rows_;        // of tables with several lookups
  distributed::ProcessGroup* group_ = nullptr;
  // Of each group, keys and the first one of this rank; members to reuse their memory.
  std::vector<Tensor> keys_;
  std::vector<int64_t> first_;
  // Of tables with rows on several ranks:
  std::vector<RemoteVectors> remote_;
  std::vector<size_t> remote_of_;  // of each lookup, or kLocal
  size_t requests_ = 0;
  std::unique_ptr<RowAsker> asker_;              // null if there are none
  std::unique_ptr<KeyExchange> keys_of_step_;    // of the last find_rows()
  std::unique_ptr<KeyExchange> keys_ahead_;      // of the batch that was announced
  std::optional<const data::Batch*> announced_;  // until its keys begin to travel
  bool is_ahead_sent_ = false, takes_ahead_ = false;
};

}  // namespace tercel::recsys
