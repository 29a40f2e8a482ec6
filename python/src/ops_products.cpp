// Products of matrices and vectors, distances, diagonals and triangles.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/linalg/einsum.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/linalg/products.h"
#include "tercel/ops/nn/distance.h"
#include "tercel/ops/views/diagonals.h"

namespace tercel::python {

namespace {

/** A product of two tensors; `second`: PyTorch's name of the second one. */
#define TERCEL_PRODUCT_ENTRY(name, second)                             \
  entry(#name "(Tensor input, Tensor " second ", *, Tensor out=None)", \
        [](const Tensor& a, const Tensor& b, const Tensor& out) { return into(#name, out, name(a, b)); })

/** beta * input + alpha * a product, and its in-place variant. */
#define TERCEL_ADDED_PRODUCT_ENTRIES(name, first, second)                                                     \
  entry(#name "(Tensor input, Tensor " first ", Tensor " second                                               \
              ", *, Scalar beta=1, Scalar alpha=1, Tensor out=None)",                                         \
        [](const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha, const Tensor& out) { \
          return into(#name, out, name(x, a, b, beta, alpha));                                                \
        }),                                                                                                   \
      entry(                                                                                                  \
          #name "_(Tensor input, Tensor " first ", Tensor " second ", *, Scalar beta=1, Scalar alpha=1)",     \
          [](const Tensor& x, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) -> Tensor {        \
            return name##_(x, a, b, beta, alpha);                                                             \
          },                                                                                                  \
          kMethod)

#define TERCEL_TRIANGLE_ENTRIES(name)                                                                              \
  entry(#name "(Tensor input, int diagonal=0, *, Tensor out=None)",                                                \
        [](const Tensor& x, int64_t diagonal, const Tensor& out) { return into(#name, out, name(x, diagonal)); }), \
      entry(                                                                                                       \
          #name "_(Tensor input, int diagonal=0)",                                                                 \
          [](const Tensor& x, int64_t diagonal) -> Tensor { return name##_(x, diagonal); }, kMethod)

CdistMode cdist_mode_of(std::string_view name) {
  if (name == "use_mm_for_euclid_dist_if_necessary") return CdistMode::UseMmIfNecessary;
  if (name == "use_mm_for_euclid_dist") return CdistMode::UseMm;
  if (name == "donot_use_mm_for_euclid_dist") return CdistMode::DoNotUseMm;
  throw_error<ValueError>({name, " is not a valid value for compute_mode"});
}

}  // namespace

Span<Entry> product_ops() {
  constexpr unsigned kView = kBoth | kCheap;
  static const Entry table[] = {
      TERCEL_PRODUCT_ENTRY(matmul, "other"),
      TERCEL_PRODUCT_ENTRY(mm, "mat2"),
      TERCEL_PRODUCT_ENTRY(bmm, "mat2"),
      TERCEL_PRODUCT_ENTRY(mv, "vec"),
      TERCEL_PRODUCT_ENTRY(dot, "tensor"),
      TERCEL_PRODUCT_ENTRY(vdot, "other"),
      TERCEL_PRODUCT_ENTRY(inner, "other"),
      TERCEL_PRODUCT_ENTRY(outer, "vec2"),
      TERCEL_PRODUCT_ENTRY(ger, "vec2"),
      TERCEL_PRODUCT_ENTRY(kron, "other"),
      TERCEL_ADDED_PRODUCT_ENTRIES(addmm, "mat1", "mat2"),
      TERCEL_ADDED_PRODUCT_ENTRIES(addmv, "mat", "vec"),
      TERCEL_ADDED_PRODUCT_ENTRIES(addr, "vec1", "vec2"),
      TERCEL_ADDED_PRODUCT_ENTRIES(baddbmm, "batch1", "batch2"),
      TERCEL_ADDED_PRODUCT_ENTRIES(addbmm, "batch1", "batch2"),
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
      entry(
          "_einsum(str equation, Tensor[] operands)",
          [](std::string_view equation, const std::vector<Tensor>& operands) { return einsum(equation, operands); },
          kFunction),
      entry(
          "_tensordot(Tensor input, Tensor other, int[] dims_self, int[] dims_other, *, Tensor out=None)",
          [](const Tensor& a, const Tensor& b, const DimVector& left, const DimVector& right, const Tensor& out) {
            return into("tensordot", out, tensordot(a, b, left, right));
          },
          kFunction),
      entry(
          "_chain_matmul(Tensor[] matrices, *, Tensor out=None)",
          [](const std::vector<Tensor>& list, const Tensor& out) {
            return into("chain_matmul", out, chain_matmul(list));
          },
          kFunction),
      entry(
          "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor bias=None)",
          [](const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias) {
            return bilinear(a, b, weight, bias);
          },
          kFunction | kNn),
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
      entry(
          "pdist(Tensor input, float p=2.0)", [](const Tensor& x, double p) { return pdist(x, p); }, kFunction | kNn),
      entry("dist(Tensor input, Tensor other, Scalar p=2)",
            [](const Tensor& a, const Tensor& b, double p) { return dist(a, b, p); }),
      entry(
          "sum_to_size(Tensor input, int[] size)",
          [](const Tensor& x, const DimVector& size) { return sum_to_size(x, size); }, kMethod),
      entry(
          "diagonal(Tensor input, int offset=0, int dim1=0, int dim2=1)",
          [](const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) { return diagonal(x, offset, dim1, dim2); },
          kView),
      entry("diag(Tensor input, int diagonal=0, *, Tensor out=None)",
            [](const Tensor& x, int64_t k, const Tensor& out) { return into("diag", out, diag(x, k)); }),
      entry("diag_embed(Tensor input, int offset=0, int dim1=-2, int dim2=-1)",
            [](const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
              return diag_embed(x, offset, dim1, dim2);
            }),
      entry(
          "fill_diagonal_(Tensor input, Scalar fill_value, bool wrap=False)",
          [](const Tensor& x, Scalar value, bool wrap) -> Tensor { return fill_diagonal_(x, value, wrap); }, kMethod),
      entry("trace(Tensor input)", [](const Tensor& x) { return trace(x); }),
      TERCEL_TRIANGLE_ENTRIES(tril),
      TERCEL_TRIANGLE_ENTRIES(triu),
  };
  return table;
}

}  // namespace tercel::python
