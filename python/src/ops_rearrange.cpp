// Concatenation and rearrangement.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/diagonals.h"
#include "tercel/ops/views/flip_roll_repeat.h"
#include "tercel/ops/views/meshgrid.h"
#include "tercel/ops/views/pad.h"
#include "tercel/ops/views/view_scatter.h"

namespace tercel::python {

Span<Entry> rearrange_ops() {
  static const Entry table[] = {
      entry(
          "cat(Tensor[] tensors, int dim=0, *, Tensor out=None)",
          [](const std::vector<Tensor>& list, int64_t dim, const Tensor& out) {
            return into("cat", out, cat(list, dim));
          },
          kFunction, "Concatenates tensors along a dimension."),
      entry(
          "concat(Tensor[] tensors, int dim=0, *, Tensor out=None)",
          [](const std::vector<Tensor>& list, int64_t dim, const Tensor& out) {
            return into("concat", out, cat(list, dim));
          },
          kFunction),
      entry(
          "concatenate(Tensor[] tensors, int dim=0, *, Tensor out=None)",
          [](const std::vector<Tensor>& list, int64_t dim, const Tensor& out) {
            return into("concatenate", out, cat(list, dim));
          },
          kFunction),
      entry(
          "stack(Tensor[] tensors, int dim=0, *, Tensor out=None)",
          [](const std::vector<Tensor>& list, int64_t dim, const Tensor& out) {
            return into("stack", out, stack(list, dim));
          },
          kFunction, "Stacks tensors of the same sizes along a new dimension."),
      entry(
          "split_copy(Tensor input, int split_size, int dim=0, *, Tensor[] out=None)",
          [](const Tensor& x, int64_t size, int64_t dim, const std::optional<std::vector<Tensor>>& out) {
            return into_each("split_copy", out, split_copy(x, size, dim));
          },
          kFunction),
      entry(
          "split_with_sizes_copy(Tensor input, int[] split_sizes, int dim=0, *, Tensor[] out=None)",
          [](const Tensor& x, const DimVector& sizes, int64_t dim, const std::optional<std::vector<Tensor>>& out) {
            return into_each("split_with_sizes_copy", out, split_copy(x, sizes, dim));
          },
          kFunction),
      entry(
          "hstack(Tensor[] tensors, *, Tensor out=None)",
          [](const std::vector<Tensor>& list, const Tensor& out) { return into("hstack", out, hstack(list)); },
          kFunction),
      entry(
          "vstack(Tensor[] tensors, *, Tensor out=None)",
          [](const std::vector<Tensor>& list, const Tensor& out) { return into("vstack", out, vstack(list)); },
          kFunction),
      entry(
          "row_stack(Tensor[] tensors, *, Tensor out=None)",
          [](const std::vector<Tensor>& list, const Tensor& out) { return into("row_stack", out, row_stack(list)); },
          kFunction),
      entry(
          "dstack(Tensor[] tensors, *, Tensor out=None)",
          [](const std::vector<Tensor>& list, const Tensor& out) { return into("dstack", out, dstack(list)); },
          kFunction),
      entry(
          "column_stack(Tensor[] tensors, *, Tensor out=None)",
          [](const std::vector<Tensor>& list, const Tensor& out) {
            return into("column_stack", out, column_stack(list));
          },
          kFunction),
      entry(
          "_block_diag(Tensor[] tensors)", [](const std::vector<Tensor>& list) { return block_diag(list); }, kFunction),
      entry(
          "_meshgrid(Tensor[] tensors, *, str indexing=\"ij\")",
          [](const std::vector<Tensor>& list, std::string_view indexing) { return meshgrid(list, indexing); },
          kFunction),
      entry(
          "_cartesian_prod(Tensor[] tensors)", [](const std::vector<Tensor>& list) { return cartesian_prod(list); },
          kFunction),
      entry(
          "combinations(Tensor input, int r=2, bool with_replacement=False)",
          [](const Tensor& x, int64_t r, bool again) { return combinations(x, r, again); }, kFunction),
      entry(
          "vander(Tensor x, int? N=None, bool increasing=False)",
          [](const Tensor& x, std::optional<int64_t> n, bool increasing) { return vander(x, n, increasing); },
          kFunction),
      entry(
          "flip(Tensor input, int[] dims)", [](const Tensor& x, const DimVector& dims) { return flip(x, dims); }, kBoth,
          "Reverses the elements along the given dimensions."),
      entry(
          "fliplr(Tensor input)", [](const Tensor& x) { return fliplr(x); }, kBoth),
      entry(
          "flipud(Tensor input)", [](const Tensor& x) { return flipud(x); }, kBoth),
      entry(
          "roll(Tensor input, int[1] shifts, int[1]? dims=())",
          [](const Tensor& x, const DimVector& shifts, const std::optional<DimVector>& dims) {
            return roll(x, shifts, dims.value_or(DimVector()));
          },
          kBoth),
      entry(
          "rot90(Tensor input, int k=1, int[]? dims=None)",
          [](const Tensor& x, int64_t k, const std::optional<DimVector>& dims) {
            return dims ? rot90(x, k, *dims) : rot90(x, k);
          },
          kBoth),
      entry(
          "repeat(Tensor input, int[] repeats)",
          [](const Tensor& x, const DimVector& times) { return repeat(x, times); }, kMethod,
          "Repeats the tensor along each dimension."),
      entry(
          "tile(Tensor input, int[] dims)", [](const Tensor& x, const DimVector& times) { return tile(x, times); },
          kBoth),
      entry(
          "repeat_interleave(Tensor input, Tensor repeats, int? dim=None, *, int? output_size=None)",
          [](const Tensor& x, const Tensor& times, std::optional<int64_t> dim, std::optional<int64_t> size) {
            return repeat_interleave(x, times, dim, size);
          },
          kBoth),
      entry(
          "repeat_interleave(Tensor input, int repeats, int? dim=None, *, int? output_size=None)",
          [](const Tensor& x, int64_t times, std::optional<int64_t> dim, std::optional<int64_t> size) {
            return repeat_interleave(x, times, dim, size);
          },
          kBoth),
      entry(
          "repeat_interleave(Tensor repeats, *, int? output_size=None)",
          [](const Tensor& times, std::optional<int64_t> size) { return repeat_interleave(times, size); }, kFunction),
      entry(
          "channel_shuffle(Tensor input, int groups)",
          [](const Tensor& x, int64_t groups) { return channel_shuffle(x, groups); }, kFunction | kNn),
      entry(
          "native_channel_shuffle(Tensor input, int groups)",
          [](const Tensor& x, int64_t groups) { return channel_shuffle(x, groups); }, kFunction | kNn,
          "Alias of channel_shuffle()."),
      entry(
          "pad(Tensor input, int[] pad, str mode=\"constant\", Scalar? value=None)",
          [](const Tensor& x, const DimVector& border, std::string_view mode, std::optional<Scalar> value) {
            // In PyTorch these are separate ops, which autocast runs in float32.
            const bool borders = mode == "replicate" || (mode == "reflect" && border.size() <= 4);
            return pad(borders ? autocast_float32(x) : x, border, mode, value);
          },
          kNn),
      entry(
          "constant_pad_nd(Tensor input, int[] pad, Scalar value=0)",
          [](const Tensor& x, const DimVector& border, Scalar value) { return constant_pad_nd(x, border, value); },
          kFunction),
      entry(
          "tril_indices(int row, int col, int offset=0, *, " TERCEL_FACTORY_OPTIONS ")",
          [](int64_t row, int64_t col, int64_t offset, FactoryOptions o) {
            return tril_indices(row, col, offset, o.resolve(kInt64));
          },
          kFunction),
      entry(
          "triu_indices(int row, int col, int offset=0, *, " TERCEL_FACTORY_OPTIONS ")",
          [](int64_t row, int64_t col, int64_t offset, FactoryOptions o) {
            return triu_indices(row, col, offset, o.resolve(kInt64));
          },
          kFunction),
      entry(
          "diagflat(Tensor input, int offset=0)", [](const Tensor& x, int64_t d) { return diagflat(x, d); }, kBoth),
      entry(
          "select_scatter(Tensor input, Tensor src, int dim, int index)",
          [](const Tensor& x, const Tensor& src, int64_t dim, int64_t index) {
            return select_scatter(x, src, dim, index);
          },
          kBoth),
      entry(
          "slice_scatter(Tensor input, Tensor src, int dim=0, int? start=None, int? end=None, int step=1, *, "
          "Tensor out=None)",
          [](const Tensor& x, const Tensor& src, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
             int64_t step, const Tensor& out) {
            return into("slice_scatter", out,
                        slice_scatter(x, src, dim, start.value_or(step < 0 ? INT64_MAX : 0),
                                      end.value_or(step < 0 ? INT64_MIN : INT64_MAX), step));
          },
          kBoth),
      entry(
          "diagonal_scatter(Tensor input, Tensor src, int offset=0, int dim1=0, int dim2=1)",
          [](const Tensor& x, const Tensor& src, int64_t d, int64_t a, int64_t b) {
            return diagonal_scatter(x, src, d, a, b);
          },
          kBoth),
      entry(
          "as_strided_scatter(Tensor input, Tensor src, int[] size, int[] stride, int? storage_offset=None)",
          [](const Tensor& x, const Tensor& src, const DimVector& size, const DimVector& stride,
             std::optional<int64_t> offset) { return as_strided_scatter(x, src, size, stride, offset); },
          kBoth),
  };
  return table;
}

}  // namespace tercel::python
