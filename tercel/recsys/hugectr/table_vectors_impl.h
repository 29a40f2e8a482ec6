// Vectors of a file's keys. Private.
#pragma once

#include <cstdint>
#include <string>

#include "tercel/core/tensor.h"
#include "tercel/distributed/process_group.h"
#include "tercel/recsys/embedding/embedding_table.h"
#include "tercel/recsys/hugectr/raw_values_impl.h"
#include "tercel/recsys/table_order.h"

namespace tercel::recsys::hugectr {

/** Keys of a table and their vectors, as float32, in files that are open; the path of the keys is for messages. */
struct VectorFiles {
  std::string path;
  int64_t count = 0;
  ValuesFile keys;
  bool wide_keys = true;  ///< int64, else uint32
  ValuesFile vectors;

  /** [n] int64 from the first-th on. */
  Tensor read_keys(int64_t first, int64_t n) const;
};

/**
 * Gives the keys of the files that this rank has a row for, or can make one, the files' vectors, in parts; returns the
 * keys with their places in the files. `open` opens the files. With a group all ranks call it, and an error of one is
 * thrown on all. DataError that names the file for keys twice, keys that the table does not have and vectors that are
 * not finite: no rank has changed anything then.
 */
RowOrder set_file_vectors(FunctionRef<VectorFiles()> open, EmbeddingTable& table, distributed::ProcessGroup* group);

}  // namespace tercel::recsys::hugectr
