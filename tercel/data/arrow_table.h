// Tables in memory as datasets: Arrow C streams of pyarrow, polars, DuckDB, pandas, or of programs' own.
//
// The rows go through what reads Parquet, with the same options for columns. No Arrow library is needed.
//
// Note [What a stream may be]
// Everything that the C data interface says about a stream is checked: callbacks, formats, counts of children and
// buffers, null pointers, released structs, offsets of lists, indices of dictionaries, lengths. Buffers may begin at
// any byte. It does not say how long buffers are, nor how many children a pointer to them has: a producer whose
// pointers and lengths do not fit each other cannot be recognised, and reading its rows is undefined behaviour, as it
// is for every consumer.
#pragma once

#include <array>
#include <cstdint>

#include "tercel/data/column_spec.h"
#include "tercel/data/dataset.h"
#include "tercel/util/arrow_c.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/options.h"

namespace tercel::data {

/**
 * Where the rows are kept. Memory: where the producer has them, which is right for a table in memory; columns of f32
 * and of 64-bit keys are then not copied. Disk: in copies, 512 MiB in memory and what is beyond in a file without a
 * name in TMPDIR; for a stream whose rows are made while it is read.
 */
enum class TableStorage : uint8_t { Memory, Disk };

constexpr auto enum_names(TableStorage) {
  return std::to_array<EnumName<TableStorage>>({{TableStorage::Memory, "memory"}, {TableStorage::Disk, "disk"}});
}

/** Which columns of a table are what, and where its rows are kept. */
struct ArrowTableOptions : ColumnSpec {
  TableStorage storage = TableStorage::Memory;

  static constexpr auto fields() {
    return option_list(ColumnSpec::fields(),
                       option_field<&ArrowTableOptions::storage>(
                           "storage",
                           "memory: keep the rows where the producer has them; disk: copy them, 512 MiB in memory and "
                           "what is beyond to a file in TMPDIR"));
  }
};

/**
 * The tables of a dataset's parts. Streams are consumed, also by an error: released, and `release` is null afterwards.
 * Valid and test may be null.
 */
struct ArrowTables {
  ArrowArrayStream* train = nullptr;
  ArrowArrayStream* valid = nullptr;
  ArrowArrayStream* test = nullptr;
};

/**
 * Reads the streams to their ends and describes their rows as a dataset, which readers, sessions and trainers take like
 * one of files, any number of times, shuffled or not, and which copies share. Its format is "arrow", and the parts have
 * one file each that exists only in name, with a checksum that does not depend on how the rows are cut into batches.
 * Values that a row cannot have are errors of the reader that comes to them, as in files.
 *
 * `progress` is called after each batch. ConfigError for options and columns that do not fit; DataError, which names
 * the part, for a stream that fails or contradicts the C data interface (Note [What a stream may be]); IoError if the
 * disk is full.
 */
TERCEL_API Dataset dataset_from_arrow(const ArrowTables& tables, const ArrowTableOptions& options,
                                      FunctionRef<void(int64_t rows)> progress);

}  // namespace tercel::data
