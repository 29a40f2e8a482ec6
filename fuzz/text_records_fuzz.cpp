// Any text is records or a DataError, the same for every size of pieces; quoted records survive a round trip. The first
// byte of the input selects the dialect of the rest.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/text_records_impl.h"
#include "tercel/util/error.h"

namespace {

using tercel::data::RecordReader;
using tercel::data::TextDialect;

struct Outcome {
  std::vector<std::vector<std::string>> records;
  std::string error;  // empty: everything was read
};

void read(std::string_view text, const TextDialect& dialect, int64_t lines_before, Outcome& outcome) {
  RecordReader reader(text, dialect, "fuzz", lines_before);
  int64_t line = lines_before;
  try {
    while (reader.next()) {
      if (reader.line() <= line || reader.columns().empty()) std::abort();
      line = reader.line();
      outcome.records.emplace_back();
      for (const std::string_view column : reader.columns()) outcome.records.back().emplace_back(column);
    }
  } catch (const tercel::DataError& error) {
    outcome.error = error.what();
  }
}

/** Reads a text that arrives in pieces, each as soon as it has whole records. */
Outcome read_pieces(std::string_view text, const TextDialect& dialect, size_t piece) {
  Outcome outcome;
  std::string rest;
  int64_t lines = 0;
  while ((!text.empty() || !rest.empty()) && outcome.error.empty()) {
    rest += text.substr(0, piece);
    text.remove_prefix(std::min(piece, text.size()));
    const size_t mark = lines == 0 ? tercel::data::byte_order_mark(rest) : 0;
    const size_t records = tercel::data::whole_records(std::string_view(rest).substr(mark), dialect);
    const size_t end = text.empty() ? rest.size() : records == 0 ? 0 : mark + records;
    if (end > rest.size()) std::abort();
    const std::string whole = rest.substr(0, end);
    rest.erase(0, end);
    read(whole, dialect, lines, outcome);
    lines += std::count(whole.begin(), whole.end(), '\n');
  }
  return outcome;
}

std::string quoted(const std::vector<std::vector<std::string>>& records, char delimiter) {
  std::string text;
  for (const std::vector<std::string>& record : records) {
    for (size_t i = 0; i < record.size(); ++i) {
      if (i > 0) text += delimiter;
      text += '"';
      for (const char c : record[i]) text += c == '"' ? std::string("\"\"") : std::string(1, c);
      text += '"';
    }
    text += '\n';
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t how = data[0];
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  constexpr char kDelimiters[] = {'\t', ',', ';', ' '};
  TextDialect dialect;
  dialect.delimiter = kDelimiters[how & 3];
  dialect.quotes = (how & 4) != 0;
  dialect.trim = (how & 8) != 0;
  dialect.skip_blank = (how & 16) != 0;
  if ((how & 32) != 0) dialect.comment = "#";
  if ((how & 64) != 0) {
    dialect = TextDialect();
    dialect.skip_blank = dialect.blanks = true;
  }
  Outcome whole;
  read(text, dialect, 0, whole);
  const Outcome small = read_pieces(text, dialect, 3);
  // Where a text is wrong, it may be found in a piece that ends later.
  if (whole.error.empty() != small.error.empty()) std::abort();
  if (whole.error.empty() && whole.records != small.records) std::abort();
  if (!dialect.quotes && !whole.error.empty()) std::abort();

  // A carriage return at the end of a line inside quotes is dropped, so one that was read elsewhere may be lost; quotes
  // protect blank lines and blanks.
  const bool has_return = text.find('\r') != std::string_view::npos;
  if (has_return) return 0;
  dialect.quotes = true;
  dialect.blanks = false;
  dialect.comment.clear();
  Outcome again;
  read(quoted(whole.records, dialect.delimiter), dialect, 0, again);
  if (!again.error.empty() || again.records != whole.records) std::abort();
  return 0;
}
