// Methods of Tensor for views, copies, indexing, rearrangement. x.name(...) is name(x, ...); Note [Tensor methods].
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "tercel/core/geometry.h"
#include "tercel/core/layout.h"
#include "tercel/core/scalar.h"
#include "tercel/core/storage.h"

namespace tercel {

class Tensor;
class TensorIndex;
struct TensorOptions;
enum class ScatterReduction : uint8_t;

/** A base of Tensor, not to be used by itself. */
class TERCEL_API TensorShapeMethods {
 public:
  // shapes and views (ops/views: views.h, permute.h, slicing.h, view_inplace.h)
  Tensor view(IntSpan sizes) const;
  Tensor reshape(IntSpan sizes) const;
  Tensor reshape_as(const Tensor& other) const;
  Tensor view_as(const Tensor& other) const;
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1) const;
  Tensor unflatten(int64_t dim, IntSpan sizes) const;
  Tensor ravel() const;
  Tensor squeeze() const;
  Tensor squeeze(int64_t dim) const;
  Tensor squeeze(IntSpan dims) const;
  Tensor& squeeze_() const;
  Tensor& squeeze_(int64_t dim) const;
  Tensor& squeeze_(IntSpan dims) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor& unsqueeze_(int64_t dim) const;
  Tensor expand(IntSpan sizes) const;
  Tensor expand_as(const Tensor& other) const;
  Tensor broadcast_to(IntSpan sizes) const;
  Tensor as_strided(IntSpan sizes, IntSpan strides, std::optional<int64_t> storage_offset = {}) const;
  Tensor& as_strided_(IntSpan sizes, IntSpan strides, std::optional<int64_t> storage_offset = {}) const;
  Tensor transpose(int64_t dim0, int64_t dim1) const;
  Tensor& transpose_(int64_t dim0, int64_t dim1) const;
  Tensor swapaxes(int64_t axis0, int64_t axis1) const;
  Tensor& swapaxes_(int64_t axis0, int64_t axis1) const;
  Tensor swapdims(int64_t dim0, int64_t dim1) const;
  Tensor& swapdims_(int64_t dim0, int64_t dim1) const;
  Tensor t() const;
  Tensor& t_() const;
  Tensor permute(IntSpan dims) const;
  Tensor movedim(IntSpan source, IntSpan destination) const;
  Tensor movedim(int64_t source, int64_t destination) const;
  Tensor moveaxis(IntSpan source, IntSpan destination) const;
  Tensor moveaxis(int64_t source, int64_t destination) const;
  Tensor numpy_T() const;
  Tensor mT() const;  // NOLINT(readability-identifier-naming): PyTorch's name
  Tensor mH() const;  // NOLINT(readability-identifier-naming): PyTorch's name
  Tensor matrix_H() const;
  Tensor adjoint() const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  Tensor narrow(int64_t dim, const Tensor& start, int64_t length) const;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor slice(int64_t dim, int64_t start = 0, int64_t end = INT64_MAX, int64_t step = 1) const;
  Tensor unfold(int64_t dim, int64_t size, int64_t step) const;
  std::vector<Tensor> split(int64_t split_size, int64_t dim = 0) const;
  std::vector<Tensor> split(IntSpan sizes, int64_t dim = 0) const;
  std::vector<Tensor> split_with_sizes(IntSpan split_sizes, int64_t dim = 0) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const;
  std::vector<Tensor> tensor_split(int64_t sections, int64_t dim = 0) const;
  std::vector<Tensor> tensor_split(IntSpan indices, int64_t dim = 0) const;
  std::vector<Tensor> tensor_split(const Tensor& indices_or_sections, int64_t dim = 0) const;
  std::vector<Tensor> hsplit(int64_t sections) const;
  std::vector<Tensor> hsplit(IntSpan indices) const;
  std::vector<Tensor> vsplit(int64_t sections) const;
  std::vector<Tensor> vsplit(IntSpan indices) const;
  std::vector<Tensor> dsplit(int64_t sections) const;
  std::vector<Tensor> dsplit(IntSpan indices) const;
  std::vector<Tensor> unbind(int64_t dim = 0) const;
  Tensor diagonal(int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1) const;
  Tensor conj() const;
  // copies, conversions, sizes and storage
  Tensor clone(MemoryFormat format = MemoryFormat::Preserve) const;
  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  Tensor to(ScalarType dtype, bool copy = false, MemoryFormat format = MemoryFormat::Preserve) const;
  Tensor to(MemoryFormat format) const;
  Tensor& copy_(const Tensor& source) const;
  Tensor& fill_(Scalar value) const;
  Tensor& zero_() const;
  Tensor& resize_(IntSpan sizes) const;
  Tensor& resize_(IntSpan sizes, MemoryFormat format) const;
  Tensor& resize_as_(const Tensor& other) const;
  Tensor& resize_as_(const Tensor& other, MemoryFormat format) const;
  Tensor& set_(const Storage& source, int64_t storage_offset, IntSpan sizes, IntSpan strides = {}) const;
  Tensor& set_(const Storage& source) const;
  Tensor& set_(const Tensor& source) const;
  Tensor narrow_copy(int64_t dim, int64_t start, int64_t length) const;
  Tensor sum_to_size(IntSpan sizes) const;
  // indexing
  Tensor index(Span<TensorIndex> items) const;
  Tensor& index_put_(Span<TensorIndex> items, const Tensor& values, bool accumulate = false) const;
  Tensor index_put(Span<TensorIndex> items, const Tensor& values, bool accumulate = false) const;
  Tensor index_select(int64_t dim, const Tensor& index) const;
  Tensor index_add(int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1) const;
  Tensor& index_add_(int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1) const;
  Tensor index_copy(int64_t dim, const Tensor& index, const Tensor& source) const;
  Tensor& index_copy_(int64_t dim, const Tensor& index, const Tensor& source) const;
  Tensor index_fill(int64_t dim, const Tensor& index, Scalar value) const;
  Tensor index_fill(int64_t dim, const Tensor& index, const Tensor& value) const;
  Tensor& index_fill_(int64_t dim, const Tensor& index, Scalar value) const;
  Tensor& index_fill_(int64_t dim, const Tensor& index, const Tensor& value) const;
  Tensor index_reduce(int64_t dim, const Tensor& index, const Tensor& source, ScatterReduction reduction,
                      bool include_self = true) const;
  Tensor& index_reduce_(int64_t dim, const Tensor& index, const Tensor& source, ScatterReduction reduction,
                        bool include_self = true) const;
  Tensor gather(int64_t dim, const Tensor& index) const;
  Tensor scatter(int64_t dim, const Tensor& index, const Tensor& source) const;
  Tensor scatter(int64_t dim, const Tensor& index, Scalar value) const;
  Tensor& scatter_(int64_t dim, const Tensor& index, const Tensor& source) const;
  Tensor& scatter_(int64_t dim, const Tensor& index, Scalar value) const;
  Tensor scatter_add(int64_t dim, const Tensor& index, const Tensor& source) const;
  Tensor& scatter_add_(int64_t dim, const Tensor& index, const Tensor& source) const;
  Tensor scatter_reduce(int64_t dim, const Tensor& index, const Tensor& source, ScatterReduction reduction,
                        bool include_self = true) const;
  Tensor& scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& source, ScatterReduction reduction,
                          bool include_self = true) const;
  Tensor take(const Tensor& index) const;
  Tensor take_along_dim(const Tensor& indices, int64_t dim) const;
  Tensor take_along_dim(const Tensor& indices) const;
  Tensor put(const Tensor& index, const Tensor& source, bool accumulate = false) const;
  Tensor& put_(const Tensor& index, const Tensor& source, bool accumulate = false) const;
  Tensor masked_select(const Tensor& mask) const;
  Tensor masked_scatter(const Tensor& mask, const Tensor& source) const;
  Tensor& masked_scatter_(const Tensor& mask, const Tensor& source) const;
  Tensor nonzero() const;
  Tensor argwhere() const;
  Tensor select_scatter(const Tensor& src, int64_t dim, int64_t index) const;
  Tensor slice_scatter(const Tensor& src, int64_t dim = 0, int64_t start = 0, int64_t end = INT64_MAX,
                       int64_t step = 1) const;
  Tensor diagonal_scatter(const Tensor& src, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1) const;
  Tensor as_strided_scatter(const Tensor& src, IntSpan sizes, IntSpan strides,
                            std::optional<int64_t> storage_offset = {}) const;
  // rearrangement
  Tensor flip(IntSpan dims) const;
  Tensor fliplr() const;
  Tensor flipud() const;
  Tensor roll(IntSpan shifts, IntSpan dims = {}) const;
  Tensor rot90(int64_t k = 1, IntSpan dims = {0, 1}) const;
  Tensor repeat(IntSpan repeats) const;
  Tensor repeat_interleave(std::optional<int64_t> output_size = {}) const;
  Tensor repeat_interleave(int64_t repeats, std::optional<int64_t> dim = {},
                           std::optional<int64_t> output_size = {}) const;
  Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> dim = {},
                           std::optional<int64_t> output_size = {}) const;
  Tensor tile(IntSpan dims) const;
  Tensor diag(int64_t diagonal = 0) const;
  Tensor diag_embed(int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1) const;
  Tensor diagflat(int64_t offset = 0) const;
  Tensor& fill_diagonal_(Scalar value, bool wrap = false) const;
  Tensor trace() const;
  Tensor tril(int64_t diagonal = 0) const;
  Tensor& tril_(int64_t diagonal = 0) const;
  Tensor triu(int64_t diagonal = 0) const;
  Tensor& triu_(int64_t diagonal = 0) const;
  /** The same bytes viewed as another dtype. */
  template <std::same_as<ScalarType> Dtype>
  Tensor view(Dtype dtype) const;
  Tensor squeeze(std::initializer_list<int64_t> dims) const;
  Tensor& squeeze_(std::initializer_list<int64_t> dims) const;
  /** select(0, index). */
  Tensor operator[](int64_t index) const;
  // x.index({Slice(1, 3), None, "..."}), see ops/index/subscript.h
  Tensor index(std::initializer_list<TensorIndex> items) const;
  Tensor& index_put_(std::initializer_list<TensorIndex> items, const Tensor& value) const;
  Tensor& index_put_(std::initializer_list<TensorIndex> items, Scalar value) const;
  /** Converted to the other tensor's dtype. */
  Tensor type_as(const Tensor& other) const;
  /** New tensors of these sizes with this tensor's options, or with others. */
  Tensor new_empty(IntSpan sizes) const;
  Tensor new_empty(IntSpan sizes, TensorOptions options) const;
  Tensor new_zeros(IntSpan sizes) const;
  Tensor new_zeros(IntSpan sizes, TensorOptions options) const;
  Tensor new_ones(IntSpan sizes) const;
  Tensor new_ones(IntSpan sizes, TensorOptions options) const;
  Tensor new_full(IntSpan sizes, Scalar value) const;
  Tensor new_full(IntSpan sizes, Scalar value, TensorOptions options) const;
  Tensor new_empty_strided(IntSpan sizes, IntSpan strides) const;

 protected:
  TensorShapeMethods() = default;
};

}  // namespace tercel
