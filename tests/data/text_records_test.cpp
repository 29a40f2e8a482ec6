#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "tercel/data/text_records_impl.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"

namespace tercel::data {
namespace {

using namespace std::string_literals;

using Records = std::vector<std::vector<std::string>>;

Records read(std::string_view text, const TextDialect& dialect, int64_t lines_before = 0) {
  RecordReader reader(text, dialect, "t", lines_before);
  Records records;
  while (reader.next()) {
    records.emplace_back();
    for (const std::string_view column : reader.columns()) records.back().emplace_back(column);
  }
  return records;
}

/** The records of a text that arrives a few bytes at a time, each piece read as soon as it has whole records. */
Records read_in_pieces(const std::string& text, const TextDialect& dialect, size_t piece) {
  Records records;
  std::string rest;
  int64_t lines = 0;
  const auto take = [&](size_t bytes) {
    const std::string whole = rest.substr(0, bytes);
    rest.erase(0, bytes);
    for (std::vector<std::string>& record : read(whole, dialect, lines)) records.push_back(std::move(record));
    lines += std::count(whole.begin(), whole.end(), '\n');
  };
  for (size_t at = 0; at < text.size(); at += piece) {
    rest += text.substr(at, piece);
    take(whole_records(rest, dialect));
  }
  take(rest.size());
  return records;
}

const TextDialect kTabs{'\t', false, false, false};
const TextDialect kCsv{',', true, false, true};
const TextDialect kTrimmedCsv{',', true, true, true};

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
  RecordReader reader("skipped\n\"a\n\nb\",1\n\nc,2\n", kCsv, "t");
  ASSERT_TRUE(reader.skip_line());
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.line(), 2);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.line(), 6);
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.skip_line());
}

TEST(RecordReader, LinesOfOtherPiecesCount) {
  TERCEL_EXPECT_THROW(read("1,\"x\"y\n", kCsv, 7), DataError, "t: line 8: column 2");
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "a\n",
                 kTabs, 1),
            (Records{{"\xef\xbb\xbf"
                      "a"}}))
      << "a byte order mark is one at the start of the file only";
}

TEST(RecordReader, SkipsComments) {
  TextDialect dialect = kCsv;
  dialect.comment = "//";
  EXPECT_EQ(read("// \"a\nb//,\"c\"\n //\n", dialect), (Records{{"b//", "c"}, {" //"}}));
  EXPECT_EQ(whole_records("// \"a\nb", dialect), 6u);
}

TEST(RecordReader, SplitsAtBlanks) {
  TextDialect dialect{' ', false, false, true};
  dialect.blanks = true;
  EXPECT_EQ(read(" 1  2:3\t4:5 # 6:7\n# all\n \t\n+1\r\n", dialect), (Records{{"1", "2:3", "4:5"}, {"+1"}}));
}

TEST(WholeRecords, EndWhereRecordsDo) {
  const auto whole = [](const char* text) { return whole_records(text, kCsv); };
  EXPECT_EQ(whole(""), 0u);
  EXPECT_EQ(whole("a,b"), 0u);
  EXPECT_EQ(whole("a,b\nc"), 4u);
  EXPECT_EQ(whole("a\n\"b\n"), 2u) << "the quote is open";
  EXPECT_EQ(whole("a\n\"b\nc\"\nd\n"), 10u);
  EXPECT_EQ(whole("\"b\"\"\n\",\"\n\"\r\nx"), 12u);
  EXPECT_EQ(whole("\"b\""), 0u) << "another quote may follow";
  EXPECT_EQ(whole("a\"b\nc\n"), 6u) << "a quote inside a column is text";
  EXPECT_EQ(whole_records("a \"b\n", kTabs), 5u);
  EXPECT_EQ(whole_records("\"b\n", kTabs), 3u);
  EXPECT_EQ(whole_records("a, \"b\n", kTrimmedCsv), 0u);
}

RC_GTEST_PROP(WholeRecords, PiecesGiveTheSameRecords, (const std::vector<uint8_t>& draws, bool trim)) {
  constexpr std::string_view kBytes = "ab,,  \"\"\"\n\n\r#";
  std::string text;
  for (const uint8_t draw : draws) text += kBytes[draw % kBytes.size()];
  TextDialect dialect{',', true, trim, true};
  dialect.comment = "#";
  Records expected;
  try {
    expected = read(text, dialect);
  } catch (const DataError&) {
    RC_ASSERT_THROWS_AS(read_in_pieces(text, dialect, 3), DataError);
    return;
  }
  for (const size_t piece : {size_t{1}, size_t{3}, size_t{10}})
    RC_ASSERT(read_in_pieces(text, dialect, piece) == expected);
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
