#include "tercel/ops/reduce/segment_reduce.h"

#include <limits>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/index/scatter.h"
#include "tercel/ops/reduce/differences.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

ScatterReduction parse_reduction(std::string_view name) {
  if (name == "sum") return ScatterReduction::Sum;
  if (name == "mean") return ScatterReduction::Mean;
  if (name == "max" || name == "amax") return ScatterReduction::Maximum;
  if (name == "min" || name == "amin") return ScatterReduction::Minimum;
  if (name == "prod") return ScatterReduction::Product;
  throw_error<RuntimeError>({"reduce argument must be either sum, prod, mean, amax or amin, got ", name});
}

double value_of_nothing(ScatterReduction reduction) {
  switch (reduction) {
    case ScatterReduction::Product: return 1;
    case ScatterReduction::Maximum: return -std::numeric_limits<double>::infinity();
    case ScatterReduction::Minimum: return std::numeric_limits<double>::infinity();
    default: return 0;
  }
}

/** Lengths of segments [lines, segments], int64. */
Tensor checked_lengths(const Tensor& given, int64_t axis, const Tensor& data, bool unsafe) {
  TERCEL_CHECK(is_integral(given.dtype(), false), RuntimeError,
               "segment_reduce(): lengths and offsets must be integers, but got ", describe(given));
  TERCEL_CHECK(given.dim() == axis + 1 && given.dim() <= data.dim(), RuntimeError,
               "segment_reduce(): expected lengths or offsets to have axis + 1 = ", axis + 1, " dimensions but got ",
               given.dim());
  int64_t lines = 1;
  for (int64_t d = 0; d < axis; ++d) {
    TERCEL_CHECK(given.size(d) == data.size(d), RuntimeError,
                 "segment_reduce(): expected lengths or offsets to have the leading sizes of data, ", data.sizes(),
                 ", but got ", given.sizes());
    lines *= given.size(d);
  }
  const Tensor lengths = contiguous(view(contiguous(to(given, kInt64)), {lines, given.size(axis)}));
  const int64_t n = data.size(axis), segments = lengths.size(1);
  const int64_t* length = lengths.data<int64_t>();
  for (int64_t l = 0; l < lines; ++l) {
    int64_t left = n;
    for (int64_t s = 0; s < segments; ++s) {
      const int64_t here = length[l * segments + s];
      TERCEL_CHECK(here >= 0, RuntimeError, "lengths contains negative value!");
      // Even with `unsafe`, segments must not exceed data.
      TERCEL_CHECK(here <= left, RuntimeError,
                   "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) "
                   "when !unsafe.");
      left -= here;
    }
    TERCEL_CHECK(unsafe || left == 0, RuntimeError,
                 "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
                 "!unsafe.");
  }
  return lengths;
}

/** The segment of each element, numbered over all lines; elements outside all segments get the next number. */
Tensor segments_of(const Tensor& lengths, int64_t n) {
  const int64_t lines = lengths.size(0), segments = lengths.size(1);
  const Tensor out = full({lines * n}, lines * segments, TensorOptions(kInt64));
  const int64_t* length = lengths.data<int64_t>();
  for (int64_t l = 0; l < lines; ++l) {
    int64_t* next = out.data<int64_t>() + l * n;
    for (int64_t s = l * segments; s < (l + 1) * segments; ++s)
      for (int64_t i = 0; i < length[s]; ++i) *next++ = s;
  }
  return out;
}

/**
 * The gradient of rows, given that of the segments, [segments, ...], for extrema `reduced`: all rows equal to these (or
 * NaN, if these are) share it.
 */
Tensor gradient_of_extremes(const Tensor& gradient, const Tensor& rows, const Tensor& reduced, const Tensor& ids) {
  Tensor matches, counts;
  {
    const NoRecordGuard no_record;
    const Tensor found = index_select(reduced, 0, ids);
    matches = to(logical_or(eq(rows, found), logical_and(isnan(rows), isnan(found))), rows.dtype());
    counts = clamp_min(index_add(zeros(reduced.sizes(), reduced.options()), 0, ids, matches), 1);
  }
  DimVector after(gradient.sizes());
  after[0] = 1;  // for elements outside all segments
  const Tensor all = cat({gradient, zeros(after, gradient.options())}, 0);
  return mul(matches, index_select(div(all, counts), 0, ids));
}

/**
 * The same for products times `initial`, some of which are NaN: computes the product of the other rows, since a
 * quotient is wrong if a row is 0 or NaN.
 */
Tensor gradient_of_products(const Tensor& gradient, const Tensor& rows, double initial, const Tensor& ids) {
  const Tensor zero = eq(rows, 0), nan = isnan(rows);
  DimVector sums(gradient.sizes());
  sums[0] += 1;  // for elements outside all segments
  const auto in_segment = [&](const Tensor& which) {
    return index_select(index_add(zeros(sums, TensorOptions(kInt64)), 0, ids, to(which, kInt64)), 0, ids);
  };
  const Tensor other_zeros = sub(in_segment(zero), to(zero, kInt64));
  const Tensor other_nans = sub(in_segment(nan), to(nan, kInt64));
  const Tensor ordinary = masked_fill(rows, logical_or(zero, nan), 1);
  const Tensor start = full(sums, initial, rows.options());
  const Tensor products = index_reduce(start, 0, ids, ordinary, ScatterReduction::Product);
  Tensor others = div(index_select(products, 0, ids), ordinary);
  others = masked_fill(others, gt(other_zeros, 0), 0);
  others = masked_fill(others, gt(other_nans, 0), std::numeric_limits<double>::quiet_NaN());
  sums[0] = 1;
  return mul(others, index_select(cat({gradient, zeros(sums, gradient.options())}, 0), 0, ids));
}

}  // namespace

Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor& given_lengths, const Tensor& indices,
                      const Tensor& offsets, int64_t d, bool unsafe, std::optional<double> initial) {
  check_strided("segment_reduce", data, "data");
  TERCEL_CHECK(data.is_floating_point(), NotImplementedError, "segment_reduce(): expected floating data but got ",
               describe(data));
  const int64_t axis = wrap_dim(d, data.dim(), false);
  TERCEL_CHECK(!indices.defined(), RuntimeError, "segment_reduce(): indices based reduction is not supported yet.");
  TERCEL_CHECK(given_lengths.defined() || offsets.defined(), RuntimeError,
               "segment_reduce(): Either lengths or offsets must be defined.");
  TERCEL_CHECK(!(given_lengths.defined() && offsets.defined()), RuntimeError,
               "segment_reduce(): lengths and offsets cannot both be defined.");
  const ScatterReduction reduction = parse_reduction(reduce);
  Tensor lengths, ids;
  {
    const NoRecordGuard no_record;
    lengths = checked_lengths(offsets.defined() ? diff(offsets) : given_lengths, axis, data, unsafe);
    ids = segments_of(lengths, data.size(axis));
  }
  DimVector flat(1, ids.numel()), out_sizes(data.sizes());
  DimVector counts(1, lengths.numel());
  for (int64_t i = axis + 1; i < data.dim(); ++i) {
    flat.push_back(data.size(i));
    counts.push_back(1);
  }
  out_sizes[static_cast<size_t>(axis)] = lengths.size(1);

  DimVector sums(flat);
  sums[0] = lengths.numel() + 1;
  const double begin = initial.value_or(value_of_nothing(reduction));
  const Tensor start = full(sums, begin, data.options());
  const Tensor rows = reshape(data, flat);
  const bool products =
      reduction == ScatterReduction::Product && should_record(data) && isnan(sum(rows.detach())).item<bool>();
  if (products || reduction == ScatterReduction::Maximum || reduction == ScatterReduction::Minimum) {
    const Tensor all = index_reduce(start, 0, ids, rows.detach(), reduction);
    DimVector segments(sums);
    segments[0] = lengths.numel();
    const Tensor out = clone(reshape(narrow(all, 0, 0, lengths.numel()), out_sizes));
    if (should_record(data))
      record("SegmentReduceBackward0", out, {data},
             [rows = SavedTensor(products ? rows : rows.detach()), all = SavedTensor(all), ids = SavedTensor(ids),
              segments, sizes = DimVector(data.sizes()), products, begin](BackwardCall& call) {
               const Tensor gradient = reshape(call.grad(), segments);
               const Tensor of_rows = products ? gradient_of_products(gradient, rows.get(), begin, ids.get())
                                               : gradient_of_extremes(gradient, rows.get(), all.get(), ids.get());
               call.set(0, reshape(of_rows, sizes));
             });
    return out;
  }
  const bool adds = reduction == ScatterReduction::Sum || reduction == ScatterReduction::Mean;
  const Tensor all = adds ? index_add(start, 0, ids, rows) : index_reduce(start, 0, ids, rows, reduction);
  Tensor out = narrow(all, 0, 0, lengths.numel());
  if (reduction == ScatterReduction::Mean) {
    const Tensor length = to(view(lengths, counts), data.dtype());
    // An empty segment gives 0 / 0 = NaN, or `initial`.
    out = div(out, initial ? where(eq(length, 0), 1, length) : length);
  }
  return reshape(out, out_sizes);
}

}  // namespace tercel
