// Matrix products, covariances and distances.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/ops/linalg/products.h"
#include "tercel/ops/nn/distance.h"

namespace tercel::python {

namespace {

CdistMode cdist_mode_of(std::string_view name) {
  if (name == "use_mm_for_euclid_dist_if_necessary") return CdistMode::UseMmIfNecessary;
  if (name == "use_mm_for_euclid_dist") return CdistMode::UseMm;
  if (name == "donot_use_mm_for_euclid_dist") return CdistMode::DoNotUseMm;
  throw_error<ValueError>({name, " is not a valid value for compute_mode"});
}

}  // namespace

Span<Entry> matmul_ops() {
  static const Entry table[] = {
      entry("cross(Tensor input, Tensor other, int? dim=None, *, Tensor out=None)",
            [](const Tensor& a, const Tensor& b, std::optional<int64_t> dim, const Tensor& out) {
              if (dim) return into("cross", out, cross(a, b, *dim));
              // By default the first dimension of size 3.
              for (int64_t d = 0; d < a.dim(); ++d)
                if (a.size(d) == 3) return into("cross", out, cross(a, b, d - a.dim()));
              throw_error<RuntimeError>({"no dimension of size 3 in input"});
            }),
      entry("matrix_power(Tensor input, int n, *, Tensor out=None)",
            [](const Tensor& a, int64_t n, const Tensor& out) {
              return into("matrix_power", out, autocast_matrix_power(a, n, out));
            }),
      entry("cov(Tensor input, *, int correction=1, Tensor fweights=None, Tensor aweights=None)",
            [](const Tensor& x, int64_t correction, const Tensor& counts, const Tensor& weights) {
              return autocast_result(cov(x, correction, counts, weights));
            }),
      entry("corrcoef(Tensor input)", [](const Tensor& x) { return autocast_result(corrcoef(x)); }),
      entry(
          "cdist(Tensor x1, Tensor x2, float p=2.0, str compute_mode=\"use_mm_for_euclid_dist_if_necessary\")",
          [](const Tensor& a, const Tensor& b, double p, std::string_view mode) {
            return cdist(a, b, p, cdist_mode_of(mode));
          },
          kFunction),
      entry("dist(Tensor input, Tensor other, Scalar p=2)",
            [](const Tensor& a, const Tensor& b, double p) { return dist(a, b, p); }),
  };
  return table;
}

}  // namespace tercel::python
