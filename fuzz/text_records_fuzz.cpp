// Any text is records or a DataError, the same for every size of reads; quoted records survive a round trip. The first
// byte of the input selects the dialect of the rest.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/text_records_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/file_stream.h"

namespace {

using tercel::data::RecordReader;
using tercel::data::TextDialect;

class Pieces : public tercel::ByteReader {
 public:
  Pieces(std::string_view text, size_t piece) : text_(text), piece_(piece) {}
  size_t read_some(void* out, size_t bytes) override {
    const size_t count = std::min({bytes, piece_, text_.size()});
    std::memcpy(out, text_.data(), count);
    text_.remove_prefix(count);
    return count;
  }
  const std::string& name() const override { return name_; }

 private:
  std::string_view text_;
  size_t piece_;
  std::string name_ = "fuzz";
};

struct Outcome {
  std::vector<std::vector<std::string>> records;
  std::string error;  // empty: everything was read
};

Outcome read_all(std::string_view text, const TextDialect& dialect, size_t piece) {
  Pieces source(text, piece);
  RecordReader reader(source, dialect, "fuzz");
  Outcome outcome;
  int64_t line = 0;
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
  TextDialect dialect{kDelimiters[how & 3], (how & 4) != 0, (how & 8) != 0, (how & 16) != 0};
  const Outcome whole = read_all(text, dialect, size_t{1} << 20), small = read_all(text, dialect, 3);
  if (whole.records != small.records || whole.error != small.error) std::abort();
  if (!dialect.quotes && !whole.error.empty()) std::abort();

  // A carriage return at the end of a line inside quotes is dropped, so one that was read elsewhere may be lost; quotes
  // protect blank lines and blanks.
  const bool has_return = text.find('\r') != std::string_view::npos;
  if (has_return) return 0;
  dialect.quotes = true;
  const Outcome again = read_all(quoted(whole.records, dialect.delimiter), dialect, 1000);
  if (!again.error.empty() || again.records != whole.records) std::abort();
  return 0;
}
