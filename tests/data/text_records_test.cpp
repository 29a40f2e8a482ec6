#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>

#include "tercel/data/text_records_impl.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"

namespace tercel::data {
namespace {

using namespace std::string_literals;

/** A text in pieces of a few bytes, as a pipe might deliver it. */
class PiecewiseText : public ByteReader {
 public:
  explicit PiecewiseText(std::string text, size_t piece = 7) : text_(std::move(text)), piece_(piece) {}
  size_t read_some(void* out, size_t bytes) override {
    const size_t count = std::min({bytes, piece_, text_.size() - next_});
    std::memcpy(out, text_.data() + next_, count);
    next_ += count;
    return count;
  }
  const std::string& name() const override { return name_; }

 private:
  std::string text_;
  size_t piece_;
  size_t next_ = 0;
  std::string name_ = "t";
};

using Records = std::vector<std::vector<std::string>>;

Records read(const std::string& text, const TextDialect& dialect) {
  PiecewiseText source(text);
  RecordReader reader(source, dialect, "t");
  Records records;
  while (reader.next()) {
    records.emplace_back();
    for (const std::string_view column : reader.columns()) records.back().emplace_back(column);
  }
  return records;
}

constexpr TextDialect kTabs{'\t', false, false, false};
constexpr TextDialect kCsv{',', true, false, true};
constexpr TextDialect kTrimmedCsv{',', true, true, true};

TEST(RecordReader, SplitsAtDelimiters) {
  EXPECT_EQ(read("", kTabs), Records{});
  EXPECT_EQ(read("a\tb\n", kTabs), (Records{{"a", "b"}}));
  EXPECT_EQ(read("a\tb", kTabs), (Records{{"a", "b"}})) << "no end of the last line";
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "a\r\n\tb\t\r\n",
                 kTabs),
            (Records{{"a"}, {"", "b", ""}}))
      << "BOM and CRLF";
  EXPECT_EQ(read("\n \n", kTabs), (Records{{""}, {" "}}));
  EXPECT_EQ(read("\"a\tb\"\n", kTabs), (Records{{"\"a", "b\""}})) << "quotes are text where there are none";
  EXPECT_EQ(read("\xff\xfe\t\0\n"s, kTabs), (Records{{"\xff\xfe", "\0"s}})) << "bytes are bytes";
}

TEST(RecordReader, ReadsQuotedColumns) {
  EXPECT_EQ(read("\"a,b\",c\n", kCsv), (Records{{"a,b", "c"}}));
  EXPECT_EQ(read("\"say \"\"hi\"\"\",\"\"\n", kCsv), (Records{{"say \"hi\"", ""}}));
  EXPECT_EQ(read("1,\"two\nlines\r\nand a third\",3\nnext,\"x\"", kCsv),
            (Records{{"1", "two\nlines\nand a third", "3"}, {"next", "x"}}));
  EXPECT_EQ(read("a\"b,\"c\"\n", kCsv), (Records{{"a\"b", "c"}})) << "a quote inside a column is text";
  EXPECT_EQ(read("\"a\",\n,\"b\"\n", kCsv), (Records{{"a", ""}, {"", "b"}}));
  EXPECT_EQ(read("a,\"\n\"\n\n  \nb,\"\"\n", kCsv), (Records{{"a", "\n"}, {"b", ""}})) << "blank lines are skipped";
  EXPECT_EQ(read("a, \"b\"\n", kCsv), (Records{{"a", " \"b\""}})) << "a blank before a quote makes it text";
  EXPECT_EQ(read(" a\t, \" b \" ,\"c\"\n", kTrimmedCsv), (Records{{"a", " b ", "c"}}))
      << "blanks inside quotes are kept";
}

TEST(RecordReader, DelimitersAreNotBlanks) {
  const TextDialect tabs{'\t', true, true, true};
  EXPECT_EQ(read(" a \t\t \"b\" \t\t\"\"\n\t\t\n \n", tabs), (Records{{"a", "", "b", "", ""}, {"", "", ""}}));
}

TEST(RecordReader, SaysWhereQuotesAreWrong) {
  TERCEL_EXPECT_THROW(read("a,b\n\n1,\"x\"y\n", kCsv), DataError, "t: line 3: column 2: expected the delimiter");
  TERCEL_EXPECT_THROW(read("a\n\"b\nc\nd", kCsv), DataError,
                      "t: line 2: column 1: expected a closing quote, found the end");
}

TEST(RecordReader, BoundsLinesAndRecords) {
  EXPECT_EQ(read(std::string(kMaxLineBytes, 'x') + "\ny", kTabs).size(), 2u);
  TERCEL_EXPECT_THROW(read("a\n" + std::string(kMaxLineBytes + 1, 'x') + "\n", kTabs), DataError,
                      "t: line 2: expected at most 1048576");
  std::string endless = "a\n\"";
  while (endless.size() < kMaxRecordBytes + 100) endless += std::string(1000, 'x') + "\n";
  TERCEL_EXPECT_THROW(read(endless, kCsv), DataError, "t: line 2: expected a record of at most 4194304 bytes");
}

TEST(RecordReader, CountsLinesNotRecords) {
  PiecewiseText source("skipped\n\"a\n\nb\",1\n\nc,2\n");
  RecordReader reader(source, kCsv, "t");
  ASSERT_TRUE(reader.skip_line());
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.line(), 2);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.line(), 6);
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.skip_line());
}

RC_GTEST_PROP(RecordReader, ReadsWhatAWriterThatQuotesEverythingWrote,
              (const std::vector<std::vector<std::string>>& table)) {
  std::string text;
  Records wanted;
  for (std::vector<std::string> row : table) {
    if (row.empty()) continue;
    for (size_t i = 0; i < row.size(); ++i) {
      // Every line end inside quotes is read as "\n".
      std::erase(row[i], '\r');
      text += i > 0 ? ",\"" : "\"";
      for (const char c : row[i]) text += c == '"' ? "\"\""s : std::string(1, c);
      text += '"';
    }
    text += "\r\n";
    wanted.push_back(row);
  }
  RC_ASSERT(read(text, kCsv) == wanted);
}

}  // namespace
}  // namespace tercel::data
