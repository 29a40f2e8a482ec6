#include "tercel/recsys/hugectr/tensor2.h"

#include <utility>

#include "tercel/util/error.h"

namespace tercel::recsys::hugectr {

TensorBag2::TensorBag2(Tensor tensor) : tensor_(std::move(tensor)) {
  check_strided("Tensor2", tensor_, "tensor");
  TERCEL_CHECK(tensor_.is_contiguous(), RuntimeError,
               "Tensor2: expected a row-major tensor, such as contiguous() returns, but got one of sizes ",
               tensor_.sizes(), " with strides ", tensor_.strides());
}

IntSpan TensorBag2::get_dimensions() const {
  if (reserved_) return reserved_->sizes;
  return tensor_.defined() ? tensor_.sizes() : IntSpan();
}

int64_t TensorBag2::get_num_elements() const { return reserved_ ? numel_of(reserved_->sizes) : tensor_.numel(); }

size_t TensorBag2::get_size_in_bytes() const { return static_cast<size_t>(get_num_elements()) * item_size(dtype()); }

void TensorBag2::check_dtype(const char* what, ScalarType expected) const {
  const ScalarType found = dtype();
  TERCEL_CHECK(found != ScalarType::Undefined, TypeError, what, ": expected elements of ", to_string(expected),
               ", but there is no tensor");
  TERCEL_CHECK(found == expected, TypeError, what, ": expected elements of ", to_string(expected), ", found ",
               to_string(found));
}

void TensorBag2::refuse_access() const {
  TERCEL_CHECK(reserved_, RuntimeError, "Tensor2: there is no tensor");
  throw_error<RuntimeError>({"Tensor2: ", IntSpan(reserved_->sizes), " ", to_string(reserved_->dtype),
                             " has no memory yet: call allocate() of its GeneralBuffer2"});
}

}  // namespace tercel::recsys::hugectr
