// Methods of Tensor that compute. x.name(...) is name(x, ...); Note [Tensor methods] in tensor.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tercel/core/geometry.h"
#include "tercel/core/scalar.h"

// Elementwise ops, by name: of one tensor; of two, or of one and a number; the FRESH ones have no in-place form.
// clang-format off
#define TERCEL_UNARY_METHODS(M) \
  M(abs) M(absolute) M(acos) M(acosh) M(arccos) M(arccosh) M(arcsin) M(arcsinh) M(arctan) M(arctanh) M(asin) \
  M(asinh) M(atan) M(atanh) M(bitwise_not) M(ceil) M(conj_physical) M(cos) M(cosh) M(deg2rad) M(digamma) M(erf) \
  M(erfc) M(erfinv) M(exp) M(exp2) M(expm1) M(fix) M(floor) M(frac) M(i0) M(lgamma) M(log) M(log10) M(log1p) \
  M(log2) M(logical_not) M(neg) M(negative) M(rad2deg) M(reciprocal) M(relu) M(round) M(rsqrt) M(sgn) M(sigmoid) \
  M(sign) M(sin) M(sinc) M(sinh) M(sqrt) M(square) M(tan) M(tanh) M(trunc)
#define TERCEL_UNARY_FRESH_METHODS(M) \
  M(angle) M(isfinite) M(isinf) M(isnan) M(isneginf) M(isposinf) M(isreal) M(positive) M(signbit)
#define TERCEL_BINARY_METHODS(M) \
  M(add) M(arctan2) M(atan2) M(bitwise_and) M(bitwise_left_shift) M(bitwise_or) M(bitwise_right_shift) \
  M(bitwise_xor) M(copysign) M(div) M(divide) M(eq) M(float_power) M(floor_divide) M(fmod) M(gcd) M(ge) M(greater) \
  M(greater_equal) M(gt) M(heaviside) M(hypot) M(igamma) M(igammac) M(lcm) M(le) M(less) M(less_equal) \
  M(logical_and) M(logical_or) M(logical_xor) M(lt) M(mul) M(multiply) M(ne) M(nextafter) M(not_equal) M(pow) \
  M(remainder) M(sub) M(subtract) M(true_divide) M(xlogy)
#define TERCEL_BINARY_FRESH_METHODS(M) \
  M(fmax) M(fmin) M(logaddexp) M(logaddexp2) M(maximum) M(minimum)
// clang-format on

namespace tercel {

class Generator;
class Tensor;
struct GeqrfResult;
struct Histogram;
struct MantissaAndExponent;
struct MinAndMax;
struct TriangularSolveResult;
struct ValuesAndIndices;
namespace linalg {
struct QrResult;
struct SlogdetResult;
}  // namespace linalg
TERCEL_API Generator& default_generator();

/** A base of Tensor, not to be used by itself. */
class TERCEL_API TensorValueMethods {
 public:
#define TERCEL_FRESH(name) Tensor name() const;
#define TERCEL_FORMS(name) \
  Tensor name() const;     \
  Tensor& name##_() const;
  TERCEL_UNARY_METHODS(TERCEL_FORMS)
  TERCEL_UNARY_FRESH_METHODS(TERCEL_FRESH)
#undef TERCEL_FRESH
#undef TERCEL_FORMS
#define TERCEL_FRESH(name)                \
  Tensor name(const Tensor& other) const; \
  Tensor name(Scalar other) const;
#define TERCEL_FORMS(name)                    \
  TERCEL_FRESH(name)                          \
  Tensor& name##_(const Tensor& other) const; \
  Tensor& name##_(Scalar other) const;
  TERCEL_BINARY_METHODS(TERCEL_FORMS)
  TERCEL_BINARY_FRESH_METHODS(TERCEL_FRESH)
#undef TERCEL_FRESH
#undef TERCEL_FORMS
  // elementwise ops with parameters
  Tensor add(const Tensor& other, Scalar alpha) const;
  Tensor& add_(const Tensor& other, Scalar alpha) const;
  Tensor sub(const Tensor& other, Scalar alpha) const;
  Tensor& sub_(const Tensor& other, Scalar alpha) const;
  Tensor div(const Tensor& other, std::optional<std::string_view> rounding_mode) const;
  Tensor div(Scalar other, std::optional<std::string_view> rounding_mode) const;
  Tensor& div_(const Tensor& other, std::optional<std::string_view> rounding_mode) const;
  Tensor& div_(Scalar other, std::optional<std::string_view> rounding_mode) const;
  Tensor clamp(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const;
  Tensor clamp(Scalar low, Scalar high) const;
  Tensor& clamp_(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const;
  Tensor& clamp_(Scalar low, Scalar high) const;
  Tensor clamp_min(Scalar low) const;
  Tensor& clamp_min_(Scalar low) const;
  Tensor clamp_max(Scalar high) const;
  Tensor& clamp_max_(Scalar high) const;
  Tensor clip(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const;
  Tensor clip(Scalar min, Scalar max) const;
  Tensor& clip_(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const;
  Tensor& clip_(Scalar min, Scalar max) const;
  Tensor lerp(const Tensor& other, const Tensor& weight) const;
  Tensor lerp(const Tensor& other, Scalar weight) const;
  Tensor& lerp_(const Tensor& other, const Tensor& weight) const;
  Tensor& lerp_(const Tensor& other, Scalar weight) const;
  Tensor addcmul(const Tensor& a, const Tensor& b, Scalar value = 1) const;
  Tensor& addcmul_(const Tensor& a, const Tensor& b, Scalar value = 1) const;
  Tensor addcdiv(const Tensor& a, const Tensor& b, Scalar value = 1) const;
  Tensor& addcdiv_(const Tensor& a, const Tensor& b, Scalar value = 1) const;
  Tensor ldexp(const Tensor& other) const;
  Tensor& ldexp_(const Tensor& other) const;
  Tensor logit(std::optional<double> eps = {}) const;
  Tensor& logit_(std::optional<double> eps = {}) const;
  Tensor nan_to_num(double nan = 0, std::optional<double> posinf = {}, std::optional<double> neginf = {}) const;
  Tensor& nan_to_num_(double nan = 0, std::optional<double> posinf = {}, std::optional<double> neginf = {}) const;
  Tensor round(int64_t decimals) const;
  Tensor& round_(int64_t decimals) const;
  Tensor mvlgamma(int64_t p) const;
  Tensor& mvlgamma_(int64_t p) const;
  Tensor& polygamma_(int64_t n) const;
  MantissaAndExponent frexp() const;
  Tensor hardshrink(double lambd = 0.5) const;
  Tensor prelu(const Tensor& weight) const;
  Tensor masked_fill(const Tensor& mask, Scalar value) const;
  Tensor masked_fill(const Tensor& mask, const Tensor& value) const;
  Tensor& masked_fill_(const Tensor& mask, Scalar value) const;
  Tensor& masked_fill_(const Tensor& mask, const Tensor& value) const;
  Tensor isclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const;
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const;
  bool equal(const Tensor& other) const;
  Tensor softmax(int64_t dim, ScalarType dtype = ScalarType::Undefined) const;
  Tensor log_softmax(int64_t dim, ScalarType dtype = ScalarType::Undefined) const;
  // reductions
  Tensor sum() const;
  Tensor sum(IntSpan dims, bool keepdim = false, ScalarType dtype = ScalarType::Undefined) const;
  Tensor nansum(IntSpan dims = {}, bool keepdim = false, ScalarType dtype = ScalarType::Undefined) const;
  Tensor mean() const;
  Tensor mean(IntSpan dims, bool keepdim = false, ScalarType dtype = ScalarType::Undefined) const;
  Tensor nanmean(IntSpan dims = {}, bool keepdim = false, ScalarType dtype = ScalarType::Undefined) const;
  Tensor prod() const;
  Tensor prod(IntSpan dims, bool keepdim = false, ScalarType dtype = ScalarType::Undefined) const;
  Tensor max() const;
  ValuesAndIndices max(int64_t dim, bool keepdim = false) const;
  Tensor max(const Tensor& other) const;
  Tensor min() const;
  ValuesAndIndices min(int64_t dim, bool keepdim = false) const;
  Tensor min(const Tensor& other) const;
  Tensor amax(IntSpan dims = {}, bool keepdim = false) const;
  Tensor amin(IntSpan dims = {}, bool keepdim = false) const;
  MinAndMax aminmax(std::optional<int64_t> dim = {}, bool keepdim = false) const;
  Tensor argmax(std::optional<int64_t> dim = {}, bool keepdim = false) const;
  Tensor argmin(std::optional<int64_t> dim = {}, bool keepdim = false) const;
  Tensor any() const;
  Tensor any(IntSpan dims, bool keepdim = false) const;
  Tensor all() const;
  Tensor all(IntSpan dims, bool keepdim = false) const;
  Tensor count_nonzero(IntSpan dims = {}, bool keepdim = false) const;
  Tensor var(IntSpan dims = {}, double correction = 1, bool keepdim = false) const;
  Tensor std(IntSpan dims = {}, double correction = 1, bool keepdim = false) const;
  Tensor median() const;
  ValuesAndIndices median(int64_t dim, bool keepdim = false) const;
  Tensor nanmedian() const;
  ValuesAndIndices nanmedian(int64_t dim, bool keepdim = false) const;
  ValuesAndIndices mode(int64_t dim = -1, bool keepdim = false) const;
  ValuesAndIndices kthvalue(int64_t k, int64_t dim = -1, bool keepdim = false) const;
  Tensor quantile(const Tensor& q, std::optional<int64_t> dim = {}, bool keepdim = false,
                  std::string_view interpolation = "linear") const;
  Tensor quantile(double q, std::optional<int64_t> dim = {}, bool keepdim = false,
                  std::string_view interpolation = "linear") const;
  Tensor nanquantile(const Tensor& q, std::optional<int64_t> dim = {}, bool keepdim = false,
                     std::string_view interpolation = "linear") const;
  Tensor nanquantile(double q, std::optional<int64_t> dim = {}, bool keepdim = false,
                     std::string_view interpolation = "linear") const;
  Tensor norm(double p = 2) const;
  Tensor norm(double p, IntSpan dims, bool keepdim = false) const;
  Tensor dist(const Tensor& other, double p = 2) const;
  Tensor logsumexp(IntSpan dims, bool keepdim = false) const;
  Tensor renorm(double p, int64_t dim, double maxnorm) const;
  Tensor& renorm_(double p, int64_t dim, double maxnorm) const;
  Tensor cov(int64_t correction = 1, const Tensor& fweights = no_tensor(), const Tensor& aweights = no_tensor()) const;
  Tensor corrcoef() const;
  // scans, sorting, searching
  Tensor cumsum(int64_t dim, ScalarType dtype = ScalarType::Undefined) const;
  Tensor& cumsum_(int64_t dim, ScalarType dtype = ScalarType::Undefined) const;
  Tensor cumprod(int64_t dim, ScalarType dtype = ScalarType::Undefined) const;
  Tensor& cumprod_(int64_t dim, ScalarType dtype = ScalarType::Undefined) const;
  ValuesAndIndices cummax(int64_t dim) const;
  ValuesAndIndices cummin(int64_t dim) const;
  Tensor logcumsumexp(int64_t dim) const;
  Tensor diff(int64_t n = 1, int64_t dim = -1, const Tensor& prepend = no_tensor(),
              const Tensor& append = no_tensor()) const;
  ValuesAndIndices sort(int64_t dim = -1, bool descending = false) const;
  Tensor argsort(int64_t dim = -1, bool descending = false) const;
  Tensor msort() const;
  ValuesAndIndices topk(int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true) const;
  Tensor histc(int64_t bins = 100, Scalar min = 0, Scalar max = 0) const;
  Histogram histogram(const Tensor& bins, const Tensor& weight = no_tensor(), bool density = false) const;
  Histogram histogram(int64_t bins, std::optional<std::pair<double, double>> range = {},
                      const Tensor& weight = no_tensor(), bool density = false) const;
  Tensor bincount(const Tensor& weights = no_tensor(), int64_t minlength = 0) const;
  // products and linear algebra
  Tensor matmul(const Tensor& other) const;
  Tensor mm(const Tensor& other) const;
  Tensor bmm(const Tensor& other) const;
  Tensor mv(const Tensor& v) const;
  Tensor dot(const Tensor& other) const;
  Tensor vdot(const Tensor& other) const;
  Tensor inner(const Tensor& other) const;
  Tensor outer(const Tensor& other) const;
  Tensor ger(const Tensor& other) const;
  Tensor addmm(const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor& addmm_(const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor addmv(const Tensor& a, const Tensor& v, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor& addmv_(const Tensor& a, const Tensor& v, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor addr(const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor& addr_(const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor addbmm(const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor& addbmm_(const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor baddbmm(const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor& baddbmm_(const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor cross(const Tensor& other, int64_t dim = -1) const;
  Tensor kron(const Tensor& other) const;
  Tensor matrix_power(int64_t n) const;
  Tensor matrix_exp() const;
  Tensor det() const;
  Tensor logdet() const;
  linalg::SlogdetResult slogdet() const;
  Tensor inverse() const;
  Tensor pinverse(double rcond = 1e-15) const;
  Tensor cholesky_inverse(bool upper = false) const;
  Tensor cholesky_solve(const Tensor& factor, bool upper = false) const;
  TriangularSolveResult triangular_solve(const Tensor& a, bool upper = true, bool transpose = false,
                                         bool unitriangular = false) const;
  GeqrfResult geqrf() const;
  Tensor orgqr(const Tensor& tau) const;
  // random numbers
  Tensor bernoulli(Generator& generator = default_generator()) const;
  Tensor& bernoulli_(double p = 0.5, Generator& generator = default_generator()) const;
  Tensor& bernoulli_(const Tensor& p, Generator& generator = default_generator()) const;
  Tensor& uniform_(double low = 0, double high = 1, Generator& generator = default_generator()) const;
  Tensor& normal_(double mean = 0, double stddev = 1, Generator& generator = default_generator()) const;
  Tensor& log_normal_(double mean = 1, double stddev = 2, Generator& generator = default_generator()) const;
  Tensor& exponential_(double lambda = 1, Generator& generator = default_generator()) const;
  Tensor& cauchy_(double median = 0, double sigma = 1, Generator& generator = default_generator()) const;
  Tensor& geometric_(double p, Generator& generator = default_generator()) const;
  Tensor& random_(Generator& generator = default_generator()) const;
  Tensor& random_(int64_t low, std::optional<int64_t> high, Generator& generator = default_generator()) const;
  Tensor multinomial(int64_t samples, bool replacement = false, Generator& generator = default_generator()) const;
  Tensor where(const Tensor& condition, const Tensor& other) const;
  Tensor polygamma(int64_t n) const;
  Tensor lu_solve(const Tensor& lu, const Tensor& pivots) const;
  Tensor cholesky(bool upper = false) const;
  linalg::QrResult qr(bool some = true) const;

 protected:
  TensorValueMethods() = default;

 private:
  static const Tensor& no_tensor();
};

}  // namespace tercel
