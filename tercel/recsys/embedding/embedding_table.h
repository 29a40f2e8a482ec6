// Embedding tables: vectors of keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tercel/recsys/embedding/row_store.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

/** What happens to keys that a table does not have yet. */
enum class NewKeys : uint8_t {
  Refuse,  ///< they have no row
  Insert   ///< they get one, in tables that grow
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
 * StaticTable has the keys of a range. Hashed tables (any key, growing), mapped and remote ones are further
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
  virtual int64_t rows() const = 0;

  /**
   * Rows [n] int64 for keys [n], int64 or int32; possibly the tensor of keys itself. A key without a row gets a number
   * outside [0, rows()), which every lookup refuses; refuse_keys() then says why. Not thread-safe with Insert.
   */
  virtual Tensor find_rows(const Tensor& keys, NewKeys new_keys) = 0;
  /** Whether find_rows() of the two gives the same for keys that have rows in both. */
  virtual bool finds_same_rows(const EmbeddingTable& other) const = 0;
  /** IndexError for the first key without a row, if there is one; it names the table and the keys that have rows. */
  virtual void refuse_keys(const Tensor& keys) const = 0;

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

  const RowStore& store() const { return store_; }
  /** [rows(), dim()], a leaf with row gradients; undefined before allocate() or set_weight(). */
  const Tensor& weight() const { return store_.weight(); }

 protected:
  /** Makes the weight a leaf. */
  void set_store(RowStore store);

 private:
  std::string name_;
  int64_t dim_;
  RowStore store_;
};

}  // namespace tercel::recsys
