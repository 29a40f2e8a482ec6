// HugeCTR's dump of a collection of embedding tables, as one GPU writes it.
//
// A folder with `meta_data` (int32: number of tables, type of the keys, of the vectors, 0, largest width; then the
// tables' numbers int32, of keys uint64 and widths int32), and for table i `key<i>` and `weight<i>`, each behind a
// header of 128 bytes that says what it is and of which table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/distributed/process_group.h"
#include "tercel/recsys/embedding/embedding_table.h"
#include "tercel/recsys/model/model.h"
#include "tercel/recsys/table_order.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::recsys::hugectr {

/** What `meta_data` says. */
struct CollectionContent {
  struct Table {
    int32_t number = 0;
    int64_t keys = 0;
    int32_t width = 0;
  };
  bool wide_keys = true;  ///< int64, else uint32
  std::vector<Table> tables;
};

/** Parses the bytes of a `meta_data`; DataError "<name>: ...". */
TERCEL_API CollectionContent parse_collection(std::string_view bytes, std::string_view name);

/** A table with its number in the collection. */
struct CollectionTable {
  EmbeddingTable* table = nullptr;
  int32_t number = 0;
};

/** The tables that the lookups of a graph read, in the order of the lookups. */
TERCEL_API std::vector<CollectionTable> collection_of(Model& model);

/**
 * Writes tables, with keys of 8 bytes or 4. DataError for a key that has no 4 bytes. With a group, of all ranks, which
 * all call it (model_files.h).
 */
TERCEL_API void write_collection(const std::string& folder, Span<CollectionTable> tables, bool wide_keys,
                                 distributed::ProcessGroup* group = nullptr);
/**
 * Sets the vectors of these tables; returns the keys of each that this rank has. With a group all ranks call it.
 * DataError for damaged files, tables of another
 * width, keys that a table does not have or has twice, and vectors that are not finite; tables before the one that is
 * damaged are set then.
 */
TERCEL_API std::vector<RowOrder> read_collection(const std::string& folder, Span<CollectionTable> tables,
                                                 distributed::ProcessGroup* group = nullptr);

}  // namespace tercel::recsys::hugectr
