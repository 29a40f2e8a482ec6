// The tables of a model in a checkpoint.
//
// A checkpoint has a table in one file or in shards, one of each rank that trained it; a model has all of its rows or a
// part. Rows of a table of a range have numbers (Checkpoint::read()). Those of a table that grows are found by their
// keys: a table that gets the keys of several shards, or some of a file's, has them in the order of the shards and of
// their rows, without free rows between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/model/model.h"

namespace tercel::recsys {

/** Reads tables; model and checkpoint must outlive it. */
class TERCEL_API TableReader {
 public:
  /** Reads the keys of tables that grow; DataError for such as are damaged. */
  TableReader(Model& model, const Checkpoint& checkpoint);

  /**
   * Gives tables that grow their keys, and with them their numbers of rows. DataError names the checkpoint and the
   * table.
   */
  void set_keys() const;
  /** Reads a table's file of training_files(), after set_keys(); errors of Checkpoint::read(). */
  void read(size_t table, const CheckpointFile& file) const;
  /** The weight of a table; mapped, if the checkpoint has its rows in that order. */
  Tensor weight(size_t table) const;
  /** The states of its optimizer, in the order of Optimizer::state_names(); the same. */
  std::vector<Tensor> states(size_t table) const;

 private:
  /** Rows of a table that grows in a file. */
  struct Source {
    std::string file;
    int64_t count = 0;  // of all its rows
    std::vector<int64_t> rows;
  };
  struct GrowingTable {
    std::vector<Tensor> keys;     // EmbeddingTable::key_state(); none of a table of a range
    std::vector<Source> sources;  // of its rows after the first, one after the other
    bool is_as_in_file = true;    // the only source has exactly these rows
  };
  GrowingTable find_keys(size_t table) const;
  Tensor rows(size_t table, const std::string& name, int64_t width) const;

  Model& model_;
  const Checkpoint& checkpoint_;
  std::vector<GrowingTable> tables_;
};

}  // namespace tercel::recsys
