#include "tercel/data/formats/parquet_footer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "tercel/data/schema.h"
#include "tercel/util/error.h"
#include "tests/data/formats/thrift_bytes.h"
#include "tests/support/errors.h"
#include "tests/util/temporary_folder.h"

namespace tercel::data::test {
namespace {

constexpr int64_t kOffset = 200;  // of the metadata in the file

ParquetFooter parse(const FooterBytes& footer) { return parse_parquet_footer(footer.encode(), kOffset, "f"); }

TEST(ParquetFooter, SaysWhatTheFileHolds) {
  FooterBytes bytes;
  bytes.schema = {group("schema", 6),
                  leaf("f", 4),
                  leaf("i", 1, 1).integer(6, 13),
                  leaf("l", 2).object(10, ThriftStruct().object(8, ThriftStruct().integer(1, 0))),
                  group("list", 1, 1),
                  group("list", 1, 2),
                  leaf("element", 5, 1),
                  leaf("old", 2, 2),
                  leaf("s", 6, 1).integer(6, 0)};
  const ChunkBytes base;
  int64_t next = 4;
  const auto typed = [&](int64_t type, int64_t values) {
    ChunkBytes chunk = base;
    chunk.type = type;
    chunk.values = values;
    chunk.compressed = 10;
    chunk.offset = next += 10;
    return chunk;
  };
  bytes.row_groups = {{typed(4, 10), typed(1, 10), typed(2, 10), typed(5, 30), typed(2, 12), typed(6, 10)}};
  const ParquetFooter footer = parse(bytes);
  EXPECT_EQ(footer.rows, 10);
  EXPECT_EQ(footer.created_by, "here");
  ASSERT_EQ(footer.columns.size(), 6u);
  std::vector<std::string> types;
  for (const ParquetColumnInfo& column : footer.columns) types.push_back(column.type);
  EXPECT_EQ(types, (std::vector<std::string>{"float", "uint32", "timestamp", "list<double>", "list<int64>", "string"}));
  EXPECT_EQ(footer.columns[1].number, ElementType::U32);
  EXPECT_TRUE(footer.columns[1].nullable);
  EXPECT_TRUE(footer.columns[2].temporal);
  EXPECT_EQ(footer.columns[3].first_leaf, 3);
  EXPECT_TRUE(footer.columns[4].list);
  EXPECT_FALSE(footer.columns[5].number);
  EXPECT_EQ(footer.row_groups[0].chunks[3].values, 30);
  EXPECT_EQ(parquet_encoding_names(footer.row_groups[0].chunks[0].encodings), "PLAIN, RLE_DICTIONARY");
  EXPECT_EQ(footer.find("old", "f"), &footer.columns[4]);
  EXPECT_EQ(footer.find("element", "f"), nullptr);
}

TEST(ParquetFooter, NestedColumnsAreNoNumbers) {
  const auto type_of = [](const std::vector<ThriftStruct>& column, size_t leaves) {
    FooterBytes bytes;
    bytes.schema = {group("schema", 1)};
    bytes.schema.insert(bytes.schema.end(), column.begin(), column.end());
    bytes.row_groups[0].resize(leaves);
    bytes.row_groups[0].back().offset = leaves > 1 ? 100 : 4;
    const ParquetFooter footer = parse(bytes);
    EXPECT_FALSE(footer.columns[0].number);
    return footer.columns[0].type;
  };
  EXPECT_EQ(type_of({group("s", 2), leaf("x"), leaf("y")}, 2), "struct");
  EXPECT_EQ(type_of({group("s", 1), leaf("x")}, 1), "struct");
  EXPECT_EQ(type_of({group("l", 1), group("list", 1, 2), group("element", 1), leaf("x")}, 1), "list of structs");
  EXPECT_EQ(type_of({group("l", 1), group("list", 1, 2), group("element", 1), group("list", 1, 2), leaf("x")}, 1),
            "list of lists");
  EXPECT_EQ(type_of({group("m", 1), group("key_value", 2, 2), leaf("key"), leaf("value")}, 2), "list of structs");
}

TEST(ParquetFooter, LiesAreRefused) {
  const auto refused = [](const std::string& message, const std::function<void(FooterBytes&)>& change) {
    FooterBytes bytes;
    change(bytes);
    SCOPED_TRACE(message);
    TERCEL_EXPECT_THROW(parse(bytes), DataError, message);
  };
  const auto chunk = [](auto member, int64_t value) {
    return [=](FooterBytes& bytes) { bytes.row_groups[0][0].*member = value; };
  };
  refused("expected num_rows 10, as the row groups have together, found 11", [](FooterBytes& b) { b.rows = 11; });
  refused("num_rows of a row group from 0 to", [](FooterBytes& b) { b.group_rows[0] = -1; });
  refused("num_rows of a row group from 0 to", [](FooterBytes& b) { b.group_rows[0] = int64_t{1} << 40; });
  refused("expected 11 values in column 0 of row group 0", [](FooterBytes& b) { b.group_rows[0] = 11; });
  refused("codec from 0 to 7, found 8", chunk(&ChunkBytes::codec, 8));
  refused("expected type 2 of column 0, as in the schema, found 1", chunk(&ChunkBytes::type, 1));
  refused("type of a column from 0 to 7", chunk(&ChunkBytes::type, -1));
  refused("total_compressed_size from 0 to", chunk(&ChunkBytes::compressed, -1));
  refused("total_uncompressed_size from 0 to", chunk(&ChunkBytes::uncompressed, std::numeric_limits<int64_t>::max()));
  refused("column 0 of row group 0 between bytes 4 and 200, found 197 bytes at 4", chunk(&ChunkBytes::compressed, 197));
  refused("between bytes 4 and 200, found 80 bytes at 3", chunk(&ChunkBytes::offset, 3));
  refused("between bytes 4 and 200, found 80 bytes at 2", chunk(&ChunkBytes::dictionary, 2));
  refused("data_page_offset from 0 to 200", chunk(&ChunkBytes::offset, 1000));
  refused("num_values from 0 to", chunk(&ChunkBytes::values, -1));
  const auto list_of = [](int64_t values) {
    return [=](FooterBytes& b) {
      b.schema[1] = leaf("k", 2, 2);
      b.row_groups[0][0].values = values;
    };
  };
  refused("at most 167772160 values in column 0 of row group 0, which has 10 rows, found 167772161",
          list_of(10 * kMaxHotness + 1));
  refused("at most 167772160 values", list_of(std::numeric_limits<int64_t>::max()));
  refused("at most 1099511627776 values", [&](FooterBytes& b) {
    list_of((int64_t{1} << 40) + 1)(b);
    b.rows = b.group_rows[0] = int64_t{1} << 30;
  });
  refused("expected 1 columns in row group 0, as the schema has, found 2",
          [](FooterBytes& b) { b.row_groups[0].resize(2); });
  refused("num_rows and 1 columns in row group 0, found 0 columns", [](FooterBytes& b) { b.row_groups[0].clear(); });
  refused("an element for each child in the schema, found less",
          [](FooterBytes& b) { b.schema[0] = group("schema", 1 << 30); });
  refused("expected a schema of 1 elements, as the numbers of children say, found 2",
          [](FooterBytes& b) { b.schema[0] = group("schema", 0); });
  refused("a schema that begins with a group", [](FooterBytes& b) { b.schema.clear(); });
  refused("num_children from 0 to", [](FooterBytes& b) { b.schema[0] = group("schema", -1); });
  refused("repetition_type from 0 to 2, found 3", [](FooterBytes& b) { b.schema[1] = leaf("k", 2, 3); });
  refused("columns in at most 16 groups", [](FooterBytes& b) {
    for (int i = 0; i < 20; ++i) b.schema.insert(b.schema.begin() + 1, group("g", 1));
  });
  refused("the columns of the row groups behind each other, found column 1 of row group 0 at 83", [](FooterBytes& b) {
    b.schema = {group("schema", 2), leaf("k"), leaf("l")};
    b.row_groups[0].resize(2);
    b.row_groups[0][1].offset = 83;
  });
}

TEST(ParquetFooter, NamesThatOccurTwiceAreRefusedWhenTheyAreUsed) {
  FooterBytes bytes;
  bytes.schema = {group("schema", 3), leaf("k"), leaf("l"), leaf("k")};
  bytes.row_groups[0].resize(3);
  for (ChunkBytes& chunk : bytes.row_groups[0]) chunk.compressed = 10;
  bytes.row_groups[0][1].offset = 14;
  bytes.row_groups[0][2].offset = 24;
  const ParquetFooter footer = parse(bytes);
  EXPECT_EQ(footer.find("l", "f"), &footer.columns[1]);
  TERCEL_EXPECT_THROW(static_cast<void>(footer.find("k", "f")), DataError, "f: expected one column 'k', found several");
}

TEST(ParquetFooter, LyingCountsAllocateNothing) {
  const auto parse_struct = [](const ThriftStruct& metadata) {
    return parse_parquet_footer(metadata.bytes(), kOffset, "f");
  };
  // A schema of 2^40 elements in a few bytes.
  TERCEL_EXPECT_THROW(parse_struct(ThriftStruct().integer(1, 2).list(2, 12, uint64_t{1} << 40, "")), DataError,
                      "schema");
  TERCEL_EXPECT_THROW(parse_struct(ThriftStruct().field(2, 8, varint(uint64_t{1} << 60))), DataError, "list");
  TERCEL_EXPECT_THROW(parse_struct(ThriftStruct().field(6, 8, varint(uint64_t{1} << 60) + "abc")), DataError,
                      "created_by");
  TERCEL_EXPECT_THROW(parse_struct(ThriftStruct().field(6, 8, std::string(11, '\xff'))), DataError, "10 bytes");
  // Lists in lists.
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += '\x19';
  TERCEL_EXPECT_THROW(parse_struct(ThriftStruct().field(5, 9, deep)), DataError, "in at most 32 structs and lists");
  // Fields must ascend; the end must be the end.
  TERCEL_EXPECT_THROW(parse_struct(ThriftStruct().integer(3, 1).integer(3, 1)), DataError, "a field behind field 3");
  TERCEL_EXPECT_THROW(parse_parquet_footer(FooterBytes().encode() + "x", kOffset, "f"), DataError, "end");
}

TEST(ParquetFooter, EveryCutAndEveryBitIsAFooterOrAnError) {
  const std::string good = FooterBytes().encode();
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_THROW(parse_parquet_footer(good.substr(0, size), kOffset, "f"), DataError) << size;
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ 1 << bit % 8);
    try {
      const ParquetFooter footer = parse_parquet_footer(bad, kOffset, "f");
      EXPECT_EQ(footer.rows, 10);
    } catch (const DataError&) {
    }
  }
}

TEST(ParquetFooter, AFileHasMagicNumbersAndALength) {
  const tercel::test::TemporaryFolder folder;
  const std::string metadata = FooterBytes().encode();
  const auto file = [&](const std::string& head, uint32_t length, const std::string& tail) {
    std::string bytes = head + std::string(kOffset - 4, 'x') + metadata;
    bytes.append(reinterpret_cast<const char*>(&length), 4);
    folder.put("f.parquet", bytes + tail);
    return read_parquet_footer(*open_data_file(folder.path() + "/f.parquet"));
  };
  const auto length = static_cast<uint32_t>(metadata.size());
  EXPECT_EQ(file("PAR1", length, "PAR1").rows, 10);
  TERCEL_EXPECT_THROW(file("PAR2", length, "PAR1"), DataError, "byte 0: expected the magic number PAR1");
  TERCEL_EXPECT_THROW(file("PAR1", length, "PAR0"), DataError, "cut off, or still being written");
  TERCEL_EXPECT_THROW(file("PARE", length, "PARE"), DataError, "expected a file that is not encrypted");
  TERCEL_EXPECT_THROW(file("PAR1", 0, "PAR1"), DataError, "expected the length of the metadata, 1 to ");
  TERCEL_EXPECT_THROW(file("PAR1", 1u << 31, "PAR1"), DataError, "expected the length of the metadata, 1 to ");
  folder.put("f.parquet", "PAR1PAR1");
  TERCEL_EXPECT_THROW(read_parquet_footer(*open_data_file(folder.path() + "/f.parquet")), DataError,
                      "expected a Parquet file, at least 12 bytes, found 8");
}

}  // namespace
}  // namespace tercel::data::test
