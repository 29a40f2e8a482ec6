// Embedding tables: vectors of keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tercel/recsys/embedding/placement.h"
#include "tercel/recsys/embedding/row_store.h"
#include "tercel/recsys/embedding/table_shard.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

/** What happens to keys that a table does not have yet. */
enum class NewKeys : uint8_t {
  Refuse,  ///< they have no row
  Insert,  ///< they get one, in tables that grow, as training goes on
  Admit    ///< they get one, in tables that grow, also if these are frozen or have seen the key too rarely
};

/** The states that a table's optimizer keeps for each row. */
struct RowStates {
  Span<const char*> names = {};
  double initial = 0;
  size_t per_row = 0;  ///< how many of them, the last ones, are one number for a row and not one for each element
};

/**
 * A named table of vectors of `dim` numbers. An implementation decides which keys have a row and where it is; it has
 * the rows in a RowStore. It knows nothing of lookups: any number of them may read it.
 *
 * StaticTable has the keys of a range, HashedTable any keys, and grows. Mapped and remote tables are further
 * implementations, one header each.
 */
class TERCEL_API EmbeddingTable {
 public:
  EmbeddingTable(std::string name, int64_t dim) : name_(std::move(name)), dim_(dim) {}
  virtual ~EmbeddingTable();
  EmbeddingTable(const EmbeddingTable&) = delete;
  EmbeddingTable& operator=(const EmbeddingTable&) = delete;

  const std::string& name() const { return name_; }
  int64_t dim() const { return dim_; }
  /** Of this rank, if others have further ones. */
  virtual int64_t rows() const = 0;
  /** Of all ranks together, as far as they are known here. */
  virtual int64_t rows_of_all_ranks() const { return rows(); }
  /** What models of equal parameters have in common: "rows x dim", or for a table that grows "hashed x dim". */
  virtual std::string size_text() const;

  /**
   * Rows [n] int64 for keys [n], int64 or int32; possibly the tensor of keys itself. A key without a row gets a number
   * outside [0, rows()), which every lookup refuses, and refuse_keys() then says why; or that of a row of default
   * values. The keys of the rows `in_use`, of other calls, do not lose them to new ones. Thread-safe with Refuse only.
   */
  virtual Tensor find_rows(const Tensor& keys, NewKeys new_keys, Span<Tensor> in_use = {}) = 0;
  /** Whether find_rows() may make rows for new keys. */
  virtual bool grows() const { return false; }
  /** Whether new keys may get the rows of others. */
  virtual bool evicts() const { return false; }
  /** Whether it grows, but not beyond a number of keys. */
  virtual bool is_limited() const { return false; }
  /** Whether it counts how often keys occur, so that Insert needs each occurrence. */
  virtual bool counts_keys() const { return false; }
  /** How many rows, the first ones, belong to no key and are not trained. */
  virtual int64_t rows_without_key() const { return 0; }
  /** Keys [n] int64 that have a row, in the order of their rows. */
  virtual Tensor keys() const = 0;
  /** Whether find_rows() of the two gives the same for keys that have rows in both. */
  virtual bool finds_same_rows(const EmbeddingTable& other) const = 0;
  /** IndexError for the first key without a row, if there is one; it names the table and the keys that have rows. */
  virtual void refuse_keys(const Tensor& keys) const = 0;

  /**
   * Before allocate(), with several ranks: this one has a part of the rows, and the keys of others have none here.
   * ConfigError for a placement that this kind of table cannot have.
   */
  virtual void place(const TablePlacement& placement, int64_t rank) = 0;
  /** Which rows this rank has. */
  const TableShard& shard() const { return shard_; }
  /** The ranks that have the rows of keys, in a table of which this one has a part; false if a key can have none. */
  virtual bool owners(Span<int64_t> keys, int64_t* ranks) const = 0;

  /**
   * Allocates all rows and their states, and fills them by Note [Initial rows], in parts of 16 MiB while go_on() is
   * true; returns whether all are filled, and has no rows otherwise. OutOfMemoryError names the table.
   */
  virtual bool allocate(uint64_t seed, const RowStates& states, const TensorOptions& place,
                        FunctionRef<bool()> go_on) = 0;
  /**
   * Uses existing rows, contiguous [rows(), dim()] of float32 or float64, without states; RuntimeError for others, and
   * for a table that has rows already.
   */
  void set_weight(Tensor weight);
  /** Called after each step of the table's optimizer. */
  virtual void updated() {}

  /** Names of what says which row a key has; none if a key does. */
  virtual Span<const char*> key_state_names() const { return {}; }
  /** Copies, in the order of the names. */
  virtual std::vector<Tensor> key_state() const { return {}; }
  /**
   * Goes on from a key_state(): the table has its rows, whose values must be set next, by set_weight() in one that is
   * not allocated. DataError, and no change, for one that is damaged or does not fit the table.
   */
  virtual void set_key_state(Span<Tensor> state);

  const RowStore& store() const { return store_; }
  /** [rows(), dim()], a leaf with row gradients; undefined before allocate() or set_weight(). */
  const Tensor& weight() const { return store_.weight(); }

 protected:
  /** Makes the weight a leaf. */
  void set_store(RowStore store);
  RowStore& changeable_store() { return store_; }
  void set_shard(TableShard shard) { shard_ = std::move(shard); }

 private:
  std::string name_;
  int64_t dim_;
  TableShard shard_;
  RowStore store_;
};

}  // namespace tercel::recsys
