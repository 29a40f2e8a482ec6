#include <gtest/gtest.h>

#include <climits>
#include <cstdint>
#include <string>

#include "tercel/util/error.h"
#include "tercel/util/file_stream.h"
#include "tests/support/errors.h"
#include "tests/util/gzip_data.h"
#include "tests/util/temporary_folder.h"

namespace tercel {
namespace {

using test::gzip;
using test::TemporaryFolder;

std::string read_all(const std::string& path, size_t piece = 1000, int64_t max_bytes = INT64_MAX) {
  GzipReader reader(File::open_read(path), max_bytes);
  std::string content, buffer(piece, '\0');
  while (const size_t count = reader.read_some(buffer.data(), buffer.size())) content.append(buffer, 0, count);
  char byte;
  EXPECT_EQ(reader.read_some(&byte, 1), 0u) << "further reads at the end return 0";
  return content;
}

// Text that is moderately compressible.
std::string sample_text(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) text += std::to_string(i * 7919 % 10007) + "\tvalue\n";
  return text;
}

TEST(GzipReader, ReadsPlainAndGzip) {
  const TemporaryFolder folder;
  const std::string text = sample_text(50'000);
  for (const size_t piece : {size_t{777}, size_t{1} << 20}) {
    EXPECT_EQ(read_all(folder.put("a.gz", gzip(text)), piece), text);
    EXPECT_EQ(read_all(folder.put("stored", gzip(text, 0)), piece), text) << "any name";
    EXPECT_EQ(read_all(folder.put("plain.txt", text), piece), text);
  }
  const std::string small = sample_text(100);
  EXPECT_EQ(read_all(folder.put("small.gz", gzip(small)), 1), small);
  EXPECT_EQ(read_all(folder.put("small", small), 1), small);
  EXPECT_EQ(read_all(folder.put("empty.txt", "")), "");
  EXPECT_EQ(read_all(folder.put("one.txt", "\x1f")), "\x1f");
  EXPECT_EQ(read_all(folder.put("empty.gz", gzip(""))), "");
}

TEST(GzipReader, ReadsSeveralMembersAndPadding) {
  const TemporaryFolder folder;
  const std::string two = gzip("abc") + gzip("") + gzip("def");
  EXPECT_EQ(read_all(folder.put("two.gz", two)), "abcdef");
  EXPECT_EQ(read_all(folder.put("padded.gz", two + std::string(600'000, '\0'))), "abcdef");
  std::string many, expected;
  for (int i = 0; i < 20'000; ++i) {  // more than one input buffer, so members straddle its end
    many += gzip(std::to_string(i));
    expected += std::to_string(i);
  }
  EXPECT_EQ(read_all(folder.put("many.gz", many)), expected);
  const std::string path = folder.put("garbage.gz", gzip("abc") + "garbage");
  TERCEL_EXPECT_THROW(
      read_all(path), DataError,
      path + ": byte " + std::to_string(gzip("abc").size()) +
          ": gzip member 1: expected another gzip member, zeros or the end of the file after it, found other bytes");
}

TEST(GzipReader, TruncationAtEveryByteIsNoticed) {
  const TemporaryFolder folder;
  const std::string text = sample_text(40);
  const std::string whole = gzip(text);
  ASSERT_GT(whole.size(), 150u);
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string path = folder.put("cut.gz", whole.substr(0, size));
    TERCEL_EXPECT_THROW(read_all(path), DataError,
                        path + ": byte " + std::to_string(size < 2 ? 0 : size) + ": gzip member 1:");
  }
  EXPECT_EQ(read_all(folder.put("cut.gz", whole)), text);
  for (size_t size = 1; size < whole.size(); ++size) {
    const std::string path = folder.put("cut.gz", whole + whole.substr(0, size));
    // A single byte after the first member is not a second one.
    TERCEL_EXPECT_THROW(read_all(path), DataError,
                        size < 2 ? "gzip member 1: expected another gzip member" : "gzip member 2:");
  }
}

TEST(GzipReader, NoFlippedBitChangesTheText) {
  const TemporaryFolder folder;
  const std::string text = sample_text(20);
  const std::string whole = gzip(text);
  int noticed = 0;
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    try {
      ASSERT_EQ(read_all(folder.put("bit.gz", damaged)), text)
          << "bit " << bit << ": only the header's date may go unnoticed";
    } catch (const DataError&) {
      ++noticed;
    }
  }
  EXPECT_GT(noticed, static_cast<int>(whole.size() * 8 - 80));
}

TEST(GzipReader, BombStopsAtTheLimit) {
  const TemporaryFolder folder;
  const std::string zeros(10'000'000, '\0');
  const std::string path = folder.put("bomb.gz", gzip(zeros, 9));
  EXPECT_LT(file_size(path), 20'000);
  TERCEL_EXPECT_THROW(read_all(path, 1000, 1'000'000), DataError,
                      "expected at most 976.6 KiB of decompressed data, found more");
  EXPECT_EQ(read_all(path, 1000, 10'000'000).size(), zeros.size());
  TERCEL_EXPECT_THROW(read_all(folder.put("plain", "12345"), 10, 4), DataError, "expected at most 4 B, found more");
}

TEST(GzipReader, NameThatEndsInGzMustBeGzip) {
  const TemporaryFolder folder;
  const std::string path = folder.put("a.gz", "plain text");
  TERCEL_EXPECT_THROW(
      read_all(path), DataError,
      path + ": byte 0: gzip member 1: expected gzip data, which starts with the bytes 1f 8b, found something else");
  TERCEL_EXPECT_THROW(read_all(folder.put("b.gz", "")), DataError, "found the end of the file");
}

TEST(GzipReader, TellsProgress) {
  const TemporaryFolder folder;
  const std::string path = folder.put("a.gz", gzip(sample_text(1000)));
  GzipReader reader(File::open_read(path), INT64_MAX);
  EXPECT_TRUE(reader.is_gzip());
  EXPECT_EQ(reader.name(), path);
  std::string buffer(1 << 20, '\0');
  while (reader.read_some(buffer.data(), buffer.size()) > 0) {
  }
  EXPECT_EQ(reader.compressed_position(), file_size(path));
}

}  // namespace
}  // namespace tercel
