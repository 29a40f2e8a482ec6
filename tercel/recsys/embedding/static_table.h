// An embedding table with a fixed range of keys.
#pragma once

#include <string>

#include "tercel/core/generator.h"
#include "tercel/data/batch.h"
#include "tercel/nn/init.h"
#include "tercel/ops/embedding/embedding_bag.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

/** Rows for the keys [first_key, first_key + rows): row r is the vector of key first_key + r. */
class TERCEL_API StaticTable {
 public:
  /** Not allocated yet. */
  StaticTable(std::string name, int64_t first_key, int64_t rows, int64_t dim, BagMode combiner, nn::Init init);

  /**
   * Allocates and fills the rows, in parts of 16 MiB while go_on() is true; returns whether all are filled, and has no
   * rows otherwise. OutOfMemoryError names the table.
   */
  bool allocate(Generator& generator, FunctionRef<bool()> go_on);
  /** Uses existing rows, contiguous float32 [rows, dim]. */
  void set_weight(Tensor weight);
  /** Vectors [B, slots, dim] of a batch's keys, bags summed or averaged; IndexError for a key without a row. */
  Tensor lookup(const data::SparseBatch& batch) const;

  const std::string& name() const { return name_; }
  int64_t first_key() const { return first_key_; }
  int64_t rows() const { return rows_; }
  int64_t dim() const { return dim_; }
  /** [rows, dim], a leaf with row gradients. */
  const Tensor& weight() const { return weight_; }

 private:
  std::string name_;
  int64_t first_key_, rows_, dim_;
  BagMode combiner_;
  nn::Init init_;
  Tensor weight_;
};

}  // namespace tercel::recsys
