#include <algorithm>
#include <cstring>
#include <utility>

#include "tercel/data/text_records_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr char kQuote = '"';

}  // namespace

RecordReader::RecordReader(ByteReader& source, const TextDialect& dialect, std::string name)
    : lines_(source, kMaxLineBytes), dialect_(dialect), name_(std::move(name)) {}

// A delimiter is never blank: in a table of tabs, empty columns are columns.
bool RecordReader::is_space(char c) const { return (c == ' ' || c == '\t') && c != dialect_.delimiter; }

bool RecordReader::is_blank(std::string_view line) const {
  for (const char c : line)
    if (!is_space(c)) return false;
  return true;
}

std::string_view RecordReader::trimmed(std::string_view text) const {
  if (!dialect_.trim) return text;
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool RecordReader::skip_line() {
  std::string_view line;
  return lines_.next(line);
}

bool RecordReader::next() {
  std::string_view line;
  do {
    if (!lines_.next(line)) return false;
  } while (dialect_.skip_blank && is_blank(line));
  line_ = lines_.line_number();
  if (dialect_.quotes && std::memchr(line.data(), kQuote, line.size()) != nullptr)
    split_quoted(line);
  else
    split(line);
  return true;
}

void RecordReader::split(std::string_view line) {
  columns_.clear();
  const char* begin = line.data();
  const char* const end = begin + line.size();
  for (;;) {
    const void* const found =
        begin < end ? std::memchr(begin, dialect_.delimiter, static_cast<size_t>(end - begin)) : nullptr;
    const char* const stop = found != nullptr ? static_cast<const char*>(found) : end;
    columns_.push_back(trimmed({begin, static_cast<size_t>(stop - begin)}));
    if (found == nullptr) return;
    begin = stop + 1;
  }
}

// Parses a record, which may span several lines, in one pass.
void RecordReader::split_quoted(std::string_view line) {
  unquoted_.clear();
  ends_.clear();
  size_t i = 0;
  for (bool more = true; more;) {
    const size_t start = i;
    if (dialect_.trim)
      while (i < line.size() && is_space(line[i])) ++i;
    if (i < line.size() && line[i] == kQuote) {
      ++i;
      for (;;) {
        if (i == line.size()) {
          unquoted_ += '\n';
          if (unquoted_.size() > kMaxRecordBytes)
            fail(str_cat({"a record of at most ", kMaxRecordBytes, " bytes"}), "more (is a closing quote missing?)");
          if (!lines_.next(line)) fail(ends_.size(), {}, "a closing quote", "the end of the file");
          i = 0;
          continue;
        }
        if (line[i] != kQuote) {
          unquoted_ += line[i++];
          continue;
        }
        ++i;
        if (i == line.size() || line[i] != kQuote) break;
        unquoted_ += kQuote;
        ++i;
      }
      if (dialect_.trim)
        while (i < line.size() && is_space(line[i])) ++i;
      if (i < line.size() && line[i] != dialect_.delimiter)
        fail(ends_.size(), {}, "the delimiter or the end of the line behind a closing quote",
             "'" + printable(line.substr(i, 1)) + "'");
    } else {
      i = std::min(line.find(dialect_.delimiter, start), line.size());
      unquoted_ += trimmed(line.substr(start, i - start));
    }
    ends_.push_back(unquoted_.size());
    more = i < line.size();
    ++i;
  }
  columns_.clear();
  size_t begin = 0;
  for (const size_t end : ends_) {
    columns_.emplace_back(unquoted_.data() + begin, end - begin);
    begin = end;
  }
}

void RecordReader::fail(size_t column, std::string_view label, std::string_view expected,
                        std::string_view found) const {
  // Without a header, a column's name is its number.
  const std::string text =
      label.empty() || label == std::to_string(column + 1) ? std::string() : " (" + printable(label) + ")";
  throw_error<DataError>(
      {printable(name_), ": line ", line_, ": column ", column + 1, text, ": expected ", expected, ", found ", found});
}

void RecordReader::fail(std::string_view expected, std::string_view found) const {
  throw_error<DataError>({printable(name_), ": line ", line_, ": expected ", expected, ", found ", found});
}

}  // namespace tercel::data
