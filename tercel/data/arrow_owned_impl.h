// Structs of the C data interface with an owner; they need no Arrow module. Private.
#pragma once

#include <string_view>

#include "tercel/util/arrow_c.h"

namespace tercel::data {

/** OutOfMemoryError "<owner>: Arrow: <reason>", with what sets the limit. */
[[noreturn]] void fail_arrow_memory(std::string_view owner, std::string_view reason);

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
