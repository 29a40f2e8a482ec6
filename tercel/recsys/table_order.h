// A table's rows in the order of their keys, also where they are on several ranks.
//
// Note [Rows in the order of keys]
// Files that others read have the keys of a table, ascending, and beside them vectors and states in the same order,
// whatever ranks had the rows: their bytes are those that one process writes. Each rank knows the places of its own
// rows in that order. Rank 0 gets the rows of one window of it after the other, of some MiB, and writes them; so it
// never has the table. Which rank fails, all of them hear of it, and nothing gets the name of the file.
#pragma once

#include <cstdint>

#include "tercel/core/tensor.h"
#include "tercel/distributed/process_group.h"
#include "tercel/recsys/embedding/embedding_table.h"
#include "tercel/util/export.h"
#include "tercel/util/function_ref.h"

namespace tercel::recsys {

/** Rows of this rank, in the order of something that has those of all ranks: of their keys, or of a file. */
struct RowOrder {
  int64_t count = 0;   ///< of all ranks
  Tensor keys = {};    ///< [n] int64 of this rank
  Tensor rows = {};    ///< [n] int64, their rows in the table's weight
  Tensor places = {};  ///< [n] int64, ascending, their places among all; undefined: it has all of them

  /** Those of this rank whose places are in [begin, end): the first one and their number. */
  TERCEL_API RowRun within(int64_t begin, int64_t end) const;
};

/**
 * The keys that have a row, ascending, on all ranks together. All ranks call it if the table is on several; a group may
 * be null of a table that is not. No rank has more than about `keys_at_once` keys of others at once.
 */
TERCEL_API RowOrder order_of_keys(EmbeddingTable& table, distributed::ProcessGroup* group,
                                  int64_t keys_at_once = int64_t{1} << 19);

/**
 * Gives rank 0 `of(i, n)`, a matrix [n, width], for all rows: those of each rank from its i-th on, in their common
 * order, in windows of about `most` elements. With a group all ranks call it, and an error of one, also of `take`, is
 * thrown on all; IoError where it is another's. Rows that every rank has come from rank 0.
 */
TERCEL_API void take_in_order(const RowOrder& order, distributed::ProcessGroup* group, int64_t width,
                              FunctionRef<Tensor(int64_t first, int64_t count)> of,
                              FunctionRef<void(const Tensor& window)> take, int64_t most = int64_t{1} << 20);

/** The same for keys [n] int64. */
TERCEL_API void take_keys(const RowOrder& order, distributed::ProcessGroup* group,
                          FunctionRef<void(const Tensor& window)> take);
/** The same for the rows of a matrix that is parallel to the table's weight. */
TERCEL_API void take_rows(const RowOrder& order, distributed::ProcessGroup* group, const Tensor& matrix,
                          FunctionRef<void(const Tensor& window)> take);

}  // namespace tercel::recsys
