// The numbers of an Arrow array, and of its lists: where they are, which are missing, and what they are as other types.
// Private.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tercel/data/arrow_numbers_impl.h"
#include "tercel/data/element_type.h"
#include "tercel/util/arrow_c.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/half.h"

namespace tercel::data {

/** A column, for messages. */
struct ArrowPlace {
  std::string_view owner, name;
};

/** DataError "<owner>: column '<name>': expected ..., found ...". */
[[noreturn]] void fail_column(const ArrowPlace& place, std::string_view expected, std::string_view found);

/** Elements of an array of numbers, of which some may be missing. Buffers may begin at any byte. */
struct ArrowElements {
  ElementType type = ElementType::I64;
  const void* data = nullptr;
  const uint8_t* valid = nullptr;  // null: none is missing
  int64_t offset = 0;              // of element 0, in both
  int64_t length = 0;
  std::optional<ElementType> index;  // dictionary-encoded
  const void* indices = nullptr;
  const uint8_t* dictionary_valid = nullptr;
  int64_t dictionary_offset = 0;
  int64_t dictionary_length = 0;
  bool all_missing = false;
};

inline bool is_set(const uint8_t* bits, int64_t i) { return (bits[i >> 3] >> (i & 7) & 1) != 0; }

/** Calls function(T{}) with the C++ type; Bool and F16 have none and are read by load_element(). */
template <class Function>
auto with_element_type(ElementType type, Function function) {
  switch (type) {
    case ElementType::I8: return function(int8_t{});
    case ElementType::I16: return function(int16_t{});
    case ElementType::I32: return function(int32_t{});
    case ElementType::I64: return function(int64_t{});
    case ElementType::U8: return function(uint8_t{});
    case ElementType::U16: return function(uint16_t{});
    case ElementType::U32: return function(uint32_t{});
    case ElementType::U64: return function(uint64_t{});
    case ElementType::F32: return function(float{});
    case ElementType::F64: return function(double{});
    case ElementType::F16: return function(Half{});
    case ElementType::Bool: return function(bool{});
  }
  throw_error<InternalError>({"arrow: an unknown type of numbers"});
}

/** Element i of a buffer, which need not be aligned, as To. */
template <class T, class To>
To load_element(const void* data, int64_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<To>(is_set(static_cast<const uint8_t*>(data), i));
  } else {
    T value;
    std::memcpy(&value, static_cast<const std::byte*>(data) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    if constexpr (std::is_same_v<T, Half>)
      return static_cast<To>(static_cast<float>(value));
    else
      return static_cast<To>(value);
  }
}

/** The elements as To; `missing(i)` is called for those that are not there, and gives what stands in their place. */
template <class To, class Missing>
void convert_elements(const ArrowElements& from, To* to, const ArrowPlace& place, Missing missing) {
  const int64_t offset = from.offset;
  if (from.all_missing) {
    for (int64_t i = 0; i < from.length; ++i) to[i] = missing(i);
    return;
  }
  if (from.index) {
    with_element_type(*from.index, [&]<class Index>(Index) {
      if constexpr (std::is_integral_v<Index> && !std::is_same_v<Index, bool>) {
        with_element_type(from.type, [&]<class T>(T) {
          for (int64_t i = 0; i < from.length; ++i) {
            if (from.valid && !is_set(from.valid, offset + i)) {
              to[i] = missing(i);
              continue;
            }
            const auto index = load_element<Index, int64_t>(from.indices, offset + i);
            if (index < 0 || index >= from.dictionary_length)
              fail_column(place, str_cat({"indices below ", from.dictionary_length}), str_cat({index}));
            const int64_t at = from.dictionary_offset + index;
            to[i] = from.dictionary_valid && !is_set(from.dictionary_valid, at) ? missing(i)
                                                                                : load_element<T, To>(from.data, at);
          }
        });
      }
    });
    return;
  }
  with_element_type(from.type, [&]<class T>(T) {
    if (!from.valid) {
      for (int64_t i = 0; i < from.length; ++i) to[i] = load_element<T, To>(from.data, offset + i);
      return;
    }
    for (int64_t i = 0; i < from.length; ++i)
      to[i] = is_set(from.valid, offset + i) ? load_element<T, To>(from.data, offset + i) : missing(i);
  });
}

/** Whether elements are an array of To that can be read where it is. */
template <class To>
bool is_plain(const ArrowElements& elements) {
  if (elements.valid || elements.index || elements.all_missing) return false;
  if (!elements.data || reinterpret_cast<uintptr_t>(elements.data) % alignof(To) != 0) return false;
  if constexpr (std::is_same_v<To, float>) return elements.type == ElementType::F32;
  return elements.type == ElementType::I64 || elements.type == ElementType::U64;
}

/** Where the lists of an array begin, and the array of their elements. */
struct ArrowLists {
  std::vector<int64_t> offsets;  // rows + 1, from 0
  std::vector<int64_t> missing;  // rows without a list
  const ArrowArray* child = nullptr;
  int64_t first = 0;  // element of the child that is element 0
};

// DataError for arrays that contradict the C data interface, or what the schema says of the numbers.

/** All elements of an array of numbers. */
ArrowElements elements_of(const ArrowArray& array, const ArrowNumbers& numbers, const ArrowPlace& place);
/** The lists of an array of them. */
ArrowLists lists_of(const ArrowArray& array, const ArrowNumbers& numbers, const ArrowPlace& place);
/** The elements of all lists. */
ArrowElements elements_of(const ArrowLists& lists, const ArrowNumbers& numbers, const ArrowPlace& place);

}  // namespace tercel::data
