// Files of numbers without a header, as HugeCTR writes models. Private.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tercel/core/tensor.h"
#include "tercel/util/file.h"
#include "tercel/util/file_stream.h"

namespace tercel::recsys::hugectr {

/** Elements that are in memory at once, of files that may be larger than it. */
constexpr int64_t kPartElements = int64_t{1} << 20;

/**
 * Numbers behind the first `header` bytes of a file, `count` of a dtype. DataError "PATH: expected N bytes, WHAT, found
 * M" for a file of another size.
 */
class ValuesFile {
 public:
  ValuesFile(const std::string& path, ScalarType dtype, int64_t count, std::string_view what, int64_t header = 0);

  /** [n] from the first-th on. */
  Tensor read(int64_t first, int64_t n) const;

 private:
  File file_;
  ScalarType dtype_;
  int64_t header_;
};

/** All numbers of a ValuesFile, [count]. */
Tensor read_values(const std::string& path, ScalarType dtype, int64_t count, std::string_view what, int64_t header = 0);

/** DataError that names the file if a number of `values` is not finite; `what` says whose they are. */
void check_finite(const std::string& path, const Tensor& values, std::string_view what);

/** Writes all elements of a tensor as float32. */
void write_floats(FileWriter& out, const Tensor& values);

}  // namespace tercel::recsys::hugectr
