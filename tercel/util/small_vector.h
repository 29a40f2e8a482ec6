// A growable array of trivially copyable elements with inline storage for the first few.
#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <type_traits>

#include "tercel/util/error.h"
#include "tercel/util/span.h"

namespace tercel {

/** Up to N elements need no allocation; a larger vector is on the heap and stays there if it shrinks. Moving steals
 * the heap block. */
template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>, "elements are moved with memcpy");
  static_assert(N > 0);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() noexcept = default;
  explicit SmallVector(size_t size, T value = T{}) { assign(size, value); }
  SmallVector(std::initializer_list<T> list) { assign(Span<T>(list)); }
  SmallVector(Span<T> elements) { assign(elements); }
  SmallVector(const SmallVector& other) { assign(Span<T>(other)); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  ~SmallVector() { release(); }

  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(Span<T>(other));
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  size_t capacity() const noexcept { return capacity_; }
  bool empty() const noexcept { return size_ == 0; }
  /** Whether the elements are stored inside the object. */
  bool is_inline() const noexcept { return data_ == inline_data(); }

  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }

  void reserve(size_t capacity) {
    if (capacity > capacity_) grow(capacity);
  }
  void clear() noexcept { size_ = 0; }
  /** New elements get `value`. */
  void resize(size_t size, T value = T{}) {
    reserve(size);
    if (size > size_) std::uninitialized_fill(data_ + size_, data_ + size, value);
    size_ = size;
  }
  // By value: the argument may be an element of this very vector.
  void push_back(T value) {
    if (size_ == capacity_) grow(size_ + 1);
    data_[size_++] = value;
  }
  void pop_back() {
    TERCEL_ASSERT(size_ > 0);
    --size_;
  }

  void assign(size_t size, T value) {
    reserve(size);
    std::uninitialized_fill(data_, data_ + size, value);
    size_ = size;
  }
  /** The elements may be a part of this vector. */
  void assign(Span<T> elements) {
    if (elements.size() > capacity_) {
      SmallVector fresh;
      fresh.grow(elements.size());
      fresh.assign(elements);
      *this = static_cast<SmallVector&&>(fresh);
      return;
    }
    if (!elements.empty()) std::memmove(data_, elements.data(), elements.size() * sizeof(T));
    size_ = elements.size();
  }

  /** Inserts before `position`; returns the new element's address. */
  T* insert(const T* position, T value) {
    T* gap = open_gap(position, 1);
    *gap = value;
    return gap;
  }
  /** Inserts before `position`; the elements may be a part of this vector. */
  T* insert(const T* position, Span<T> elements) {
    const auto at = static_cast<size_t>(position - data_);
    const SmallVector copy(elements);
    T* gap = open_gap(data_ + at, copy.size());
    if (!copy.empty()) std::memcpy(gap, copy.data(), copy.size() * sizeof(T));
    return gap;
  }
  T* erase(const T* position) { return erase(position, position + 1); }
  /** Removes [first, last); returns the new address of the element after them. */
  T* erase(const T* first, const T* last) {
    TERCEL_ASSERT(data_ <= first && first <= last && last <= end());
    T* to = data_ + (first - data_);
    if (last != end()) std::memmove(to, last, static_cast<size_t>(end() - last) * sizeof(T));
    size_ -= static_cast<size_t>(last - first);
    return to;
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) { return Span<T>(a) == Span<T>(b); }

 private:
  const T* inline_data() const noexcept { return std::launder(reinterpret_cast<const T*>(buffer_)); }
  T* inline_data() noexcept { return std::launder(reinterpret_cast<T*>(buffer_)); }

  [[gnu::noinline]] void grow(size_t at_least) {
    constexpr size_t kMax = static_cast<size_t>(PTRDIFF_MAX) / sizeof(T);
    TERCEL_CHECK(at_least <= kMax, ValueError, "SmallVector: ", at_least, " elements exceed the available memory");
    const size_t doubled = capacity_ <= kMax / 2 ? capacity_ * 2 : kMax;
    const size_t capacity = at_least > doubled ? at_least : doubled;
    T* fresh = std::allocator<T>().allocate(capacity);
    if (size_ > 0) std::memcpy(fresh, data_, size_ * sizeof(T));
    release();
    data_ = fresh;
    capacity_ = capacity;
  }
  T* open_gap(const T* position, size_t count) {
    const auto at = static_cast<size_t>(position - data_);
    TERCEL_ASSERT(at <= size_);
    if (count > capacity_ - size_) grow(size_ + count);
    T* gap = data_ + at;
    if (at < size_) std::memmove(gap + count, gap, (size_ - at) * sizeof(T));
    size_ += count;
    return gap;
  }
  void release() noexcept {
    if (!is_inline()) std::allocator<T>().deallocate(data_, capacity_);
  }
  // The caller has released this vector's own block; leaves `other` empty.
  void take(SmallVector& other) noexcept {
    size_ = other.size_;
    if (other.is_inline()) {
      data_ = inline_data();
      capacity_ = N;
      if (size_ > 0) std::memcpy(data_, other.data_, size_ * sizeof(T));
    } else {
      data_ = other.data_;
      capacity_ = other.capacity_;
      other.data_ = other.inline_data();
      other.capacity_ = N;
    }
    other.size_ = 0;
  }

  T* data_ = inline_data();
  size_t size_ = 0;
  size_t capacity_ = N;
  alignas(T) std::byte buffer_[N * sizeof(T)];
};

}  // namespace tercel
