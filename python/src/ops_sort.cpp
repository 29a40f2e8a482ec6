// Sorting, selection by rank, membership.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sort/order_statistics.h"
#include "tercel/ops/sort/search.h"
#include "tercel/ops/sort/sort.h"
#include "tercel/ops/sort/unique.h"

namespace tercel::python {

namespace {

using Dim = std::optional<int64_t>;
using Pair = std::optional<std::vector<Tensor>>;

void check_mode_out(const Tensor& x, const Tensor& values, const Tensor& indices) {
  const auto check = [](const Tensor& out, ScalarType wanted, const char* what) {
    TERCEL_CHECK(!out.defined() || out.dtype() == wanted, RuntimeError, "expected scalar type '", legacy_name(wanted),
                 "' but got '", legacy_name(out.dtype()), "' for ", what, " output");
  };
  check(values, x.dtype(), "values");
  check(indices, kInt64, "indices");
}

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

Tensor as_tensor(const Operand& o) { return o.is_tensor() ? *o.tensor : scalar_tensor(o.scalar); }

}  // namespace

Span<Entry> sort_ops() {
  static const Entry table[] = {
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
          "isin(Tensor|Scalar elements, Tensor|Scalar test_elements, *, bool assume_unique=False, bool invert=False, "
          "Tensor out=None)",
          [](Operand x, Operand tests, bool assume_unique, bool invert, const Tensor& out) {
            return into("isin", out, isin(as_tensor(x), as_tensor(tests), assume_unique, invert));
          },
          kFunction),
  };
  return table;
}

}  // namespace tercel::python
