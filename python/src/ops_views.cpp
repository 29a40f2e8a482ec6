// Views, and copies that rearrange elements.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/views/diagonals.h"
#include "tercel/ops/views/flip_roll_repeat.h"
#include "tercel/ops/views/meshgrid.h"
#include "tercel/ops/views/pad.h"
#include "tercel/ops/views/view_copies.h"
#include "tercel/ops/views/view_scatter.h"
#include "tercel/ops/views/views.h"

namespace tercel::python {

namespace {

// Bounds for slice(): None is the end that the step starts from, or goes to.
int64_t start_of(std::optional<int64_t> start, int64_t step) { return start.value_or(step < 0 ? INT64_MAX : 0); }
int64_t end_of(std::optional<int64_t> end, int64_t step) { return end.value_or(step < 0 ? INT64_MIN : INT64_MAX); }

}  // namespace

Span<Entry> views_ops() {
  constexpr unsigned kViewMethod = kMethod | kCheap;
  static const Entry table[] = {
      entry(
          "expand(Tensor input, int[] size, *, bool implicit=False)",
          [](const Tensor& x, const DimVector& size, bool) { return expand(x, size); }, kViewMethod | kCoo),
      entry(
          "slice(Tensor input, int dim=0, int? start=None, int? end=None, int step=1)",
          [](const Tensor& x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
            return slice(x, dim, start_of(start, step), end_of(end, step), step);
          },
          kViewMethod),
      entry(
          "view(Tensor input, dtype dtype)", [](const Tensor& x, ScalarType dtype) { return view(x, dtype); },
          kViewMethod, "The same bytes viewed as another dtype."),
      entry(
          "expand_copy(Tensor input, int[] size, *, bool implicit=False, Tensor out=None)",
          [](const Tensor& x, const DimVector& size, bool, const Tensor& out) {
            return into("expand_copy", out, expand_copy(x, size));
          },
          kFunction),
      entry(
          "slice_copy(Tensor input, int dim=0, int? start=None, int? end=None, int step=1, *, Tensor out=None)",
          [](const Tensor& x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step,
             const Tensor& out) {
            return into("slice_copy", out, slice_copy(x, dim, start_of(start, step), end_of(end, step), step));
          },
          kFunction),
      entry(
          "view_copy(Tensor input, dtype dtype, *, Tensor out=None)",
          [](const Tensor& x, ScalarType dtype, const Tensor& out) {
            return into("view_copy", out, clone(view(x, dtype), MemoryFormat::Contiguous));
          },
          kFunction),
      entry(
          "vander(Tensor x, int? N=None, bool increasing=False)",
          [](const Tensor& x, std::optional<int64_t> n, bool increasing) { return vander(x, n, increasing); },
          kFunction),
      entry(
          "rot90(Tensor input, int k=1, int[]? dims=None)",
          [](const Tensor& x, int64_t k, const std::optional<DimVector>& dims) {
            return dims ? rot90(x, k, *dims) : rot90(x, k);
          },
          kBoth),
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
          "slice_scatter(Tensor input, Tensor src, int dim=0, int? start=None, int? end=None, int step=1, *, "
          "Tensor out=None)",
          [](const Tensor& x, const Tensor& src, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
             int64_t step, const Tensor& out) {
            return into("slice_scatter", out,
                        slice_scatter(x, src, dim, start_of(start, step), end_of(end, step), step));
          },
          kBoth),
  };
  return table;
}

}  // namespace tercel::python
