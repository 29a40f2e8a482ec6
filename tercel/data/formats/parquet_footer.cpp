#include "tercel/data/formats/parquet_footer.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>

#include "tercel/data/formats/thrift_compact_impl.h"
#include "tercel/data/schema.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr std::string_view kMagic = "PAR1";
constexpr std::string_view kEncryptedMagic = "PARE";
constexpr int64_t kTailBytes = 8;  // length of the metadata, and the magic number
constexpr int64_t kMaxMetadataBytes = int64_t{1} << 30;
constexpr int64_t kMaxGroupRows = int64_t{1} << 31;
constexpr int64_t kMaxChunkBytes = int64_t{1} << 40;
constexpr int64_t kMaxValues = int64_t{1} << 40;  // of a column of a row group
constexpr size_t kMaxElements = size_t{1} << 20;
constexpr int kMaxTreeDepth = 16;

// Parquet's numbers of types.
enum Physical : uint8_t { kBoolean, kInt32Type, kInt64Type, kInt96, kFloat, kDouble, kByteArray, kFixedLength };
enum Repetition : uint8_t { kRequired, kOptional, kRepeated };
enum Converted : uint8_t {
  kUtf8 = 0,
  kDecimal = 5,
  kDate = 6,
  kTimeMillis = 7,
  kTimeMicros = 8,
  kTimestampMillis = 9,
  kTimestampMicros = 10,
  kUint8 = 11,
  kUint16 = 12,
  kUint32 = 13,
  kUint64 = 14,
  kInt8 = 15,
  kInt16 = 16,
};
constexpr uint8_t kNone = 255;

/** A node of the schema tree, in the order of a walk through it. */
struct Element {
  std::string name;
  uint8_t physical = kNone;  // of a leaf
  uint8_t repetition = kRequired;
  uint8_t converted = kNone;
  int64_t length = 0;
  int64_t children = 0;
  // Of the logical type:
  int32_t logical = 0;  // its field in the union
  int64_t bits = 0;
  bool is_signed = true;
  size_t unit = 0;  // of times: 1 milli-, 2 micro-, 3 nanoseconds; 0: none
};

constexpr int32_t kLogicalDecimal = 5, kLogicalDate = 6, kLogicalTime = 7, kLogicalTimestamp = 8, kLogicalInteger = 10,
                  kLogicalUnknown = 11, kLogicalFloat16 = 15;

bool is_text(const Element& leaf) { return leaf.converted == kUtf8 || leaf.logical == 1; }

bool is_temporal(const Element& leaf) {
  return (leaf.converted >= kDate && leaf.converted <= kTimestampMicros) || leaf.logical == kLogicalDate ||
         leaf.logical == kLogicalTime || leaf.logical == kLogicalTimestamp;
}

/** The integer type of a leaf, as its logical type says. */
ElementType integer_type(const Element& leaf) {
  int64_t bits = leaf.physical == kInt32Type ? 32 : 64;
  bool is_signed = true;
  if (leaf.logical == kLogicalInteger) {
    bits = leaf.bits;
    is_signed = leaf.is_signed;
  } else if (leaf.converted >= kUint8 && leaf.converted <= kUint64) {
    bits = int64_t{8} << (leaf.converted - kUint8);
    is_signed = false;
  } else if (leaf.converted == kInt8 || leaf.converted == kInt16) {
    bits = leaf.converted == kInt8 ? 8 : 16;
  }
  const ElementType narrow = bits == 8 ? ElementType::I8 : bits == 16 ? ElementType::I16 : ElementType::I32;
  const ElementType type = bits == 64 ? ElementType::I64 : narrow;
  constexpr int kUnsigned = static_cast<int>(ElementType::U8) - static_cast<int>(ElementType::I8);
  return is_signed ? type : static_cast<ElementType>(static_cast<int>(type) + kUnsigned);
}

std::optional<ElementType> number_type(const Element& leaf) {
  if (leaf.logical == kLogicalUnknown) return std::nullopt;
  const bool decimal = leaf.converted == kDecimal || leaf.logical == kLogicalDecimal;
  switch (leaf.physical) {
    case kBoolean: return ElementType::Bool;
    case kInt32Type:
      if (decimal) return std::nullopt;
      return is_temporal(leaf) ? ElementType::I32 : integer_type(leaf);
    case kInt64Type:
      if (decimal) return std::nullopt;
      return is_temporal(leaf) ? ElementType::I64 : integer_type(leaf);
    case kFloat: return ElementType::F32;
    case kDouble: return ElementType::F64;
    case kFixedLength:
      if (leaf.logical == kLogicalFloat16) return ElementType::F16;
      return std::nullopt;
    default: return std::nullopt;
  }
}

/** "date", "time[ms]", "timestamp[us]". */
std::string time_text(const Element& leaf) {
  constexpr std::string_view kUnits[] = {"", "[ms]", "[us]", "[ns]"};
  std::string_view kind = "timestamp", unit = kUnits[leaf.unit];
  if (leaf.logical == kLogicalDate || leaf.converted == kDate) return "date";
  if (leaf.logical == kLogicalTime || leaf.converted == kTimeMillis || leaf.converted == kTimeMicros) kind = "time";
  if (unit.empty() && (leaf.converted == kTimeMillis || leaf.converted == kTimestampMillis)) unit = kUnits[1];
  if (unit.empty() && (leaf.converted == kTimeMicros || leaf.converted == kTimestampMicros)) unit = kUnits[2];
  return str_cat({kind, unit});
}

std::string leaf_text(const Element& leaf) {
  if (leaf.logical == kLogicalUnknown) return "null";
  if (leaf.physical == kInt96) return "INT96";
  if (is_temporal(leaf)) return time_text(leaf);
  if (leaf.converted == kDecimal || leaf.logical == kLogicalDecimal) return "decimal";
  if (const std::optional<ElementType> number = number_type(leaf)) return arrow_type_name(*number);
  return is_text(leaf) ? "string" : "binary";
}

class FooterParser {
 public:
  FooterParser(std::string_view metadata, int64_t offset, std::string_view file)
      : reader_(metadata, {file, -1, offset}), end_of_data_(offset) {}

  ParquetFooter parse() {
    bool has_schema = false, has_rows = false, has_groups = false;
    reader_.read_struct(0, "file metadata", [&](const Field& field) {
      switch (field.id) {
        case 2:
          has_schema = true;
          read_schema(field);
          break;
        case 3:
          has_rows = true;
          footer_.rows = reader_.read_int(field, "num_rows");
          break;
        case 4:
          has_groups = true;
          if (!has_schema) fail("the schema before the row groups", "none");
          read_row_groups(field);
          break;
        case 6: footer_.created_by = std::string(reader_.read_text(field, "created_by")); break;
        case 8: fail("a file that is not encrypted", "encryption_algorithm"); break;
        default: reader_.skip(field, 1, "file metadata"); break;
      }
    });
    reader_.cursor().expect_end("file metadata");
    if (!has_schema || !has_rows || !has_groups)
      fail("schema, num_rows and row_groups", has_schema ? "one less" : "no schema");
    int64_t rows = 0;
    for (const ParquetRowGroup& group : footer_.row_groups) rows += group.rows;
    check_disjoint();
    if (rows != footer_.rows)
      fail(str_cat({"num_rows ", rows, ", as the row groups have together"}), str_cat({footer_.rows}));
    return std::move(footer_);
  }

 private:
  using Field = ThriftReader::FieldHeader;

  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    reader_.cursor().fail(expected, found);
  }

  int64_t read_count(const Field& field, std::string_view what, int64_t most) {
    const int64_t value = reader_.read_int(field, what);
    if (value < 0 || value > most) fail(str_cat({what, " from 0 to ", most}), str_cat({value}));
    return value;
  }
  uint8_t read_enum(const Field& field, std::string_view what, uint8_t last) {
    return static_cast<uint8_t>(read_count(field, what, last));
  }

  void read_schema(const Field& field) {
    reader_.read_structs(field, "schema", [&](size_t count) {
      if (count > kMaxElements) fail(str_cat({"a schema of at most ", kMaxElements, " elements"}), str_cat({count}));
      elements_.push_back(read_element());
    });
    if (elements_.empty() || elements_[0].physical != kNone) fail("a schema that begins with a group", "none");
    size_t next = 1;
    for (int64_t child = 0; child < elements_[0].children; ++child) read_column(next);
    if (next != elements_.size())
      fail(str_cat({"a schema of ", next, " elements, as the numbers of children say"}), str_cat({elements_.size()}));
    footer_.leaves = static_cast<int32_t>(leaves_.size());
    footer_.by_name.resize(footer_.columns.size());
    std::iota(footer_.by_name.begin(), footer_.by_name.end(), 0);
    std::sort(footer_.by_name.begin(), footer_.by_name.end(), [&](int32_t a, int32_t b) {
      return footer_.columns[static_cast<size_t>(a)].name < footer_.columns[static_cast<size_t>(b)].name;
    });
  }

  Element read_element() {
    Element element;
    reader_.read_struct(2, "schema element", [&](const Field& field) {
      switch (field.id) {
        case 1: element.physical = read_enum(field, "type", kFixedLength); break;
        case 2: element.length = read_count(field, "type_length", std::numeric_limits<int32_t>::max()); break;
        case 3: element.repetition = read_enum(field, "repetition_type", kRepeated); break;
        case 4: element.name = std::string(reader_.read_text(field, "name of a column")); break;
        case 5: element.children = read_count(field, "num_children", std::numeric_limits<int32_t>::max()); break;
        case 6: element.converted = read_enum(field, "converted_type", 21); break;
        case 10: read_logical(field, element); break;
        default: reader_.skip(field, 3, "schema element"); break;
      }
    });
    return element;
  }

  void read_logical(const Field& field, Element& element) {
    reader_.expect(field, ThriftType::Struct, "logicalType");
    reader_.read_struct(3, "logicalType", [&](const Field& kind) {
      element.logical = kind.id;
      if (kind.id == kLogicalTime || kind.id == kLogicalTimestamp) return read_unit(kind, element);
      if (kind.id != kLogicalInteger) return reader_.skip(kind, 4, "logicalType");
      reader_.expect(kind, ThriftType::Struct, "integer type");
      reader_.read_struct(4, "integer type", [&](const Field& part) {
        if (part.id == 1)
          element.bits = reader_.read_int(part, "bitWidth");
        else if (part.id == 2)
          element.is_signed = reader_.read_bool(part, "isSigned");
        else
          reader_.skip(part, 5, "integer type");
      });
      const int64_t widest = element.physical == kInt64Type ? 64 : 32;
      if ((element.bits != 8 && element.bits != 16 && element.bits != 32 && element.bits != 64) ||
          element.bits > widest)
        fail("bitWidth 8, 16, 32 or 64 that fits the type", str_cat({element.bits}));
    });
  }

  void read_unit(const Field& field, Element& element) {
    reader_.expect(field, ThriftType::Struct, "type of a time");
    reader_.read_struct(4, "type of a time", [&](const Field& part) {
      if (part.id != 2) return reader_.skip(part, 5, "type of a time");
      reader_.expect(part, ThriftType::Struct, "unit of a time");
      reader_.read_struct(5, "unit of a time", [&](const Field& unit) {
        if (unit.id >= 1 && unit.id <= 3) element.unit = static_cast<size_t>(unit.id);
        reader_.skip(unit, 6, "unit of a time");
      });
    });
  }

  /** A top-level column: walks its subtree. */
  void read_column(size_t& next) {
    ParquetColumnInfo column;
    column.first_leaf = static_cast<int32_t>(leaves_.size());
    const size_t top = next;
    int lists = 0;
    bool structs = false;
    walk(next, 0, 0, column, lists, structs);
    const Element& root = elements_[top];
    column.name = root.name;
    column.leaf_count = static_cast<int32_t>(leaves_.size()) - column.first_leaf;
    if (column.leaf_count == 1 && lists <= 1 && !structs) {
      const Element& leaf = elements_[leaves_.back().element];
      column.list = lists == 1;
      column.number = number_type(leaf);
      column.all_missing = leaf.logical == kLogicalUnknown;
      column.temporal = column.number && is_temporal(leaf);
      column.type = column.list ? str_cat({"list<", leaf_text(leaf), ">"}) : leaf_text(leaf);
    } else {
      column.type = lists > 1 ? "list of lists" : lists == 1 ? "list of structs" : "struct";
    }
    footer_.columns.push_back(std::move(column));
  }

  // Lists are a group with a repeated group of one element (or, in old files, a repeated element): a group that is
  // neither is a struct.
  void walk(size_t& next, int depth, int repeated, ParquetColumnInfo& column, int& lists, bool& structs) {
    if (next >= elements_.size()) fail("an element for each child in the schema", "less");
    if (depth > kMaxTreeDepth) fail(str_cat({"columns in at most ", kMaxTreeDepth, " groups"}), "more");
    const Element& element = elements_[next];
    const size_t index = next++;
    column.nullable |= element.repetition == kOptional;
    repeated += element.repetition == kRepeated ? 1 : 0;
    lists = std::max(lists, repeated);
    if (element.physical != kNone) {
      if (element.children != 0) fail("no children of a column with a type", str_cat({element.children}));
      structs |= depth > 2 || (depth > 0 && repeated == 0);
      leaves_.push_back({index, repeated});
      return;
    }
    structs |= element.children != 1;
    for (int64_t child = 0; child < element.children; ++child) walk(next, depth + 1, repeated, column, lists, structs);
  }

  void read_row_groups(const Field& field) {
    int64_t first_row = 0;
    reader_.read_structs(field, "row_groups", [&](size_t) {
      ParquetRowGroup group;
      group.first_row = first_row;
      bool has_rows = false;
      reader_.read_struct(2, "row group", [&](const Field& part) {
        if (part.id == 1) {
          reader_.read_structs(part, "columns of a row group", [&](size_t count) {
            if (count != leaves_.size())
              fail(
                  str_cat({leaves_.size(), " columns in row group ", footer_.row_groups.size(), ", as the schema has"}),
                  str_cat({count}));
            group.chunks.push_back(read_chunk(group.chunks.size()));
          });
        } else if (part.id == 3) {
          has_rows = true;
          group.rows = read_count(part, "num_rows of a row group", kMaxGroupRows);
        } else {
          reader_.skip(part, 3, "row group");
        }
      });
      const size_t number = footer_.row_groups.size();
      if (!has_rows || group.chunks.size() != leaves_.size())
        fail(str_cat({"num_rows and ", leaves_.size(), " columns in row group ", number}),
             str_cat({group.chunks.size(), " columns"}));
      for (size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
        const int64_t values = group.chunks[leaf].values;
        // What readers compute with them cannot overflow.
        const int64_t most = std::min(kMaxValues, kMaxHotness * group.rows);
        if (values > most)
          fail(str_cat({"at most ", most, " values in column ", leaf, " of row group ", number, ", which has ",
                        group.rows, " rows"}),
               str_cat({values}));
        if (leaves_[leaf].repeated > 0 ? values < group.rows : values != group.rows)
          fail(str_cat({leaves_[leaf].repeated > 0 ? "at least " : "", group.rows, " values in column ", leaf,
                        " of row group ", number, ", which has so many rows"}),
               str_cat({values}));
      }
      first_row += group.rows;
      footer_.row_groups.push_back(std::move(group));
    });
  }

  ParquetChunk read_chunk(size_t leaf) {
    ParquetChunk chunk;
    bool has_metadata = false;
    reader_.read_struct(4, "column chunk", [&](const Field& field) {
      if (field.id == 1) {
        const std::string_view path = reader_.read_text(field, "file_path");
        if (!path.empty()) fail("columns in the file itself", str_cat({"file_path ", printable(path)}));
      } else if (field.id == 3) {
        has_metadata = true;
        read_chunk_metadata(field, leaf, chunk);
      } else if (field.id == 8 || field.id == 9) {
        fail("columns that are not encrypted", "an encrypted one");
      } else {
        reader_.skip(field, 5, "column chunk");
      }
    });
    if (!has_metadata) fail(str_cat({"metadata of column ", leaf}), "none");
    return chunk;
  }

  void read_chunk_metadata(const Field& metadata, size_t leaf, ParquetChunk& chunk) {
    reader_.expect(metadata, ThriftType::Struct, "metadata of a column");
    const Element& element = elements_[leaves_[leaf].element];
    uint32_t found = 0;  // bit i: field i
    int64_t data_page = 0, dictionary_page = 0;
    reader_.read_struct(5, "metadata of a column", [&](const Field& field) {
      if (field.id < 32) found |= uint32_t{1} << field.id;
      switch (field.id) {
        case 1: {
          const uint8_t type = read_enum(field, "type of a column", kFixedLength);
          if (type != element.physical)
            fail(str_cat({"type ", element.physical, " of column ", leaf, ", as in the schema"}), str_cat({type}));
          break;
        }
        case 2: {
          const auto list = reader_.read_list(field, ThriftType::I32, "encodings");
          for (size_t i = 0; i < list.size; ++i) {
            const int64_t encoding = reader_.read_zigzag("encodings");
            if (encoding < 0 || encoding > 31) fail("an encoding from 0 to 31", str_cat({encoding}));
            chunk.encodings |= uint32_t{1} << encoding;
          }
          break;
        }
        case 4: chunk.codec = read_enum(field, "codec", 7); break;
        case 5: chunk.values = read_count(field, "num_values", std::numeric_limits<int64_t>::max()); break;
        case 6: chunk.uncompressed = read_count(field, "total_uncompressed_size", kMaxChunkBytes); break;
        case 7: chunk.compressed = read_count(field, "total_compressed_size", kMaxChunkBytes); break;
        case 9: data_page = read_count(field, "data_page_offset", end_of_data_); break;
        case 12:
          reader_.expect(field, ThriftType::Struct, "statistics");
          reader_.read_struct(6, "statistics", [&](const Field& part) {
            if (part.id == 3)
              chunk.nulls = read_count(part, "null_count", std::numeric_limits<int64_t>::max());
            else
              reader_.skip(part, 7, "statistics");
          });
          break;
        case 11: dictionary_page = read_count(field, "dictionary_page_offset", end_of_data_); break;
        default: reader_.skip(field, 6, "metadata of a column"); break;
      }
    });
    constexpr uint32_t kNeeded = (1u << 1) | (1u << 4) | (1u << 5) | (1u << 6) | (1u << 7) | (1u << 9);
    if ((found & kNeeded) != kNeeded)
      fail(str_cat({"type, codec, num_values, sizes and data_page_offset of column ", leaf}), "less");
    const auto magic = static_cast<int64_t>(kMagic.size());
    // Some writers set the offset of a page that is not there to 0: of a dictionary, or of the data of no rows.
    const bool has_no_page = chunk.values == 0 && chunk.compressed == 0 && data_page == 0 && dictionary_page == 0;
    const bool has_data_page = chunk.values > 0 || data_page > 0;
    if (has_no_page)
      chunk.offset = magic;
    else if (dictionary_page > 0 && has_data_page)
      chunk.offset = std::min(dictionary_page, data_page);
    else
      chunk.offset = dictionary_page > 0 ? dictionary_page : data_page;
    if (chunk.offset < magic || chunk.compressed > end_of_data_ - chunk.offset)
      fail(str_cat({"column ", leaf, " of row group ", footer_.row_groups.size(), " between bytes ", magic, " and ",
                    end_of_data_}),
           str_cat({chunk.compressed, " bytes at ", chunk.offset}));
  }

  /** No byte belongs to two columns: an offset that was changed points into another one. */
  void check_disjoint() const {
    struct Range {
      int64_t begin, end;
      size_t group, leaf;
    };
    std::vector<Range> ranges;
    for (size_t g = 0; g < footer_.row_groups.size(); ++g)
      for (size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
        const ParquetChunk& chunk = footer_.row_groups[g].chunks[leaf];
        if (chunk.values == 0 && chunk.compressed == 0) continue;
        ranges.push_back({chunk.offset, chunk.offset + chunk.compressed, g, leaf});
      }
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < ranges.size(); ++i)
      if (ranges[i].begin < ranges[i - 1].end)
        fail("the columns of the row groups behind each other",
             str_cat({"column ", ranges[i].leaf, " of row group ", ranges[i].group, " at ", ranges[i].begin,
                      ", before the end of column ", ranges[i - 1].leaf, " of row group ", ranges[i - 1].group}));
  }

  struct Leaf {
    size_t element;
    int repeated;
  };

  ThriftReader reader_;
  int64_t end_of_data_;
  std::vector<Element> elements_;
  std::vector<Leaf> leaves_;
  ParquetFooter footer_;
};

}  // namespace

int64_t ParquetRowGroup::compressed_bytes() const {
  int64_t sum = 0;
  for (const ParquetChunk& chunk : chunks) sum += chunk.compressed;
  return sum;
}

int64_t ParquetRowGroup::uncompressed_bytes() const {
  int64_t sum = 0;
  for (const ParquetChunk& chunk : chunks) sum += chunk.uncompressed;
  return sum;
}

const ParquetColumnInfo* ParquetFooter::find(std::string_view name, std::string_view file) const {
  const auto at = [&](int32_t index) -> const ParquetColumnInfo& { return columns[static_cast<size_t>(index)]; };
  const auto found = std::lower_bound(by_name.begin(), by_name.end(), name,
                                      [&](int32_t index, std::string_view wanted) { return at(index).name < wanted; });
  if (found == by_name.end() || at(*found).name != name) return nullptr;
  TERCEL_CHECK(found + 1 == by_name.end() || at(found[1]).name != name, DataError, file, ": expected one column '",
               printable(name), "', found several");
  return &at(*found);
}

std::string parquet_codec_name(uint8_t codec) {
  constexpr std::string_view kNames[] = {"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"};
  return codec < std::size(kNames) ? std::string(kNames[codec]) : str_cat({"codec ", codec});
}

std::string parquet_encoding_names(uint32_t encodings) {
  constexpr std::string_view kNames[] = {"PLAIN",
                                         "",
                                         "PLAIN_DICTIONARY",
                                         "RLE",
                                         "BIT_PACKED",
                                         "DELTA_BINARY_PACKED",
                                         "DELTA_LENGTH_BYTE_ARRAY",
                                         "DELTA_BYTE_ARRAY",
                                         "RLE_DICTIONARY",
                                         "BYTE_STREAM_SPLIT"};
  std::string text;
  for (size_t i = 0; i < 32; ++i) {
    if ((encodings >> i & 1) == 0) continue;
    const bool known = i < std::size(kNames) && !kNames[i].empty();
    text += (text.empty() ? "" : ", ") + (known ? std::string(kNames[i]) : str_cat({"encoding ", i}));
  }
  return text;
}

ParquetFooter parse_parquet_footer(std::string_view metadata, int64_t offset, std::string_view file) {
  return FooterParser(metadata, offset, file).parse();
}

ParquetFooter read_parquet_footer(const RandomAccessFile& file) {
  const std::string name = printable(file.path());
  const int64_t size = file.size();
  const auto head_bytes = static_cast<int64_t>(kMagic.size());
  TERCEL_CHECK(size >= head_bytes + kTailBytes, DataError, name, ": expected a Parquet file, at least ",
               head_bytes + kTailBytes, " bytes, found ", size);
  const auto read = [&](void* out, int64_t bytes, int64_t offset) {
    const size_t found = file.read_at(out, static_cast<size_t>(bytes), offset);
    TERCEL_CHECK(static_cast<int64_t>(found) == bytes, DataError, name, ": byte ", offset, ": expected ", bytes,
                 " more bytes, found ", found);
  };
  char head[4], tail[kTailBytes];
  read(head, head_bytes, 0);
  read(tail, kTailBytes, size - kTailBytes);
  const std::string_view first(head, 4), last(tail + 4, 4);
  TERCEL_CHECK(last != kEncryptedMagic, DataError, name, ": expected a file that is not encrypted, found the magic ",
               "number of an encrypted one");
  TERCEL_CHECK(first == kMagic, DataError, name, ": byte 0: expected the magic number PAR1 of a Parquet file, found '",
               printable(first), "'");
  TERCEL_CHECK(last == kMagic, DataError, name, ": byte ", size - head_bytes,
               ": expected the magic number PAR1 at the end, found '", printable(last),
               "': the file is cut off, or still being written");
  uint32_t length = 0;
  std::memcpy(&length, tail, sizeof(length));
  const int64_t most = std::min(size - head_bytes - kTailBytes, kMaxMetadataBytes);
  TERCEL_CHECK(length > 0 && length <= most, DataError, name, ": byte ", size - kTailBytes,
               ": expected the length of the metadata, 1 to ", most, ", found ", length);
  std::string metadata(length, '\0');
  const int64_t offset = size - kTailBytes - length;
  read(metadata.data(), length, offset);
  return parse_parquet_footer(metadata, offset, name);
}

}  // namespace tercel::data
