#include "tercel/ops/reduce/histogram.h"

#include <algorithm>
#include <cmath>

#include "tercel/autograd/grad_mode.h"
#include "tercel/autograd/not_implemented.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/elementwise_loop_impl.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/promotion_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/index/nonzero.h"
#include "tercel/ops/reduce/differences.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/sort/search.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constexpr int64_t kGrainElements = 65536;
/** Maximum number of counters per thread. */
constexpr int64_t kOwnCounters = 65536;

/** Adds 1 to counts[bin_of(i)] for i in [0, n); negative bins are skipped. Counts are exact in any order. */
template <class BinOf>
void count_into(const Tensor& counts, int64_t n, BinOf bin_of) {
  int64_t* totals = counts.data<int64_t>();
  const Partition partition(0, n, kGrainElements);
  const int64_t bins = counts.numel(), chunks = partition.chunks();
  const auto count = [&](int64_t* to, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (const int64_t bin = bin_of(i); bin >= 0) ++to[bin];
  };
  if (chunks <= 1 || bins > kOwnCounters) return count(totals, 0, n);
  const Tensor own = zeros({chunks, bins}, kInt64);
  partition.run(
      [&](int64_t chunk, int64_t begin, int64_t end) { count(own.data<int64_t>() + chunk * bins, begin, end); });
  for (int64_t c = 0; c < chunks; ++c)
    for (int64_t b = 0; b < bins; ++b) totals[b] += own.data<int64_t>()[c * bins + b];
}

/** Sums of weights, added in order, so that they do not depend on the number of threads. */
template <class T, class BinOf>
void sum_into(const Tensor& sums, const Tensor& weights, BinOf bin_of) {
  T* totals = sums.data<T>();
  const T* w = weights.data<T>();
  for (int64_t i = 0; i < weights.numel(); ++i)
    if (const int64_t bin = bin_of(i); bin >= 0) totals[bin] += w[i];
}

/** Counts, or sums of weights, in float64. */
template <class BinOf>
Tensor filled(int64_t bins, int64_t n, const Tensor& weights, BinOf bin_of) {
  if (!weights.defined()) {
    const Tensor counts = zeros({bins}, kInt64);
    count_into(counts, n, bin_of);
    return counts;
  }
  const Tensor sums = zeros({bins}, kFloat64);
  sum_into<double>(sums, contiguous(to(weights, kFloat64)), bin_of);
  return sums;
}

struct Range {
  double low, high;

  static Range of(const Tensor& x) {
    const MinAndMax extremes = aminmax(x);
    return {extremes.min.item<double>(), extremes.max.item<double>()};
  }
  /** If the bounds are equal, the range of the elements, or one of width 2 if that is empty. */
  Range resolved(const Tensor& x) const {
    Range out = *this;
    if (out.low == out.high && x.numel() > 0) out = of(x);
    if (out.low == out.high) {
      out.low -= 1;
      out.high += 1;
    }
    return out;
  }
  /** The bin of x in a narrow range; the middle bin if the range is empty. */
  int64_t bin_of(double x, int64_t bins) const {
    if (low == high) return bins / 2;
    const double part = (x - low) / (high - low) * static_cast<double>(bins);
    return static_cast<int64_t>(std::clamp(part, 0.0, static_cast<double>(bins - 1)));
  }
};

void check_bins(int64_t bins) {
  TERCEL_CHECK(bins > 0, RuntimeError, "histogram(): bins must be > 0, but got ", bins, " for dimension 0");
}

Tensor with_density(const Tensor& hist, const Tensor& edges, bool density) {
  return density ? div(div(hist, sum(hist)), diff(edges)) : hist;
}

void check_weight(const Tensor& x, const Tensor& weight) {
  if (!weight.defined()) return;
  TERCEL_CHECK(weight.sizes() == x.sizes(), RuntimeError,
               "histogram(): if weight tensor is provided it should have the same shape as the input tensor ",
               "excluding its innermost dimension, but got input with shape ", x.sizes(), " and weight with shape ",
               weight.sizes());
  TERCEL_CHECK(weight.dtype() == x.dtype(), RuntimeError,
               "histogram(): if weight tensor is provided, input tensor and weight tensor should have the same ",
               "dtype, but got input(", scalar_type_word(x.dtype()), "), and weight(", scalar_type_word(weight.dtype()),
               ")");
}

/** The interval of ascending edges that contains x; the last one is closed. -1 if there is none. */
int64_t interval_of(const double* edges, int64_t bins, double x) {
  if (!(x >= edges[0] && x <= edges[bins])) return -1;
  return std::min<int64_t>(bins - 1, std::upper_bound(edges, edges + bins + 1, x) - edges - 1);
}

}  // namespace

Tensor bincount(const Tensor& given, const Tensor& weights, int64_t minlength) {
  check_strided("bincount", given, "x");
  if (!is_integral(given.dtype(), false)) refuse_dtype("bincount_cpu", given.dtype());
  TERCEL_CHECK(minlength >= 0, RuntimeError, "minlength should be >= 0");
  const Tensor x = contiguous(to(given, kInt64));
  TERCEL_CHECK(given.dim() == 1 && (given.numel() == 0 || min(x).item().to_int64() >= 0), RuntimeError,
               "bincount only supports 1-d non-negative integral inputs.");
  TERCEL_CHECK(!weights.defined() || (weights.dim() == 1 && weights.size(0) == given.size(0)), RuntimeError,
               "weights should be 1-d and have the same length as input");
  const int64_t n = given.numel();
  if (n == 0) return zeros({minlength}, kInt64);
  const int64_t largest = max(x).item().to_int64();
  TERCEL_CHECK(largest < INT64_MAX, RuntimeError, "bincount: the number ", largest, " is too large");
  const int64_t bins = std::max(largest + 1, minlength);
  const int64_t* numbers = x.data<int64_t>();
  const auto bin_of = [numbers](int64_t i) { return numbers[i]; };
  Tensor sums;
  {
    const NoRecordGuard no_record;
    if (weights.defined() && weights.dtype() == kFloat32) {
      sums = zeros({bins}, kFloat32);
      sum_into<float>(sums, contiguous(weights), bin_of);
    } else {
      sums = filled(bins, n, weights, bin_of);
    }
  }
  if (weights.defined()) record_not_implemented("NotImplemented", {sums}, {weights}, "bincount");
  return sums;
}

Tensor histc(const Tensor& given, int64_t bins, Scalar min, Scalar max) {
  check_floating_point("histogram", given);
  check_bins(bins);
  const NoRecordGuard no_record;
  const Range range = Range{min.to_double(), max.to_double()}.resolved(given);
  TERCEL_CHECK(std::isfinite(range.low) && std::isfinite(range.high), RuntimeError, "histc(): range of [", range.low,
               ", ", range.high, "] is not finite");
  TERCEL_CHECK(range.low <= range.high, RuntimeError, "histc(): max must be larger than min, but got min ", range.low,
               " and max ", range.high);
  const ScalarType dtype = native_dtype(compute_of(given.dtype()));
  check_number_fits(dtype, range.low);
  check_number_fits(dtype, range.high);
  const Tensor x = contiguous(to(given, dtype));
  const auto count = [&]<class T>() {
    const T *values = x.data<T>(), low = static_cast<T>(range.low), high = static_cast<T>(range.high);
    // Scaling by a power of two is exact; this one keeps the width of the widest range, times `bins`, finite.
    const T scale = std::isfinite((high - low) * static_cast<T>(bins)) ? T(1) : T(0x1p-64);
    const T width = high * scale - low * scale;
    // The bin of the only value in a range that is too narrow for T.
    const int64_t only = range.bin_of(static_cast<double>(low), bins);
    return filled(bins, x.numel(), Tensor(), [=](int64_t i) -> int64_t {
      if (!(values[i] >= low && values[i] <= high)) return -1;
      if (width == 0) return only;
      return std::min(bins - 1, static_cast<int64_t>((values[i] * scale - low * scale) * static_cast<T>(bins) / width));
    });
  };
  const Tensor counts =
      x.dtype() == kFloat64 ? count.template operator()<double>() : count.template operator()<float>();
  return to(counts, given.dtype());
}

Histogram histogram(const Tensor& given, const Tensor& bins, const Tensor& weight, bool density) {
  check_floating_point("histogram", given);
  check_strided("histogram", bins, "bins");
  TERCEL_CHECK(bins.dtype() == given.dtype(), RuntimeError,
               "histogramdd(): input tensor and bins tensors should have the same dtype, but got input with "
               "dtype ",
               cpp_type_name(given.dtype()), " and bins for dimension 0 with dtype ", cpp_type_name(bins.dtype()));
  TERCEL_CHECK(bins.dim() == 1, RuntimeError, "histogramdd(): bins tensor should have one dimension, but got ",
               bins.dim(), " dimensions in the bins tensor for dimension 0");
  TERCEL_CHECK(bins.numel() > 0, RuntimeError,
               "histogramdd(): bins tensor should have at least 1 element, but got 0 elements in the bins tensor "
               "for dimension 0");
  check_bins(bins.numel() - 1);
  check_weight(given, weight);
  Histogram out;
  {
    const NoRecordGuard no_record;
    const Tensor edges = contiguous(to(bins, kFloat64)), x = contiguous(to(given, kFloat64));
    const double *limits = edges.data<double>(), *values = x.data<double>();
    const int64_t count = bins.numel() - 1;
    const Tensor hist =
        filled(count, x.numel(), weight, [=](int64_t i) { return interval_of(limits, count, values[i]); });
    out = {with_density(to(hist, given.dtype()), bins, density), clone(bins)};
  }
  const Tensor& weights = weight.defined() ? weight : given;
  record_not_implemented("NotImplemented", {out.hist, out.bin_edges}, {given, bins, weights}, "histogram");
  return out;
}

namespace {

/** Edges of bins of equal width in a range; by default (empty) that of the elements. */
Tensor even_edges(const Tensor& x, int64_t bins, Span<double> given, int64_t dim) {
  Range range{0, 1};
  if (!given.empty())
    range = {given[0], given[1]};
  else if (x.numel() > 0)
    range = Range::of(x.detach());
  TERCEL_CHECK(std::isfinite(range.low) && std::isfinite(range.high), RuntimeError, "histogramdd(): dimension ", dim,
               "'s range [", range.low, ", ", range.high, "] is not finite");
  TERCEL_CHECK(range.low <= range.high, RuntimeError, "histogramdd(): min should not exceed max, but got min ",
               range.low, " max ", range.high, " for dimension ", dim);
  if (range.low == range.high) range = {range.low - 0.5, range.high + 0.5};
  return linspace(range.low, range.high, bins + 1, TensorOptions(x.dtype()));
}

/** The points, one per row. */
Tensor points_of(const Tensor& x, size_t lists) {
  check_floating_point("histogramdd", x);
  TERCEL_CHECK(x.dim() >= 2, RuntimeError, "histogramdd(): input tensor should have at least 2 dimensions, but got ",
               x.dim());
  const int64_t n = x.size(-1);
  TERCEL_CHECK(static_cast<int64_t>(lists) == n, RuntimeError, "histogramdd(): expected ", n,
               " sequences of bin edges or numbers of bins for a ", n, "-dimensional histogram but got ", lists);
  const IntSpan sizes = x.sizes();
  return reshape(x.detach(), {numel_of(IntSpan(sizes.data(), sizes.size() - 1)), n});
}

}  // namespace

Histogram histogram(const Tensor& x, int64_t bins, std::optional<std::pair<double, double>> range, const Tensor& weight,
                    bool density) {
  check_floating_point("histogram", x);
  check_bins(bins);
  const auto [low, high] = range.value_or(std::pair(0.0, 0.0));
  const double ends[] = {low, high};
  return histogram(x, even_edges(x, bins, {ends, range ? size_t{2} : 0}, 0), weight, density);
}

HistogramDd histogramdd(const Tensor& x, Span<Tensor> bins, const Tensor& weight, bool density) {
  const Tensor points = points_of(x, bins.size());
  HistogramDd out{Tensor(), bins.to_vector()};
  {
    const NoRecordGuard no_record;
    Tensor box = zeros({points.size(0)}, kInt64), counted = full({points.size(0)}, !bins.empty(), kBool);
    DimVector sizes;
    for (size_t d = 0; d < bins.size(); ++d) {
      const Tensor &edges = bins[d], column = contiguous(select(points, 1, static_cast<int64_t>(d)));
      TERCEL_CHECK(edges.dim() == 1 && edges.numel() > 1, RuntimeError,
                   "histogramdd(): expected a vector of at least 2 bin edges for dimension ", d, " but got sizes ",
                   edges.sizes());
      const int64_t count = edges.numel() - 1;
      sizes.push_back(count);
      counted = logical_and(counted, logical_and(ge(column, select(edges, 0, 0)), le(column, select(edges, 0, -1))));
      box = add(mul(box, count), clamp(sub(searchsorted(contiguous(edges), column, false, true), 1), 0, count - 1));
    }
    const Tensor amounts =
        weight.defined() ? to(reshape(weight.detach(), {-1}), points.dtype()) : ones({points.size(0)}, points.dtype());
    const Tensor places = masked_select(box, counted), each = masked_select(amounts, counted);
    out.hist = view(index_add(zeros({numel_of(sizes)}, points.dtype()), 0, places, each), sizes);
    for (size_t d = 0; d < bins.size() && density; ++d) {
      DimVector along(sizes.size(), 1);
      along[d] = -1;
      out.hist = div(out.hist, view(diff(bins[d]), along));
    }
    if (density) out.hist = div(out.hist, sum(each));
  }
  const Tensor& weights = weight.defined() ? weight : x;
  record_not_implemented("NotImplemented", {out.hist}, {x, weights}, "histogramdd");
  return out;
}

HistogramDd histogramdd(const Tensor& x, IntSpan bins, Span<double> range, const Tensor& weight, bool density) {
  const Tensor points = points_of(x, bins.size());
  TERCEL_CHECK(range.empty() || range.size() == 2 * bins.size(), RuntimeError, "histogramdd(): for a ", bins.size(),
               "-dimensional histogram range should have ", 2 * bins.size(), " elements, but got ", range.size());
  std::vector<Tensor> edges;
  for (size_t d = 0; d < bins.size(); ++d) {
    check_bins(bins[d]);
    const auto dim = static_cast<int64_t>(d);
    edges.push_back(even_edges(select(points, 1, dim), bins[d], range.empty() ? range : range.subspan(2 * d, 2), dim));
  }
  return histogramdd(x, Span<Tensor>(edges), weight, density);
}

HistogramDd histogramdd(const Tensor& x, int64_t bins, Span<double> range, const Tensor& weight, bool density) {
  check_strided("histogramdd", x, "input");
  const DimVector each(static_cast<size_t>(x.dim() > 0 ? x.size(-1) : 0), bins);
  return histogramdd(x, IntSpan(each), range, weight, density);
}

}  // namespace tercel
