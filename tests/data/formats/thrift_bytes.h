// Metadata of Parquet files as bytes, encoded here without the library under test.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tercel::data::test {

inline std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}

inline std::string zigzag(int64_t value) {
  return varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
}

/** A struct of Thrift's compact protocol; fields are added in ascending order. */
class ThriftStruct {
 public:
  ThriftStruct& integer(int id, int64_t value) { return field(id, 6, zigzag(value)); }
  ThriftStruct& text(int id, const std::string& value) { return field(id, 8, varint(value.size()) + value); }
  ThriftStruct& boolean(int id, bool value) { return field(id, value ? 1 : 2, ""); }
  ThriftStruct& object(int id, const ThriftStruct& value) { return field(id, 12, value.bytes()); }
  ThriftStruct& objects(int id, const std::vector<ThriftStruct>& values) {
    std::string content;
    for (const ThriftStruct& value : values) content += value.bytes();
    return list(id, 12, values.size(), content);
  }
  ThriftStruct& integers(int id, const std::vector<int64_t>& values) {
    std::string content;
    for (const int64_t value : values) content += zigzag(value);
    return list(id, 5, values.size(), content);
  }
  /** A list that says it has `size` elements of a type. */
  ThriftStruct& list(int id, int type, uint64_t size, const std::string& content) {
    const std::string head = size < 15 ? std::string(1, static_cast<char>(size << 4 | static_cast<uint64_t>(type)))
                                       : std::string(1, static_cast<char>(0xf0 | type)) + varint(size);
    return field(id, 9, head + content);
  }
  ThriftStruct& field(int id, int type, const std::string& value) {
    if (id > last_ && id - last_ < 16)
      bytes_ += static_cast<char>((id - last_) << 4 | type);
    else
      bytes_ += static_cast<char>(type) + zigzag(id);
    bytes_ += value;
    last_ = id;
    return *this;
  }
  std::string bytes() const { return bytes_ + '\0'; }

 private:
  std::string bytes_;
  int last_ = 0;
};

/** What the metadata of a column says; changed to lie. */
struct ChunkBytes {
  int64_t type = 2, codec = 1, values = 10, uncompressed = 100, compressed = 80, offset = 4, dictionary = 0;

  ThriftStruct encode() const {
    ThriftStruct metadata;
    metadata.integer(1, type).integers(2, {0, 8}).integer(4, codec).integer(5, values).integer(6, uncompressed);
    metadata.integer(7, compressed).integer(9, offset);
    if (dictionary != 0) metadata.integer(11, dictionary);
    return ThriftStruct().integer(2, 0).object(3, metadata);
  }
};

/** An element of the schema: a leaf, or a group with children. */
inline ThriftStruct leaf(const std::string& name, int64_t type = 2, int64_t repetition = 0) {
  return ThriftStruct().integer(1, type).integer(3, repetition).text(4, name);
}
inline ThriftStruct group(const std::string& name, int64_t children, int64_t repetition = 0) {
  return ThriftStruct().integer(3, repetition).text(4, name).integer(5, children);
}

/** A file of these columns. */
struct FooterBytes {
  std::vector<ThriftStruct> schema{group("schema", 1), leaf("k")};
  std::vector<std::vector<ChunkBytes>> row_groups{{ChunkBytes()}};
  std::vector<int64_t> group_rows{10};
  int64_t rows = 10;

  std::string encode() const {
    std::vector<ThriftStruct> groups;
    for (size_t g = 0; g < row_groups.size(); ++g) {
      std::vector<ThriftStruct> chunks;
      for (const ChunkBytes& chunk : row_groups[g]) chunks.push_back(chunk.encode());
      groups.push_back(ThriftStruct().objects(1, chunks).integer(2, 0).integer(3, group_rows[g]));
    }
    return ThriftStruct().integer(1, 2).objects(2, schema).integer(3, rows).objects(4, groups).text(6, "here").bytes();
  }
};

}  // namespace tercel::data::test
