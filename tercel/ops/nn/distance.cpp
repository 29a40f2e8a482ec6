#include "tercel/ops/nn/distance.h"

#include <array>
#include <limits>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/linalg/matmul_impl.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

// PyTorch's threshold.
constexpr int64_t kRowsForMm = 25;

/** Distances by |a|^2 - 2 a b + |b|^2, in one product: [-2 a, |a|^2, 1] times [b, 1, |b|^2]. */
Tensor euclidean_by_product(const Tensor& a, const Tensor& b) {
  const Tensor a2 = sum(square(a), {-1}, true), b2 = sum(square(b), {-1}, true);
  const Tensor left[] = {mul(a, -2), a2, ones_like(a2)}, right[] = {b, ones_like(b2), b2};
  return sqrt(clamp_min(matmul(cat(left, -1), transpose(cat(right, -1), -2, -1)), 0));
}

Tensor differences(const Tensor& a, const Tensor& b) { return sub(unsqueeze(a, -2), unsqueeze(b, -3)); }

/** Norms of differences. For p = 0, NaN if a difference is NaN, which the norm would count as nonzero. */
Tensor lengths(const Tensor& differences, double p) {
  const Tensor norms = linalg::vector_norm(differences, p, {-1});
  if (p != 0) return norms;
  return where(any(isnan(differences), {-1}), std::numeric_limits<double>::quiet_NaN(), norms);
}

/** Distances, whose gradient avoids differences of rows too. a and b have the same batch. */
Tensor euclidean(const Tensor& a, const Tensor& b, bool by_product) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = by_product ? euclidean_by_product(a, b) : linalg::vector_norm(differences(a, b), 2, {-1});
  }
  if (should_record(a, b))
    record("CdistBackward0", out, {a, b},
           [a = SavedTensor(a), b = SavedTensor(b), out = SavedTensor::output(out)](BackwardCall& call) {
             const Tensor x = a.get();
             const Tensor y = b.get();
             const Tensor distances = out.get(call);
             const Tensor zero = eq(distances, 0);
             const Tensor ratio = where(zero, 0, div(call.grad(), where(zero, 1, distances)));
             if (call.needs(0)) call.set(0, sub(mul(x, sum(ratio, {-1}, true)), matmul(ratio, y)));
             if (call.needs(1)) {
               const Tensor turned = transpose(ratio, -2, -1);
               call.set(1, sub(mul(y, sum(turned, {-1}, true)), matmul(turned, x)));
             }
           });
  return out;
}

}  // namespace

Tensor cdist(const Tensor& a, const Tensor& b, double p, CdistMode mode) {
  check_strided("cdist", a, "x1");
  check_strided("cdist", b, "x2");
  TERCEL_CHECK(a.dim() >= 2, RuntimeError, "cdist only supports at least 2D tensors, X1 got: ", a.dim(), "D");
  TERCEL_CHECK(b.dim() >= 2, RuntimeError, "cdist only supports at least 2D tensors, X2 got: ", b.dim(), "D");
  TERCEL_CHECK(a.is_floating_point(), RuntimeError,
               "cdist only supports floating-point dtypes, X1 got: ", scalar_type_word(a.dtype()));
  TERCEL_CHECK(b.is_floating_point(), RuntimeError,
               "cdist only supports floating-point dtypes, X2 got: ", scalar_type_word(b.dtype()));
  TERCEL_CHECK(a.size(-1) == b.size(-1), RuntimeError,
               "X1 and X2 must have the same number of columns. X1: ", a.size(-1), " X2: ", b.size(-1));
  TERCEL_CHECK(p >= 0, RuntimeError, "cdist only supports non-negative p values");
  check_same_dtype("cdist", a, b);
  const int64_t rows = a.size(-2), columns = b.size(-2);
  const CommonBatch batch(a, b);
  const Tensor &x = batch.a, &y = batch.b;
  if (a.size(-1) == 0 || x.numel() == 0 || y.numel() == 0) {
    const Tensor out = zeros(batch.of_matrices(rows, columns), a.options());
    // The empty result stays connected to the graph.
    return should_record(a, b) ? add(out, mul(add(sum(x), sum(y)), 0)) : out;
  }
  if (p == 2) {
    const bool many = rows > kRowsForMm || columns > kRowsForMm;
    return euclidean(x, y, mode == CdistMode::UseMm || (mode == CdistMode::UseMmIfNecessary && many));
  }
  return lengths(differences(x, y), p);
}

Tensor pdist(const Tensor& x, double p) {
  check_strided("pdist", x);
  TERCEL_CHECK(x.dim() == 2, RuntimeError, "pdist only supports 2D tensors, got: ", x.dim(), "D");
  TERCEL_CHECK(x.is_floating_point(), RuntimeError, "pdist only supports floating-point dtypes");
  TERCEL_CHECK(p >= 0, RuntimeError, "pdist only supports non-negative p values");
  const int64_t n = x.size(0);
  int64_t pairs = 0;
  TERCEL_CHECK(!__builtin_mul_overflow(n, std::max<int64_t>(n - 1, 0), &pairs), RuntimeError, "pdist: ", n,
               " rows have too many pairs");
  pairs /= 2;
  if (pairs == 0 || x.size(1) == 0) {
    const Tensor out = zeros({pairs}, x.options());
    return should_record(x) ? add(out, mul(sum(x), 0)) : out;
  }
  const Tensor first = empty({pairs}, TensorOptions(kInt64)), second = empty({pairs}, TensorOptions(kInt64));
  int64_t at = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j, ++at) {
      first.data<int64_t>()[at] = i;
      second.data<int64_t>()[at] = j;
    }
  }
  return lengths(sub(index_select(x, 0, first), index_select(x, 0, second)), p);
}

Tensor dist(const Tensor& a, const Tensor& b, double p) {
  check_strided("dist", a);
  check_strided("dist", b, "other");
  const auto has_distance = [](const Tensor& t) { return t.is_floating_point() || t.is_complex(); };
  TERCEL_CHECK(has_distance(a) || has_distance(b), RuntimeError,
               "dist only supports floating-point dtypes, got: ", scalar_type_word(a.dtype()), " and ",
               scalar_type_word(b.dtype()));
  return linalg::vector_norm(sub(a, b), p);
}

}  // namespace tercel
