#include "tercel/io/npy_records.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "tercel/io/npy_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::io {

namespace {

/** A text as a literal of Python in ASCII: headers of version 1.0 have no other characters. */
std::string python_literal(std::string_view text) {
  std::string out = "'";
  for (const char32_t point : code_points(text)) {
    char escaped[16];
    if (point == '\'' || point == '\\') out += '\\';
    if (point >= 0x20 && point < 0x7f) {
      out += static_cast<char>(point);
      continue;
    }
    const char* const format = point < 0x10000 ? "\\u%04x" : "\\U%08x";
    out.append(escaped,
               static_cast<size_t>(std::snprintf(escaped, sizeof(escaped), format, static_cast<unsigned>(point))));
  }
  return out + "'";
}

std::string descr_of(const std::vector<NpyField>& fields) {
  TERCEL_CHECK(!fields.empty(), ValueError, "NpyRecordWriter: expected fields, found none");
  std::string descr = "[";
  for (size_t f = 0; f < fields.size(); ++f) {
    const std::string& name = fields[f].name;
    TERCEL_CHECK(!name.empty() && fields[f].bytes > 0, ValueError, "NpyRecordWriter: field ", f,
                 ": expected a name and a size");
    for (size_t before = 0; before < f; ++before)
      TERCEL_CHECK(fields[before].name != name, ValueError, "NpyRecordWriter: expected different names, found '",
                   printable(name), "' twice");
    descr += str_cat({f == 0 ? "" : ", ", "(", python_literal(name), ", '", fields[f].type, "')"});
  }
  return descr + "]";
}

}  // namespace

std::u32string code_points(std::string_view text) {
  TERCEL_CHECK(is_utf8(text), ValueError, "expected text in UTF-8, found '", printable(text), "'");
  std::u32string points;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    char32_t point = bytes == 1 ? first : first & (0xff >> (bytes + 1));
    for (size_t k = 1; k < bytes; ++k) point = point << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3f);
    points += point;
    i += bytes;
  }
  return points;
}

NpyRecordWriter::NpyRecordWriter(const std::string& path, const std::vector<NpyField>& fields)
    : file_(path), descr_(descr_of(fields)) {
  for (const NpyField& field : fields) record_bytes_ += field.bytes;
  file_.write(header(0));
}

void NpyRecordWriter::write(const void* records, int64_t count) {
  file_.write(records, static_cast<size_t>(count * record_bytes_));
  records_ += count;
}

void NpyRecordWriter::commit() {
  const std::string text = header(records_);
  file_.writer().rewrite(0, text.data(), text.size());
  file_.commit();
}

/** Has the same length for any number of records. */
std::string NpyRecordWriter::header(int64_t records) const { return npy_header_of(descr_, false, {records}); }

}  // namespace tercel::io
