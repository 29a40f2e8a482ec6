// A view of consecutive elements that, unlike std::span, also accepts a braced list and a single element at a call.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <vector>

namespace tercel {

/** Non-owning view of const elements, valid while its source lives: a braced list or a number that is an argument lives
 * until the call returns. */
template <class T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr Span(std::initializer_list<T> list) : Span(list.begin(), list.size()) {}
  /** A single element in place of a list: x.sum(1), x.view(-1), zeros(3). */
  constexpr Span(const T& element) : data_(&element), size_(1) {}
  template <size_t N>
  constexpr Span(const T (&array)[N]) : data_(array), size_(N) {}
  /** From anything with data() and size(): vector, array, SmallVector, std::span. */
  template <class C>
  requires(!std::is_same_v<std::remove_cvref_t<C>, Span> &&
           requires(const C& c) {
             { c.data() } -> std::convertible_to<const T*>;
             { c.size() } -> std::convertible_to<size_t>;
           }) constexpr Span(const C& container)
      : data_(container.data()), size_(container.size()) {}

  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  /** The part [start, start + count); the caller keeps it in range. */
  constexpr Span subspan(size_t start, size_t count) const { return {data_ + start, count}; }
  std::vector<T> to_vector() const { return {begin(), end()}; }

  friend constexpr bool operator==(Span a, Span b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

/** Sizes, strides and dimension lists in signatures. */
using IntSpan = Span<int64_t>;

}  // namespace tercel
