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

/** A stream, released with its owner. */
class ArrowStream {
 public:
  ArrowStream() : stream_() {}
  ~ArrowStream() { reset(); }
  ArrowStream(const ArrowStream&) = delete;
  ArrowStream& operator=(const ArrowStream&) = delete;

  ArrowArrayStream* out() { return &stream_; }
  /** Takes ownership of a stream, which is released afterwards; DataError for one that is released or no stream. */
  void take(ArrowArrayStream* stream, std::string_view owner);
  bool is_open() const { return stream_.release != nullptr; }
  void reset() {
    if (stream_.release) stream_.release(&stream_);
    stream_.release = nullptr;
  }
  /** The next batch; false at the end. DataError, or OutOfMemoryError, "<owner>: ...". */
  bool next(ArrowArray* out, std::string_view owner);
  void get_schema(ArrowSchema* out, std::string_view owner);

 private:
  void check(int code, std::string_view owner);

  ArrowArrayStream stream_;
  bool taken_ = false;  // its memory is not the module's
};

/** A struct of the C data interface, released with its owner. */
template <class Struct>
class ArrowOwned {
 public:
  ArrowOwned() : value_() {}
  ~ArrowOwned() { reset(); }
  ArrowOwned(ArrowOwned&& other) noexcept : value_(other.value_) { other.value_.release = nullptr; }
  ArrowOwned& operator=(ArrowOwned&& other) noexcept {
    if (this != &other) {
      reset();
      value_ = other.value_;
      other.value_.release = nullptr;
    }
    return *this;
  }

  Struct* get() { return &value_; }
  const Struct& operator*() const { return value_; }
  const Struct* operator->() const { return &value_; }
  void reset() {
    if (value_.release) value_.release(&value_);
    value_.release = nullptr;
  }

 private:
  Struct value_;
};

}  // namespace tercel::data
