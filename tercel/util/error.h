// Typed exceptions and the macros that throw them.
//
// User errors are thrown by TERCEL_CHECK(condition, Type, parts...): the message starts with the op or the file and
// shows the offending values. TERCEL_ASSERT checks internal invariants. The library never prints, aborts or
// exits.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel {

/** Process exit codes; each exception type maps to one. */
enum class ExitCode : int {
  Ok = 0,
  Internal = 1,
  Usage = 2,
  Data = 3,
  Io = 4,
  Memory = 5,
  Numeric = 6,
  Communication = 7,
};

/** Base of every exception that Tercel throws. */
class TERCEL_API Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ~Error() override;

  ExitCode exit_code() const noexcept { return code_; }
  /** Name of the exception type, e.g. "ValueError". */
  virtual std::string_view kind() const noexcept = 0;

 private:
  ExitCode code_;
};

#define TERCEL_ERROR_TYPE(Name, code)                                   \
  class TERCEL_API Name : public Error {                                \
   public:                                                              \
    explicit Name(const std::string& message) : Error(code, message) {} \
    ~Name() override;                                                   \
    std::string_view kind() const noexcept override { return #Name; }   \
  };

/** A bug in Tercel: an invariant does not hold. */
TERCEL_ERROR_TYPE(InternalError, ExitCode::Internal)
/** Tensors, shapes, dtypes or states that a tensor op cannot work with; PyTorch's RuntimeError. */
TERCEL_ERROR_TYPE(RuntimeError, ExitCode::Usage)
/** An argument with an invalid value, outside of tensor ops. */
TERCEL_ERROR_TYPE(ValueError, ExitCode::Usage)
/** An index or dimension out of range. */
TERCEL_ERROR_TYPE(IndexError, ExitCode::Usage)
/** An argument of the wrong type. */
TERCEL_ERROR_TYPE(TypeError, ExitCode::Usage)
/** A combination that has no implementation; a RuntimeError, as in Python. */
class TERCEL_API NotImplementedError : public RuntimeError {
 public:
  explicit NotImplementedError(const std::string& message) : RuntimeError(message) {}
  ~NotImplementedError() override;
  std::string_view kind() const noexcept override { return "NotImplementedError"; }
};
/** A wrong option, configuration or graph. */
TERCEL_ERROR_TYPE(ConfigError, ExitCode::Usage)
/** Input bytes that violate their format. */
TERCEL_ERROR_TYPE(DataError, ExitCode::Data)
/** The operating system refused to open, read or write. */
TERCEL_ERROR_TYPE(IoError, ExitCode::Io)
/** An allocation failed or exceeds the available memory. */
TERCEL_ERROR_TYPE(OutOfMemoryError, ExitCode::Memory)
/** A computation gave NaN or infinity. */
TERCEL_ERROR_TYPE(NumericError, ExitCode::Numeric)

#undef TERCEL_ERROR_TYPE

namespace detail {

/** One part of a message; keeps <format> and streams out of the callers. */
class MessagePart {
 public:
  MessagePart(std::string_view text) : kind_(Kind::Text), text_(text) {}
  MessagePart(const char* text) : MessagePart(std::string_view(text)) {}
  MessagePart(const std::string& text) : MessagePart(std::string_view(text)) {}
  MessagePart(bool value) : MessagePart(value ? std::string_view("true") : std::string_view("false")) {}
  MessagePart(IntSpan values) : kind_(Kind::List), list_(values) {}
  MessagePart(double value) : kind_(Kind::Double), double_(value) {}
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>) MessagePart(T value)
      : kind_(std::is_signed_v<T> ? Kind::Signed : Kind::Unsigned), signed_(static_cast<int64_t>(value)) {}
  MessagePart(char value) : kind_(Kind::Char), char_(value) {}

  TERCEL_API void append_to(std::string& out) const;

 private:
  enum class Kind : uint8_t { Text, Signed, Unsigned, Double, List, Char };
  Kind kind_;
  union {
    std::string_view text_;
    int64_t signed_;
    double double_;
    IntSpan list_;
    char char_;
  };
};

}  // namespace detail

/** Joins text, numbers and integer lists ("[2, 3]") into one string. */
TERCEL_API std::string str_cat(std::initializer_list<detail::MessagePart> parts);
/** Throws an E whose message is the parts, one after the other. */
template <class E>
[[noreturn, gnu::cold, gnu::noinline]] void throw_error(std::initializer_list<detail::MessagePart> parts) {
  throw E(str_cat(parts));
}

namespace detail {
[[noreturn]] TERCEL_API void assertion_failed(const char* expression, const char* file, int line);
}

}  // namespace tercel

/** Throws ErrorType with the joined message unless the condition, which the user must ensure, holds. */
#define TERCEL_CHECK(condition, ErrorType, ...)                  \
  do {                                                           \
    if (!(condition)) [[unlikely]]                               \
      ::tercel::throw_error<::tercel::ErrorType>({__VA_ARGS__}); \
  } while (false)

/** Throws InternalError unless an internal invariant holds; also active in release builds. */
#define TERCEL_ASSERT(condition)                                          \
  do {                                                                    \
    if (!(condition)) [[unlikely]]                                        \
      ::tercel::detail::assertion_failed(#condition, __FILE__, __LINE__); \
  } while (false)
