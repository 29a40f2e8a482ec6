// Conversion on several threads.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tercel/util/error.h"
#include "tercel/util/parallel.h"
#include "tests/data/convert_table.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

/** Sets the number of threads, and back at the end. */
class ScopedThreads {
 public:
  explicit ScopedThreads(int64_t count) : before_(num_threads()) { set_num_threads(count); }
  ~ScopedThreads() { set_num_threads(before_); }

 private:
  int64_t before_;
};

/** Several blocks of text, some rows of which have quotes and line ends in them. */
std::string large_text(int rows) {
  std::string text = "y,n,c,tags\n";
  for (int i = 0; i < rows; ++i) {
    text += std::to_string(i % 3 == 0) + "," + std::to_string(i % 1000) + ",";
    text += i % 7 == 0 ? "\"a, \"\"" + std::to_string(i % 50) + "\"\"\n\"" : "c" + std::to_string(i % 997 * (i % 31));
    text += "," + std::string(i % 5 == 0 ? "" : "t" + std::to_string(i % 11) + "|t" + std::to_string(i % 13)) + "\n";
  }
  return text;
}

CsvOptions options_of_all() {
  CsvOptions options = table_options();
  options.dense = {"n"};
  options.categorical = {"c", "tags"};
  options.list_separator = "|";
  options.lists = {"tags"};
  options.min_count = {"3"};
  options.test_every = 5;
  options.valid_every = 7;
  options.rows_per_file = 20'000;
  return options;
}

TEST(ConvertThreads, DoNotChangeTheResult) {
  const std::string text = large_text(80'000);
  ASSERT_GT(text.size(), 5u << 18);
  std::map<std::string, std::string> expected;
  for (const int64_t threads : {1, 2, 5}) {
    const ScopedThreads scope(threads);
    TableConversion conversion;
    const ConvertResult result = conversion.run(text, options_of_all());
    EXPECT_EQ(result.dataset.rows(), 80'000);
    std::map<std::string, std::string> files;
    for (const auto& [name, content] : conversion.folder().tree())
      if (name.ends_with(".data") || name.ends_with(".bin")) files.emplace(name, content);
    EXPECT_EQ(files.size(), 6u);
    if (threads == 1) expected = files;
    EXPECT_TRUE(files == expected) << threads;
  }
}

TEST(ConvertThreads, TheFirstErrorIsReported) {
  std::string text = large_text(40'000);
  const size_t middle = text.find("\n1,3,", text.size() / 2) + 1, late = text.find("\n1,3,", middle + 200'000) + 1;
  text[late] = 'x';
  text[middle] = '7';
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(middle), '\n');
  for (const int64_t threads : {1, 2, 5}) {
    const ScopedThreads scope(threads);
    TableConversion conversion;
    TERCEL_EXPECT_THROW(conversion.run(text, options_of_all()), DataError,
                        "t.csv: line " + std::to_string(line) + ": column 1 (y): expected 0 or 1, found '7'");
  }
}

TEST(ConvertThreads, WorkMayBeStopped) {
  struct Stopped {};
  for (const int64_t threads : {1, 3}) {
    const ScopedThreads scope(threads);
    const TemporaryFolder folder;
    const std::string source = folder.put("t.csv", large_text(80'000));
    for (const int pass : {1, 2})
      EXPECT_THROW(convert_csv({source}, folder / "data", options_of_all(), false,
                               [&](const ConvertProgress& now) {
                                 EXPECT_LE(now.bytes_done, now.bytes_total);
                                 if (now.pass == pass) throw Stopped();
                               }),
                   Stopped);
    EXPECT_EQ(folder.tree().size(), 1u);
  }
}

}  // namespace
}  // namespace tercel::data::test
