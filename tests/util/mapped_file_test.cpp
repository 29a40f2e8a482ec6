#include "tercel/util/mapped_file.h"

#include <gtest/gtest.h>

#include <string>

#include "tercel/util/file_hook.h"
#include "tests/support/errors.h"
#include "tests/util/temporary_folder.h"

namespace tercel {
namespace {

std::string text_of(const MappedFile& map) { return {reinterpret_cast<const char*>(map.data()), map.size()}; }

TEST(MappedFile, OutlivesTheFileAndKeepsWritesToItself) {
  const test::TemporaryFolder folder;
  const std::string content(10000, 'x');
  const std::string path = folder.put("a", content);
  File file = File::open_read(path);
  const MappedFile first(file), second(file);
  file.close();
  first.data()[5] = std::byte{'y'};
  EXPECT_EQ(text_of(second), content);
  EXPECT_EQ(folder.get("a"), content);
  remove_file(path);
  EXPECT_EQ(text_of(first), "xxxxxy" + std::string(9994, 'x'));
}

TEST(MappedFile, EmptyFile) {
  const test::TemporaryFolder folder;
  const MappedFile map(File::open_read(folder.put("a", "")));
  EXPECT_EQ(map.data(), nullptr);
  EXPECT_EQ(map.size(), 0u);
}

TEST(MappedFile, FailureNamesTheFile) {
  const test::TemporaryFolder folder;
  const File file = File::open_read(folder.put("a", "text"));
  const ScopedFault fault({.op = FileOp::Read, .nth = 1, .error = 12});
  TERCEL_EXPECT_THROW(MappedFile{file}, IoError, "a: map: Cannot allocate memory");
}

}  // namespace
}  // namespace tercel
