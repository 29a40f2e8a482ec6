// Reductions, scans, differences, histograms.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/reduce/differences.h"
#include "tercel/ops/reduce/histogram.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/scan.h"
#include "tercel/ops/reduce/segment_reduce.h"
#include "tercel/ops/reduce/var_std.h"
#include "tercel/ops/reduce/vector_norms.h"
#include "tercel/ops/views/views.h"

namespace tercel::python {

namespace {

using Dims = std::optional<DimVector>;
using Dtype = std::optional<ScalarType>;
using Pair = std::optional<std::vector<Tensor>>;

Tensor as_dtype(const Tensor& x, Dtype dtype) { return dtype ? to(x, *dtype) : x; }

/** Over some dimensions; by default all. */
#define TERCEL_SUM_LIKE(name, x, dims, keepdim) \
  (!(dims) && !(keepdim) ? name(x) : name(x, (dims) ? IntSpan(*(dims)) : IntSpan(), keepdim))

ScalarType or_undefined(Dtype dtype) { return dtype.value_or(ScalarType::Undefined); }

/** Sum and mean: whole, over dimensions, and in another dtype. */
#define TERCEL_SUM_ENTRIES(name)                                                                           \
  entry(#name "(Tensor input, *, dtype dtype=None)",                                                       \
        [](const Tensor& x, Dtype dtype) { return dtype ? name(x, IntSpan(), false, *dtype) : name(x); }), \
      entry(#name "(Tensor input, int[1]? dim, bool keepdim=False, *, dtype dtype=None, Tensor out=None)", \
            [](const Tensor& x, const Dims& dims, bool keepdim, Dtype dtype, const Tensor& out) {          \
              return into(#name, out, name(x, span_of(dims), keepdim, dtype_of(dtype, out)));              \
            })

/** PyTorch's nansum adds in the dtype of `out` and supports no integers there. */
void check_nansum_out(const Tensor& x, Dtype dtype, const Tensor& out) {
  if (out.defined() && !dtype && x.is_floating_point() && !out.is_floating_point())
    refuse_dtype("nansum_cpu", out.dtype());
}

void check_truth(const char* op, const Tensor& out) {
  TERCEL_CHECK(!out.defined() || out.dtype() == kBool || out.dtype() == kUInt8, RuntimeError, op,
               " only supports bool tensor for result, got: ", legacy_name(out.dtype()));
}

/** An empty list of dimensions is none of them; to other reductions it is all. */
#define TERCEL_TRUTH_ENTRIES(name)                                                            \
  entry(#name "(Tensor input, *, Tensor out=None)",                                           \
        [](const Tensor& x, const Tensor& out) {                                              \
          check_truth(#name, out);                                                            \
          return into(#name, out, name(x));                                                   \
        }),                                                                                   \
      entry(#name "(Tensor input, int[1]? dim, bool keepdim=False, *, Tensor out=None)",      \
            [](const Tensor& x, const Dims& dims, bool keepdim, const Tensor& out) {          \
              check_truth(#name, out);                                                        \
              if (dims && dims->empty()) return into(#name, out, name(unsqueeze(x, 0), {0})); \
              return into(#name, out, TERCEL_SUM_LIKE(name, x, dims, keepdim));               \
            })

void check_positions(const Tensor& out) {
  TERCEL_CHECK(!out.defined() || out.dtype() == kInt64, RuntimeError,
               "Expected out tensor to have dtype long int, but got ", cpp_type_name(out.dtype()), " instead");
}

/** Maximum or minimum: of all elements, along a dimension, of two tensors. */
#define TERCEL_EXTREME_ENTRIES(name, pairwise, arg, all_dims)                                                      \
  entry(#name "(Tensor input, *, Tensor out=None)",                                                                \
        [](const Tensor& x, const Tensor& out) { return into(#name, out, name(x)); }),                             \
      entry(#name "(Tensor input, Tensor other, *, Tensor out=None)",                                              \
            [](const Tensor& x, const Tensor& y, const Tensor& out) { return into(#name, out, pairwise(x, y)); }), \
      entry(#name "(Tensor input, int dim, bool keepdim=False, *, Tensor[] out=None)",                             \
            [](const Tensor& x, int64_t dim, bool keepdim, const std::optional<std::vector<Tensor>>& out) {        \
              return into(#name, out, name(x, dim, keepdim));                                                      \
            }),                                                                                                    \
      entry(#all_dims "(Tensor input, int[1]? dim=(), bool keepdim=False, *, Tensor out=None)",                    \
            [](const Tensor& x, const Dims& dims, bool keepdim, const Tensor& out) {                               \
              TERCEL_CHECK(!out.defined() || out.dtype() == x.dtype(), RuntimeError,                               \
                           "Expected the dtype for input and out to match, but got ", legacy_name(x.dtype()),      \
                           " for input's dtype and ", legacy_name(out.dtype()), " for out's dtype.");              \
              return into(#all_dims, out, all_dims(x, span_of(dims), keepdim));                                    \
            }),                                                                                                    \
      entry(#arg "(Tensor input, int? dim=None, bool keepdim=False, *, Tensor out=None)",                          \
            [](const Tensor& x, std::optional<int64_t> dim, bool keepdim, const Tensor& out) {                     \
              check_positions(out);                                                                                \
              return into(#arg, out, arg(x, dim, keepdim));                                                        \
            })

/** unbiased=True or False is the older spelling of correction=1 or 0. */
#define TERCEL_VARIANCE_ENTRIES(name)                                                                                  \
  entry(#name "(Tensor input, bool unbiased)",                                                                         \
        [](const Tensor& x, bool unbiased) { return name(x, IntSpan(), unbiased); }),                                  \
      entry(#name "(Tensor input, int[1]? dim, bool unbiased, bool keepdim=False, *, Tensor out=None)",                \
            [](const Tensor& x, const Dims& dims, bool unbiased, bool keepdim, const Tensor& out) {                    \
              return into(#name, out, name(x, span_of(dims), unbiased, keepdim));                                      \
            }),                                                                                                        \
      entry(#name "(Tensor input, int[1]? dim=None, *, Scalar? correction=1, bool keepdim=False, Tensor out=None)",    \
            [](const Tensor& x, const Dims& dims, std::optional<Scalar> correction, bool keepdim, const Tensor& out) { \
              return into(#name, out, name(x, span_of(dims), correction ? correction->to_double() : 1.0, keepdim));    \
            })

#define TERCEL_VAR_MEAN_ENTRIES(name, first)                                                              \
  entry(                                                                                                  \
      #name "(Tensor input, bool unbiased)",                                                              \
      [](const Tensor& x, bool unbiased) {                                                                \
        const auto out = name(x, IntSpan(), unbiased);                                                    \
        return std::vector<Tensor>{out.first, out.mean};                                                  \
      },                                                                                                  \
      kFunction),                                                                                         \
      entry(                                                                                              \
          #name "(Tensor input, int[1]? dim, bool unbiased, bool keepdim=False)",                         \
          [](const Tensor& x, const Dims& dims, bool unbiased, bool keepdim) {                            \
            const auto out = name(x, span_of(dims), unbiased, keepdim);                                   \
            return std::vector<Tensor>{out.first, out.mean};                                              \
          },                                                                                              \
          kFunction),                                                                                     \
      entry(                                                                                              \
          #name "(Tensor input, int[1]? dim=None, *, Scalar? correction=1, bool keepdim=False)",          \
          [](const Tensor& x, const Dims& dims, std::optional<Scalar> correction, bool keepdim) {         \
            const auto out = name(x, span_of(dims), correction ? correction->to_double() : 1.0, keepdim); \
            return std::vector<Tensor>{out.first, out.mean};                                              \
          },                                                                                              \
          kFunction)

/** The dimensions of a matrix. */
constexpr int64_t kMatrix[] = {-2, -1};

bool is_frobenius(PyObject* p) { return PyUnicode_Check(p) && to_text(p) == "fro"; }

double norm_order(PyObject* p) {
  if (p == Py_None) return 2;
  if (PyUnicode_Check(p)) {
    TERCEL_CHECK(is_frobenius(p), RuntimeError, "norm: the order must be a number, 'fro' or 'nuc', not ", to_text(p));
    return 2;
  }
  TERCEL_CHECK(is_float_like(p), TypeError, "norm: the order must be a number, not ", Py_TYPE(p)->tp_name);
  return to_float(p);
}

void check_scalar_type(const Tensor& out, ScalarType wanted) {
  TERCEL_CHECK(!out.defined() || out.dtype() == wanted, RuntimeError, "expected scalar_type ", legacy_name(wanted),
               " but found ", legacy_name(out.dtype()));
}

#define TERCEL_RUNNING_EXTREME_ENTRY(name)                                                                         \
  entry(#name "(Tensor input, int dim, *, Tensor[] out=None)", [](const Tensor& x, int64_t dim, const Pair& out) { \
    if (out && out->size() == 2) {                                                                                 \
      check_scalar_type((*out)[0], x.dtype());                                                                     \
      check_scalar_type((*out)[1], kInt64);                                                                        \
    }                                                                                                              \
    return into(#name, out, name(x, dim));                                                                         \
  })

#define TERCEL_TRAPEZOID_ENTRY(name)                  \
  entry(                                              \
      #name "(Tensor y, *, Scalar dx=1, int dim=-1)", \
      [](const Tensor& y, Scalar dx, int64_t dim) { return name(y, dx.to_double(), dim); }, kFunction)

Named<2> histogram_into(const Pair& out, const Tensor& x, const Histogram& result) {
  static constexpr const char* kNames[] = {"hist", "bin_edges"};
  for (size_t i = 0; out && i < std::min<size_t>(out->size(), 2); ++i)
    TERCEL_CHECK((*out)[i].dtype() == x.dtype(), RuntimeError, "histogram(): input tensor and ", kNames[i],
                 " tensor should have the same dtype, but got input ", cpp_type_name(x.dtype()), " and ", kNames[i],
                 " ", cpp_type_name((*out)[i].dtype()));
  return into("histogram", out, Named<2>{{kNames[0], kNames[1]}, {result.hist, result.bin_edges}});
}

/** The counts, followed by the edges. */
std::vector<Tensor> listed(const HistogramDd& h) {
  std::vector<Tensor> out{h.hist};
  out.insert(out.end(), h.bin_edges.begin(), h.bin_edges.end());
  return out;
}

}  // namespace

Span<Entry> reduce_ops() {
  static const Entry table[] = {
      TERCEL_SUM_ENTRIES(sum),
      TERCEL_SUM_ENTRIES(mean),
      entry("mean(Tensor input, *, dtype dtype=None, Tensor out)",
            [](const Tensor& x, Dtype dtype, const Tensor& out) {
              return into("mean", out, mean(x, IntSpan(), false, dtype_of(dtype, out)));
            }),
      entry("prod(Tensor input, *, dtype dtype=None)",
            [](const Tensor& x, Dtype dtype) { return prod(x, IntSpan(), false, or_undefined(dtype)); }),
      entry("prod(Tensor input, int dim, bool keepdim=False, *, dtype dtype=None, Tensor out=None)",
            [](const Tensor& x, int64_t dim, bool keepdim, Dtype dtype, const Tensor& out) {
              return into("prod", out, prod(x, {dim}, keepdim, dtype_of(dtype, out)));
            }),
      entry("nansum(Tensor input, int[1]? dim=None, bool keepdim=False, *, dtype dtype=None, Tensor out=None)",
            [](const Tensor& x, const Dims& dims, bool keepdim, Dtype dtype, const Tensor& out) {
              check_nansum_out(x, dtype, out);
              return into("nansum", out, nansum(x, span_of(dims), keepdim, dtype_of(dtype, out)));
            }),
      TERCEL_VARIANCE_ENTRIES(var),
      TERCEL_VARIANCE_ENTRIES(std),
      TERCEL_VAR_MEAN_ENTRIES(var_mean, var),
      TERCEL_VAR_MEAN_ENTRIES(std_mean, std),
      TERCEL_EXTREME_ENTRIES(max, maximum, argmax, amax),
      TERCEL_EXTREME_ENTRIES(min, minimum, argmin, amin),
      TERCEL_TRUTH_ENTRIES(any),
      TERCEL_TRUTH_ENTRIES(all),
      entry("count_nonzero(Tensor input, int[1]? dim=None)",
            [](const Tensor& x, const Dims& dims) { return count_nonzero(x, span_of(dims)); }),
      entry("norm(Tensor input, object p=\"fro\", int[1]? dim=None, bool keepdim=False, dtype dtype=None, *, Tensor "
            "out=None)",
            [](const Tensor& x, PyObject* p, const Dims& dims, bool keepdim, Dtype dtype, const Tensor& out) -> Tensor {
              const bool nuclear = PyUnicode_Check(p) && to_text(p) == "nuc";
              const double order = nuclear ? 0 : norm_order(p);
              if (is_sparse(x.layout()) && dtype) {
                TERCEL_CHECK(!is_frobenius(p), ValueError, "dtype argument is not supported in frobenius norm");
                throw_error<RuntimeError>({"norm_sparse currently does not support 'dtype' argument"});
              }
              const WithoutGil scope(x.numel() >= kGilGrain);
              const Tensor y = as_dtype(x, dtype);
              if (nuclear)
                return into("norm", out,
                            linalg::matrix_norm(y, "nuc", dims ? IntSpan(*dims) : IntSpan(kMatrix), keepdim));
              return into("norm", out, dims || keepdim ? norm(y, order, span_of(dims), keepdim) : norm(y, order));
            }),
      entry("renorm(Tensor input, Scalar p, int dim, Scalar maxnorm, *, Tensor out=None)",
            [](const Tensor& x, Scalar p, int64_t dim, Scalar maxnorm, const Tensor& out) {
              return into("renorm", out, renorm(x, p.to_double(), dim, maxnorm.to_double()));
            }),
      entry(
          "renorm_(Tensor input, Scalar p, int dim, Scalar maxnorm)",
          [](const Tensor& x, Scalar p, int64_t dim, Scalar maxnorm) {
            return renorm_(x, p.to_double(), dim, maxnorm.to_double());
          },
          kMethod),
      TERCEL_RUNNING_EXTREME_ENTRY(cummax),
      TERCEL_RUNNING_EXTREME_ENTRY(cummin),
      entry("logcumsumexp(Tensor input, int dim, *, Tensor out=None)",
            [](const Tensor& x, int64_t dim, const Tensor& out) {
              check_scalar_type(out, x.dtype());
              return into("logcumsumexp", out, logcumsumexp(x, dim));
            }),
      TERCEL_TRAPEZOID_ENTRY(trapezoid),
      TERCEL_TRAPEZOID_ENTRY(trapz),
      TERCEL_TRAPEZOID_ENTRY(cumulative_trapezoid),
      entry(
          "gradient(Tensor input, *, Scalar? spacing=None, int[1]? dim=None, int edge_order=1)",
          [](const Tensor& x, std::optional<Scalar> spacing, const std::optional<DimVector>& dims, int64_t edge_order) {
            const bool imaginary = spacing && spacing->is_complex();
            const double step = spacing && !imaginary ? spacing->to_double() : 1;
            std::vector<Tensor> out = gradient(x, step, span_of(dims), edge_order);
            if (imaginary)
              for (Tensor& each : out) each = div(each, *spacing);
            return out;
          },
          kFunction),
      entry(
          "gradient(Tensor input, *, float[] spacing, int[1]? dim=None, int edge_order=1)",
          [](const Tensor& x, const std::vector<double>& steps, const std::optional<DimVector>& dims,
             int64_t edge_order) { return gradient(x, Span<double>(steps), span_of(dims), edge_order); },
          kFunction),
      entry(
          "gradient(Tensor input, *, Tensor[] spacing, int[1]? dim=None, int edge_order=1)",
          [](const Tensor& x, const std::vector<Tensor>& places, const std::optional<DimVector>& dims,
             int64_t edge_order) { return gradient(x, Span<Tensor>(places), span_of(dims), edge_order); },
          kFunction),
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
