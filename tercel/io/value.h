// Content of a file of Python objects: tensors, numbers, strings, bytes, and lists, tuples and dicts of these.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/util/export.h"

namespace tercel::io {

/**
 * An immutable value. Strings and containers are shared between copies, so copying only increments a count. Files
 * preserve sharing (a list that occurs in two places), which identity() exposes. There are no cycles.
 */
class TERCEL_API Value {
 public:
  enum class Kind : uint8_t { None, Bool, Int, Float, String, List, Tuple, Dict, Tensor, Dtype, Device, Bytes };
  using Item = std::pair<Value, Value>;

  /** None. */
  Value() noexcept = default;
  template <class T>
  requires std::is_integral_v<T> Value(T value) : data_(make_number(value)) {}
  Value(double value) : data_(value) {}
  Value(std::string text) : data_(std::in_place_index<kString>, std::make_shared<const std::string>(std::move(text))) {}
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  /** ValueError for an undefined one. */
  Value(Tensor tensor);
  /** A tensor that is a Parameter in Python. */
  static Value parameter(tercel::Tensor tensor);
  Value(ScalarType dtype) : data_(dtype) {}
  Value(tercel::Device device) : data_(device) {}
  static Value bytes(std::string content);
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  /** A tuple of tensor sizes: torch.Size in Python. */
  static Value size(IntSpan sizes);
  /** In that order. Keys are numbers, strings, bytes, None, bools and tuples of these; ValueError for others and for
   * one twice. */
  static Value dict(std::vector<Item> items);
  /** A dict that is an OrderedDict in Python. */
  static Value ordered_dict(std::vector<Item> items);
  /** The OrderedDict that a state_dict() of Python is. */
  static Value state_dict(const std::vector<std::pair<std::string, tercel::Tensor>>& tensors);

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is(Kind wanted) const { return kind() == wanted; }

  // Each is a TypeError for a value of another kind.
  bool to_bool() const;
  int64_t to_int() const;
  /** Also accepts an Int. */
  double to_double() const;
  const std::string& to_string() const;
  const std::string& to_bytes() const;
  /** The items of a List or a Tuple. */
  const std::vector<Value>& items() const;
  /** The entries of a Dict. */
  const std::vector<Item>& entries() const;
  const tercel::Tensor& to_tensor() const;
  /** The entries of a Dict with string keys and tensor values, as load_state_dict() takes them. */
  std::vector<std::pair<std::string, tercel::Tensor>> to_state_dict() const;
  ScalarType to_dtype() const;
  tercel::Device to_device() const;
  /** A Tensor that parameter() made. */
  bool is_parameter() const { return parameter_; }
  /** A Tuple that size() made. */
  bool is_size() const;
  /** A Dict that ordered_dict() made. */
  bool is_ordered() const;

  /** The value of a string key of a Dict, or null. */
  const Value* find(std::string_view key) const;
  /** The same; DataError that names the key where there is none. */
  const Value& at(std::string_view key) const;

  /** The same for copies of one string, container or tensor, else different; null for values without identity. */
  const void* identity() const;
  /** Depth of nested containers; 0 for other values. */
  int64_t depth() const;

 private:
  static constexpr size_t kString = static_cast<size_t>(Kind::String);
  struct Sequence;
  struct Mapping;
  using Data =
      std::variant<std::monostate, bool, int64_t, double, std::shared_ptr<const std::string>,
                   std::shared_ptr<const Sequence>, std::shared_ptr<const Sequence>, std::shared_ptr<const Mapping>,
                   tercel::Tensor, ScalarType, tercel::Device, std::shared_ptr<const std::string>>;

  template <class T>
  static Data make_number(T value) {
    if constexpr (std::is_same_v<T, bool>)
      return Data(value);
    else
      return Data(checked(value, std::is_unsigned_v<T> && sizeof(T) == 8));
  }
  template <class T>
  static int64_t checked(T value, bool may_not_fit) {
    if (may_not_fit && static_cast<uint64_t>(value) > uint64_t{INT64_MAX}) refuse_number(static_cast<uint64_t>(value));
    return static_cast<int64_t>(value);
  }
  static Value make_dict(std::vector<Item> items, bool ordered);
  [[noreturn]] static void refuse_number(uint64_t value);
  [[noreturn]] void refuse(Kind wanted) const;

  Data data_;
  bool parameter_ = false;
};

/** "None", "bool", "int", "float", "str", "list", "tuple", "dict", "Tensor", "dtype", "device", "bytes". */
TERCEL_API std::string_view to_string(Value::Kind kind);

}  // namespace tercel::io
