// Intrusive reference counting with weak references. The rules are in intrusive_ptr_target.h.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>  // std::hash
#include <type_traits>
#include <utility>

#include "tercel/core/intrusive_ptr_target.h"

namespace tercel {

namespace detail {
/** The null singleton of types that do not define their own. */
template <class T>
struct NullPointer {
  static constexpr T* singleton() noexcept { return nullptr; }
};
}  // namespace detail

/** Strong owner of a T. Null is NullType::singleton(), which is never counted. */
template <class T, class NullType = detail::NullPointer<T>>
class intrusive_ptr final {
 public:
  using element_type = T;

  constexpr intrusive_ptr() noexcept : target_(NullType::singleton()) {}
  constexpr intrusive_ptr(std::nullptr_t) noexcept : intrusive_ptr() {}
  intrusive_ptr(const intrusive_ptr& other) noexcept : target_(other.target_) { retain(); }
  intrusive_ptr(intrusive_ptr&& other) noexcept : target_(std::exchange(other.target_, NullType::singleton())) {}
  template <class From, class FromNull>
  requires std::is_convertible_v<From*, T*> intrusive_ptr(const intrusive_ptr<From, FromNull>& other)
  noexcept : target_(other.defined() ? other.get() : NullType::singleton()) { retain(); }
  template <class From, class FromNull>
  requires std::is_convertible_v<From*, T*> intrusive_ptr(intrusive_ptr<From, FromNull>&& other)
  noexcept : target_(other.defined() ? static_cast<T*>(other.release()) : NullType::singleton()) {}
  ~intrusive_ptr() { drop(); }

  intrusive_ptr& operator=(intrusive_ptr other) & noexcept {
    swap(other);
    return *this;
  }

  T* get() const noexcept { return target_; }
  T& operator*() const noexcept { return *target_; }
  T* operator->() const noexcept { return target_; }
  bool defined() const noexcept { return target_ != NullType::singleton(); }
  explicit operator bool() const noexcept { return defined(); }

  /** Sets null before the object dies, so that its destructor does not see the dying object through this pointer. */
  void reset() noexcept { intrusive_ptr dying(std::move(*this)); }
  void swap(intrusive_ptr& other) noexcept { std::swap(target_, other.target_); }

  uint32_t use_count() const noexcept { return defined() ? detail::strong_of(detail::Counts::load(target_)) : 0; }
  uint32_t weak_use_count() const noexcept { return defined() ? detail::weak_of(detail::Counts::load(target_)) : 0; }
  bool unique() const noexcept { return use_count() == 1; }

  /** Returns the reference without dropping it; reclaim() takes it back. */
  [[nodiscard]] T* release() noexcept { return std::exchange(target_, NullType::singleton()); }
  /** Takes back a reference from release(); no increment. */
  static intrusive_ptr reclaim(T* owning) {
    assert(owning == NullType::singleton() || detail::strong_of(detail::Counts::load(owning)) != 0);
    intrusive_ptr p;
    p.target_ = owning;
    return p;
  }
  /** A further owner of an object that is owned elsewhere. */
  static intrusive_ptr reclaim_copy(T* owned) {
    intrusive_ptr p = reclaim(owned);
    p.retain();
    return p;
  }
  /** The same for an object known by a weak reference or a raw pointer, which must still be alive. */
  static intrusive_ptr unsafe_reclaim_from_nonowning(T* alive) {
    assert(alive == NullType::singleton() || detail::strong_of(detail::Counts::load(alive)) != 0);
    return reclaim_copy(alive);
  }
  /** The first owner of an object that `new` just made. */
  static intrusive_ptr unsafe_steal_from_new(T* fresh) {
    detail::Counts::adopt(fresh);
    intrusive_ptr p;
    p.target_ = fresh;
    return p;
  }
  template <class... Args>
  static intrusive_ptr make(Args&&... args) {
    return unsafe_steal_from_new(new T(std::forward<Args>(args)...));
  }

 private:
  void retain() const noexcept {
    if (defined()) detail::Counts::increment_strong(target_);
  }
  void drop() noexcept {
    if (defined()) detail::Counts::decrement_strong(const_cast<std::remove_const_t<T>*>(target_));
  }

  T* target_;
};
/** A new object, and its first owner. */
template <class T, class NullType = detail::NullPointer<T>, class... Args>
intrusive_ptr<T, NullType> make_intrusive(Args&&... args) {
  return intrusive_ptr<T, NullType>::make(std::forward<Args>(args)...);
}

/** Keeps an object's memory, not its resources: lock() returns a strong owner while one exists. */
template <class T, class NullType = detail::NullPointer<T>>
class weak_intrusive_ptr final {
 public:
  using element_type = T;

  constexpr weak_intrusive_ptr() noexcept : target_(NullType::singleton()) {}
  template <class From, class FromNull>
  requires std::is_convertible_v<From*, T*> weak_intrusive_ptr(const intrusive_ptr<From, FromNull>& strong)
  noexcept : target_(strong.defined() ? strong.get() : NullType::singleton()) { retain(); }
  weak_intrusive_ptr(const weak_intrusive_ptr& other) noexcept : target_(other.target_) { retain(); }
  weak_intrusive_ptr(weak_intrusive_ptr&& other) noexcept
      : target_(std::exchange(other.target_, NullType::singleton())) {}
  template <class From, class FromNull>
  requires std::is_convertible_v<From*, T*> weak_intrusive_ptr(weak_intrusive_ptr<From, FromNull> other)
  noexcept : target_(other.is_null() ? NullType::singleton() : static_cast<T*>(other.release())) {}
  ~weak_intrusive_ptr() { drop(); }

  weak_intrusive_ptr& operator=(weak_intrusive_ptr other) & noexcept {
    swap(other);
    return *this;
  }

  void reset() noexcept { weak_intrusive_ptr dying(std::move(*this)); }
  void swap(weak_intrusive_ptr& other) noexcept { std::swap(target_, other.target_); }

  /** Whether it refers to no object, alive or dead. */
  bool is_null() const noexcept { return target_ == NullType::singleton(); }
  uint32_t use_count() const noexcept { return is_null() ? 0 : detail::strong_of(detail::Counts::load(target_)); }
  uint32_t weak_use_count() const noexcept { return is_null() ? 0 : detail::weak_of(detail::Counts::load(target_)); }
  bool expired() const noexcept { return use_count() == 0; }
  /** The object, or null when its last strong owner has gone. */
  intrusive_ptr<T, NullType> lock() const noexcept {
    if (is_null() || !detail::Counts::lock(target_)) return {};
    return intrusive_ptr<T, NullType>::reclaim(target_);
  }
  /** The address, for comparing only: the object may be dead. */
  T* unsafe_get() const noexcept { return target_; }

  [[nodiscard]] T* release() noexcept { return std::exchange(target_, NullType::singleton()); }
  static weak_intrusive_ptr reclaim(T* owning_weak) {
    assert(owning_weak == NullType::singleton() || detail::weak_of(detail::Counts::load(owning_weak)) != 0);
    weak_intrusive_ptr p;
    p.target_ = owning_weak;
    return p;
  }
  /** A further weak reference to an object that has one already, dead or alive. */
  static weak_intrusive_ptr reclaim_copy(T* weakly_owned) {
    weak_intrusive_ptr p = reclaim(weakly_owned);
    p.retain();
    return p;
  }

 private:
  void retain() const noexcept {
    if (!is_null()) detail::Counts::increment_weak(target_);
  }
  void drop() noexcept {
    if (!is_null()) detail::Counts::decrement_weak(const_cast<std::remove_const_t<T>*>(target_));
  }

  T* target_;
};

template <class A, class NA, class B, class NB>
bool operator==(const intrusive_ptr<A, NA>& a, const intrusive_ptr<B, NB>& b) noexcept {
  return (a.defined() ? a.get() : nullptr) == (b.defined() ? b.get() : nullptr);
}
template <class T, class N>
bool operator==(const intrusive_ptr<T, N>& a, std::nullptr_t) noexcept {
  return !a.defined();
}
template <class T, class N>
bool operator==(const weak_intrusive_ptr<T, N>& a, const weak_intrusive_ptr<T, N>& b) noexcept {
  return a.unsafe_get() == b.unsafe_get();
}

namespace detail {
template <class T, class N>
uintptr_t address_of(const intrusive_ptr<T, N>& p) noexcept {
  return p.defined() ? reinterpret_cast<uintptr_t>(p.get()) : 0;
}
template <class T, class N>
uintptr_t address_of(const weak_intrusive_ptr<T, N>& p) noexcept {
  return p.is_null() ? 0 : reinterpret_cast<uintptr_t>(p.unsafe_get());
}
}  // namespace detail

/** Orders by address; null first. */
template <class T, class N>
bool operator<(const intrusive_ptr<T, N>& a, const intrusive_ptr<T, N>& b) noexcept {
  return detail::address_of(a) < detail::address_of(b);
}
template <class T, class N>
bool operator<(const weak_intrusive_ptr<T, N>& a, const weak_intrusive_ptr<T, N>& b) noexcept {
  return detail::address_of(a) < detail::address_of(b);
}

}  // namespace tercel

template <class T, class N>
struct std::hash<tercel::intrusive_ptr<T, N>> {
  size_t operator()(const tercel::intrusive_ptr<T, N>& p) const noexcept {
    return std::hash<uintptr_t>()(tercel::detail::address_of(p));
  }
};
template <class T, class N>
struct std::hash<tercel::weak_intrusive_ptr<T, N>> {
  size_t operator()(const tercel::weak_intrusive_ptr<T, N>& p) const noexcept {
    return std::hash<uintptr_t>()(tercel::detail::address_of(p));
  }
};
