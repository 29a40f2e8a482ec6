// PyTorch's dispatch keys, for inspection only. Ops do not dispatch on them: an op's front end checks layout and
// device, and autograd is one test (docs/design/dispatch.md).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "tercel/core/tensor.h"

namespace tercel {

/** The parts that may handle an op, in ascending order of priority. */
enum class DispatchKey : uint8_t {
  Undefined,
  CPU,
  CUDA,
  MkldnnCPU,
  MkldnnCUDA,
  SparseCPU,
  SparseCUDA,
  SparseCsrCPU,
  SparseCsrCUDA,
  AutogradCPU,
  AutogradCUDA,
};
constexpr int kNumDispatchKeys = 11;
/** The name of the key. */
TERCEL_API std::string_view to_string(DispatchKey key);

/** A set of keys. */
class DispatchKeySet {
 public:
  constexpr DispatchKeySet() = default;
  constexpr DispatchKeySet(std::initializer_list<DispatchKey> keys) {
    for (const DispatchKey key : keys) *this = add(key);
  }

  constexpr bool has(DispatchKey key) const { return (bits_ & bit(key)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  /** Undefined is never in a set. */
  constexpr DispatchKeySet add(DispatchKey key) const { return DispatchKeySet(bits_ | bit(key)); }
  constexpr DispatchKeySet remove(DispatchKey key) const { return DispatchKeySet(bits_ & ~bit(key)); }
  /** The key of the highest priority; Undefined if the set is empty. */
  constexpr DispatchKey highest() const {
    return bits_ == 0 ? DispatchKey::Undefined : static_cast<DispatchKey>(63 - __builtin_clzll(bits_));
  }
  friend constexpr bool operator==(DispatchKeySet a, DispatchKeySet b) { return a.bits_ == b.bits_; }

 private:
  constexpr explicit DispatchKeySet(uint64_t bits) : bits_(bits) {}
  static constexpr uint64_t bit(DispatchKey key) {
    return key == DispatchKey::Undefined ? 0 : uint64_t{1} << static_cast<int>(key);
  }
  uint64_t bits_ = 0;
};

/** "DispatchKeySet(CPU, AutogradCPU)". */
TERCEL_API std::string to_string(DispatchKeySet keys);

/** The key of the tensor's layout and device, and autograd's if ops on it are recorded; empty if it is undefined. */
TERCEL_API DispatchKeySet key_set(const Tensor& t);

}  // namespace tercel
