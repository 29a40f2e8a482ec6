#include "tercel/io/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tercel/util/error.h"
#include "tercel/util/file_hook.h"
#include "tests/util/temporary_folder.h"

namespace tercel::io {
namespace {

using test::TemporaryFolder;

/** The file as the format's description has it: magic, version 1.0, length of the header, header, values. */
std::string expected_file(const std::vector<float>& values) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(values.size()) + ",), }";
  header.resize(128 - 10 - 1, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  EXPECT_EQ(file.size() % 64, 0u);
  return file + std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

TEST(Npy, WritesTheFormatOfNumPy) {
  for (const size_t n : {size_t{0}, size_t{1}, size_t{9}, size_t{10}, size_t{100000}}) {
    const TemporaryFolder folder;
    std::vector<float> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i) * 0.5f - 3;
    NpyWriter writer(folder / "x.npy");
    for (size_t start = 0; start < n; start += 7777)  // in pieces
      writer.write(Span<float>(values).subspan(start, std::min<size_t>(7777, n - start)));
    EXPECT_EQ(folder.get("x.npy"), "") << "nothing is there before it is complete";
    writer.commit();
    EXPECT_EQ(folder.get("x.npy"), expected_file(values)) << n;
  }
}

TEST(Npy, WithoutCommitNothingIsLeft) {
  const TemporaryFolder folder;
  folder.put("x.npy", "old");
  {
    NpyWriter writer(folder / "x.npy");
    writer.write({1.0f, 2.0f});
  }
  EXPECT_EQ(folder.tree().size(), 1u);
  EXPECT_EQ(folder.get("x.npy"), "old");
}

TEST(Npy, EveryFailingCallLeavesTheOldFile) {
  int64_t failures = 0;
  for (int64_t n = 1;; ++n) {
    const TemporaryFolder folder;
    folder.put("x.npy", "old");
    const ScopedFault fault({.nth = n, .error = 28});
    bool threw = false;
    try {
      NpyWriter writer(folder / "x.npy");
      writer.write({1.0f, 2.0f});
      writer.commit();
    } catch (const IoError&) {
      threw = true;
      ++failures;
    }
    const std::string content = folder.get("x.npy");
    ASSERT_TRUE(content == expected_file({1, 2}) || (threw && content == "old")) << "call " << n;
    ASSERT_EQ(folder.tree().size(), 1u) << "call " << n;
    if (!fault.fired()) break;
  }
  EXPECT_GT(failures, 5);
}

}  // namespace
}  // namespace tercel::io
