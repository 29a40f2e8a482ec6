// Any bytes are the metadata of a Parquet file, whose counts agree and whose columns lie inside the file, or a
// DataError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tercel/data/formats/parquet_footer.h"
#include "tercel/util/error.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kOffset = 1 << 20;  // of the metadata in the file
  try {
    const tercel::data::ParquetFooter footer =
        tercel::data::parse_parquet_footer({reinterpret_cast<const char*>(data), size}, kOffset, "fuzz");
    int64_t rows = 0;
    int32_t leaves = 0;
    for (const tercel::data::ParquetColumnInfo& column : footer.columns) {
      expect(column.first_leaf == leaves && column.leaf_count >= 0);
      expect(!column.number || column.leaf_count == 1);
      leaves += column.leaf_count;
      try {
        const auto* found = footer.find(column.name, "fuzz");
        expect(found && found->name == column.name);
      } catch (const tercel::DataError&) {  // a name that occurs twice
      }
    }
    expect(leaves == footer.leaves);
    for (const tercel::data::ParquetRowGroup& group : footer.row_groups) {
      expect(group.first_row == rows && group.rows >= 0);
      expect(static_cast<int32_t>(group.chunks.size()) == leaves);
      for (const tercel::data::ParquetChunk& chunk : group.chunks) {
        expect(chunk.offset >= 4 && chunk.compressed >= 0 && chunk.compressed <= kOffset - chunk.offset);
        expect(chunk.values >= 0 && chunk.uncompressed >= 0 && chunk.codec <= 7);
        expect(!tercel::data::parquet_codec_name(chunk.codec).empty());
        static_cast<void>(tercel::data::parquet_encoding_names(chunk.encodings));
      }
      rows += group.rows;
    }
    expect(rows == footer.rows);
  } catch (const tercel::DataError&) {
  }
  return 0;
}
