// Bounds-checked, little-endian parsing of untrusted bytes, by memcpy. Every reader uses it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "tercel/util/error.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel {

static_assert(std::endian::native == std::endian::little, "files are little-endian and are copied as they are");

/** Where a cursor is, for error messages; the owner keeps `file` alive. */
struct CursorContext {
  std::string_view file;
  int64_t record = -1;      // -1: the bytes belong to no record
  int64_t base_offset = 0;  // of the cursor's first byte in the file
};

/**
 * Reads forward through bytes that it does not own. Every failure is a DataError that names file, record, byte offset,
 * what was expected and what was found.
 */
class TERCEL_API ByteCursor {
 public:
  ByteCursor(Span<std::byte> bytes, const CursorContext& context)
      : next_(bytes.data()), begin_(bytes.data()), end_(bytes.data() + bytes.size()), context_(context) {}
  ByteCursor(std::string_view bytes, const CursorContext& context)
      : ByteCursor(Span<std::byte>(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()), context) {}

  size_t remaining() const noexcept { return static_cast<size_t>(end_ - next_); }
  bool at_end() const noexcept { return next_ == end_; }
  /** Offset of the next byte in the file. */
  int64_t position() const noexcept { return context_.base_offset + (next_ - begin_); }
  /** Record that later errors name. */
  void set_record(int64_t record) noexcept { context_.record = record; }
  const CursorContext& context() const noexcept { return context_; }

  /** Next value; `what` names it in errors, e.g. "key count". */
  template <class T>
  T read(std::string_view what) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, "any bit pattern must be a value");
    T value;
    read_array(&value, 1, what);
    return value;
  }
  /** Copies the next `count` values to `out`, which must have room for them. */
  template <class T>
  void read_array(T* out, size_t count, std::string_view what) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, "any bit pattern must be a value");
    if (count > remaining() / sizeof(T)) [[unlikely]]
      fail_short(count, sizeof(T), what);
    if (count > 0) std::memcpy(out, next_, count * sizeof(T));
    next_ += count * sizeof(T);
  }
  /** Next `count` bytes, without a copy. */
  Span<std::byte> bytes(size_t count, std::string_view what) {
    if (count > remaining()) [[unlikely]]
      fail_short(count, 1, what);
    const Span<std::byte> result(next_, count);
    next_ += count;
    return result;
  }
  /** Next `count` bytes as text, without a copy. */
  std::string_view text(size_t count, std::string_view what) {
    const Span<std::byte> raw = bytes(count, what);
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }
  void skip(size_t count, std::string_view what) { static_cast<void>(bytes(count, what)); }
  /** A cursor over the next `count` bytes; this one moves past them. */
  ByteCursor sub(size_t count, std::string_view what) {
    const int64_t offset = position();
    return ByteCursor(bytes(count, what), {context_.file, context_.record, offset});
  }

  /** Returns `count`, as read from the file, if that many elements can still follow; call it before allocating. */
  template <class T>
  size_t check_count(T count, size_t element_bytes, std::string_view what) const {
    static_assert(std::is_integral_v<T>);
    if (std::is_signed_v<T> && count < T{0}) [[unlikely]]
      fail_count(static_cast<uint64_t>(static_cast<int64_t>(count)), true, element_bytes, what);
    if (static_cast<uint64_t>(count) > remaining() / element_bytes) [[unlikely]]
      fail_count(static_cast<uint64_t>(count), false, element_bytes, what);
    return static_cast<size_t>(count);
  }
  /** Fails if bytes are left. */
  void expect_end(std::string_view after) const;

  /** Throws DataError at the present position, or at `offset` in the file. */
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    fail_at(position(), expected, found);
  }
  [[noreturn]] void fail_at(int64_t offset, std::string_view expected, std::string_view found) const;

 private:
  [[noreturn]] void fail_short(size_t count, size_t element_bytes, std::string_view what) const;
  [[noreturn]] void fail_count(uint64_t count, bool negative, size_t element_bytes, std::string_view what) const;

  const std::byte* next_;
  const std::byte* begin_;
  const std::byte* end_;
  CursorContext context_;
};

}  // namespace tercel
