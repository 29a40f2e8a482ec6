// How the tables of a run have grown.
#pragma once

#include <string>
#include <vector>

#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/embedding/hashed_table.h"
#include "tercel/util/export.h"

namespace tercel::recsys {

struct TableGrowth {
  std::string name;
  HashedTableStatistics statistics;  ///< without the load of the index, which a checkpoint does not have
};

/**
 * Of the tables of a checkpoint that grow, in the order of the graph. Reads the sizes of tensors and the counters only.
 * DataError for a file that is none of a checkpoint.
 */
TERCEL_API std::vector<TableGrowth> growth_of(const Checkpoint& checkpoint);

}  // namespace tercel::recsys
