// A folder for one test, removed with everything in it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>

namespace tercel::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    // In memory if possible: the tests of every failing call sync thousands of times.
    const bool in_memory = ::access("/dev/shm", W_OK | X_OK) == 0;
    std::string pattern =
        (in_memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/tercel_test_XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed: " + pattern);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  /** Writes without the library under test. */
  std::string put(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }
  /** Every file below the folder with its content; folders end in a slash. Does not use the library under test. */
  std::map<std::string, std::string> tree() const {
    std::map<std::string, std::string> result;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      const std::string name = std::filesystem::relative(entry.path(), path_).string();
      if (entry.is_directory())
        result[name + "/"] = "";
      else
        result[name] = get(name);
    }
    return result;
  }
  std::string get(const std::string& name) const {
    std::ifstream in(path_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_;
};

}  // namespace tercel::test
