// Tensor's methods for rearranging elements forward to ops.
#include "tercel/core/tensor.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/index/nonzero.h"
#include "tercel/ops/index/scatter.h"
#include "tercel/ops/index/subscript.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/diagonals.h"
#include "tercel/ops/views/flip_roll_repeat.h"
#include "tercel/ops/views/permute.h"
#include "tercel/ops/views/resize.h"
#include "tercel/ops/views/slicing.h"
#include "tercel/ops/views/view_copies.h"
#include "tercel/ops/views/view_inplace.h"
#include "tercel/ops/views/view_scatter.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

const Tensor& self(const TensorShapeMethods* part) { return static_cast<const Tensor&>(*part); }
/** PyTorch's in-place methods are const and return a non-const reference. */
Tensor& changed(const Tensor& x) { return const_cast<Tensor&>(x); }

/** Options that a new tensor takes from x. */
TensorOptions like(const Tensor& x) { return {x.dtype(), x.device()}; }

}  // namespace

Tensor TensorShapeMethods::view(IntSpan sizes) const { return tercel::view(self(this), sizes); }
Tensor TensorShapeMethods::reshape(IntSpan sizes) const { return tercel::reshape(self(this), sizes); }
Tensor TensorShapeMethods::reshape_as(const Tensor& other) const { return tercel::reshape_as(self(this), other); }
Tensor TensorShapeMethods::view_as(const Tensor& other) const { return tercel::view_as(self(this), other); }
Tensor TensorShapeMethods::flatten(int64_t start_dim, int64_t end_dim) const {
  return tercel::flatten(self(this), start_dim, end_dim);
}
Tensor TensorShapeMethods::unflatten(int64_t dim, IntSpan sizes) const {
  return tercel::unflatten(self(this), dim, sizes);
}
Tensor TensorShapeMethods::ravel() const { return tercel::ravel(self(this)); }
Tensor TensorShapeMethods::squeeze() const { return tercel::squeeze(self(this)); }
Tensor TensorShapeMethods::squeeze(int64_t dim) const { return tercel::squeeze(self(this), dim); }
Tensor TensorShapeMethods::squeeze(IntSpan dims) const { return tercel::squeeze(self(this), dims); }
Tensor& TensorShapeMethods::squeeze_() const { return changed(tercel::squeeze_(self(this))); }
Tensor& TensorShapeMethods::squeeze_(int64_t dim) const { return changed(tercel::squeeze_(self(this), dim)); }
Tensor& TensorShapeMethods::squeeze_(IntSpan dims) const { return changed(tercel::squeeze_(self(this), dims)); }
Tensor TensorShapeMethods::unsqueeze(int64_t dim) const { return tercel::unsqueeze(self(this), dim); }
Tensor& TensorShapeMethods::unsqueeze_(int64_t dim) const { return changed(tercel::unsqueeze_(self(this), dim)); }
Tensor TensorShapeMethods::expand(IntSpan sizes) const { return tercel::expand(self(this), sizes); }
Tensor TensorShapeMethods::expand_as(const Tensor& other) const { return tercel::expand_as(self(this), other); }
Tensor TensorShapeMethods::broadcast_to(IntSpan sizes) const { return tercel::broadcast_to(self(this), sizes); }
Tensor TensorShapeMethods::as_strided(IntSpan sizes, IntSpan strides, std::optional<int64_t> storage_offset) const {
  return tercel::as_strided(self(this), sizes, strides, storage_offset);
}
Tensor& TensorShapeMethods::as_strided_(IntSpan sizes, IntSpan strides, std::optional<int64_t> storage_offset) const {
  return changed(tercel::as_strided_(self(this), sizes, strides, storage_offset));
}
Tensor TensorShapeMethods::transpose(int64_t dim0, int64_t dim1) const {
  return tercel::transpose(self(this), dim0, dim1);
}
Tensor& TensorShapeMethods::transpose_(int64_t dim0, int64_t dim1) const {
  return changed(tercel::transpose_(self(this), dim0, dim1));
}
Tensor TensorShapeMethods::swapaxes(int64_t axis0, int64_t axis1) const {
  return tercel::swapaxes(self(this), axis0, axis1);
}
Tensor& TensorShapeMethods::swapaxes_(int64_t axis0, int64_t axis1) const {
  return changed(tercel::swapaxes_(self(this), axis0, axis1));
}
Tensor TensorShapeMethods::swapdims(int64_t dim0, int64_t dim1) const {
  return tercel::swapdims(self(this), dim0, dim1);
}
Tensor& TensorShapeMethods::swapdims_(int64_t dim0, int64_t dim1) const {
  return changed(tercel::swapdims_(self(this), dim0, dim1));
}
Tensor TensorShapeMethods::t() const { return tercel::t(self(this)); }
Tensor& TensorShapeMethods::t_() const { return changed(tercel::t_(self(this))); }
Tensor TensorShapeMethods::permute(IntSpan dims) const { return tercel::permute(self(this), dims); }
Tensor TensorShapeMethods::movedim(IntSpan source, IntSpan destination) const {
  return tercel::movedim(self(this), source, destination);
}
Tensor TensorShapeMethods::movedim(int64_t source, int64_t destination) const {
  return tercel::movedim(self(this), source, destination);
}
Tensor TensorShapeMethods::moveaxis(IntSpan source, IntSpan destination) const {
  return tercel::moveaxis(self(this), source, destination);
}
Tensor TensorShapeMethods::moveaxis(int64_t source, int64_t destination) const {
  return tercel::moveaxis(self(this), source, destination);
}
Tensor TensorShapeMethods::numpy_T() const { return tercel::numpy_T(self(this)); }
Tensor TensorShapeMethods::mT() const { return tercel::mT(self(this)); }
Tensor TensorShapeMethods::mH() const { return tercel::mH(self(this)); }
Tensor TensorShapeMethods::matrix_H() const { return tercel::matrix_H(self(this)); }
Tensor TensorShapeMethods::adjoint() const { return tercel::adjoint(self(this)); }
Tensor TensorShapeMethods::narrow(int64_t dim, int64_t start, int64_t length) const {
  return tercel::narrow(self(this), dim, start, length);
}
Tensor TensorShapeMethods::narrow(int64_t dim, const Tensor& start, int64_t length) const {
  return tercel::narrow(self(this), dim, start, length);
}
Tensor TensorShapeMethods::select(int64_t dim, int64_t index) const { return tercel::select(self(this), dim, index); }
Tensor TensorShapeMethods::slice(int64_t dim, int64_t start, int64_t end, int64_t step) const {
  return tercel::slice(self(this), dim, start, end, step);
}
Tensor TensorShapeMethods::unfold(int64_t dim, int64_t size, int64_t step) const {
  return tercel::unfold(self(this), dim, size, step);
}
std::vector<Tensor> TensorShapeMethods::split(int64_t split_size, int64_t dim) const {
  return tercel::split(self(this), split_size, dim);
}
std::vector<Tensor> TensorShapeMethods::split(IntSpan sizes, int64_t dim) const {
  return tercel::split(self(this), sizes, dim);
}
std::vector<Tensor> TensorShapeMethods::split_with_sizes(IntSpan split_sizes, int64_t dim) const {
  return tercel::split_with_sizes(self(this), split_sizes, dim);
}
std::vector<Tensor> TensorShapeMethods::chunk(int64_t chunks, int64_t dim) const {
  return tercel::chunk(self(this), chunks, dim);
}
std::vector<Tensor> TensorShapeMethods::tensor_split(int64_t sections, int64_t dim) const {
  return tercel::tensor_split(self(this), sections, dim);
}
std::vector<Tensor> TensorShapeMethods::tensor_split(IntSpan indices, int64_t dim) const {
  return tercel::tensor_split(self(this), indices, dim);
}
std::vector<Tensor> TensorShapeMethods::tensor_split(const Tensor& indices_or_sections, int64_t dim) const {
  return tercel::tensor_split(self(this), indices_or_sections, dim);
}
std::vector<Tensor> TensorShapeMethods::hsplit(int64_t sections) const { return tercel::hsplit(self(this), sections); }
std::vector<Tensor> TensorShapeMethods::hsplit(IntSpan indices) const { return tercel::hsplit(self(this), indices); }
std::vector<Tensor> TensorShapeMethods::vsplit(int64_t sections) const { return tercel::vsplit(self(this), sections); }
std::vector<Tensor> TensorShapeMethods::vsplit(IntSpan indices) const { return tercel::vsplit(self(this), indices); }
std::vector<Tensor> TensorShapeMethods::dsplit(int64_t sections) const { return tercel::dsplit(self(this), sections); }
std::vector<Tensor> TensorShapeMethods::dsplit(IntSpan indices) const { return tercel::dsplit(self(this), indices); }
std::vector<Tensor> TensorShapeMethods::unbind(int64_t dim) const { return tercel::unbind(self(this), dim); }
Tensor TensorShapeMethods::diagonal(int64_t offset, int64_t dim1, int64_t dim2) const {
  return tercel::diagonal(self(this), offset, dim1, dim2);
}
Tensor TensorShapeMethods::conj() const { return tercel::conj(self(this)); }
Tensor TensorShapeMethods::clone(MemoryFormat format) const { return tercel::clone(self(this), format); }
Tensor TensorShapeMethods::contiguous(MemoryFormat format) const { return tercel::contiguous(self(this), format); }
Tensor TensorShapeMethods::to(ScalarType dtype, bool copy, MemoryFormat format) const {
  return tercel::to(self(this), dtype, copy, format);
}
Tensor TensorShapeMethods::to(MemoryFormat format) const { return tercel::to(self(this), format); }
Tensor& TensorShapeMethods::copy_(const Tensor& source) const { return changed(tercel::copy_(self(this), source)); }
Tensor& TensorShapeMethods::fill_(Scalar value) const { return changed(tercel::fill_(self(this), value)); }
Tensor& TensorShapeMethods::zero_() const { return changed(tercel::zero_(self(this))); }
Tensor& TensorShapeMethods::resize_(IntSpan sizes) const { return changed(tercel::resize_(self(this), sizes)); }
Tensor& TensorShapeMethods::resize_(IntSpan sizes, MemoryFormat format) const {
  return changed(tercel::resize_(self(this), sizes, format));
}
Tensor& TensorShapeMethods::resize_as_(const Tensor& other) const {
  return changed(tercel::resize_as_(self(this), other));
}
Tensor& TensorShapeMethods::resize_as_(const Tensor& other, MemoryFormat format) const {
  return changed(tercel::resize_as_(self(this), other, format));
}
Tensor& TensorShapeMethods::set_(const Storage& source, int64_t storage_offset, IntSpan sizes, IntSpan strides) const {
  return changed(tercel::set_(self(this), source, storage_offset, sizes, strides));
}
Tensor& TensorShapeMethods::set_(const Storage& source) const { return changed(tercel::set_(self(this), source)); }
Tensor& TensorShapeMethods::set_(const Tensor& source) const { return changed(tercel::set_(self(this), source)); }
Tensor TensorShapeMethods::narrow_copy(int64_t dim, int64_t start, int64_t length) const {
  return tercel::narrow_copy(self(this), dim, start, length);
}
Tensor TensorShapeMethods::sum_to_size(IntSpan sizes) const { return tercel::sum_to_size(self(this), sizes); }
Tensor TensorShapeMethods::index(Span<TensorIndex> items) const { return tercel::index(self(this), items); }
Tensor& TensorShapeMethods::index_put_(Span<TensorIndex> items, const Tensor& values, bool accumulate) const {
  return changed(tercel::index_put_(self(this), items, values, accumulate));
}
Tensor TensorShapeMethods::index_put(Span<TensorIndex> items, const Tensor& values, bool accumulate) const {
  return tercel::index_put(self(this), items, values, accumulate);
}
Tensor TensorShapeMethods::index_select(int64_t dim, const Tensor& index) const {
  return tercel::index_select(self(this), dim, index);
}
Tensor TensorShapeMethods::index_add(int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) const {
  return tercel::index_add(self(this), dim, index, source, alpha);
}
Tensor& TensorShapeMethods::index_add_(int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) const {
  return changed(tercel::index_add_(self(this), dim, index, source, alpha));
}
Tensor TensorShapeMethods::index_copy(int64_t dim, const Tensor& index, const Tensor& source) const {
  return tercel::index_copy(self(this), dim, index, source);
}
Tensor& TensorShapeMethods::index_copy_(int64_t dim, const Tensor& index, const Tensor& source) const {
  return changed(tercel::index_copy_(self(this), dim, index, source));
}
Tensor TensorShapeMethods::index_fill(int64_t dim, const Tensor& index, Scalar value) const {
  return tercel::index_fill(self(this), dim, index, value);
}
Tensor TensorShapeMethods::index_fill(int64_t dim, const Tensor& index, const Tensor& value) const {
  return tercel::index_fill(self(this), dim, index, value);
}
Tensor& TensorShapeMethods::index_fill_(int64_t dim, const Tensor& index, Scalar value) const {
  return changed(tercel::index_fill_(self(this), dim, index, value));
}
Tensor& TensorShapeMethods::index_fill_(int64_t dim, const Tensor& index, const Tensor& value) const {
  return changed(tercel::index_fill_(self(this), dim, index, value));
}
Tensor TensorShapeMethods::index_reduce(int64_t dim, const Tensor& index, const Tensor& source,
                                        ScatterReduction reduction, bool include_self) const {
  return tercel::index_reduce(self(this), dim, index, source, reduction, include_self);
}
Tensor& TensorShapeMethods::index_reduce_(int64_t dim, const Tensor& index, const Tensor& source,
                                          ScatterReduction reduction, bool include_self) const {
  return changed(tercel::index_reduce_(self(this), dim, index, source, reduction, include_self));
}
Tensor TensorShapeMethods::gather(int64_t dim, const Tensor& index) const {
  return tercel::gather(self(this), dim, index);
}
Tensor TensorShapeMethods::scatter(int64_t dim, const Tensor& index, const Tensor& source) const {
  return tercel::scatter(self(this), dim, index, source);
}
Tensor TensorShapeMethods::scatter(int64_t dim, const Tensor& index, Scalar value) const {
  return tercel::scatter(self(this), dim, index, value);
}
Tensor& TensorShapeMethods::scatter_(int64_t dim, const Tensor& index, const Tensor& source) const {
  return changed(tercel::scatter_(self(this), dim, index, source));
}
Tensor& TensorShapeMethods::scatter_(int64_t dim, const Tensor& index, Scalar value) const {
  return changed(tercel::scatter_(self(this), dim, index, value));
}
Tensor TensorShapeMethods::scatter_add(int64_t dim, const Tensor& index, const Tensor& source) const {
  return tercel::scatter_add(self(this), dim, index, source);
}
Tensor& TensorShapeMethods::scatter_add_(int64_t dim, const Tensor& index, const Tensor& source) const {
  return changed(tercel::scatter_add_(self(this), dim, index, source));
}
Tensor TensorShapeMethods::scatter_reduce(int64_t dim, const Tensor& index, const Tensor& source,
                                          ScatterReduction reduction, bool include_self) const {
  return tercel::scatter_reduce(self(this), dim, index, source, reduction, include_self);
}
Tensor& TensorShapeMethods::scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& source,
                                            ScatterReduction reduction, bool include_self) const {
  return changed(tercel::scatter_reduce_(self(this), dim, index, source, reduction, include_self));
}
Tensor TensorShapeMethods::take(const Tensor& index) const { return tercel::take(self(this), index); }
Tensor TensorShapeMethods::take_along_dim(const Tensor& indices, int64_t dim) const {
  return tercel::take_along_dim(self(this), indices, dim);
}
Tensor TensorShapeMethods::take_along_dim(const Tensor& indices) const {
  return tercel::take_along_dim(self(this), indices);
}
Tensor TensorShapeMethods::put(const Tensor& index, const Tensor& source, bool accumulate) const {
  return tercel::put(self(this), index, source, accumulate);
}
Tensor& TensorShapeMethods::put_(const Tensor& index, const Tensor& source, bool accumulate) const {
  return changed(tercel::put_(self(this), index, source, accumulate));
}
Tensor TensorShapeMethods::masked_select(const Tensor& mask) const { return tercel::masked_select(self(this), mask); }
Tensor TensorShapeMethods::masked_scatter(const Tensor& mask, const Tensor& source) const {
  return tercel::masked_scatter(self(this), mask, source);
}
Tensor& TensorShapeMethods::masked_scatter_(const Tensor& mask, const Tensor& source) const {
  return changed(tercel::masked_scatter_(self(this), mask, source));
}
Tensor TensorShapeMethods::nonzero() const { return tercel::nonzero(self(this)); }
Tensor TensorShapeMethods::argwhere() const { return tercel::argwhere(self(this)); }
Tensor TensorShapeMethods::select_scatter(const Tensor& src, int64_t dim, int64_t index) const {
  return tercel::select_scatter(self(this), src, dim, index);
}
Tensor TensorShapeMethods::slice_scatter(const Tensor& src, int64_t dim, int64_t start, int64_t end,
                                         int64_t step) const {
  return tercel::slice_scatter(self(this), src, dim, start, end, step);
}
Tensor TensorShapeMethods::diagonal_scatter(const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) const {
  return tercel::diagonal_scatter(self(this), src, offset, dim1, dim2);
}
Tensor TensorShapeMethods::as_strided_scatter(const Tensor& src, IntSpan sizes, IntSpan strides,
                                              std::optional<int64_t> storage_offset) const {
  return tercel::as_strided_scatter(self(this), src, sizes, strides, storage_offset);
}
Tensor TensorShapeMethods::flip(IntSpan dims) const { return tercel::flip(self(this), dims); }
Tensor TensorShapeMethods::fliplr() const { return tercel::fliplr(self(this)); }
Tensor TensorShapeMethods::flipud() const { return tercel::flipud(self(this)); }
Tensor TensorShapeMethods::roll(IntSpan shifts, IntSpan dims) const { return tercel::roll(self(this), shifts, dims); }
Tensor TensorShapeMethods::rot90(int64_t k, IntSpan dims) const { return tercel::rot90(self(this), k, dims); }
Tensor TensorShapeMethods::repeat(IntSpan repeats) const { return tercel::repeat(self(this), repeats); }
Tensor TensorShapeMethods::repeat_interleave(std::optional<int64_t> output_size) const {
  return tercel::repeat_interleave(self(this), output_size);
}
Tensor TensorShapeMethods::repeat_interleave(int64_t repeats, std::optional<int64_t> dim,
                                             std::optional<int64_t> output_size) const {
  return tercel::repeat_interleave(self(this), repeats, dim, output_size);
}
Tensor TensorShapeMethods::repeat_interleave(const Tensor& repeats, std::optional<int64_t> dim,
                                             std::optional<int64_t> output_size) const {
  return tercel::repeat_interleave(self(this), repeats, dim, output_size);
}
Tensor TensorShapeMethods::tile(IntSpan dims) const { return tercel::tile(self(this), dims); }
Tensor TensorShapeMethods::diag(int64_t diagonal) const { return tercel::diag(self(this), diagonal); }
Tensor TensorShapeMethods::diag_embed(int64_t offset, int64_t dim1, int64_t dim2) const {
  return tercel::diag_embed(self(this), offset, dim1, dim2);
}
Tensor TensorShapeMethods::diagflat(int64_t offset) const { return tercel::diagflat(self(this), offset); }
Tensor& TensorShapeMethods::fill_diagonal_(Scalar value, bool wrap) const {
  return changed(tercel::fill_diagonal_(self(this), value, wrap));
}
Tensor TensorShapeMethods::trace() const { return tercel::trace(self(this)); }
Tensor TensorShapeMethods::tril(int64_t diagonal) const { return tercel::tril(self(this), diagonal); }
Tensor& TensorShapeMethods::tril_(int64_t diagonal) const { return changed(tercel::tril_(self(this), diagonal)); }
Tensor TensorShapeMethods::triu(int64_t diagonal) const { return tercel::triu(self(this), diagonal); }
Tensor& TensorShapeMethods::triu_(int64_t diagonal) const { return changed(tercel::triu_(self(this), diagonal)); }

template <std::same_as<ScalarType> Dtype>
Tensor TensorShapeMethods::view(Dtype dtype) const {
  return tercel::view(self(this), dtype);
}
template Tensor TensorShapeMethods::view(ScalarType dtype) const;
Tensor TensorShapeMethods::squeeze(std::initializer_list<int64_t> dims) const {
  return tercel::squeeze(self(this), dims);
}
Tensor& TensorShapeMethods::squeeze_(std::initializer_list<int64_t> dims) const {
  return changed(tercel::squeeze_(self(this), dims));
}
Tensor TensorShapeMethods::operator[](int64_t index) const { return tercel::select(self(this), 0, index); }
Tensor TensorShapeMethods::index(std::initializer_list<TensorIndex> items) const {
  return tercel::index(self(this), items);
}
Tensor& TensorShapeMethods::index_put_(std::initializer_list<TensorIndex> items, const Tensor& value) const {
  return changed(set_item(self(this), items, value));
}
Tensor& TensorShapeMethods::index_put_(std::initializer_list<TensorIndex> items, Scalar value) const {
  return changed(set_item(self(this), items, value));
}
Tensor TensorShapeMethods::type_as(const Tensor& other) const { return to(other.dtype()); }

Tensor TensorShapeMethods::new_empty(IntSpan sizes) const { return new_empty(sizes, like(self(this))); }
Tensor TensorShapeMethods::new_empty(IntSpan sizes, TensorOptions options) const { return empty(sizes, options); }
Tensor TensorShapeMethods::new_zeros(IntSpan sizes) const { return new_zeros(sizes, like(self(this))); }
Tensor TensorShapeMethods::new_zeros(IntSpan sizes, TensorOptions options) const { return zeros(sizes, options); }
Tensor TensorShapeMethods::new_ones(IntSpan sizes) const { return new_ones(sizes, like(self(this))); }
Tensor TensorShapeMethods::new_ones(IntSpan sizes, TensorOptions options) const { return ones(sizes, options); }
Tensor TensorShapeMethods::new_full(IntSpan sizes, Scalar value) const {
  return new_full(sizes, value, like(self(this)));
}
Tensor TensorShapeMethods::new_full(IntSpan sizes, Scalar value, TensorOptions options) const {
  return full(sizes, value, options);
}
Tensor TensorShapeMethods::new_empty_strided(IntSpan sizes, IntSpan strides) const {
  return empty_strided(sizes, strides, like(self(this)));
}

}  // namespace tercel
