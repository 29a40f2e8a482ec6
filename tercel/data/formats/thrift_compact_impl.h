// Thrift's compact protocol, as far as Parquet's metadata needs it: bounds-checked reading. Private.
#pragma once

#include <cstdint>
#include <string_view>

#include "tercel/util/cursor.h"

namespace tercel::data {

enum class ThriftType : uint8_t {
  Stop = 0,
  True = 1,
  False = 2,
  Byte = 3,
  I16 = 4,
  I32 = 5,
  I64 = 6,
  Double = 7,
  Binary = 8,
  List = 9,
  Set = 10,
  Map = 11,
  Struct = 12,
  Uuid = 13,
};

/** Reads values from bytes that may be damaged; DataError with the byte. */
class ThriftReader {
 public:
  struct FieldHeader {
    ThriftType type = ThriftType::Stop;
    int32_t id = 0;
  };
  struct ListHeader {
    ThriftType type = ThriftType::Stop;
    size_t size = 0;
  };

  ThriftReader(std::string_view bytes, const CursorContext& context) : cursor_(bytes, context) {}

  /**
   * Calls field(header) for each field of a struct, which must read or skip() its value. `depth` is that of the struct.
   */
  template <class Field>
  void read_struct(int depth, std::string_view what, Field field) {
    check_depth(depth, what);
    int32_t id = 0;
    while (true) {
      const FieldHeader header = read_field(id, what);
      if (header.type == ThriftType::Stop) return;
      id = header.id;
      field(header);
    }
  }
  /** Calls element() for each of the list's elements, which must be structs. */
  template <class Element>
  void read_structs(const FieldHeader& header, std::string_view what, Element element) {
    const ListHeader list = read_list(header, ThriftType::Struct, what);
    for (size_t i = 0; i < list.size; ++i) element(list.size);
  }

  /** The header of a list whose elements have a type. */
  ListHeader read_list(const FieldHeader& header, ThriftType elements, std::string_view what);
  /** An integer of any width. */
  int64_t read_int(const FieldHeader& header, std::string_view what);
  /** An element of a list of i32 or i64. */
  int64_t read_zigzag(std::string_view what);
  bool read_bool(const FieldHeader& header, std::string_view what);
  std::string_view read_text(const FieldHeader& header, std::string_view what);
  /** An element of a list of binaries. */
  std::string_view read_text_element(std::string_view what);
  void expect(const FieldHeader& header, ThriftType type, std::string_view what) const;
  void skip(const FieldHeader& header, int depth, std::string_view what);
  const ByteCursor& cursor() const { return cursor_; }

 private:
  FieldHeader read_field(int32_t last_id, std::string_view what);
  ListHeader read_list_header(std::string_view what);
  uint64_t read_varint(std::string_view what);
  void skip_value(ThriftType type, int depth, std::string_view what);
  void check_depth(int depth, std::string_view what) const;

  ByteCursor cursor_;
};

}  // namespace tercel::data
