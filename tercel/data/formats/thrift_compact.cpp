#include <string>

#include "tercel/data/formats/thrift_compact_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr int kMaxDepth = 32;  // of structs and lists; the metadata of Parquet nests to 8

std::string type_text(ThriftType type) {
  constexpr std::string_view kNames[] = {"stop",   "true",   "false", "byte", "i16", "i32",    "i64",
                                         "double", "binary", "list",  "set",  "map", "struct", "uuid"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(kNames) ? std::string(kNames[index]) : str_cat({"type ", index});
}

}  // namespace

void ThriftReader::check_depth(int depth, std::string_view what) const {
  if (depth > kMaxDepth) cursor_.fail(str_cat({what, " in at most ", kMaxDepth, " structs and lists"}), "more");
}

uint64_t ThriftReader::read_varint(std::string_view what) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = cursor_.read<uint8_t>(what);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  cursor_.fail(str_cat({what, ": an integer of at most 10 bytes"}), "more");
}

int64_t ThriftReader::read_zigzag(std::string_view what) {
  const uint64_t value = read_varint(what);
  return static_cast<int64_t>((value >> 1) ^ (0 - (value & 1)));
}

ThriftReader::FieldHeader ThriftReader::read_field(int32_t last_id, std::string_view what) {
  const auto byte = cursor_.read<uint8_t>(what);
  FieldHeader header;
  header.type = static_cast<ThriftType>(byte & 0xf);
  if (header.type == ThriftType::Stop) return header;
  if (header.type > ThriftType::Uuid)
    cursor_.fail(str_cat({what, ": a field of a known type"}), type_text(header.type));
  const int delta = byte >> 4;
  const int64_t id = delta != 0 ? last_id + delta : read_zigzag(what);
  // Ids of ours are small; a struct has each field once, in ascending order.
  if (id <= last_id || id > INT16_MAX)
    cursor_.fail(str_cat({what, ": a field behind field ", last_id}), str_cat({"field ", id}));
  header.id = static_cast<int32_t>(id);
  return header;
}

ThriftReader::ListHeader ThriftReader::read_list_header(std::string_view what) {
  const auto byte = cursor_.read<uint8_t>(what);
  ListHeader list;
  list.type = static_cast<ThriftType>(byte & 0xf);
  const uint64_t size = byte >> 4 == 15 ? read_varint(what) : static_cast<uint64_t>(byte >> 4);
  // Each element has at least one byte: a bool, an integer, an empty text or the end of a struct.
  list.size = cursor_.check_count(size, 1, what);
  return list;
}

ThriftReader::ListHeader ThriftReader::read_list(const FieldHeader& header, ThriftType elements,
                                                 std::string_view what) {
  expect(header, ThriftType::List, what);
  const ListHeader list = read_list_header(what);
  if (list.type != elements && list.size > 0)
    cursor_.fail(str_cat({what, ": a list of ", type_text(elements)}), type_text(list.type));
  return list;
}

void ThriftReader::expect(const FieldHeader& header, ThriftType type, std::string_view what) const {
  if (header.type != type) cursor_.fail(str_cat({what, ": ", type_text(type)}), type_text(header.type));
}

int64_t ThriftReader::read_int(const FieldHeader& header, std::string_view what) {
  switch (header.type) {
    case ThriftType::Byte: return cursor_.read<int8_t>(what);
    case ThriftType::I16:
    case ThriftType::I32:
    case ThriftType::I64: return read_zigzag(what);
    default: cursor_.fail(str_cat({what, ": an integer"}), type_text(header.type));
  }
}

bool ThriftReader::read_bool(const FieldHeader& header, std::string_view what) {
  if (header.type != ThriftType::True && header.type != ThriftType::False)
    cursor_.fail(str_cat({what, ": a bool"}), type_text(header.type));
  return header.type == ThriftType::True;
}

std::string_view ThriftReader::read_text_element(std::string_view what) {
  const uint64_t size = read_varint(what);
  return cursor_.text(cursor_.check_count(size, 1, what), what);
}

std::string_view ThriftReader::read_text(const FieldHeader& header, std::string_view what) {
  expect(header, ThriftType::Binary, what);
  return read_text_element(what);
}

void ThriftReader::skip(const FieldHeader& header, int depth, std::string_view what) {
  if (header.type == ThriftType::True || header.type == ThriftType::False) return;
  skip_value(header.type, depth, what);
}

void ThriftReader::skip_value(ThriftType type, int depth, std::string_view what) {
  switch (type) {
    case ThriftType::True:  // of a list: a byte each
    case ThriftType::False:
    case ThriftType::Byte: cursor_.skip(1, what); return;
    case ThriftType::I16:
    case ThriftType::I32:
    case ThriftType::I64: static_cast<void>(read_varint(what)); return;
    case ThriftType::Double: cursor_.skip(8, what); return;
    case ThriftType::Uuid: cursor_.skip(16, what); return;
    case ThriftType::Binary: static_cast<void>(read_text_element(what)); return;
    case ThriftType::List:
    case ThriftType::Set: {
      check_depth(depth, what);
      const ListHeader list = read_list_header(what);
      for (size_t i = 0; i < list.size; ++i) skip_value(list.type, depth + 1, what);
      return;
    }
    case ThriftType::Map: {
      check_depth(depth, what);
      const uint64_t count = read_varint(what);
      const size_t size = cursor_.check_count(count, 1, what);
      if (size == 0) return;
      const auto types = cursor_.read<uint8_t>(what);
      for (size_t i = 0; i < size; ++i) {
        skip_value(static_cast<ThriftType>(types >> 4), depth + 1, what);
        skip_value(static_cast<ThriftType>(types & 0xf), depth + 1, what);
      }
      return;
    }
    case ThriftType::Struct:
      read_struct(depth, what, [&](const FieldHeader& field) { skip(field, depth + 1, what); });
      return;
    case ThriftType::Stop: break;
  }
  cursor_.fail(str_cat({what, ": a value of a known type"}), type_text(type));
}

}  // namespace tercel::data
