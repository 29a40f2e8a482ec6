#include "tercel/util/file_stream.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cerrno>
#include <climits>
#include <vector>

#include "tercel/util/error.h"
#include "tercel/util/file_hook.h"
#include "tests/support/errors.h"
#include "tests/util/temporary_folder.h"

namespace tercel {
namespace {

using test::TemporaryFolder;

// A source that hands out its text in pieces of a given size.
class PieceReader : public ByteReader {
 public:
  PieceReader(std::string text, size_t piece) : text_(std::move(text)), piece_(piece) {}
  size_t read_some(void* out, size_t bytes) override {
    const size_t count = text_.copy(static_cast<char*>(out), std::min(bytes, piece_), position_);
    position_ += count;
    return count;
  }
  const std::string& name() const override { return name_; }

 private:
  std::string text_, name_ = "pieces";
  size_t piece_, position_ = 0;
};

std::vector<std::string> lines_of(const std::string& text, size_t piece = SIZE_MAX, size_t max_line = 1 << 20) {
  PieceReader source(text, piece);
  LineReader reader(source, max_line);
  std::vector<std::string> lines;
  std::string_view line;
  while (reader.next(line)) {
    lines.emplace_back(line);
    EXPECT_EQ(reader.line_number(), static_cast<int64_t>(lines.size()));
  }
  EXPECT_FALSE(reader.next(line)) << "a further call at the end returns false";
  return lines;
}

TEST(FileWriter, BuffersSmallWritesAndPassesLargeOnes) {
  const TemporaryFolder folder;
  std::string expected;
  {
    const ScopedFault counter({.op = FileOp::Write, .nth = 0});
    FileWriter out(File::create(folder / "data"), {.buffer_bytes = 100, .checksum = true});
    for (int i = 0; i < 90; ++i) {
      out.write("x");
      expected += 'x';
      EXPECT_EQ(out.position(), i + 1);
    }
    EXPECT_EQ(counter.calls(), 0);
    EXPECT_EQ(out.checksum(), checksum(expected.data(), expected.size())) << "buffered bytes count";
    const std::string large(1000, 'y');
    out.write(large);
    expected += large;
    EXPECT_EQ(counter.calls(), 2);
    out.write("end");
    expected += "end";
    EXPECT_EQ(out.checksum(), checksum(expected.data(), expected.size()));
    out.close();
    EXPECT_EQ(out.position(), static_cast<int64_t>(expected.size()));
  }
  EXPECT_EQ(folder.get("data"), expected);
}

TEST(FileWriter, RewritesAHeader) {
  const TemporaryFolder folder;
  FileWriter out(File::create(folder / "data"));
  out.write("count=0000;");
  out.write("body");
  out.rewrite(6, "1234", 4);
  out.write("!");
  EXPECT_THROW(out.rewrite(10, "123456789", 9), InternalError) << "beyond the written bytes";
  out.close();
  EXPECT_EQ(folder.get("data"), "count=1234;body!");
}

TEST(FileWriter, FailureIsReportedByTheCallThatMeetsIt) {
  const TemporaryFolder folder;
  FileWriter out(File::create(folder / "data"), {.buffer_bytes = 10});
  out.write("12345");
  const ScopedFault fault({.op = FileOp::Write, .error = ENOSPC});
  TERCEL_EXPECT_THROW(out.flush(), IoError, "data: write: No space left on device");
  EXPECT_NO_THROW(out.close()) << "the lost bytes are not written a second time";
}

RC_GTEST_PROP(FileReader, ReadsLikeTheWholeFile, ()) {
  const TemporaryFolder folder;
  const auto content = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  const auto buffer = *rc::gen::inRange<size_t>(1, 40);
  FileReader reader(File::open_read(folder.put("data", content)), buffer);
  std::string found;
  while (found.size() < content.size()) {
    const size_t left = content.size() - found.size();
    std::string piece(*rc::gen::inRange<size_t>(1, 50), '\0');
    if (*rc::gen::arbitrary<bool>() && piece.size() <= left) {
      reader.read_exact(piece.data(), piece.size());
    } else {
      const size_t count = reader.read_some(piece.data(), piece.size());
      RC_ASSERT(count > 0u);
      piece.resize(count);
    }
    found += piece;
    RC_ASSERT(reader.position() == static_cast<int64_t>(found.size()));
  }
  char byte;
  RC_ASSERT(found == content);
  RC_ASSERT(reader.read_some(&byte, 1) == 0u);
}

TEST(FileReader, ShortFileSaysWhere) {
  const TemporaryFolder folder;
  const std::string path = folder.put("data", "0123456789");
  FileReader reader(File::open_read(path), 4);
  char buffer[16];
  reader.read_exact(buffer, 7);
  TERCEL_EXPECT_THROW(reader.read_exact(buffer, 5), DataError,
                      path + ": byte 7: expected 5 more bytes, found 3 before the end of the file");
}

TEST(LineReader, EndsOfLines) {
  using Lines = std::vector<std::string>;
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, SIZE_MAX}) {
    EXPECT_EQ(lines_of("", piece), Lines{});
    EXPECT_EQ(lines_of("\n", piece), Lines{""});
    EXPECT_EQ(lines_of("a", piece), Lines{"a"});
    EXPECT_EQ(lines_of("a\nb\n", piece), (Lines{"a", "b"}));
    EXPECT_EQ(lines_of("a\r\nb\r\n\r\nc", piece), (Lines{"a", "b", "", "c"}));
    EXPECT_EQ(lines_of("a\rb\n", piece), Lines{"a\rb"}) << "a lone CR is text";
    EXPECT_EQ(lines_of("a\r", piece), Lines{"a"});
    EXPECT_EQ(lines_of("\xef\xbb\xbf"
                       "a\nb",
                       piece),
              (Lines{"a", "b"}))
        << "byte order mark";
    EXPECT_EQ(lines_of("\xef\xbb\xbf", piece), Lines{});
    EXPECT_EQ(lines_of("\xef\xbb", piece), Lines{"\xef\xbb"});
    EXPECT_EQ(lines_of("a\n\xef\xbb\xbf"
                       "b",
                       piece),
              (Lines{"a",
                     "\xef\xbb\xbf"
                     "b"}))
        << "only at the start";
    EXPECT_EQ(lines_of(std::string("a\0b\nc", 5), piece), (Lines{std::string("a\0b", 3), "c"}));
  }
}

TEST(LineReader, LongLinesAreLimited) {
  const std::string just(1000, 'x');
  for (const size_t piece : {size_t{7}, SIZE_MAX}) {
    EXPECT_EQ(lines_of(just + "\n" + just + "\r\n" + just, piece, 1000).size(), 3u);
    TERCEL_EXPECT_THROW(lines_of("a\n" + just + "x\n", piece, 1000), DataError,
                        "pieces: line 2: expected at most 1000 bytes, found 1001");
    TERCEL_EXPECT_THROW(lines_of(just + just, piece, 1000), DataError, "pieces: line 1: expected at most 1000 bytes");
  }
  EXPECT_EQ(lines_of(std::string(1'000'000, 'x') + "\nb", 64 << 10)[0].size(), 1'000'000u) << "the buffer grows";
}

RC_GTEST_PROP(LineReader, LinesJoinToTheText, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::element('a', 'b', '\n', ' '));
  std::string joined;
  for (const std::string& line : lines_of(text, *rc::gen::inRange<size_t>(1, 9))) joined += line + "\n";
  RC_ASSERT(joined == (text.empty() || text.ends_with('\n') ? text : text + "\n"));
}

}  // namespace
}  // namespace tercel
