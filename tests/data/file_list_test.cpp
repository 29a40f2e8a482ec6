#include "tercel/data/file_list.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/util/temporary_folder.h"

namespace tercel::data {
namespace {

using tercel::test::TemporaryFolder;

TEST(FileList, WhatIsWrittenIsRead) {
  const TemporaryFolder folder;
  folder.put("train/a.data", "");
  folder.put("with space.data", "");
  write_file_list(folder / "list.txt", {"train/a.data", "with space.data"});
  EXPECT_EQ(folder.get("list.txt"), "2\ntrain/a.data\nwith space.data\n");
  EXPECT_EQ(read_file_list(folder / "list.txt"),
            (std::vector<std::string>{folder / "train/a.data", folder / "with space.data"}));
}

TEST(FileList, AbsolutePathsCarriageReturnsBlanksAndFurtherLinesAreFine) {
  const TemporaryFolder folder;
  const std::string a = folder.put("a", "");
  const std::string b = folder.put("b", "");
  // HugeCTR's generator writes each name twice.
  const std::string list = folder.put("list", " 2 \r\n" + a + "\r\n" + b + "\r\n" + a + "\r\n" + b);
  EXPECT_EQ(read_file_list(list), (std::vector<std::string>{a, b}));
}

TEST(FileList, WorkingDirectoryComesBeforeTheListsFolder) {
  const TemporaryFolder folder;
  folder.put("data/list", "2\nx\nonly_beside\n");
  folder.put("data/x", "");
  folder.put("data/only_beside", "");
  folder.put("x", "");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::vector<std::string> paths = read_file_list("data/list");
  std::filesystem::current_path(before);
  EXPECT_EQ(paths, (std::vector<std::string>{"x", "data/only_beside"}));
}

TEST(FileList, WhatIsWrongIsNamedWithItsLine) {
  const TemporaryFolder folder;
  const std::string a = folder.put("a", "");
  const auto list = [&](const std::string& text) { return folder.put("list", text); };
  TERCEL_EXPECT_THROW(read_file_list(list("")), DataError,
                      "list: line 1: expected the number of files, found an empty");
  TERCEL_EXPECT_THROW(read_file_list(list("two\n" + a)), DataError,
                      "line 1: expected the number of files, at least 1, found 'two'");
  TERCEL_EXPECT_THROW(read_file_list(list("0\n")), DataError, "found '0'");
  TERCEL_EXPECT_THROW(read_file_list(list("-1\n" + a)), DataError, "found '-1'");
  TERCEL_EXPECT_THROW(read_file_list(list("1x\n" + a)), DataError, "found '1x'");
  TERCEL_EXPECT_THROW(read_file_list(list("99999999999999999999\n" + a)), DataError, "line 1");
  TERCEL_EXPECT_THROW(read_file_list(list("9223372036854775807\n" + a)), DataError,
                      "line 3: expected 9223372036854775807 paths");
  TERCEL_EXPECT_THROW(read_file_list(list("2\n" + a + "\n")), DataError,
                      "line 3: expected 2 paths of files after line 1, found 1");
  TERCEL_EXPECT_THROW(read_file_list(list("2\n\n" + a)), DataError,
                      "line 2: expected the path of a file, found an empty line");
  TERCEL_EXPECT_THROW(read_file_list(list("1\nnowhere\n")), DataError,
                      "line 2: expected the path of a file, found nothing at 'nowhere' nor at '");
  TERCEL_EXPECT_THROW(read_file_list(list("1\n/nowhere/x\n")), DataError, "found nothing at '/nowhere/x'");
  TERCEL_EXPECT_THROW(read_file_list(folder / "none"), IoError, "none: open");
  TERCEL_EXPECT_THROW(read_file_list(folder.path()), IoError, "expected a regular file");
  TERCEL_EXPECT_THROW(write_file_list(folder / "out", {"a\nb"}), ValueError, "cannot hold");
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

}  // namespace
}  // namespace tercel::data
