// Tensor methods that are not functions with the tensor as first argument; see Note [Tensor methods] in tensor.h.
#include "tercel/core/tensor.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/subscript.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/views/slicing.h"
#include "tercel/ops/views/view_inplace.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

/** The options that new tensors inherit. */
TensorOptions like(const Tensor& x) { return {x.dtype(), x.device()}; }

}  // namespace

Tensor Tensor::operator[](int64_t index) const { return select(0, index); }
template <std::same_as<ScalarType> Dtype>
Tensor Tensor::view(Dtype dtype) const {
  return tercel::view(*this, dtype);
}
template Tensor Tensor::view(ScalarType dtype) const;
Tensor Tensor::squeeze(std::initializer_list<int64_t> dims) const { return tercel::squeeze(*this, dims); }
Tensor& Tensor::squeeze_(std::initializer_list<int64_t> dims) const {
  return const_cast<Tensor&>(tercel::squeeze_(*this, dims));
}
Tensor Tensor::index(std::initializer_list<TensorIndex> items) const { return tercel::index(*this, items); }
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> items, const Tensor& value) const {
  return const_cast<Tensor&>(set_item(*this, items, value));
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> items, Scalar value) const {
  return const_cast<Tensor&>(set_item(*this, items, value));
}
Tensor Tensor::type_as(const Tensor& other) const { return to(other.dtype()); }
Tensor Tensor::where(const Tensor& condition, const Tensor& other) const {
  return tercel::where(condition, *this, other);
}
Tensor Tensor::lu_solve(const Tensor& lu, const Tensor& pivots) const { return linalg::lu_solve(lu, pivots, *this); }
linalg::QrResult Tensor::qr(bool some) const { return linalg::qr(*this, some ? "reduced" : "complete"); }

Tensor Tensor::new_empty(IntSpan sizes) const { return new_empty(sizes, like(*this)); }
Tensor Tensor::new_empty(IntSpan sizes, TensorOptions options) const { return empty(sizes, options); }
Tensor Tensor::new_zeros(IntSpan sizes) const { return new_zeros(sizes, like(*this)); }
Tensor Tensor::new_zeros(IntSpan sizes, TensorOptions options) const { return zeros(sizes, options); }
Tensor Tensor::new_ones(IntSpan sizes) const { return new_ones(sizes, like(*this)); }
Tensor Tensor::new_ones(IntSpan sizes, TensorOptions options) const { return ones(sizes, options); }
Tensor Tensor::new_full(IntSpan sizes, Scalar value) const { return new_full(sizes, value, like(*this)); }
Tensor Tensor::new_full(IntSpan sizes, Scalar value, TensorOptions options) const {
  return full(sizes, value, options);
}
Tensor Tensor::new_empty_strided(IntSpan sizes, IntSpan strides) const {
  return empty_strided(sizes, strides, like(*this));
}

}  // namespace tercel
