#include "tercel/ops/nn/norm.h"

#include <algorithm>
#include <limits>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/nn/batch_norm.h"
#include "tercel/ops/nn/norm_kernels.h"
#include "tercel/ops/nn/separable_resize_impl.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/var_std.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<RowNormFn> forward_kernels = TERCEL_CPU_KERNELS(row_norm);
constinit const KernelTable<RowNormFn> backward_kernels = TERCEL_CPU_KERNELS(row_norm_backward);

constexpr int64_t kGrainElements = 16384;
// Elements in a block of rows whose weight gradients are added sequentially.
constexpr int64_t kBlock = 65536;

// A matrix of rows to be normalised; see RowNormLoop for parts and period.
struct Rows {
  int64_t rows, n, parts, period;
  bool centre;
  double eps;

  // Sizes of a matrix with which weight and bias are broadcast.
  DimVector split() const { return {rows / period, period, parts, n / parts}; }
};

RowNormLoop make_loop(const Rows& r, const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& rstd,
                      const Tensor& out) {
  RowNormLoop loop{};
  loop.wide = x.dtype() == kFloat64;
  loop.centre = r.centre;
  loop.n = r.n;
  loop.parts = r.parts;
  loop.period = r.period;
  loop.eps = r.eps;
  loop.x = x.data_ptr();
  loop.weight = weight.defined() ? weight.data_ptr() : nullptr;
  loop.mean = mean.data_ptr();
  loop.rstd = rstd.data_ptr();
  loop.out = out.defined() ? out.data_ptr() : nullptr;
  return loop;
}

/// Runs a kernel over rows, at least `unit` of them at a time.
void run(const KernelTable<RowNormFn>& kernels, const RowNormLoop& loop, int64_t rows, int64_t unit, Device device) {
  const ProfileRange range("norm", RangeKind::Op);
  const auto kernel = kernels[device];
  parallel_for(0, ceil_div(rows, unit), std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, loop.n * unit)),
               [&](int64_t begin, int64_t end) { kernel(loop, begin * unit, std::min(end * unit, rows)); });
}

// Saved tensors, and gradients: computed by a kernel or, if they are recorded, composed of ops.
struct Backward {
  SavedTensor x, weight, mean, rstd;
  Rows r;

  Tensor over_weights(const Tensor& g) const {
    const Tensor sums = sum(view(g, r.split()), {0, 3});
    return view(sums, {r.period * r.parts});
  }
  // (x - mean) * rstd as a function of x.
  Tensor normalised() const { return mul(centred(), differentiable_rstd()); }
  Tensor centred() const { return r.centre ? sub(x.get(), mean_of(x.get())) : x.get(); }
  Tensor differentiable_rstd() const { return rsqrt(add(mean_of(square(centred())), r.eps)); }
  static Tensor mean_of(const Tensor& rows) { return tercel::mean(rows, {1}, true); }
  /// Composed of ops, for second derivatives.
  Tensor input(const Tensor& g) const {
    Tensor scaled = g;
    if (weight.defined())
      scaled = reshape(mul(view(g, r.split()), view(weight.get(), {1, r.period, r.parts, 1})), {r.rows, r.n});
    const Tensor h = normalised();
    Tensor inner = sub(scaled, mul(h, mean_of(mul(scaled, h))));
    if (r.centre) inner = sub(inner, mean_of(scaled));
    return mul(differentiable_rstd(), inner);
  }
  void operator()(BackwardCall& call) const {
    const Tensor g = contiguous(call.grad());
    if (!is_recording()) return at_once(call, g);
    if (call.needs(0)) call.set(0, input(g));
    if (call.needs(1)) call.set(1, over_weights(mul(g, normalised())));
    if (call.needs(2)) call.set(2, over_weights(g));
  }
  /// All gradients in one pass over the rows. The order of sums depends only on sizes, not on the number of threads.
  void at_once(BackwardCall& call, const Tensor& g) const {
    const Tensor w = weight.defined() ? contiguous(weight.get()) : Tensor();
    const Tensor& saved = x.get();
    const int64_t affine = r.period * r.parts;
    const bool by_element = r.parts == r.n;
    const int64_t periods = by_element ? std::clamp<int64_t>(kBlock / affine, 16, 128) : 1;
    const int64_t block = r.period * periods, blocks = ceil_div(r.rows, block);
    const auto buffer = [&](bool needed, IntSpan sizes) { return needed ? empty(sizes, saved.options()) : Tensor(); };
    const Tensor out = buffer(call.needs(0), saved.sizes());
    const Tensor sums[] = {buffer(call.needs(1), {blocks, affine}), buffer(call.needs(2), {blocks, affine})};
    RowNormLoop loop = make_loop(r, saved, w, mean.get(), rstd.get(), out);
    loop.grad = g.data_ptr();
    loop.weight_sums = sums[0].defined() ? sums[0].data_ptr() : nullptr;
    loop.bias_sums = sums[1].defined() ? sums[1].data_ptr() : nullptr;
    loop.block = block;
    const bool shared = sums[0].defined() || sums[1].defined();
    run(backward_kernels, loop, r.rows, shared && periods > 1 ? block : 1, saved.device());
    if (out.defined()) call.set(0, out);
    for (size_t i = 0; i < 2; ++i)
      if (sums[i].defined())
        call.set(static_cast<int>(i) + 1, blocks == 1 ? view(sums[i], {affine}) : sum(sums[i], {0}));
  }
};

// x [rows, n], contiguous; weight and bias [period * parts] or undefined.
Tensor norm_rows(const char* backward_name, const Tensor& x, const Tensor& weight, const Tensor& bias, const Rows& r) {
  Tensor out, mean, rstd;
  {
    const NoRecordGuard no_record;
    mean = empty({r.rows}, x.options());
    rstd = empty({r.rows}, x.options());
    out = empty(x.sizes(), x.options());
    const Tensor w = weight.defined() ? contiguous(weight) : weight, b = bias.defined() ? contiguous(bias) : bias;
    RowNormLoop loop = make_loop(r, x, w, mean, rstd, out);
    loop.bias = b.defined() ? b.data_ptr() : nullptr;
    if (r.n > 0) run(forward_kernels, loop, r.rows, 1, x.device());
  }
  if (should_record(x, weight, bias))
    record(backward_name, out, {x, weight, bias},
           Backward{SavedTensor(x), SavedTensor(weight), SavedTensor(mean), SavedTensor(rstd), r});
  return out;
}

// norm_rows() of x with any strides and floating dtype.
Tensor normalise(const char* op, const char* backward_name, const Tensor& x, const Tensor& weight, const Tensor& bias,
                 const Rows& r) {
  if (!x.is_floating_point()) refuse_dtype(op, x.dtype());
  for (const Tensor* t : {&weight, &bias})
    TERCEL_CHECK(!t->defined() || t->dtype() == x.dtype() || t->dtype() == kFloat32, RuntimeError, op,
                 ": expected weight and bias of the input's dtype, ", to_string(x.dtype()), ", but got ",
                 to_string(t->dtype()));
  const ScalarType dtype = x.dtype() == kFloat64 ? kFloat64 : kFloat32;
  const auto flat = [&](const Tensor& t) { return t.defined() ? reshape(to(t, dtype), {-1}) : t; };
  const Tensor rows = view(contiguous(to(x, dtype)), {r.rows, r.n});
  return to(view(norm_rows(backward_name, rows, flat(weight), flat(bias), r), x.sizes()), x.dtype());
}

/// The norm of an empty tensor: weight and bias still get gradients, which are zeros.
Tensor norm_of_nothing(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Tensor out = clone(x);
  for (const Tensor* t : {&weight, &bias})
    if (t->defined()) out = add(out, to(sum(*t), x.dtype()));
  return out;
}

Rows last_dims(const char* op, const Tensor& x, IntSpan shape, const Tensor& weight, const Tensor& bias) {
  check_strided(op, x, "input");
  TERCEL_CHECK(!shape.empty(), RuntimeError,
               "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
               "normalized_shape = ",
               shape);
  TERCEL_CHECK(!weight.defined() || weight.sizes() == shape, RuntimeError,
               "Expected weight to be of same shape as normalized_shape, but got weight of shape ", weight.sizes(),
               " and normalized_shape = ", shape);
  TERCEL_CHECK(!bias.defined() || bias.sizes() == shape, RuntimeError,
               "Expected bias to be of same shape as normalized_shape, but got bias of shape ", bias.sizes(),
               " and normalized_shape = ", shape);
  const size_t lead = x.sizes().size() - std::min(x.sizes().size(), shape.size());
  const bool fits = x.sizes().size() >= shape.size() && x.sizes().subspan(lead, shape.size()) == shape;
  std::string tail;
  for (const int64_t s : shape) tail += str_cat({", ", s});
  TERCEL_CHECK(fits, RuntimeError, "Given normalized_shape=", shape, ", expected input with shape [*", tail,
               "], but got input of size", x.sizes());
  const int64_t n = numel_of(shape);
  return {n == 0 ? 0 : x.numel() / n, n, n, 1, true, 0};
}

}  // namespace

Tensor layer_norm(const Tensor& x, IntSpan normalized_shape, const Tensor& weight, const Tensor& bias, double eps) {
  Rows r = last_dims("layer_norm", x, normalized_shape, weight, bias);
  r.eps = eps;
  if (x.numel() == 0) return norm_of_nothing(x, weight, bias);
  return normalise("layer_norm", "NativeLayerNormBackward0", x, weight, bias, r);
}

namespace {

/** Uses squares, as PyTorch does, which for complex numbers are complex, rather than squared magnitudes. */
Tensor complex_rms_norm(const Tensor& x, int64_t dims, const Tensor& weight, std::optional<double> eps) {
  DimVector last;
  for (int64_t d = -dims; d < 0; ++d) last.push_back(d);
  const double least = eps.value_or(x.dtype() == kComplex128 ? std::numeric_limits<double>::epsilon()
                                                             : std::numeric_limits<float>::epsilon());
  const Tensor out = mul(x, rsqrt(add(mean(square(x), last, true), least)));
  return weight.defined() ? mul(out, weight) : out;
}

}  // namespace

Tensor rms_norm(const Tensor& x, IntSpan normalized_shape, const Tensor& given_weight, std::optional<double> eps) {
  Tensor weight = given_weight;
  // A weight of another dtype is calculated with in x's, or in float32 if that is of 16 bits.
  if (x.defined() && weight.defined() && !x.is_complex() && !weight.is_complex() && weight.dtype() != x.dtype())
    weight = to(weight, x.dtype() == kBFloat16 || x.dtype() == kFloat16 ? kFloat32 : x.dtype());
  Rows r = last_dims("rms_norm", x, normalized_shape, weight, {});
  r.centre = false;
  if (x.is_complex()) return complex_rms_norm(x, static_cast<int64_t>(normalized_shape.size()), weight, eps);
  r.eps = eps.value_or(x.dtype() == kFloat64 ? std::numeric_limits<double>::epsilon()
                                             : std::numeric_limits<float>::epsilon());
  if (x.numel() == 0) return norm_of_nothing(x, weight, {});
  return normalise("rms_norm", "RmsNormBackward0", x, weight, {}, r);
}

Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  check_strided("group_norm", x, "input");
  TERCEL_CHECK(x.dim() >= 2, RuntimeError, "Expected at least 2 dimensions for input tensor but received ", x.dim());
  const int64_t channels = x.size(1);
  TERCEL_CHECK(num_groups > 0, RuntimeError, "Expected num groups to be greater than 0, got ", num_groups);
  TERCEL_CHECK(channels > 0, RuntimeError, "Expected number of channels to be greater than 0, got ", channels);
  TERCEL_CHECK(channels % num_groups == 0, RuntimeError,
               "Expected number of channels in input to be divisible by num_groups, but got input of shape ", x.sizes(),
               " and num_groups=", num_groups);
  check_channels("group_norm", weight, "weight", channels);
  check_channels("group_norm", bias, "bias", channels);
  TERCEL_CHECK(x.numel() != 0 || x.size(0) == 0, RuntimeError, "Expected HxW to be greater than 0, got 0");
  if (x.numel() == 0) return norm_of_nothing(x, weight, bias);
  TERCEL_CHECK(x.numel() != num_groups, ValueError,
               "Expected more than 1 value per channel when training, got input size ", x.sizes());
  const int64_t rows = x.size(0) * num_groups;
  return normalise("group_norm", "NativeGroupNormBackward0", x, weight, bias,
                   {rows, x.numel() / rows, channels / num_groups, num_groups, true, eps});
}

Tensor instance_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                     const Tensor& bias, bool use_input_stats, double momentum, double eps) {
  check_strided("instance_norm", x, "input");
  TERCEL_CHECK(x.dim() >= 3, RuntimeError, "instance_norm: expected input [n, channels, ...] but got ", x.sizes());
  TERCEL_CHECK(use_input_stats || (running_mean.defined() && running_var.defined()), RuntimeError,
               "Expected running_mean and running_var to be defined when use_input_stats is false");
  const int64_t channels = x.size(1);
  check_channels("instance_norm", running_mean, "running_mean", channels);
  check_channels("instance_norm", running_var, "running_var", channels);
  if (!use_input_stats) {
    BatchNormOptions options;
    options.eps = eps;
    return batch_norm(contiguous(x), running_mean, running_var, weight, bias, options);
  }
  const int64_t pixels = x.numel() == 0 ? 0 : x.numel() / x.size(0) / channels;
  TERCEL_CHECK(pixels != 1, ValueError, "Expected more than 1 spatial element when training, got input size ",
               x.sizes());
  Tensor out = group_norm(x, std::max<int64_t>(channels, 1), weight, bias, eps);
  if (pixels > 0 && (running_mean.defined() || running_var.defined())) {
    const NoRecordGuard no_record;
    const Tensor flat = flatten(x.detach(), 2);
    if (running_mean.defined()) lerp_(running_mean, to(mean(flat, {0, 2}), running_mean.dtype()), momentum);
    if (running_var.defined()) lerp_(running_var, to(mean(var(flat, {2}), {0}), running_var.dtype()), momentum);
  }
  return out;
}

Tensor local_response_norm(const Tensor& x, int64_t size, double alpha, double beta, double k) {
  check_strided("local_response_norm", x, "input");
  TERCEL_CHECK(x.dim() >= 3, ValueError, "Expected 3D or higher dimensionality input (got ", x.dim(), " dimensions)");
  TERCEL_CHECK(size > 0 && (x.is_floating_point() || x.dtype() == kInt64), RuntimeError,
               "local_response_norm: expected floating x and size > 0");
  if (x.numel() == 0) return x;
  const int64_t channels = x.size(1);
  SpatialMap map;
  map.taps = {Taps::identity(1), Taps(), Taps::identity(x.numel() / x.size(0) / channels)};
  map.divisor = static_cast<double>(size);
  map.taps[1].in = channels;
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t first = c < size / 2 ? 0 : c - size / 2;
    for (int64_t i = first; i < channels && i - c <= (size - 1) / 2; ++i) map.taps[1].add(i, 1);
    map.taps[1].end_output();
  }
  // Means of integers are integers, as in pooling.
  const bool whole = !x.is_floating_point();
  const Tensor squares = whole ? to(square(x), kFloat64) : square(x);
  const Tensor planes = reshape(squares, {x.size(0), 1, channels, -1});
  Tensor means = view(separable_resize("LocalResponseNormBackward0", planes, 2, std::move(map)), x.sizes());
  if (whole) means = to(means, kInt64);
  return div(x, pow(add(mul(means, alpha), k), beta));
}

}  // namespace tercel
