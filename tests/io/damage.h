// Damaged copies of a small file, and the expected behaviour of readers.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tercel/util/error.h"
#include "tests/util/temporary_folder.h"

namespace tercel::test {

/** Reads the file of that path to the end. */
using ReadFile = std::function<void(const std::string& path)>;

/** Every shorter file is a DataError on one line that names it. */
inline void expect_cut_refused(const std::string& whole, const ReadFile& read) {
  const TemporaryFolder folder;
  read(folder.put("x", whole));
  for (size_t n = 0; n < whole.size(); ++n) {
    try {
      read(folder.put("x", whole.substr(0, n)));
      ADD_FAILURE() << n << " of " << whole.size() << " bytes were read as a whole file";
    } catch (const DataError& e) {
      const std::string message = e.what();
      EXPECT_EQ(message.rfind(folder / "x", 0), 0u) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
}

/** Every flipped bit gives another valid file or a DataError; returns how many were refused. */
inline int64_t count_refused_flips(const std::string& whole, const ReadFile& read) {
  const TemporaryFolder folder;
  int64_t refused = 0;
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    try {
      read(folder.put("x", damaged));
    } catch (const DataError&) {
      ++refused;
    }
  }
  return refused;
}

}  // namespace tercel::test
