// `out` variants of ops that compute: Note [Out variants] in out.h.
//
// name_out(out, ...) takes the arguments of name(...), and a tensor for each of several results. If name() takes a
// dtype, that of `out` is used. Data-movement ops and factories are in movement_out_variants.h; linear algebra and
// Fourier transforms in linalg_out_variants.h. `out` variants of elementwise ops, matrix products and cat() are
// declared beside the ops.
#pragma once

#include "tercel/ops/aliases.h"
#include "tercel/ops/common/out_macros.h"
#include "tercel/ops/elementwise/activation.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/pointwise.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/linalg/products.h"
#include "tercel/ops/nn/conv.h"
#include "tercel/ops/nn/cross_entropy.h"
#include "tercel/ops/nn/distance.h"
#include "tercel/ops/nn/linear.h"
#include "tercel/ops/nn/loss.h"
#include "tercel/ops/nn/pool.h"
#include "tercel/ops/nn/similarity.h"
#include "tercel/ops/nn/softmax.h"
#include "tercel/ops/reduce/differences.h"
#include "tercel/ops/reduce/histogram.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/scan.h"
#include "tercel/ops/reduce/var_std.h"
#include "tercel/ops/reduce/vector_norms.h"
#include "tercel/ops/sort/order_statistics.h"
#include "tercel/ops/sort/search.h"
#include "tercel/ops/sort/sort.h"
#include "tercel/ops/special/special.h"

namespace tercel {

// clang-format off
/** Sums with a factor, quotients with a rounding mode. */
TERCEL_DEFINE_OUT(add, (const Tensor& a, const Tensor& b, Scalar alpha), (a, b, alpha))
TERCEL_DEFINE_OUT(sub, (const Tensor& a, const Tensor& b, Scalar alpha), (a, b, alpha))
TERCEL_DEFINE_APART_OUT(div, (const Tensor& a, const Tensor& b, std::optional<std::string_view> rounding_mode), (a, b, rounding_mode))
TERCEL_DEFINE_APART_OUT(div, (const Tensor& a, Scalar b, std::optional<std::string_view> rounding_mode), (a, b, rounding_mode))

/** Other elementwise ops. */
TERCEL_DEFINE_APART_OUT(angle, (const Tensor& x), (x))
TERCEL_DEFINE_APART_OUT(bitwise_not, (const Tensor& x), (x))
TERCEL_DEFINE_APART_OUT(clamp, (const Tensor& x, const std::optional<Tensor>& min, const std::optional<Tensor>& max), (x, min, max))
TERCEL_DEFINE_APART_OUT(clamp, (const Tensor& x, Scalar low, Scalar high), (x, low, high))
TERCEL_DEFINE_APART_OUT(clamp_max, (const Tensor& x, Scalar high), (x, high))
TERCEL_DEFINE_APART_OUT(clamp_min, (const Tensor& x, Scalar low), (x, low))
TERCEL_DEFINE_APART_OUT(clip, (const Tensor& x, const std::optional<Tensor>& min, const std::optional<Tensor>& max), (x, min, max))
TERCEL_DEFINE_APART_OUT(clip, (const Tensor& x, Scalar min, Scalar max), (x, min, max))
TERCEL_DEFINE_APART_OUT(conj_physical, (const Tensor& x), (x))
TERCEL_DEFINE_OUT(float_power, (const Tensor& a, const Tensor& b), (a, b))
TERCEL_DEFINE_OUT(float_power, (const Tensor& a, Scalar b), (a, b))
TERCEL_DEFINE_OUT(float_power, (Scalar a, const Tensor& b), (a, b))
TERCEL_DEFINE_OUT(hardshrink, (const Tensor& x, double lambd = 0.5), (x, lambd))
TERCEL_DEFINE_APART_OUT(isneginf, (const Tensor& x), (x))
TERCEL_DEFINE_APART_OUT(isposinf, (const Tensor& x), (x))
TERCEL_DEFINE_APART_OUT(ldexp, (const Tensor& a, const Tensor& b), (a, b))
TERCEL_DEFINE_OUT(lerp, (const Tensor& a, const Tensor& b, const Tensor& weight), (a, b, weight))
TERCEL_DEFINE_OUT(lerp, (const Tensor& a, const Tensor& b, Scalar weight), (a, b, weight))
TERCEL_DEFINE_OUT(addcdiv, (const Tensor& x, const Tensor& a, const Tensor& b, Scalar value = 1), (x, a, b, value))
TERCEL_DEFINE_OUT(addcmul, (const Tensor& x, const Tensor& a, const Tensor& b, Scalar value = 1), (x, a, b, value))
TERCEL_DEFINE_APART_OUT(round, (const Tensor& x, int64_t decimals), (x, decimals))
TERCEL_DEFINE_OUT(special_round, (const Tensor& x, int64_t decimals), (x, decimals))
TERCEL_DEFINE_OUT(special_polygamma, (int64_t n, const Tensor& x), (n, x))
TERCEL_DEFINE_OUT(special_multigammaln, (const Tensor& x, int64_t p), (x, p))
TERCEL_DEFINE_OUT(special_logit, (const Tensor& x, std::optional<double> eps = {}), (x, eps))
TERCEL_DEFINE_APART_OUT(logit, (const Tensor& x, std::optional<double> eps = {}), (x, eps))
TERCEL_DEFINE_OUT(mvlgamma, (const Tensor& x, int64_t p), (x, p))
TERCEL_DEFINE_APART_OUT(nan_to_num, (const Tensor& x, double nan = 0, std::optional<double> posinf = {}, std::optional<double> neginf = {}), (x, nan, posinf, neginf))
TERCEL_DEFINE_APART_OUT(signbit, (const Tensor& x), (x))
TERCEL_DEFINE_OUT(true_divide, (const Tensor& a, const Tensor& b), (a, b))
TERCEL_DEFINE_OUT(true_divide, (const Tensor& a, Scalar b), (a, b))
TERCEL_DEFINE_OUT(rsub, (const Tensor& a, const Tensor& b, Scalar alpha = 1), (a, b, alpha))
TERCEL_DEFINE_OUT(rsub, (const Tensor& a, Scalar b, Scalar alpha = 1), (a, b, alpha))
TERCEL_DEFINE_OUT(where, (const Tensor& condition, Scalar a, Scalar b), (condition, a, b))
TERCEL_DEFINE_OUT(where, (const Tensor& condition, const Tensor& a, const Tensor& b), (condition, a, b))
TERCEL_DEFINE_OUT(where, (const Tensor& condition, const Tensor& a, Scalar b), (condition, a, b))
TERCEL_DEFINE_OUT(where, (const Tensor& condition, Scalar a, const Tensor& b), (condition, a, b))

/** Activations. */
TERCEL_DEFINE_OUT(elu, (const Tensor& x, double alpha = 1, double scale = 1, double input_scale = 1), (x, alpha, scale, input_scale))
TERCEL_DEFINE_OUT(gelu, (const Tensor& x, std::string_view approximate), (x, approximate))
TERCEL_DEFINE_OUT(glu, (const Tensor& x, int64_t dim = -1), (x, dim))
TERCEL_DEFINE_OUT(hardsigmoid, (const Tensor& x), (x))
TERCEL_DEFINE_OUT(hardswish, (const Tensor& x), (x))
TERCEL_DEFINE_OUT(hardtanh, (const Tensor& x, Scalar min_val = -1, Scalar max_val = 1), (x, min_val, max_val))
TERCEL_DEFINE_OUT(leaky_relu, (const Tensor& x, Scalar slope = 0.01), (x, slope))
TERCEL_DEFINE_OUT(logsigmoid, (const Tensor& x), (x))
TERCEL_DEFINE_OUT(mish, (const Tensor& x), (x))
TERCEL_DEFINE_OUT(softplus, (const Tensor& x, Scalar beta = 1, Scalar threshold = 20), (x, beta, threshold))
TERCEL_DEFINE_OUT(softshrink, (const Tensor& x, double lambd = 0.5), (x, lambd))
TERCEL_DEFINE_OUT(threshold, (const Tensor& x, Scalar limit, Scalar value), (x, limit, value))
TERCEL_DEFINE_OUT(softmax, (const Tensor& x, int64_t dim, ScalarType dtype = ScalarType::Undefined), (x, dim, dtype))
TERCEL_DEFINE_OUT(log_softmax, (const Tensor& x, int64_t dim, ScalarType dtype = ScalarType::Undefined), (x, dim, dtype))
TERCEL_DEFINE_OUT(normalize, (const Tensor& x, double p = 2, int64_t dim = 1, double eps = 1e-12), (x, p, dim, eps))

/** Losses. */
TERCEL_DEFINE_OUT(binary_cross_entropy, (const Tensor& x, const Tensor& target, const Tensor& weight = {}, Reduction reduction = Reduction::Mean), (x, target, weight, reduction))
TERCEL_DEFINE_OUT(huber_loss, (const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean, double delta = 1), (x, target, reduction, delta))
TERCEL_DEFINE_OUT(mse_loss, (const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean), (x, target, reduction))
TERCEL_DEFINE_OUT(multi_margin_loss, (const Tensor& x, const Tensor& target, int64_t p = 1, double margin = 1, const Tensor& weight = {}, Reduction reduction = Reduction::Mean), (x, target, p, margin, weight, reduction))
TERCEL_DEFINE_OUT(multilabel_margin_loss, (const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean), (x, target, reduction))
TERCEL_DEFINE_OUT(nll_loss, (const Tensor& x, const Tensor& target, const Tensor& weight = {}, Reduction reduction = Reduction::Mean, int64_t ignore_index = -100), (x, target, weight, reduction, ignore_index))
TERCEL_DEFINE_OUT(smooth_l1_loss, (const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean, double beta = 1), (x, target, reduction, beta))
TERCEL_DEFINE_OUT(soft_margin_loss, (const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean), (x, target, reduction))

/** Averages over windows, affine maps and patches. */
TERCEL_DEFINE_OUT(adaptive_avg_pool2d, (const Tensor& x, IntSpan output_size), (x, output_size))
TERCEL_DEFINE_OUT(adaptive_avg_pool3d, (const Tensor& x, IntSpan output_size), (x, output_size))
TERCEL_DEFINE_OUT(avg_pool2d, (const Tensor& x, IntSpan kernel_size, IntSpan stride = {}, IntSpan padding = {0}, bool ceil_mode = false, bool count_include_pad = true, std::optional<int64_t> divisor_override = {}), (x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override))
TERCEL_DEFINE_OUT(avg_pool3d, (const Tensor& x, IntSpan kernel_size, IntSpan stride = {}, IntSpan padding = {0}, bool ceil_mode = false, bool count_include_pad = true, std::optional<int64_t> divisor_override = {}), (x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override))
TERCEL_DEFINE_OUT(linear, (const Tensor& x, const Tensor& weight, const Tensor& bias = {}), (x, weight, bias))
TERCEL_DEFINE_OUT(im2col, (const Tensor& x, IntSpan kernel_size, IntSpan dilation = {1}, IntSpan padding = {0}, IntSpan stride = {1}), (x, kernel_size, dilation, padding, stride))
TERCEL_DEFINE_OUT(col2im, (const Tensor& x, IntSpan output_size, IntSpan kernel_size, IntSpan dilation = {1}, IntSpan padding = {0}, IntSpan stride = {1}), (x, output_size, kernel_size, dilation, padding, stride))

/** Reductions. */
TERCEL_DEFINE_OUT(all, (const Tensor& x), (x))
TERCEL_DEFINE_OUT(all, (const Tensor& x, IntSpan dims, bool keepdim = false), (x, dims, keepdim))
TERCEL_DEFINE_OUT(any, (const Tensor& x), (x))
TERCEL_DEFINE_OUT(any, (const Tensor& x, IntSpan dims, bool keepdim = false), (x, dims, keepdim))
TERCEL_DEFINE_OUT(amax, (const Tensor& x, IntSpan dims = {}, bool keepdim = false), (x, dims, keepdim))
TERCEL_DEFINE_OUT(amin, (const Tensor& x, IntSpan dims = {}, bool keepdim = false), (x, dims, keepdim))
TERCEL_DEFINE_OUT(argmax, (const Tensor& x, std::optional<int64_t> dim = {}, bool keepdim = false), (x, dim, keepdim))
TERCEL_DEFINE_OUT(argmin, (const Tensor& x, std::optional<int64_t> dim = {}, bool keepdim = false), (x, dim, keepdim))
TERCEL_DEFINE_OUT(count_nonzero, (const Tensor& x, IntSpan dims = {}, bool keepdim = false), (x, dims, keepdim))
TERCEL_DEFINE_OUT(logsumexp, (const Tensor& x, IntSpan dims, bool keepdim = false), (x, dims, keepdim))
TERCEL_DEFINE_OUT(special_logsumexp, (const Tensor& x, IntSpan dims, bool keepdim = false), (x, dims, keepdim))
TERCEL_DEFINE_APART_OUT(max, (const Tensor& x), (x))
TERCEL_DEFINE_APART_OUT(max, (const Tensor& a, const Tensor& b), (a, b))
TERCEL_DEFINE_OUT(mean, (const Tensor& x), (x, {}, false, dtype_for_out(ScalarType::Undefined, out)))
TERCEL_DEFINE_OUT(mean, (const Tensor& x, IntSpan dims, bool keepdim = false, ScalarType dtype = ScalarType::Undefined), (x, dims, keepdim, dtype_for_out(dtype, out)))
TERCEL_DEFINE_OUT(median, (const Tensor& x), (x))
TERCEL_DEFINE_APART_OUT(min, (const Tensor& x), (x))
TERCEL_DEFINE_APART_OUT(min, (const Tensor& a, const Tensor& b), (a, b))
TERCEL_DEFINE_OUT(nanmean, (const Tensor& x, IntSpan dims = {}, bool keepdim = false, ScalarType dtype = ScalarType::Undefined), (x, dims, keepdim, dtype_for_out(dtype, out)))
TERCEL_DEFINE_OUT(nanmedian, (const Tensor& x), (x))
TERCEL_DEFINE_OUT(nansum, (const Tensor& x, IntSpan dims = {}, bool keepdim = false, ScalarType dtype = ScalarType::Undefined), (x, dims, keepdim, dtype_for_out(dtype, out)))
TERCEL_DEFINE_OUT(norm, (const Tensor& x, double p = 2), (x, p))
TERCEL_DEFINE_OUT(norm, (const Tensor& x, double p, IntSpan dims, bool keepdim = false), (x, p, dims, keepdim))
TERCEL_DEFINE_OUT(prod, (const Tensor& x), (x, {}, false, dtype_for_out(ScalarType::Undefined, out)))
TERCEL_DEFINE_OUT(prod, (const Tensor& x, IntSpan dims, bool keepdim = false, ScalarType dtype = ScalarType::Undefined), (x, dims, keepdim, dtype_for_out(dtype, out)))
TERCEL_DEFINE_OUT(quantile, (const Tensor& x, const Tensor& q, std::optional<int64_t> dim = {}, bool keepdim = false, std::string_view interpolation = "linear"), (x, q, dim, keepdim, interpolation))
TERCEL_DEFINE_OUT(quantile, (const Tensor& x, double q, std::optional<int64_t> dim = {}, bool keepdim = false, std::string_view interpolation = "linear"), (x, q, dim, keepdim, interpolation))
TERCEL_DEFINE_OUT(nanquantile, (const Tensor& x, const Tensor& q, std::optional<int64_t> dim = {}, bool keepdim = false, std::string_view interpolation = "linear"), (x, q, dim, keepdim, interpolation))
TERCEL_DEFINE_OUT(nanquantile, (const Tensor& x, double q, std::optional<int64_t> dim = {}, bool keepdim = false, std::string_view interpolation = "linear"), (x, q, dim, keepdim, interpolation))
TERCEL_DEFINE_OUT(std, (const Tensor& x, IntSpan dims = {}, double correction = 1, bool keepdim = false), (x, dims, correction, keepdim))
TERCEL_DEFINE_OUT(var, (const Tensor& x, IntSpan dims = {}, double correction = 1, bool keepdim = false), (x, dims, correction, keepdim))
TERCEL_DEFINE_OUT(sum, (const Tensor& x), (x, {}, false, dtype_for_out(ScalarType::Undefined, out)))
TERCEL_DEFINE_OUT(sum, (const Tensor& x, IntSpan dims, bool keepdim = false, ScalarType dtype = ScalarType::Undefined), (x, dims, keepdim, dtype_for_out(dtype, out)))
TERCEL_DEFINE_APART_OUT(renorm, (const Tensor& x, double p, int64_t dim, double maxnorm), (x, p, dim, maxnorm))
TERCEL_DEFINE_OUT(dist, (const Tensor& a, const Tensor& b, double p = 2), (a, b, p))

/** Scans and differences. */
TERCEL_DEFINE_APART_OUT(cumprod, (const Tensor& x, int64_t dim, ScalarType dtype = ScalarType::Undefined), (x, dim, dtype_for_out(dtype, out)))
TERCEL_DEFINE_APART_OUT(cumsum, (const Tensor& x, int64_t dim, ScalarType dtype = ScalarType::Undefined), (x, dim, dtype_for_out(dtype, out)))
TERCEL_DEFINE_APART_OUT(logcumsumexp, (const Tensor& x, int64_t dim), (x, dim))
TERCEL_DEFINE_APART_OUT(diff, (const Tensor& x, int64_t n = 1, int64_t dim = -1, const Tensor& prepend = {}, const Tensor& append = {}), (x, n, dim, prepend, append))

/** Sorting and searching. */
TERCEL_DEFINE_OUT(argsort, (const Tensor& x, int64_t dim = -1, bool descending = false), (x, dim, descending))
TERCEL_DEFINE_APART_OUT(msort, (const Tensor& x), (x))
TERCEL_DEFINE_OUT(bucketize, (const Tensor& values, const Tensor& boundaries, bool out_int32 = false, bool right = false), (values, boundaries, out_int32, right))
TERCEL_DEFINE_OUT(bucketize, (Scalar value, const Tensor& boundaries, bool out_int32 = false, bool right = false), (value, boundaries, out_int32, right))
TERCEL_DEFINE_OUT(searchsorted, (const Tensor& sorted_sequence, const Tensor& values, bool out_int32 = false, bool right = false, std::string_view side = {}, const Tensor& sorter = {}), (sorted_sequence, values, out_int32, right, side, sorter))
TERCEL_DEFINE_OUT(searchsorted, (const Tensor& sorted_sequence, Scalar value, bool out_int32 = false, bool right = false, std::string_view side = {}, const Tensor& sorter = {}), (sorted_sequence, value, out_int32, right, side, sorter))
TERCEL_DEFINE_APART_OUT(isin, (const Tensor& elements, const Tensor& test_elements, bool assume_unique = false, bool invert = false), (elements, test_elements, assume_unique, invert))
TERCEL_DEFINE_APART_OUT(isin, (const Tensor& elements, Scalar test_element, bool assume_unique = false, bool invert = false), (elements, test_element, assume_unique, invert))
TERCEL_DEFINE_APART_OUT(isin, (Scalar element, const Tensor& test_elements, bool assume_unique = false, bool invert = false), (element, test_elements, assume_unique, invert))
TERCEL_DEFINE_OUT(histc, (const Tensor& x, int64_t bins = 100, Scalar min = 0, Scalar max = 0), (x, bins, min, max))
TERCEL_DEFINE_OUT(bincount, (const Tensor& x, const Tensor& weights = {}, int64_t minlength = 0), (x, weights, minlength))

/** Products. */
TERCEL_DEFINE_OUT(chain_matmul, (Span<Tensor> matrices), (matrices))
TERCEL_DEFINE_APART_OUT(cross, (const Tensor& a, const Tensor& b, int64_t dim = -1), (a, b, dim))
TERCEL_DEFINE_APART_OUT(kron, (const Tensor& a, const Tensor& b), (a, b))
TERCEL_DEFINE_OUT(matrix_power, (const Tensor& a, int64_t n), (a, n))
TERCEL_DEFINE_OUT(tensordot, (const Tensor& a, const Tensor& b, int64_t dims = 2), (a, b, dims))
TERCEL_DEFINE_OUT(tensordot, (const Tensor& a, const Tensor& b, IntSpan dims_a, IntSpan dims_b), (a, b, dims_a, dims_b))

/** Ops that return values and indices. */
TERCEL_DEFINE_VALUES_OUT(cummax, (const Tensor& x, int64_t dim), (x, dim))
TERCEL_DEFINE_VALUES_OUT(cummin, (const Tensor& x, int64_t dim), (x, dim))
TERCEL_DEFINE_APART_VALUES_OUT(kthvalue, (const Tensor& x, int64_t k, int64_t dim = -1, bool keepdim = false), (x, k, dim, keepdim))
TERCEL_DEFINE_APART_VALUES_OUT(max, (const Tensor& x, int64_t dim, bool keepdim = false), (x, dim, keepdim))
TERCEL_DEFINE_VALUES_OUT(median, (const Tensor& x, int64_t dim, bool keepdim = false), (x, dim, keepdim))
TERCEL_DEFINE_APART_VALUES_OUT(min, (const Tensor& x, int64_t dim, bool keepdim = false), (x, dim, keepdim))
TERCEL_DEFINE_APART_VALUES_OUT(mode, (const Tensor& x, int64_t dim = -1, bool keepdim = false), (x, dim, keepdim))
TERCEL_DEFINE_VALUES_OUT(nanmedian, (const Tensor& x, int64_t dim, bool keepdim = false), (x, dim, keepdim))
TERCEL_DEFINE_APART_VALUES_OUT(sort, (const Tensor& x, int64_t dim = -1, bool descending = false), (x, dim, descending))
TERCEL_DEFINE_APART_VALUES_OUT(topk, (const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true), (x, k, dim, largest, sorted))
TERCEL_DEFINE_VALUES_OUT(adaptive_max_pool2d, (const Tensor& x, IntSpan output_size), (x, output_size))
TERCEL_DEFINE_VALUES_OUT(adaptive_max_pool3d, (const Tensor& x, IntSpan output_size), (x, output_size))
TERCEL_DEFINE_VALUES_OUT(max_pool2d_with_indices, (const Tensor& x, IntSpan kernel_size, IntSpan stride = {}, IntSpan padding = {0}, IntSpan dilation = {1}, bool ceil_mode = false), (x, kernel_size, stride, padding, dilation, ceil_mode))
TERCEL_DEFINE_VALUES_OUT(max_pool3d_with_indices, (const Tensor& x, IntSpan kernel_size, IntSpan stride = {}, IntSpan padding = {0}, IntSpan dilation = {1}, bool ceil_mode = false), (x, kernel_size, stride, padding, dilation, ceil_mode))

/** Ops of two results. */
TERCEL_DEFINE_APART_OUT2(aminmax, MinAndMax, min, max, (const Tensor& x, std::optional<int64_t> dim = {}, bool keepdim = false), (x, dim, keepdim))
TERCEL_DEFINE_APART_OUT2(frexp, MantissaAndExponent, mantissa, exponent, (const Tensor& x), (x))
TERCEL_DEFINE_APART_OUT2(histogram, Histogram, hist, bin_edges, (const Tensor& x, const Tensor& bins, const Tensor& weight = {}, bool density = false), (x, bins, weight, density))
TERCEL_DEFINE_APART_OUT2(histogram, Histogram, hist, bin_edges, (const Tensor& x, int64_t bins, std::optional<std::pair<double, double>> range = {}, const Tensor& weight = {}, bool density = false), (x, bins, range, weight, density))
TERCEL_DEFINE_OUT2(var_mean, VarAndMean, var, mean, (const Tensor& x, IntSpan dims = {}, double correction = 1, bool keepdim = false), (x, dims, correction, keepdim))
TERCEL_DEFINE_OUT2(std_mean, StdAndMean, std, mean, (const Tensor& x, IntSpan dims = {}, double correction = 1, bool keepdim = false), (x, dims, correction, keepdim))
// clang-format on

}  // namespace tercel
