// Any C++ type as an element type, like Caffe2's TypeMeta. Ops support ScalarType only; this is for DeferredTensor,
// whose elements may be strings or other objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <type_traits>

#include "tercel/core/scalar_type.h"

namespace tercel {

/** How to construct, destroy and copy elements of a type in untyped memory. */
struct ElementType {
  std::string_view name;
  size_t itemsize = 0;
  /** The dtype of the type in ops; Undefined if it has none. */
  ScalarType dtype = ScalarType::Undefined;
  /** Default-constructs count elements, or none if one throws; null if uninitialised memory is enough. */
  void (*construct)(void* elements, int64_t count) = nullptr;
  /** Destroys count elements; null if that does nothing. */
  void (*destroy)(void* elements, int64_t count) noexcept = nullptr;
  /** Assigns count elements; null if copying bytes is enough. */
  void (*copy)(void* to, const void* from, int64_t count) = nullptr;
};

/** Compares names, as a type may have been instantiated in several libraries. */
inline bool operator==(const ElementType& a, const ElementType& b) {
  return &a == &b || (a.itemsize == b.itemsize && a.dtype == b.dtype && a.name == b.name);
}

namespace detail {

/** The type's name as the compiler writes it into the name of this function. */
template <class T>
constexpr std::string_view name_of_type() {
  constexpr std::string_view function = __PRETTY_FUNCTION__;
  constexpr size_t begin = function.find("T = ") + 4;
  constexpr size_t end = function.find_first_of(";]", begin);
  return function.substr(begin, end - begin);
}

template <class T>
constexpr ElementType make_element_type() {
  ElementType type;
  type.itemsize = sizeof(T);
  if constexpr (requires { scalar_type_of<T>(); }) type.dtype = scalar_type_of<T>();
  type.name = name_of_type<T>();
  if constexpr (!std::is_trivially_default_constructible_v<T> && !requires { scalar_type_of<T>(); }) {
    type.construct = [](void* elements, int64_t count) {
      T* first = static_cast<T*>(elements);
      int64_t made = 0;
      try {
        for (; made < count; ++made) ::new (static_cast<void*>(first + made)) T();
      } catch (...) {
        while (made > 0) first[--made].~T();
        throw;
      }
    };
  }
  if constexpr (!std::is_trivially_destructible_v<T>) {
    type.destroy = [](void* elements, int64_t count) noexcept {
      for (int64_t i = 0; i < count; ++i) static_cast<T*>(elements)[i].~T();
    };
  }
  if constexpr (!std::is_trivially_copyable_v<T>) {
    type.copy = [](void* to, const void* from, int64_t count) {
      for (int64_t i = 0; i < count; ++i) static_cast<T*>(to)[i] = static_cast<const T*>(from)[i];
    };
  }
  return type;
}

template <class T>
inline constexpr ElementType kElementType = make_element_type<T>();

}  // namespace detail

/** The one ElementType of T, which must be default-constructible, copyable and at most 64-byte aligned. */
template <class T>
constexpr const ElementType& element_type_of() {
  static_assert(std::is_same_v<T, std::remove_cvref_t<T>> && std::is_default_constructible_v<T> &&
                std::is_copy_assignable_v<T> && alignof(T) <= 64);
  return detail::kElementType<T>;
}

/** The ElementType of a dtype; that of Undefined has size 0. */
TERCEL_API const ElementType& element_type_of(ScalarType dtype);

/** The type of a tensor whose dtype is not set yet. */
inline constexpr ElementType kNoElementType{.name = "nullptr (uninitialized)"};

}  // namespace tercel
