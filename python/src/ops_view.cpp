// Views.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/views/view_copies.h"
#include "tercel/ops/views/view_inplace.h"
#include "tercel/ops/views/views.h"

namespace tercel::python {

namespace {

/** A bound for slice(): None is the end that the step starts from. */
int64_t bound(std::optional<int64_t> value, int64_t otherwise) { return value.value_or(otherwise); }

}  // namespace

Span<Entry> view_ops() {
  constexpr unsigned kView = kBoth | kCheap, kViewMethod = kMethod | kCheap;
  static const Entry table[] = {
      entry(
          "view(Tensor input, int[] size)", [](const Tensor& x, const DimVector& size) { return view(x, size); },
          kViewMethod, "A view of the same elements with other sizes."),
      entry(
          "view_as(Tensor input, Tensor other)",
          [](const Tensor& x, const Tensor& other) { return view(x, other.sizes()); }, kViewMethod),
      entry(
          "reshape(Tensor input, int[] shape)",
          [](const Tensor& x, const DimVector& shape) { return reshape(x, shape); }, kBoth,
          "A view with other sizes, or a copy if no view is possible."),
      entry(
          "reshape_as(Tensor input, Tensor other)",
          [](const Tensor& x, const Tensor& other) { return reshape(x, other.sizes()); }, kMethod),
      entry("flatten(Tensor input, int start_dim=0, int end_dim=-1)",
            [](const Tensor& x, int64_t first, int64_t last) { return flatten(x, first, last); }),
      entry("ravel(Tensor input)", [](const Tensor& x) { return ravel(x); }),
      entry(
          "transpose(Tensor input, int dim0, int dim1)",
          [](const Tensor& x, int64_t a, int64_t b) { return transpose(x, a, b); }, kView),
      entry(
          "swapaxes(Tensor input, int axis0, int axis1)",
          [](const Tensor& x, int64_t a, int64_t b) { return transpose(x, a, b); }, kView),
      entry(
          "swapdims(Tensor input, int dim0, int dim1)",
          [](const Tensor& x, int64_t a, int64_t b) { return transpose(x, a, b); }, kView),
      entry(
          "t(Tensor input)", [](const Tensor& x) { return t(x); }, kView),
      entry(
          "adjoint(Tensor input)", [](const Tensor& x) { return adjoint(x); }, kView),
      entry(
          "permute(Tensor input, int[] dims)", [](const Tensor& x, const DimVector& dims) { return permute(x, dims); },
          kView),
      entry(
          "narrow(Tensor input, int dim, int start, int length)",
          [](const Tensor& x, int64_t dim, int64_t start, int64_t length) { return narrow(x, dim, start, length); },
          kView, "The elements start to start + length (exclusive) of a dimension; a view."),
      entry(
          "select(Tensor input, int dim, int index)",
          [](const Tensor& x, int64_t dim, int64_t index) { return select(x, dim, index); }, kView),
      entry(
          "squeeze(Tensor input)", [](const Tensor& x) { return squeeze(x); }, kView),
      entry(
          "squeeze(Tensor input, int dim)", [](const Tensor& x, int64_t dim) { return squeeze(x, dim); }, kView),
      entry(
          "unsqueeze(Tensor input, int dim)", [](const Tensor& x, int64_t dim) { return unsqueeze(x, dim); }, kView),
      entry(
          "expand(Tensor input, int[] size, *, bool implicit=False)",
          [](const Tensor& x, const DimVector& size, bool) { return expand(x, size); }, kViewMethod),
      entry(
          "expand_as(Tensor input, Tensor other)",
          [](const Tensor& x, const Tensor& other) { return expand(x, other.sizes()); }, kViewMethod),
      entry(
          "broadcast_to(Tensor input, int[] size)",
          [](const Tensor& x, const DimVector& size) { return expand(x, size); }, kView),
      entry(
          "as_strided(Tensor input, int[] size, int[] stride, int? storage_offset=None)",
          [](const Tensor& x, const DimVector& size, const DimVector& stride, std::optional<int64_t> offset) {
            return as_strided(x, size, stride, offset.value_or(x.storage_offset()));
          },
          kView),
      entry(
          "slice(Tensor input, int dim=0, int? start=None, int? end=None, int step=1)",
          [](const Tensor& x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
            return slice(x, dim, bound(start, step < 0 ? INT64_MAX : 0), bound(end, step < 0 ? INT64_MIN : INT64_MAX),
                         step);
          },
          kViewMethod),
      entry(
          "split(Tensor input, int split_size, int dim=0)",
          [](const Tensor& x, int64_t size, int64_t dim) { return split(x, size, dim); }, kView),
      entry(
          "split(Tensor input, int[] split_sizes, int dim=0)",
          [](const Tensor& x, const DimVector& sizes, int64_t dim) { return split(x, sizes, dim); }, kView),
      entry(
          "split_with_sizes(Tensor input, int[] split_sizes, int dim=0)",
          [](const Tensor& x, const DimVector& sizes, int64_t dim) { return split(x, sizes, dim); }, kView),
      entry(
          "chunk(Tensor input, int chunks, int dim=0)",
          [](const Tensor& x, int64_t count, int64_t dim) { return chunk(x, count, dim); }, kView),
      entry(
          "unbind(Tensor input, int dim=0)", [](const Tensor& x, int64_t dim) { return unbind(x, dim); }, kView),
      entry(
          "view(Tensor input, dtype dtype)", [](const Tensor& x, ScalarType dtype) { return view(x, dtype); },
          kViewMethod, "The same bytes viewed as another dtype."),
      entry(
          "squeeze(Tensor input, int[] dim)",
          [](const Tensor& x, const DimVector& dims) { return squeeze(x, IntSpan(dims)); }, kView),
      entry(
          "unflatten(Tensor input, int dim, int[] sizes)",
          [](const Tensor& x, int64_t dim, const DimVector& sizes) { return unflatten(x, dim, sizes); }, kView,
          "Splits a dimension into several."),
      entry(
          "narrow(Tensor input, int dim, Tensor start, int length)",
          [](const Tensor& x, int64_t dim, const Tensor& start, int64_t length) {
            return narrow(x, dim, start, length);
          },
          kView),
      entry(
          "movedim(Tensor input, int source, int destination)",
          [](const Tensor& x, int64_t from, int64_t to) { return movedim(x, from, to); }, kView),
      entry(
          "movedim(Tensor input, int[] source, int[] destination)",
          [](const Tensor& x, const DimVector& from, const DimVector& to) { return movedim(x, from, to); }, kView),
      entry(
          "moveaxis(Tensor input, int source, int destination)",
          [](const Tensor& x, int64_t from, int64_t to) { return moveaxis(x, from, to); }, kView),
      entry(
          "moveaxis(Tensor input, int[] source, int[] destination)",
          [](const Tensor& x, const DimVector& from, const DimVector& to) { return moveaxis(x, from, to); }, kView),
      entry(
          "unfold(Tensor input, int dimension, int size, int step)",
          [](const Tensor& x, int64_t dim, int64_t size, int64_t step) { return unfold(x, dim, size, step); },
          kViewMethod, "Sliding windows of a dimension, in a new last dimension."),
      entry(
          "tensor_split(Tensor input, int sections, int dim=0)",
          [](const Tensor& x, int64_t n, int64_t dim) { return tensor_split(x, n, dim); }, kView),
      entry(
          "tensor_split(Tensor input, int[] indices, int dim=0)",
          [](const Tensor& x, const DimVector& at, int64_t dim) { return tensor_split(x, IntSpan(at), dim); }, kView),
      entry(
          "tensor_split(Tensor input, Tensor tensor_indices_or_sections, int dim=0)",
          [](const Tensor& x, const Tensor& at, int64_t dim) { return tensor_split(x, at, dim); }, kView),
      entry(
          "hsplit(Tensor input, int sections)", [](const Tensor& x, int64_t n) { return hsplit(x, n); }, kView),
      entry(
          "hsplit(Tensor input, int[] indices)",
          [](const Tensor& x, const DimVector& at) { return hsplit(x, IntSpan(at)); }, kView),
      entry(
          "vsplit(Tensor input, int sections)", [](const Tensor& x, int64_t n) { return vsplit(x, n); }, kView),
      entry(
          "vsplit(Tensor input, int[] indices)",
          [](const Tensor& x, const DimVector& at) { return vsplit(x, IntSpan(at)); }, kView),
      entry(
          "dsplit(Tensor input, int sections)", [](const Tensor& x, int64_t n) { return dsplit(x, n); }, kView),
      entry(
          "dsplit(Tensor input, int[] indices)",
          [](const Tensor& x, const DimVector& at) { return dsplit(x, IntSpan(at)); }, kView),
      entry(
          "_broadcast_tensors(Tensor[] tensors)",
          [](const std::vector<Tensor>& list) { return broadcast_tensors(list); }, kFunction | kCheap),
      entry(
          "_atleast_1d(Tensor input)", [](const Tensor& x) { return atleast_1d(x); }, kFunction | kCheap),
      entry(
          "_atleast_1d(Tensor[] tensors)", [](const std::vector<Tensor>& list) { return atleast_1d(list); },
          kFunction | kCheap),
      entry(
          "_atleast_2d(Tensor input)", [](const Tensor& x) { return atleast_2d(x); }, kFunction | kCheap),
      entry(
          "_atleast_2d(Tensor[] tensors)", [](const std::vector<Tensor>& list) { return atleast_2d(list); },
          kFunction | kCheap),
      entry(
          "_atleast_3d(Tensor input)", [](const Tensor& x) { return atleast_3d(x); }, kFunction | kCheap),
      entry(
          "_atleast_3d(Tensor[] tensors)", [](const std::vector<Tensor>& list) { return atleast_3d(list); },
          kFunction | kCheap),
      entry(
          "t_(Tensor input)", [](const Tensor& x) -> Tensor { return t_(x); }, kViewMethod),
      entry(
          "transpose_(Tensor input, int dim0, int dim1)",
          [](const Tensor& x, int64_t a, int64_t b) -> Tensor { return transpose_(x, a, b); }, kViewMethod),
      entry(
          "swapdims_(Tensor input, int dim0, int dim1)",
          [](const Tensor& x, int64_t a, int64_t b) -> Tensor { return swapdims_(x, a, b); }, kViewMethod),
      entry(
          "swapaxes_(Tensor input, int axis0, int axis1)",
          [](const Tensor& x, int64_t a, int64_t b) -> Tensor { return swapaxes_(x, a, b); }, kViewMethod),
      entry(
          "squeeze_(Tensor input)", [](const Tensor& x) -> Tensor { return squeeze_(x); }, kViewMethod),
      entry(
          "squeeze_(Tensor input, int dim)", [](const Tensor& x, int64_t dim) -> Tensor { return squeeze_(x, dim); },
          kViewMethod),
      entry(
          "squeeze_(Tensor input, int[] dim)",
          [](const Tensor& x, const DimVector& dims) -> Tensor { return squeeze_(x, IntSpan(dims)); }, kViewMethod),
      entry(
          "unsqueeze_(Tensor input, int dim)",
          [](const Tensor& x, int64_t dim) -> Tensor { return unsqueeze_(x, dim); }, kViewMethod),
      entry(
          "as_strided_(Tensor input, int[] size, int[] stride, int? storage_offset=None)",
          [](const Tensor& x, const DimVector& size, const DimVector& stride, std::optional<int64_t> offset) -> Tensor {
            return as_strided_(x, size, stride, offset);
          },
          kViewMethod),
      entry(
          "narrow_copy(Tensor input, int dim, int start, int length, *, Tensor out=None)",
          [](const Tensor& x, int64_t dim, int64_t start, int64_t length, const Tensor& out) {
            return into("narrow_copy", out, narrow_copy(x, dim, start, length));
          },
          kBoth),
      entry(
          "alias_copy(Tensor input, *, Tensor out=None)",
          [](const Tensor& x, const Tensor& out) { return into("alias_copy", out, alias_copy(x)); }, kFunction),
      entry(
          "detach_copy(Tensor input, *, Tensor out=None)",
          [](const Tensor& x, const Tensor& out) { return into("detach_copy", out, detach_copy(x)); }, kFunction),
      entry(
          "t_copy(Tensor input, *, Tensor out=None)",
          [](const Tensor& x, const Tensor& out) { return into("t_copy", out, t_copy(x)); }, kFunction),
      entry(
          "as_strided_copy(Tensor input, int[] size, int[] stride, int? storage_offset=None, *, Tensor out=None)",
          [](const Tensor& x, const DimVector& size, const DimVector& stride, std::optional<int64_t> offset,
             const Tensor& out) { return into("as_strided_copy", out, as_strided_copy(x, size, stride, offset)); },
          kFunction),
      entry(
          "diagonal_copy(Tensor input, int offset=0, int dim1=0, int dim2=1, *, Tensor out=None)",
          [](const Tensor& x, int64_t offset, int64_t a, int64_t b, const Tensor& out) {
            return into("diagonal_copy", out, diagonal_copy(x, offset, a, b));
          },
          kFunction),
      entry(
          "expand_copy(Tensor input, int[] size, *, bool implicit=False, Tensor out=None)",
          [](const Tensor& x, const DimVector& size, bool, const Tensor& out) {
            return into("expand_copy", out, expand_copy(x, size));
          },
          kFunction),
      entry(
          "permute_copy(Tensor input, int[] dims, *, Tensor out=None)",
          [](const Tensor& x, const DimVector& dims, const Tensor& out) {
            return into("permute_copy", out, permute_copy(x, dims));
          },
          kFunction),
      entry(
          "select_copy(Tensor input, int dim, int index, *, Tensor out=None)",
          [](const Tensor& x, int64_t dim, int64_t index, const Tensor& out) {
            return into("select_copy", out, select_copy(x, dim, index));
          },
          kFunction),
      entry(
          "slice_copy(Tensor input, int dim=0, int? start=None, int? end=None, int step=1, *, Tensor out=None)",
          [](const Tensor& x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step,
             const Tensor& out) {
            return into("slice_copy", out,
                        slice_copy(x, dim, bound(start, step < 0 ? INT64_MAX : 0),
                                   bound(end, step < 0 ? INT64_MIN : INT64_MAX), step));
          },
          kFunction),
      entry(
          "squeeze_copy(Tensor input, *, Tensor out=None)",
          [](const Tensor& x, const Tensor& out) { return into("squeeze_copy", out, squeeze_copy(x)); }, kFunction),
      entry(
          "squeeze_copy(Tensor input, int dim, *, Tensor out=None)",
          [](const Tensor& x, int64_t dim, const Tensor& out) {
            return into("squeeze_copy", out, squeeze_copy(x, dim));
          },
          kFunction),
      entry(
          "transpose_copy(Tensor input, int dim0, int dim1, *, Tensor out=None)",
          [](const Tensor& x, int64_t a, int64_t b, const Tensor& out) {
            return into("transpose_copy", out, transpose_copy(x, a, b));
          },
          kFunction),
      entry(
          "unbind_copy(Tensor input, int dim=0, *, Tensor[] out=None)",
          [](const Tensor& x, int64_t dim, const std::optional<std::vector<Tensor>>& out) {
            return into_each("unbind_copy", out, unbind_copy(x, dim));
          },
          kFunction),
      entry(
          "unfold_copy(Tensor input, int dimension, int size, int step, *, Tensor out=None)",
          [](const Tensor& x, int64_t dim, int64_t size, int64_t step, const Tensor& out) {
            return into("unfold_copy", out, unfold_copy(x, dim, size, step));
          },
          kFunction),
      entry(
          "unsqueeze_copy(Tensor input, int dim, *, Tensor out=None)",
          [](const Tensor& x, int64_t dim, const Tensor& out) {
            return into("unsqueeze_copy", out, unsqueeze_copy(x, dim));
          },
          kFunction),
      entry(
          "view_copy(Tensor input, dtype dtype, *, Tensor out=None)",
          [](const Tensor& x, ScalarType dtype, const Tensor& out) {
            return into("view_copy", out, clone(view(x, dtype), MemoryFormat::Contiguous));
          },
          kFunction),
      entry(
          "view_copy(Tensor input, int[] size, *, Tensor out=None)",
          [](const Tensor& x, const DimVector& size, const Tensor& out) {
            return into("view_copy", out, view_copy(x, size));
          },
          kFunction),
  };
  return table;
}

}  // namespace tercel::python
