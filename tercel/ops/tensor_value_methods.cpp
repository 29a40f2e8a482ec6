// Tensor's methods that compute forward to ops.
#include "tercel/core/tensor.h"
#include "tercel/ops/aliases.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/values_and_indices.h"
#include "tercel/ops/elementwise/activation.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/pointwise.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/linalg/products.h"
#include "tercel/ops/nn/distance.h"
#include "tercel/ops/nn/softmax.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/random/sampling.h"
#include "tercel/ops/reduce/differences.h"
#include "tercel/ops/reduce/histogram.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/scan.h"
#include "tercel/ops/reduce/var_std.h"
#include "tercel/ops/reduce/vector_norms.h"
#include "tercel/ops/sort/order_statistics.h"
#include "tercel/ops/sort/sort.h"
#include "tercel/ops/special/special.h"
#include "tercel/ops/views/diagonals.h"
#include "tercel/ops/views/flip_roll_repeat.h"
#include "tercel/ops/views/view_copies.h"

namespace tercel {

namespace {

const Tensor& self(const TensorValueMethods* part) { return static_cast<const Tensor&>(*part); }
/** PyTorch's in-place methods are const and return a non-const reference. */
Tensor& changed(const Tensor& x) { return const_cast<Tensor&>(x); }

}  // namespace

#define TERCEL_FRESH(name) \
  Tensor TensorValueMethods::name() const { return tercel::name(self(this)); }
#define TERCEL_VARIANTS(name) \
  TERCEL_FRESH(name)          \
  Tensor& TensorValueMethods::name##_() const { return changed(tercel::name##_(self(this))); }
TERCEL_UNARY_METHODS(TERCEL_VARIANTS)
TERCEL_UNARY_FRESH_METHODS(TERCEL_FRESH)
#undef TERCEL_FRESH
#undef TERCEL_VARIANTS
#define TERCEL_FRESH(name)                                                                               \
  Tensor TensorValueMethods::name(const Tensor& other) const { return tercel::name(self(this), other); } \
  Tensor TensorValueMethods::name(Scalar other) const { return tercel::name(self(this), other); }
#define TERCEL_VARIANTS(name)                                      \
  TERCEL_FRESH(name)                                               \
  Tensor& TensorValueMethods::name##_(const Tensor& other) const { \
    return changed(tercel::name##_(self(this), other));            \
  }                                                                \
  Tensor& TensorValueMethods::name##_(Scalar other) const { return changed(tercel::name##_(self(this), other)); }
TERCEL_BINARY_METHODS(TERCEL_VARIANTS)
TERCEL_BINARY_FRESH_METHODS(TERCEL_FRESH)
#undef TERCEL_FRESH
#undef TERCEL_VARIANTS

Tensor TensorValueMethods::add(const Tensor& other, Scalar alpha) const {
  return tercel::add(self(this), other, alpha);
}
Tensor& TensorValueMethods::add_(const Tensor& other, Scalar alpha) const {
  return changed(tercel::add_(self(this), other, alpha));
}
Tensor TensorValueMethods::sub(const Tensor& other, Scalar alpha) const {
  return tercel::sub(self(this), other, alpha);
}
Tensor& TensorValueMethods::sub_(const Tensor& other, Scalar alpha) const {
  return changed(tercel::sub_(self(this), other, alpha));
}
Tensor TensorValueMethods::div(const Tensor& other, std::optional<std::string_view> rounding_mode) const {
  return tercel::div(self(this), other, rounding_mode);
}
Tensor TensorValueMethods::div(Scalar other, std::optional<std::string_view> rounding_mode) const {
  return tercel::div(self(this), other, rounding_mode);
}
Tensor& TensorValueMethods::div_(const Tensor& other, std::optional<std::string_view> rounding_mode) const {
  return changed(tercel::div_(self(this), other, rounding_mode));
}
Tensor& TensorValueMethods::div_(Scalar other, std::optional<std::string_view> rounding_mode) const {
  return changed(tercel::div_(self(this), other, rounding_mode));
}
Tensor TensorValueMethods::clamp(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const {
  return tercel::clamp(self(this), min, max);
}
Tensor TensorValueMethods::clamp(Scalar low, Scalar high) const { return tercel::clamp(self(this), low, high); }
Tensor& TensorValueMethods::clamp_(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const {
  return changed(tercel::clamp_(self(this), min, max));
}
Tensor& TensorValueMethods::clamp_(Scalar low, Scalar high) const {
  return changed(tercel::clamp_(self(this), low, high));
}
Tensor TensorValueMethods::clamp_min(Scalar low) const { return tercel::clamp_min(self(this), low); }
Tensor& TensorValueMethods::clamp_min_(Scalar low) const { return changed(tercel::clamp_min_(self(this), low)); }
Tensor TensorValueMethods::clamp_max(Scalar high) const { return tercel::clamp_max(self(this), high); }
Tensor& TensorValueMethods::clamp_max_(Scalar high) const { return changed(tercel::clamp_max_(self(this), high)); }
Tensor TensorValueMethods::clip(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const {
  return tercel::clip(self(this), min, max);
}
Tensor TensorValueMethods::clip(Scalar min, Scalar max) const { return tercel::clip(self(this), min, max); }
Tensor& TensorValueMethods::clip_(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const {
  return changed(tercel::clip_(self(this), min, max));
}
Tensor& TensorValueMethods::clip_(Scalar min, Scalar max) const { return changed(tercel::clip_(self(this), min, max)); }
Tensor TensorValueMethods::lerp(const Tensor& other, const Tensor& weight) const {
  return tercel::lerp(self(this), other, weight);
}
Tensor TensorValueMethods::lerp(const Tensor& other, Scalar weight) const {
  return tercel::lerp(self(this), other, weight);
}
Tensor& TensorValueMethods::lerp_(const Tensor& other, const Tensor& weight) const {
  return changed(tercel::lerp_(self(this), other, weight));
}
Tensor& TensorValueMethods::lerp_(const Tensor& other, Scalar weight) const {
  return changed(tercel::lerp_(self(this), other, weight));
}
Tensor TensorValueMethods::addcmul(const Tensor& a, const Tensor& b, Scalar value) const {
  return tercel::addcmul(self(this), a, b, value);
}
Tensor& TensorValueMethods::addcmul_(const Tensor& a, const Tensor& b, Scalar value) const {
  return changed(tercel::addcmul_(self(this), a, b, value));
}
Tensor TensorValueMethods::addcdiv(const Tensor& a, const Tensor& b, Scalar value) const {
  return tercel::addcdiv(self(this), a, b, value);
}
Tensor& TensorValueMethods::addcdiv_(const Tensor& a, const Tensor& b, Scalar value) const {
  return changed(tercel::addcdiv_(self(this), a, b, value));
}
Tensor TensorValueMethods::ldexp(const Tensor& other) const { return tercel::ldexp(self(this), other); }
Tensor& TensorValueMethods::ldexp_(const Tensor& other) const { return changed(tercel::ldexp_(self(this), other)); }
Tensor TensorValueMethods::logit(std::optional<double> eps) const { return tercel::logit(self(this), eps); }
Tensor& TensorValueMethods::logit_(std::optional<double> eps) const { return changed(tercel::logit_(self(this), eps)); }
Tensor TensorValueMethods::nan_to_num(double nan, std::optional<double> posinf, std::optional<double> neginf) const {
  return tercel::nan_to_num(self(this), nan, posinf, neginf);
}
Tensor& TensorValueMethods::nan_to_num_(double nan, std::optional<double> posinf, std::optional<double> neginf) const {
  return changed(tercel::nan_to_num_(self(this), nan, posinf, neginf));
}
Tensor TensorValueMethods::round(int64_t decimals) const { return tercel::round(self(this), decimals); }
Tensor& TensorValueMethods::round_(int64_t decimals) const { return changed(tercel::round_(self(this), decimals)); }
Tensor TensorValueMethods::mvlgamma(int64_t p) const { return tercel::mvlgamma(self(this), p); }
Tensor& TensorValueMethods::mvlgamma_(int64_t p) const { return changed(tercel::mvlgamma_(self(this), p)); }
Tensor& TensorValueMethods::polygamma_(int64_t n) const { return changed(tercel::polygamma_(self(this), n)); }
MantissaAndExponent TensorValueMethods::frexp() const { return tercel::frexp(self(this)); }
Tensor TensorValueMethods::hardshrink(double lambd) const { return tercel::hardshrink(self(this), lambd); }
Tensor TensorValueMethods::prelu(const Tensor& weight) const { return tercel::prelu(self(this), weight); }
Tensor TensorValueMethods::masked_fill(const Tensor& mask, Scalar value) const {
  return tercel::masked_fill(self(this), mask, value);
}
Tensor TensorValueMethods::masked_fill(const Tensor& mask, const Tensor& value) const {
  return tercel::masked_fill(self(this), mask, value);
}
Tensor& TensorValueMethods::masked_fill_(const Tensor& mask, Scalar value) const {
  return changed(tercel::masked_fill_(self(this), mask, value));
}
Tensor& TensorValueMethods::masked_fill_(const Tensor& mask, const Tensor& value) const {
  return changed(tercel::masked_fill_(self(this), mask, value));
}
Tensor TensorValueMethods::isclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return tercel::isclose(self(this), other, rtol, atol, equal_nan);
}
bool TensorValueMethods::allclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return tercel::allclose(self(this), other, rtol, atol, equal_nan);
}
bool TensorValueMethods::equal(const Tensor& other) const { return tercel::equal(self(this), other); }
Tensor TensorValueMethods::softmax(int64_t dim, ScalarType dtype) const {
  return tercel::softmax(self(this), dim, dtype);
}
Tensor TensorValueMethods::log_softmax(int64_t dim, ScalarType dtype) const {
  return tercel::log_softmax(self(this), dim, dtype);
}
Tensor TensorValueMethods::sum() const { return tercel::sum(self(this)); }
Tensor TensorValueMethods::sum(IntSpan dims, bool keepdim, ScalarType dtype) const {
  return tercel::sum(self(this), dims, keepdim, dtype);
}
Tensor TensorValueMethods::nansum(IntSpan dims, bool keepdim, ScalarType dtype) const {
  return tercel::nansum(self(this), dims, keepdim, dtype);
}
Tensor TensorValueMethods::mean() const { return tercel::mean(self(this)); }
Tensor TensorValueMethods::mean(IntSpan dims, bool keepdim, ScalarType dtype) const {
  return tercel::mean(self(this), dims, keepdim, dtype);
}
Tensor TensorValueMethods::nanmean(IntSpan dims, bool keepdim, ScalarType dtype) const {
  return tercel::nanmean(self(this), dims, keepdim, dtype);
}
Tensor TensorValueMethods::prod() const { return tercel::prod(self(this)); }
Tensor TensorValueMethods::prod(IntSpan dims, bool keepdim, ScalarType dtype) const {
  return tercel::prod(self(this), dims, keepdim, dtype);
}
Tensor TensorValueMethods::max() const { return tercel::max(self(this)); }
ValuesAndIndices TensorValueMethods::max(int64_t dim, bool keepdim) const {
  return tercel::max(self(this), dim, keepdim);
}
Tensor TensorValueMethods::max(const Tensor& other) const { return tercel::max(self(this), other); }
Tensor TensorValueMethods::min() const { return tercel::min(self(this)); }
ValuesAndIndices TensorValueMethods::min(int64_t dim, bool keepdim) const {
  return tercel::min(self(this), dim, keepdim);
}
Tensor TensorValueMethods::min(const Tensor& other) const { return tercel::min(self(this), other); }
Tensor TensorValueMethods::amax(IntSpan dims, bool keepdim) const { return tercel::amax(self(this), dims, keepdim); }
Tensor TensorValueMethods::amin(IntSpan dims, bool keepdim) const { return tercel::amin(self(this), dims, keepdim); }
MinAndMax TensorValueMethods::aminmax(std::optional<int64_t> dim, bool keepdim) const {
  return tercel::aminmax(self(this), dim, keepdim);
}
Tensor TensorValueMethods::argmax(std::optional<int64_t> dim, bool keepdim) const {
  return tercel::argmax(self(this), dim, keepdim);
}
Tensor TensorValueMethods::argmin(std::optional<int64_t> dim, bool keepdim) const {
  return tercel::argmin(self(this), dim, keepdim);
}
Tensor TensorValueMethods::any() const { return tercel::any(self(this)); }
Tensor TensorValueMethods::any(IntSpan dims, bool keepdim) const { return tercel::any(self(this), dims, keepdim); }
Tensor TensorValueMethods::all() const { return tercel::all(self(this)); }
Tensor TensorValueMethods::all(IntSpan dims, bool keepdim) const { return tercel::all(self(this), dims, keepdim); }
Tensor TensorValueMethods::count_nonzero(IntSpan dims, bool keepdim) const {
  return tercel::count_nonzero(self(this), dims, keepdim);
}
Tensor TensorValueMethods::var(IntSpan dims, double correction, bool keepdim) const {
  return tercel::var(self(this), dims, correction, keepdim);
}
Tensor TensorValueMethods::std(IntSpan dims, double correction, bool keepdim) const {
  return tercel::std(self(this), dims, correction, keepdim);
}
Tensor TensorValueMethods::median() const { return tercel::median(self(this)); }
ValuesAndIndices TensorValueMethods::median(int64_t dim, bool keepdim) const {
  return tercel::median(self(this), dim, keepdim);
}
Tensor TensorValueMethods::nanmedian() const { return tercel::nanmedian(self(this)); }
ValuesAndIndices TensorValueMethods::nanmedian(int64_t dim, bool keepdim) const {
  return tercel::nanmedian(self(this), dim, keepdim);
}
ValuesAndIndices TensorValueMethods::mode(int64_t dim, bool keepdim) const {
  return tercel::mode(self(this), dim, keepdim);
}
ValuesAndIndices TensorValueMethods::kthvalue(int64_t k, int64_t dim, bool keepdim) const {
  return tercel::kthvalue(self(this), k, dim, keepdim);
}
Tensor TensorValueMethods::quantile(const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                                    std::string_view interpolation) const {
  return tercel::quantile(self(this), q, dim, keepdim, interpolation);
}
Tensor TensorValueMethods::quantile(double q, std::optional<int64_t> dim, bool keepdim,
                                    std::string_view interpolation) const {
  return tercel::quantile(self(this), q, dim, keepdim, interpolation);
}
Tensor TensorValueMethods::nanquantile(const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                                       std::string_view interpolation) const {
  return tercel::nanquantile(self(this), q, dim, keepdim, interpolation);
}
Tensor TensorValueMethods::nanquantile(double q, std::optional<int64_t> dim, bool keepdim,
                                       std::string_view interpolation) const {
  return tercel::nanquantile(self(this), q, dim, keepdim, interpolation);
}
Tensor TensorValueMethods::norm(double p) const { return tercel::norm(self(this), p); }
Tensor TensorValueMethods::norm(double p, IntSpan dims, bool keepdim) const {
  return tercel::norm(self(this), p, dims, keepdim);
}
Tensor TensorValueMethods::dist(const Tensor& other, double p) const { return tercel::dist(self(this), other, p); }
Tensor TensorValueMethods::logsumexp(IntSpan dims, bool keepdim) const {
  return tercel::logsumexp(self(this), dims, keepdim);
}
Tensor TensorValueMethods::renorm(double p, int64_t dim, double maxnorm) const {
  return tercel::renorm(self(this), p, dim, maxnorm);
}
Tensor& TensorValueMethods::renorm_(double p, int64_t dim, double maxnorm) const {
  return changed(tercel::renorm_(self(this), p, dim, maxnorm));
}
Tensor TensorValueMethods::cov(int64_t correction, const Tensor& fweights, const Tensor& aweights) const {
  return tercel::cov(self(this), correction, fweights, aweights);
}
Tensor TensorValueMethods::corrcoef() const { return tercel::corrcoef(self(this)); }
Tensor TensorValueMethods::cumsum(int64_t dim, ScalarType dtype) const {
  return tercel::cumsum(self(this), dim, dtype);
}
Tensor& TensorValueMethods::cumsum_(int64_t dim, ScalarType dtype) const {
  return changed(tercel::cumsum_(self(this), dim, dtype));
}
Tensor TensorValueMethods::cumprod(int64_t dim, ScalarType dtype) const {
  return tercel::cumprod(self(this), dim, dtype);
}
Tensor& TensorValueMethods::cumprod_(int64_t dim, ScalarType dtype) const {
  return changed(tercel::cumprod_(self(this), dim, dtype));
}
ValuesAndIndices TensorValueMethods::cummax(int64_t dim) const { return tercel::cummax(self(this), dim); }
ValuesAndIndices TensorValueMethods::cummin(int64_t dim) const { return tercel::cummin(self(this), dim); }
Tensor TensorValueMethods::logcumsumexp(int64_t dim) const { return tercel::logcumsumexp(self(this), dim); }
Tensor TensorValueMethods::diff(int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) const {
  return tercel::diff(self(this), n, dim, prepend, append);
}
ValuesAndIndices TensorValueMethods::sort(int64_t dim, bool descending) const {
  return tercel::sort(self(this), dim, descending);
}
Tensor TensorValueMethods::argsort(int64_t dim, bool descending) const {
  return tercel::argsort(self(this), dim, descending);
}
Tensor TensorValueMethods::msort() const { return tercel::msort(self(this)); }
ValuesAndIndices TensorValueMethods::topk(int64_t k, int64_t dim, bool largest, bool sorted) const {
  return tercel::topk(self(this), k, dim, largest, sorted);
}
Tensor TensorValueMethods::histc(int64_t bins, Scalar min, Scalar max) const {
  return tercel::histc(self(this), bins, min, max);
}
Histogram TensorValueMethods::histogram(const Tensor& bins, const Tensor& weight, bool density) const {
  return tercel::histogram(self(this), bins, weight, density);
}
Histogram TensorValueMethods::histogram(int64_t bins, std::optional<std::pair<double, double>> range,
                                        const Tensor& weight, bool density) const {
  return tercel::histogram(self(this), bins, range, weight, density);
}
Tensor TensorValueMethods::bincount(const Tensor& weights, int64_t minlength) const {
  return tercel::bincount(self(this), weights, minlength);
}
Tensor TensorValueMethods::matmul(const Tensor& other) const { return tercel::matmul(self(this), other); }
Tensor TensorValueMethods::mm(const Tensor& other) const { return tercel::mm(self(this), other); }
Tensor TensorValueMethods::bmm(const Tensor& other) const { return tercel::bmm(self(this), other); }
Tensor TensorValueMethods::mv(const Tensor& v) const { return tercel::mv(self(this), v); }
Tensor TensorValueMethods::dot(const Tensor& other) const { return tercel::dot(self(this), other); }
Tensor TensorValueMethods::vdot(const Tensor& other) const { return tercel::vdot(self(this), other); }
Tensor TensorValueMethods::inner(const Tensor& other) const { return tercel::inner(self(this), other); }
Tensor TensorValueMethods::outer(const Tensor& other) const { return tercel::outer(self(this), other); }
Tensor TensorValueMethods::ger(const Tensor& other) const { return tercel::ger(self(this), other); }
Tensor TensorValueMethods::addmm(const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) const {
  return tercel::addmm(self(this), a, b, beta, alpha);
}
Tensor& TensorValueMethods::addmm_(const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) const {
  return changed(tercel::addmm_(self(this), a, b, beta, alpha));
}
Tensor TensorValueMethods::addmv(const Tensor& a, const Tensor& v, Scalar beta, Scalar alpha) const {
  return tercel::addmv(self(this), a, v, beta, alpha);
}
Tensor& TensorValueMethods::addmv_(const Tensor& a, const Tensor& v, Scalar beta, Scalar alpha) const {
  return changed(tercel::addmv_(self(this), a, v, beta, alpha));
}
Tensor TensorValueMethods::addr(const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) const {
  return tercel::addr(self(this), a, b, beta, alpha);
}
Tensor& TensorValueMethods::addr_(const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) const {
  return changed(tercel::addr_(self(this), a, b, beta, alpha));
}
Tensor TensorValueMethods::addbmm(const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) const {
  return tercel::addbmm(self(this), a, b, beta, alpha);
}
Tensor& TensorValueMethods::addbmm_(const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) const {
  return changed(tercel::addbmm_(self(this), a, b, beta, alpha));
}
Tensor TensorValueMethods::baddbmm(const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) const {
  return tercel::baddbmm(self(this), a, b, beta, alpha);
}
Tensor& TensorValueMethods::baddbmm_(const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) const {
  return changed(tercel::baddbmm_(self(this), a, b, beta, alpha));
}
Tensor TensorValueMethods::cross(const Tensor& other, int64_t dim) const {
  return tercel::cross(self(this), other, dim);
}
Tensor TensorValueMethods::kron(const Tensor& other) const { return tercel::kron(self(this), other); }
Tensor TensorValueMethods::matrix_power(int64_t n) const { return tercel::matrix_power(self(this), n); }
Tensor TensorValueMethods::matrix_exp() const { return tercel::matrix_exp(self(this)); }
Tensor TensorValueMethods::det() const { return tercel::det(self(this)); }
Tensor TensorValueMethods::logdet() const { return tercel::logdet(self(this)); }
linalg::SlogdetResult TensorValueMethods::slogdet() const { return tercel::slogdet(self(this)); }
Tensor TensorValueMethods::inverse() const { return tercel::inverse(self(this)); }
Tensor TensorValueMethods::pinverse(double rcond) const { return tercel::pinverse(self(this), rcond); }
Tensor TensorValueMethods::cholesky_inverse(bool upper) const { return tercel::cholesky_inverse(self(this), upper); }
Tensor TensorValueMethods::cholesky_solve(const Tensor& factor, bool upper) const {
  return tercel::cholesky_solve(self(this), factor, upper);
}
TriangularSolveResult TensorValueMethods::triangular_solve(const Tensor& a, bool upper, bool transpose,
                                                           bool unitriangular) const {
  return tercel::triangular_solve(self(this), a, upper, transpose, unitriangular);
}
GeqrfResult TensorValueMethods::geqrf() const { return tercel::geqrf(self(this)); }
Tensor TensorValueMethods::orgqr(const Tensor& tau) const { return tercel::orgqr(self(this), tau); }
Tensor TensorValueMethods::bernoulli(Generator& generator) const { return tercel::bernoulli(self(this), generator); }
Tensor& TensorValueMethods::bernoulli_(double p, Generator& generator) const {
  return changed(tercel::bernoulli_(self(this), p, generator));
}
Tensor& TensorValueMethods::bernoulli_(const Tensor& p, Generator& generator) const {
  return changed(tercel::bernoulli_(self(this), p, generator));
}
Tensor& TensorValueMethods::uniform_(double low, double high, Generator& generator) const {
  return changed(tercel::uniform_(self(this), low, high, generator));
}
Tensor& TensorValueMethods::normal_(double mean, double stddev, Generator& generator) const {
  return changed(tercel::normal_(self(this), mean, stddev, generator));
}
Tensor& TensorValueMethods::log_normal_(double mean, double stddev, Generator& generator) const {
  return changed(tercel::log_normal_(self(this), mean, stddev, generator));
}
Tensor& TensorValueMethods::exponential_(double lambda, Generator& generator) const {
  return changed(tercel::exponential_(self(this), lambda, generator));
}
Tensor& TensorValueMethods::cauchy_(double median, double sigma, Generator& generator) const {
  return changed(tercel::cauchy_(self(this), median, sigma, generator));
}
Tensor& TensorValueMethods::geometric_(double p, Generator& generator) const {
  return changed(tercel::geometric_(self(this), p, generator));
}
Tensor& TensorValueMethods::random_(Generator& generator) const {
  return changed(tercel::random_(self(this), generator));
}
Tensor& TensorValueMethods::random_(int64_t low, std::optional<int64_t> high, Generator& generator) const {
  return changed(tercel::random_(self(this), low, high, generator));
}
Tensor TensorValueMethods::multinomial(int64_t samples, bool replacement, Generator& generator) const {
  return tercel::multinomial(self(this), samples, replacement, generator);
}

Tensor TensorValueMethods::where(const Tensor& condition, const Tensor& other) const {
  return tercel::where(condition, self(this), other);
}
Tensor TensorValueMethods::polygamma(int64_t n) const { return tercel::polygamma(n, self(this)); }
Tensor TensorValueMethods::lu_solve(const Tensor& lu, const Tensor& pivots) const {
  return linalg::lu_solve(lu, pivots, self(this));
}
Tensor TensorValueMethods::cholesky(bool upper) const { return linalg::cholesky(self(this), upper); }
linalg::QrResult TensorValueMethods::qr(bool some) const {
  return linalg::qr(self(this), some ? "reduced" : "complete");
}

const Tensor& TensorValueMethods::no_tensor() {
  static const Tensor none;
  return none;
}

}  // namespace tercel
