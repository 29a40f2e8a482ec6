// Calls of the Arrow module. Private.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "tercel/data/arrow_abi_impl.h"
#include "tercel/data/random_access_file.h"

namespace tercel::data {

/** Loads the module at the first call. RuntimeError that starts with `owner` if it or Arrow is not there. */
const ArrowApi& arrow_api(std::string_view owner);

/** Bytes that Arrow may hold at a time: TERCEL_ARROW_MEMORY, or 4 GiB. ConfigError if that is no number. */
int64_t arrow_memory_limit();

/** A file that the module reads through callbacks, which keep what they throw. */
class ArrowSourceFile {
 public:
  /** The file must outlive it. */
  explicit ArrowSourceFile(const RandomAccessFile& file);
  ArrowSourceFile(const ArrowSourceFile&) = delete;
  ArrowSourceFile& operator=(const ArrowSourceFile&) = delete;

  const ArrowInput& input() const { return input_; }
  /** What a callback threw, if any, once more. */
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  static int64_t read_at(void* context, void* out, int64_t bytes, int64_t offset);

  const RandomAccessFile& file_;
  ArrowInput input_;
  std::exception_ptr thrown_;
};

/** Throws the error of a function of the module, "<owner>: ...", unless it succeeded. */
void check_arrow(ArrowCode code, const ArrowFailure& failure, std::string_view owner);

}  // namespace tercel::data
