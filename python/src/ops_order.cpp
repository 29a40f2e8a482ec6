// Scans and differences along a dimension; sorting, selection by rank, searching and counting.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/differences.h"
#include "tercel/ops/reduce/histogram.h"
#include "tercel/ops/reduce/scan.h"
#include "tercel/ops/reduce/segment_reduce.h"
#include "tercel/ops/sort/order_statistics.h"
#include "tercel/ops/sort/search.h"
#include "tercel/ops/sort/sort.h"
#include "tercel/ops/sort/unique.h"

namespace tercel::python {

namespace {

using Dim = std::optional<int64_t>;
using Dtype = std::optional<ScalarType>;
using Pair = std::optional<std::vector<Tensor>>;

#define TERCEL_SCAN_ENTRIES(name)                                              \
  entry(#name "(Tensor input, int dim, *, dtype dtype=None, Tensor out=None)", \
        [](const Tensor& x, int64_t dim, Dtype dtype, const Tensor& out) {     \
          return into(#name, out, name(x, dim, dtype_of(dtype, out)));         \
        }),                                                                    \
      entry(                                                                   \
          #name "_(Tensor input, int dim, *, dtype dtype=None)",               \
          [](const Tensor& x, int64_t dim, Dtype dtype) {                      \
            return name##_(x, dim, dtype.value_or(ScalarType::Undefined));     \
          },                                                                   \
          kMethod)

void check_scalar_type(const Tensor& out, ScalarType wanted) {
  TERCEL_CHECK(!out.defined() || out.dtype() == wanted, RuntimeError, "expected scalar_type ", legacy_name(wanted),
               " but found ", legacy_name(out.dtype()));
}

void check_mode_out(const Tensor& x, const Tensor& values, const Tensor& indices) {
  const auto check = [](const Tensor& out, ScalarType wanted, const char* what) {
    TERCEL_CHECK(!out.defined() || out.dtype() == wanted, RuntimeError, "expected scalar type '", legacy_name(wanted),
                 "' but got '", legacy_name(out.dtype()), "' for ", what, " output");
  };
  check(values, x.dtype(), "values");
  check(indices, kInt64, "indices");
}

#define TERCEL_RUNNING_EXTREME_ENTRY(name)                                                                         \
  entry(#name "(Tensor input, int dim, *, Tensor[] out=None)", [](const Tensor& x, int64_t dim, const Pair& out) { \
    if (out && out->size() == 2) {                                                                                 \
      check_scalar_type((*out)[0], x.dtype());                                                                     \
      check_scalar_type((*out)[1], kInt64);                                                                        \
    }                                                                                                              \
    return into(#name, out, name(x, dim));                                                                         \
  })

#define TERCEL_TRAPEZOID_ENTRIES(name)                                                           \
  entry(                                                                                         \
      #name "(Tensor y, Tensor x, *, int dim=-1)",                                               \
      [](const Tensor& y, const Tensor& x, int64_t dim) { return name(y, x, dim); }, kFunction), \
      entry(                                                                                     \
          #name "(Tensor y, *, Scalar dx=1, int dim=-1)",                                        \
          [](const Tensor& y, Scalar dx, int64_t dim) { return name(y, dx.to_double(), dim); }, kFunction)

#define TERCEL_MEDIAN_ENTRIES(name)                                                    \
  entry(#name "(Tensor input)", [](const Tensor& x) { return name(x); }),              \
      entry(#name "(Tensor input, int dim, bool keepdim=False, *, Tensor[] out=None)", \
            [](const Tensor& x, int64_t dim, bool keepdim, const Pair& out) {          \
              return into(#name, out, name(x, dim, keepdim));                          \
            })

void check_quantile_out(const Tensor& x, const Tensor& out) {
  TERCEL_CHECK(!out.defined() || out.dtype() == x.dtype(), RuntimeError,
               "quantile() out tensor must be same dtype as the input tensor");
}

#define TERCEL_QUANTILE_ENTRIES(name)                                                                          \
  entry(#name                                                                                                  \
        "(Tensor input, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\", Tensor " \
        "out=None)",                                                                                           \
        [](const Tensor& x, const Tensor& q, Dim dim, bool keepdim, std::string_view how, const Tensor& out) { \
          check_quantile_out(x, out);                                                                          \
          return into(#name, out, name(x, q, dim, keepdim, how));                                              \
        }),                                                                                                    \
      entry(#name                                                                                              \
            "(Tensor input, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\", "     \
            "Tensor out=None)",                                                                                \
            [](const Tensor& x, double q, Dim dim, bool keepdim, std::string_view how, const Tensor& out) {    \
              check_quantile_out(x, out);                                                                      \
              return into(#name, out, name(x, q, dim, keepdim, how));                                          \
            })

Named<2> histogram_into(const Pair& out, const Tensor& x, const Histogram& result) {
  static constexpr const char* kNames[] = {"hist", "bin_edges"};
  for (size_t i = 0; out && i < std::min<size_t>(out->size(), 2); ++i)
    TERCEL_CHECK((*out)[i].dtype() == x.dtype(), RuntimeError, "histogram(): input tensor and ", kNames[i],
                 " tensor should have the same dtype, but got input ", cpp_type_name(x.dtype()), " and ", kNames[i],
                 " ", cpp_type_name((*out)[i].dtype()));
  return into("histogram", out, Named<2>{{kNames[0], kNames[1]}, {result.hist, result.bin_edges}});
}

Tensor as_tensor(const Operand& o) { return o.is_tensor() ? *o.tensor : scalar_tensor(o.scalar); }

/** The counts, followed by the edges. */
std::vector<Tensor> listed(const HistogramDd& h) {
  std::vector<Tensor> out{h.hist};
  out.insert(out.end(), h.bin_edges.begin(), h.bin_edges.end());
  return out;
}

}  // namespace

Span<Entry> order_ops() {
  static const Entry table[] = {
      TERCEL_SCAN_ENTRIES(cumsum),
      TERCEL_SCAN_ENTRIES(cumprod),
      TERCEL_RUNNING_EXTREME_ENTRY(cummax),
      TERCEL_RUNNING_EXTREME_ENTRY(cummin),
      entry("logcumsumexp(Tensor input, int dim, *, Tensor out=None)",
            [](const Tensor& x, int64_t dim, const Tensor& out) {
              check_scalar_type(out, x.dtype());
              return into("logcumsumexp", out, logcumsumexp(x, dim));
            }),
      entry("diff(Tensor input, int n=1, int dim=-1, Tensor prepend=None, Tensor append=None, *, Tensor out=None)",
            [](const Tensor& x, int64_t n, int64_t dim, const Tensor& before, const Tensor& after, const Tensor& out) {
              return into("diff", out, diff(x, n, dim, before, after));
            }),
      TERCEL_TRAPEZOID_ENTRIES(trapezoid),
      TERCEL_TRAPEZOID_ENTRIES(trapz),
      TERCEL_TRAPEZOID_ENTRIES(cumulative_trapezoid),
      entry(
          "gradient(Tensor input, *, Scalar? spacing=None, int[1]? dim=None, int edge_order=1)",
          [](const Tensor& x, std::optional<Scalar> spacing, const std::optional<DimVector>& dims, int64_t edge_order) {
            const bool imaginary = spacing && spacing->is_complex();
            const double step = spacing && !imaginary ? spacing->to_double() : 1;
            std::vector<Tensor> out = gradient(x, step, dims ? IntSpan(*dims) : IntSpan(), edge_order);
            if (imaginary)
              for (Tensor& each : out) each = div(each, *spacing);
            return out;
          },
          kFunction),
      entry(
          "gradient(Tensor input, *, float[] spacing, int[1]? dim=None, int edge_order=1)",
          [](const Tensor& x, const std::vector<double>& steps, const std::optional<DimVector>& dims,
             int64_t edge_order) {
            return gradient(x, Span<double>(steps), dims ? IntSpan(*dims) : IntSpan(), edge_order);
          },
          kFunction),
      entry(
          "gradient(Tensor input, *, Tensor[] spacing, int[1]? dim=None, int edge_order=1)",
          [](const Tensor& x, const std::vector<Tensor>& places, const std::optional<DimVector>& dims,
             int64_t edge_order) {
            return gradient(x, Span<Tensor>(places), dims ? IntSpan(*dims) : IntSpan(), edge_order);
          },
          kFunction),
      entry("sort(Tensor input, int dim=-1, bool descending=False, *, bool? stable=False, Tensor[] out=None)",
            [](const Tensor& x, int64_t dim, bool descending, bool, const Pair& out) {
              return into("sort", out, sort(x, dim, descending));
            }),
      entry("sort(Tensor input, *, bool? stable, int dim=-1, bool descending=False, Tensor[] out=None)",
            [](const Tensor& x, bool, int64_t dim, bool descending, const Pair& out) {
              return into("sort", out, sort(x, dim, descending));
            }),
      entry("argsort(Tensor input, int dim=-1, bool descending=False, *, bool stable=False)",
            [](const Tensor& x, int64_t dim, bool descending, bool) { return argsort(x, dim, descending); }),
      entry("msort(Tensor input, *, Tensor out=None)",
            [](const Tensor& x, const Tensor& out) { return into("msort", out, msort(x)); }),
      entry("topk(Tensor input, int k, int dim=-1, bool largest=True, bool sorted=True, *, Tensor[] out=None)",
            [](const Tensor& x, int64_t k, int64_t dim, bool largest, bool sorted, const Pair& out) {
              return into("topk", out, topk(x, k, dim, largest, sorted));
            }),
      entry("kthvalue(Tensor input, int k, int dim=-1, bool keepdim=False, *, Tensor[] out=None)",
            [](const Tensor& x, int64_t k, int64_t dim, bool keepdim, const Pair& out) {
              return into("kthvalue", out, kthvalue(x, k, dim, keepdim));
            }),
      TERCEL_MEDIAN_ENTRIES(median),
      TERCEL_MEDIAN_ENTRIES(nanmedian),
      entry("mode(Tensor input, int dim=-1, bool keepdim=False, *, Tensor[] out=None)",
            [](const Tensor& x, int64_t dim, bool keepdim, const Pair& out) {
              if (out && out->size() == 2) check_mode_out(x, (*out)[0], (*out)[1]);
              return into("mode", out, mode(x, dim, keepdim));
            }),
      TERCEL_QUANTILE_ENTRIES(quantile),
      TERCEL_QUANTILE_ENTRIES(nanquantile),
      entry(
          "_unique(Tensor input, bool return_inverse, bool return_counts, int? dim, bool consecutive)",
          [](const Tensor& x, bool inverse, bool counts, Dim dim, bool consecutive) {
            const UniqueValues u =
                consecutive ? unique_consecutive(x, inverse, counts, dim) : unique(x, inverse, counts, dim);
            return std::vector<Tensor>{u.values, u.inverse, u.counts};
          },
          kFunction),
      entry(
          "searchsorted(Tensor sorted_sequence, Tensor input, *, bool out_int32=False, bool right=False, str "
          "side=\"\", "
          "Tensor sorter=None, Tensor out=None)",
          [](const Tensor& sequence, const Tensor& x, bool out_int32, bool right, std::string_view side,
             const Tensor& sorter, const Tensor& out) {
            return into("searchsorted", out, searchsorted(sequence, x, out_int32, right, side, sorter));
          },
          kFunction),
      entry(
          "searchsorted(Tensor sorted_sequence, Scalar input, *, bool out_int32=False, bool right=False, str "
          "side=\"\", "
          "Tensor sorter=None, Tensor out=None)",
          [](const Tensor& sequence, Scalar x, bool out_int32, bool right, std::string_view side, const Tensor& sorter,
             const Tensor& out) {
            return into("searchsorted", out, searchsorted(sequence, x, out_int32, right, side, sorter));
          },
          kFunction),
      entry(
          "bucketize(Tensor input, Tensor boundaries, *, bool out_int32=False, bool right=False, Tensor out=None)",
          [](const Tensor& x, const Tensor& boundaries, bool out_int32, bool right, const Tensor& out) {
            return into("bucketize", out, bucketize(x, boundaries, out_int32, right));
          },
          kFunction),
      entry(
          "bucketize(Scalar input, Tensor boundaries, *, bool out_int32=False, bool right=False, Tensor out=None)",
          [](Scalar x, const Tensor& boundaries, bool out_int32, bool right, const Tensor& out) {
            return into("bucketize", out, bucketize(x, boundaries, out_int32, right));
          },
          kFunction),
      entry(
          "isin(Tensor|Scalar elements, Tensor|Scalar test_elements, *, bool assume_unique=False, bool invert=False, "
          "Tensor out=None)",
          [](Operand x, Operand tests, bool assume_unique, bool invert, const Tensor& out) {
            return into("isin", out, isin(as_tensor(x), as_tensor(tests), assume_unique, invert));
          },
          kFunction),
      entry("bincount(Tensor input, Tensor weights=None, int minlength=0)",
            [](const Tensor& x, const Tensor& weights, int64_t minlength) { return bincount(x, weights, minlength); }),
      entry("histc(Tensor input, int bins=100, Scalar min=0, Scalar max=0, *, Tensor out=None)",
            [](const Tensor& x, int64_t bins, Scalar low, Scalar high, const Tensor& out) {
              return into("histc", out, histc(x, bins, low, high));
            }),
      entry("histogram(Tensor input, Tensor bins, *, Tensor weight=None, bool density=False, Tensor[] out=None)",
            [](const Tensor& x, const Tensor& bins, const Tensor& weight, bool density, const Pair& out) {
              return histogram_into(out, x, histogram(x, bins, weight, density));
            }),
      entry("histogram(Tensor input, int bins, *, float[]? range=None, Tensor weight=None, bool density=False, "
            "Tensor[] out=None)",
            [](const Tensor& x, int64_t bins, PyObject* range, const Tensor& weight, bool density, const Pair& out) {
              std::optional<std::pair<double, double>> ends;
              if (range != Py_None) {
                TERCEL_CHECK(PySequence_Size(range) == 2, RuntimeError,
                             "histogram(): for a 1-dimensional histogram, range should have 2 elements, but got ",
                             PySequence_Size(range));
                const nb::object low = own(PySequence_GetItem(range, 0)), high = own(PySequence_GetItem(range, 1));
                ends = std::pair{to_float(low.ptr()), to_float(high.ptr())};
              }
              const WithoutGil scope(x.numel() >= kGilGrain);
              return histogram_into(out, x, histogram(x, bins, ends, weight, density));
            }),
      entry(
          "_histogramdd(Tensor input, Tensor[] bins, float[] range, Tensor? weight, bool density)",
          [](const Tensor& x, const std::vector<Tensor>& bins, const std::vector<double>&, const Tensor& weight,
             bool density) { return listed(histogramdd(x, bins, weight, density)); },
          kFunction),
      entry(
          "_histogramdd(Tensor input, int bins, float[] range, Tensor? weight, bool density)",
          [](const Tensor& x, int64_t bins, const std::vector<double>& range, const Tensor& weight, bool density) {
            return listed(histogramdd(x, bins, range, weight, density));
          },
          kFunction),
      entry(
          "_histogramdd(Tensor input, int[] bins, float[] range, Tensor? weight, bool density)",
          [](const Tensor& x, const DimVector& bins, const std::vector<double>& range, const Tensor& weight,
             bool density) { return listed(histogramdd(x, bins, range, weight, density)); },
          kFunction),
      entry(
          "segment_reduce(Tensor data, str reduce, *, Tensor lengths=None, Tensor indices=None, Tensor offsets=None, "
          "int axis=0, bool unsafe=False, Scalar? initial=None)",
          [](const Tensor& data, std::string_view reduce, const Tensor& lengths, const Tensor& indices,
             const Tensor& offsets, int64_t axis, bool unsafe, std::optional<Scalar> initial) {
            return segment_reduce(data, reduce, lengths, indices, offsets, axis, unsafe,
                                  initial ? std::optional<double>(initial->to_double()) : std::nullopt);
          },
          kFunction),
  };
  return table;
}

}  // namespace tercel::python
