// The metadata at the end of a Parquet file, parsed and checked without Arrow.
//
// Nothing of a file reaches Arrow before it has passed these checks, and `tercel info` needs no Arrow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/element_type.h"
#include "tercel/data/random_access_file.h"
#include "tercel/util/export.h"

namespace tercel::data {

/** A top-level column: what a row has under a name. */
struct ParquetColumnInfo {
  std::string name;
  std::string type;  ///< as Arrow writes it: "int64", "list<float>", "string", "struct", "null", "date"
  std::optional<ElementType> number;  ///< of the elements of a column of numbers, or of lists of numbers
  bool list = false;                  ///< lists of numbers
  bool all_missing = false;           ///< Arrow's type null, or lists of it: it goes with numbers of any type
  bool temporal = false;              ///< integers that are times
  bool nullable = false;              ///< values may be missing
  int32_t first_leaf = 0;             ///< its columns in the file: nested ones have several
  int32_t leaf_count = 1;
};

/** A column of a row group. */
struct ParquetChunk {
  uint8_t codec = 0;
  uint32_t encodings = 0;  ///< bit i: encoding i is used
  int64_t offset = 0;      ///< of its first page
  int64_t compressed = 0;  ///< bytes in the file
  int64_t uncompressed = 0;
  int64_t nulls = -1;  ///< missing values, as the statistics say; -1: they do not
  int64_t values = 0;  ///< of a list column: elements, and one for each list that is empty or missing
};

struct ParquetRowGroup {
  int64_t first_row = 0;  ///< in the file
  int64_t rows = 0;
  std::vector<ParquetChunk> chunks;  ///< one for each leaf

  int64_t compressed_bytes() const;
  int64_t uncompressed_bytes() const;
};

struct TERCEL_API ParquetFooter {
  std::string created_by;
  int64_t rows = 0;
  int32_t leaves = 0;
  std::vector<ParquetColumnInfo> columns;
  std::vector<int32_t> by_name;  ///< the columns in the order of their names
  std::vector<ParquetRowGroup> row_groups;

  /** The column of a name, or null; DataError that starts with `file` if there are several. */
  const ParquetColumnInfo* find(std::string_view name, std::string_view file) const;
};

/** "UNCOMPRESSED", "SNAPPY", ... as the format names them; "codec 9" for an unknown one. */
TERCEL_API std::string parquet_codec_name(uint8_t codec);
/** "PLAIN, RLE_DICTIONARY". */
TERCEL_API std::string parquet_encoding_names(uint32_t encodings);

/**
 * Reads and checks the footer: magic numbers, lengths, the schema tree, and that counts agree and all column chunks lie
 * inside the file. DataError that names file, byte, what was expected and what was found.
 */
TERCEL_API ParquetFooter read_parquet_footer(const RandomAccessFile& file);

/** The same of the bytes of the metadata alone, which start at `offset` of the file. */
TERCEL_API ParquetFooter parse_parquet_footer(std::string_view metadata, int64_t offset, std::string_view file);

}  // namespace tercel::data
