// HugeCTR's dense tensors: a Tensor that is row-major and of a type known at compile time, or not (a bag).
//
// Note [Tensors without memory]
// A Tensor2 is a handle of a Tensor, and nothing of its own: copies share the elements, conversions copy none. One that
// GeneralBuffer2::reserve() made has sizes, but its Tensor comes with the buffer's allocate(); until then reading its
// elements, or its Tensor, is an error. The other way, a Tensor over a storage without memory that is filled in later,
// would need a case in every op that reads a storage, and the device before the allocator is asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/util/export.h"

namespace tercel::recsys::hugectr {

namespace detail {
/**
 * A tensor that a buffer is going to allocate. Shared by the buffer, which sets `tensor`, and the Tensor2s and bags
 * made before; neither outlives the other by rule.
 */
struct ReservedTensor {
  DimVector sizes;
  ScalarType dtype;
  Tensor tensor = {};
};
}  // namespace detail

/** A row-major tensor of any dtype; Tensor2<T>::shrink() makes one. */
class TERCEL_API TensorBag2 {
 public:
  /** Of no tensor: dtype Undefined, not allocated. */
  TensorBag2() = default;
  /** The same tensor, not a copy. RuntimeError unless it is strided and contiguous. */
  explicit TensorBag2(Tensor tensor);
  explicit TensorBag2(std::shared_ptr<const detail::ReservedTensor> reserved) : reserved_(std::move(reserved)) {}

  /** Valid while the bag, or a copy of it, lives. */
  IntSpan get_dimensions() const;
  int64_t get_num_elements() const;
  size_t get_size_in_bytes() const;
  ScalarType dtype() const { return reserved_ ? reserved_->dtype : tensor_.dtype(); }
  /** Whether tensor() and get_ptr() may be called. */
  bool allocated() const { return (reserved_ ? reserved_->tensor : tensor_).defined(); }
  /** The first element; null without elements. RuntimeError before the buffer's allocate(). */
  void* get_ptr() const { return tensor().data_ptr(); }
  /** The tensor itself; RuntimeError before the buffer's allocate(), and for a bag of no tensor. */
  const Tensor& tensor() const {
    const Tensor& known = reserved_ ? reserved_->tensor : tensor_;
    if (!known.defined()) [[unlikely]]
      refuse_access();
    return known;
  }
  /** TypeError, starting with `what`, unless it is of this dtype. */
  void check_dtype(const char* what, ScalarType expected) const;

 private:
  [[noreturn]] void refuse_access() const;

  Tensor tensor_;
  std::shared_ptr<const detail::ReservedTensor> reserved_;
};

/** A row-major tensor of elements T. */
template <class T>
class Tensor2 {
  static_assert(
      requires { scalar_type_of<T>(); }, "T is the element type of a dtype: int64_t for long long");

 public:
  /** No tensor: no sizes, not allocated. */
  Tensor2() = default;
  /** The same tensor, not a copy. TypeError unless its elements are T; RuntimeError unless strided and contiguous. */
  explicit Tensor2(Tensor tensor) : Tensor2("Tensor2", TensorBag2(std::move(tensor))) {}
  /** TypeError unless the bag's elements are T. */
  static Tensor2 stretch_from(const TensorBag2& bag) { return Tensor2("Tensor2::stretch_from", bag); }
  TensorBag2 shrink() const { return bag_; }

  /** Valid while a copy of the Tensor2 lives. */
  IntSpan get_dimensions() const { return bag_.get_dimensions(); }
  int64_t get_num_elements() const { return bag_.get_num_elements(); }
  size_t get_size_in_bytes() const { return bag_.get_size_in_bytes(); }
  /** Whether tensor() and get_ptr() may be called. */
  bool allocated() const { return bag_.allocated(); }
  /** The first element; null without elements. RuntimeError before the buffer's allocate(). */
  T* get_ptr() const { return bag_.tensor().template data<T>(); }
  /** The tensor itself; RuntimeError before the buffer's allocate(), and if there is none. */
  const Tensor& tensor() const { return bag_.tensor(); }

 private:
  Tensor2(const char* what, TensorBag2 bag) : bag_(std::move(bag)) { bag_.check_dtype(what, scalar_type_of<T>()); }

  TensorBag2 bag_;
};

using TensorBags2 = std::vector<TensorBag2>;
template <class T>
using Tensors2 = std::vector<Tensor2<T>>;

/** stretch_from() of each; TypeError for a bag of another type. */
template <class T>
Tensors2<T> bags_to_tensors(const TensorBags2& bags) {
  Tensors2<T> tensors;
  tensors.reserve(bags.size());
  for (const TensorBag2& bag : bags) tensors.push_back(Tensor2<T>::stretch_from(bag));
  return tensors;
}

/** shrink() of each. */
template <class T>
TensorBags2 tensors_to_bags(const Tensors2<T>& tensors) {
  TensorBags2 bags;
  bags.reserve(tensors.size());
  for (const Tensor2<T>& tensor : tensors) bags.push_back(tensor.shrink());
  return bags;
}

}  // namespace tercel::recsys::hugectr
