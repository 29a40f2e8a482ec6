#include "tercel/ops/nn/conv.h"

#include <algorithm>
#include <cmath>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/conv_plan_impl.h"
#include "tercel/ops/nn/spatial_impl.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/special/special.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

// Images with fewer positions than this are computed channels-last, and so are their gradients, if they have fewer than
// the second number: see Note [Convolution loops].
constexpr int64_t kFewPositions = 128, kFewPositionsOfGradients = 256;
// Groups with fewer channels than this are computed channels-first, because the runs of a patch would be short; except
// depthwise convolutions with one output per channel, which have no patches and are fast channels-last.
constexpr int64_t kFewChannels = 16;
// Runs of a patch, channels-last, with fewer elements than this are too short.
constexpr int64_t kShortRun = 8;

// Parameters of a convolution of x [n, channels, 2 or 3 dimensions].
struct Geometry {
  Spatial stride, padding, dilation;
  int64_t groups;
};

ConvPlan make_plan(const Geometry& geometry, IntSpan x, IntSpan weight, IntSpan y, bool channels_last) {
  const size_t dims = x.size() - 2;
  ConvPlan plan;
  plan.n = x[0];
  plan.channels = x[1];
  plan.outputs = y[1];
  plan.groups = geometry.groups;
  plan.channels_last = channels_last;
  const Spatial in = spatial_sizes(x, dims), kernel = spatial_sizes(weight, dims), out = spatial_sizes(y, dims);
  for (size_t d = 0; d < 3; ++d) {
    plan.in[d] = in[d];
    plan.kernel[d] = kernel[d];
    plan.out[d] = out[d];
    // The stride of a dimension with one output is not used. It may be so large that products with positions overflow.
    plan.stride[d] = out[d] == 1 ? 1 : geometry.stride[d];
    plan.padding[d] = geometry.padding[d];
    plan.dilation[d] = kernel[d] == 1 ? 1 : geometry.dilation[d];
  }
  return plan;
}

// The memory order of a result, and the order in which it is computed.
struct Order {
  bool result_last, compute_last;

  Order(const Tensor& a, const Tensor& b, IntSpan y, int64_t groups, int64_t channels, int64_t width,
        int64_t few = kFewPositionsOfGradients)
      : result_last(is_channels_last(a, y.size() - 2) || is_channels_last(b, y.size() - 2)), compute_last(result_last) {
    int64_t positions = 1;
    for (size_t d = 2; d < y.size(); ++d) positions *= y[d];
    const bool depthwise = groups == channels && groups == y[1];
    if (groups > 1 && channels / groups < kFewChannels && !depthwise) compute_last = false;
    if (depthwise && channels >= kFewChannels) compute_last = true;
    if (groups == 1 && positions < few && y[0] > 1 && channels * width >= kShortRun) compute_last = true;
  }
  Tensor operand(const Tensor& t) const {
    if (!compute_last) return contiguous(t);
    const MemoryFormat format = channels_last_format(t.dim());
    return t.is_contiguous(format) ? t : clone(t, format);
  }
  Tensor make(IntSpan sizes, TensorOptions options) const {
    if (!compute_last) return empty(sizes, options);
    return empty_strided(sizes, strides_for(sizes, channels_last_format(static_cast<int64_t>(sizes.size()))), options);
  }
  Tensor result(const Tensor& t) const {
    if (result_last == compute_last) return t;
    return result_last ? clone(t, channels_last_format(t.dim())) : contiguous(t);
  }
};

Tensor input_op(const Tensor& y, const Tensor& weight, const Geometry& geometry, IntSpan x_sizes);
Tensor weight_op(const Tensor& x, const Tensor& y, const Geometry& geometry, IntSpan weight_sizes);

/** Every position of out [n, channels, ...] becomes the bias [channels], or 0 if that is undefined. */
void fill_with(const Tensor& out, const Tensor& bias) {
  zero_(out);
  if (!bias.defined() || out.numel() == 0) return;
  DimVector sizes(static_cast<size_t>(out.dim()), 1);
  sizes[1] = bias.size(0);
  copy_(out, bias.reshape(sizes).expand(out.sizes()));
}

// These three are linear in both operands, and the gradients of each are the other two.
Tensor forward_op(const Tensor& x, const Tensor& weight, const Tensor& bias, const Geometry& geometry,
                  IntSpan y_sizes) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    const Order order(x, weight, y_sizes, geometry.groups, x.size(1), weight.size(-1), kFewPositions);
    out = order.make(y_sizes, x.options());
    if (x.numel() == 0 || weight.numel() == 0)
      fill_with(out, bias);
    else if (out.numel() > 0)
      run_convolution(make_plan(geometry, x.sizes(), weight.sizes(), y_sizes, order.compute_last), order.operand(x),
                      order.operand(weight), bias.defined() ? contiguous(bias) : bias, out);
    out = order.result(out);
  }
  if (should_record(x, weight, bias))
    record("ConvolutionBackward0", out, {x, weight, bias},
           [x = SavedTensor::when(is_tracked(weight), x), weight = SavedTensor::when(is_tracked(x), weight),
            x_sizes = DimVector(x.sizes()), weight_sizes = DimVector(weight.sizes()), geometry](BackwardCall& call) {
             const Tensor& g = call.grad();
             if (call.needs(0)) call.set(0, input_op(g, weight.get(), geometry, x_sizes));
             if (call.needs(1)) call.set(1, weight_op(x.get(), g, geometry, weight_sizes));
             if (!call.needs(2)) return;
             DimVector others;
             for (int64_t d = 0; d < g.dim(); ++d)
               if (d != 1) others.push_back(d);
             call.set(2, sum(g, others));
           });
  return out;
}

Tensor input_op(const Tensor& y, const Tensor& weight, const Geometry& geometry, IntSpan x_sizes) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    const Order order(y, weight, x_sizes, geometry.groups, x_sizes[1], weight.size(-1));
    out = order.make(x_sizes, y.options());
    if (y.numel() == 0 || weight.numel() == 0)
      zero_(out);
    else if (out.numel() > 0)
      run_convolution_input(make_plan(geometry, x_sizes, weight.sizes(), y.sizes(), order.compute_last),
                            order.operand(y), order.operand(weight), out);
    out = order.result(out);
  }
  if (should_record(y, weight))
    record("ConvolutionBackward0", out, {y, weight},
           [y = SavedTensor::when(is_tracked(weight), y), weight = SavedTensor::when(is_tracked(y), weight),
            y_sizes = DimVector(y.sizes()), weight_sizes = DimVector(weight.sizes()), geometry](BackwardCall& call) {
             if (call.needs(0)) call.set(0, forward_op(call.grad(), weight.get(), {}, geometry, y_sizes));
             if (call.needs(1)) call.set(1, weight_op(call.grad(), y.get(), geometry, weight_sizes));
           });
  return out;
}

Tensor weight_op(const Tensor& x, const Tensor& y, const Geometry& geometry, IntSpan weight_sizes) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    const Order order(x, y, y.sizes(), geometry.groups, x.size(1), weight_sizes.back());
    out = order.make(weight_sizes, x.options());
    if (x.numel() == 0 || y.numel() == 0)
      zero_(out);
    else if (out.numel() > 0)
      run_convolution_weight(make_plan(geometry, x.sizes(), weight_sizes, y.sizes(), order.compute_last),
                             order.operand(x), order.operand(y), out);
    out = order.result(out);
  }
  if (should_record(x, y))
    record("ConvolutionBackward0", out, {x, y},
           [x = SavedTensor::when(is_tracked(y), x), y = SavedTensor::when(is_tracked(x), y),
            x_sizes = DimVector(x.sizes()), y_sizes = DimVector(y.sizes()), geometry](BackwardCall& call) {
             if (call.needs(0)) call.set(0, input_op(y.get(), call.grad(), geometry, x_sizes));
             if (call.needs(1)) call.set(1, forward_op(x.get(), call.grad(), {}, geometry, y_sizes));
           });
  return out;
}

void check_list(const char* name, IntSpan list, size_t dims) {
  TERCEL_CHECK(list.size() == 1 || list.size() == dims, RuntimeError, "expected ", name,
               " to be a single integer value or a list of ", dims,
               " values to match the convolution dimensions, but got ", name, "=", list);
}

// Formats the last `dims` numbers as "(2 x 3)".
std::string times(const Spatial& sizes, size_t dims) {
  std::string out = "(";
  for (size_t d = 3 - dims; d < 3; ++d) out += str_cat({d == 3 - dims ? "" : " x ", sizes[d]});
  return out + ")";
}

struct Arguments {
  const char* op;
  size_t dims;
  bool transposed;
  Geometry geometry;
  Spatial output_padding;
};

Arguments make_arguments(const char* op, size_t dims, bool transposed, IntSpan stride, IntSpan padding,
                         IntSpan dilation, IntSpan output_padding, int64_t groups) {
  check_list("stride", stride, dims);
  check_list("padding", padding, dims);
  check_list("dilation", dilation, dims);
  if (transposed) check_list("output_padding", output_padding, dims);
  for (const int64_t p : padding) TERCEL_CHECK(p >= 0, RuntimeError, "negative padding is not supported");
  for (const int64_t p : output_padding) TERCEL_CHECK(p >= 0, RuntimeError, "negative output_padding is not supported");
  for (const int64_t s : stride) TERCEL_CHECK(s > 0, RuntimeError, "non-positive stride is not supported");
  for (const int64_t d : dilation)
    TERCEL_CHECK(d > 0, RuntimeError, "dilation should be greater than zero, but got ", dilation);
  TERCEL_CHECK(groups > 0, RuntimeError, "non-positive groups is not supported");
  return {op, dims, transposed,
          Geometry{spread(stride, dims, 1), spread(padding, dims, 0), spread(dilation, dims, 1), groups},
          spread(output_padding, dims, 0)};
}

void check_operands(const Arguments& a, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const int64_t groups = a.geometry.groups, dims = static_cast<int64_t>(a.dims);
  TERCEL_CHECK(x.dim() == weight.dim() && weight.dim() == dims + 2, RuntimeError, "Expected ", dims + 2,
               "-dimensional input for ", dims + 2, "-dimensional weight ", weight.sizes(), ", but got ", x.dim(),
               "-dimensional input of size ", x.sizes(), " instead");
  TERCEL_CHECK(weight.size(0) >= groups, RuntimeError, "Given groups=", groups, ", expected weight to be at least ",
               groups, " at dimension 0, but got weight of size ", weight.sizes(), " instead");
  TERCEL_CHECK(weight.size(0) % groups == 0, RuntimeError, "Given groups=", groups,
               ", expected weight to be divisible by ", groups, " at dimension 0, but got weight of size ",
               weight.sizes(), " instead");
  const int64_t channels = a.transposed ? weight.size(0) : weight.size(1) * groups;
  TERCEL_CHECK(x.size(1) == channels, RuntimeError, "Given ",
               a.transposed ? "transposed=1" : "groups=", a.transposed ? "" : str_cat({groups}), ", weight of size ",
               weight.sizes(), ", expected input", x.sizes(), " to have ", channels, " channels, but got ", x.size(1),
               " channels instead");
  const int64_t outputs = a.transposed ? weight.size(1) * groups : weight.size(0);
  if (bias.defined()) {
    TERCEL_CHECK(bias.dim() == 1 && bias.size(0) == outputs, RuntimeError, "Given ",
                 a.transposed ? "transposed=1, " : "", "weight of size ", weight.sizes(),
                 ", expected bias to be 1-dimensional with ", outputs, " elements, but got bias of size ", bias.sizes(),
                 " instead");
    TERCEL_CHECK(bias.dtype() == x.dtype(), RuntimeError, "Input type (", scalar_type_word(x.dtype()),
                 ") and bias type (", scalar_type_word(bias.dtype()), ") should be the same");
  }
  TERCEL_CHECK(x.dtype() == weight.dtype(), RuntimeError, "Input type (", scalar_type_word(x.dtype()),
               ") and weight type (", scalar_type_word(weight.dtype()), ") should be the same");
  if (x.dtype() == kBool) refuse_dtype(a.op, kBool);
}

DimVector output_sizes(const Arguments& a, const Tensor& x, const Tensor& weight) {
  const Geometry& g = a.geometry;
  DimVector sizes{x.size(0), a.transposed ? weight.size(1) * g.groups : weight.size(0)};
  const Spatial in = spatial_sizes(x.sizes(), a.dims), kernel = spatial_sizes(weight.sizes(), a.dims);
  Spatial padded{}, reach{};
  bool fits = true;
  for (size_t d = 3 - a.dims; d < 3; ++d) {
    reach[d] = checked(a.op, g.dilation[d], kernel[d] - 1, 1);
    padded[d] = checked(a.op, 2, g.padding[d], in[d]);
    fits = fits && (a.transposed || (padded[d] >= reach[d] && kernel[d] > 0));
  }
  TERCEL_CHECK(fits, RuntimeError, "Calculated padded input size per channel: ", times(padded, a.dims),
               ". Kernel size: ", times(reach, a.dims), ". Kernel size can't be greater than actual input size");
  for (size_t d = 3 - a.dims; d < 3; ++d) {
    if (!a.transposed) {
      sizes.push_back((padded[d] - reach[d]) / g.stride[d] + 1);
      continue;
    }
    TERCEL_CHECK(a.output_padding[d] < g.stride[d] || a.output_padding[d] < g.dilation[d], RuntimeError,
                 "output padding must be smaller than either stride or dilation, but got output_padding: ",
                 a.output_padding[d], " stride: ", g.stride[d], " dilation: ", g.dilation[d]);
    const int64_t size = checked(
        a.op, -2, g.padding[d], checked(a.op, in[d] - 1, g.stride[d], checked(a.op, 1, reach[d], a.output_padding[d])));
    TERCEL_CHECK(size >= 0, RuntimeError, "Given input size per channel: ", times(in, a.dims),
                 ". Calculated output size per channel: ", size, ". Output size is too small");
    sizes.push_back(size);
  }
  return sizes;
}

Tensor convolve(const Arguments& a, const Tensor& x, const Tensor& weight, const Tensor& bias);

/** Adds the bias of a channel to all of its positions. */
Tensor with_bias(const Tensor& out, const Tensor& bias, size_t dims) {
  if (!bias.defined()) return out;
  DimVector column(dims + 1, 1);
  column[0] = bias.size(0);
  return add(out, view(bias, column));
}

/** For complex numbers: composed of real convolutions of the parts, since a convolution is bilinear. */
Tensor convolve_complex(const Arguments& a, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor xs[] = {real(x), imag(x)}, weights[] = {real(weight), imag(weight)};
  const auto part = [&](int i, int j) { return convolve(a, xs[i], weights[j], Tensor()); };
  const Tensor out = complex(sub(part(0, 0), part(1, 1)), add(part(0, 1), part(1, 0)));
  return with_bias(out, bias, a.dims);
}

double largest_magnitude(const Tensor& x) {
  if (x.numel() == 0) return 0;
  const MinAndMax extremes = aminmax(x);
  return std::max(std::abs(extremes.min.item<double>()), std::abs(extremes.max.item<double>()));
}

/**
 * For int64: computed in float64 if all sums are in the range in which that is exact. Otherwise the operand with larger
 * numbers is split into two with half as many bits each; sums wrap like int64 sums.
 */
Tensor convolve_integers(const Arguments& a, const Tensor& x, const Tensor& weight) {
  const double of_x = largest_magnitude(x), of_weight = largest_magnitude(weight);
  if (of_x * of_weight * static_cast<double>(weight.numel()) < 0x1p53)
    return to(convolve(a, to(x, kFloat64), to(weight, kFloat64), Tensor()), kInt64);
  const bool cut_x = of_x >= of_weight;
  const Tensor& large = cut_x ? x : weight;
  const auto bits = static_cast<int64_t>(std::ilogb(cut_x ? of_x : of_weight) + 1) / 2;
  const auto part = [&](const Tensor& t) {
    return cut_x ? convolve_integers(a, t, weight) : convolve_integers(a, x, t);
  };
  const Tensor high = part(bitwise_right_shift(large, bits)), low = part(bitwise_and(large, (int64_t{1} << bits) - 1));
  return add(mul(high, int64_t{1} << bits), low);
}

Tensor convolve(const Arguments& a, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_strided(a.op, x, "input");
  check_strided(a.op, weight, "weight");
  const int64_t dims = static_cast<int64_t>(a.dims);
  TERCEL_CHECK(x.dim() == dims + 1 || x.dim() == dims + 2, RuntimeError, "Expected ", dims + 1, "D (unbatched) or ",
               dims + 2, "D (batched) input to ", a.op, ", but got input of size: ", x.sizes());
  if (x.dim() == dims + 1) return squeeze(convolve(a, unsqueeze(x, 0), weight, bias), 0);
  check_operands(a, x, weight, bias);
  if (x.is_complex()) return convolve_complex(a, x, weight, bias);
  if (!x.is_floating_point()) {
    const Tensor out = convolve_integers(a, to(x, kInt64), to(weight, kInt64));
    return with_bias(to(out, x.dtype()), bias, a.dims);
  }
  if (x.dtype() == kFloat16 || x.dtype() == kBFloat16)
    return to(convolve(a, to(x, kFloat32), to(weight, kFloat32), bias.defined() ? to(bias, kFloat32) : bias),
              x.dtype());
  const DimVector sizes = output_sizes(a, x, weight);
  if (a.dims == 1) {
    // There is no channels-last format of three dimensions.
    DimVector planes{sizes[0], sizes[1], 1, sizes[2]};
    const Tensor image = unsqueeze(contiguous(x), 2), kernel = unsqueeze(contiguous(weight), 2);
    Tensor out = a.transposed ? input_op(image, kernel, a.geometry, planes)
                              : forward_op(image, kernel, bias, a.geometry, planes);
    if (a.transposed && bias.defined()) out = add(out, view(bias, {-1, 1, 1}));
    return squeeze(contiguous(out), 2);
  }
  if (!a.transposed) return forward_op(x, weight, bias, a.geometry, sizes);
  const Tensor out = input_op(x, weight, a.geometry, sizes);
  if (!bias.defined()) return out;
  return add(out, a.dims == 2 ? view(bias, {-1, 1, 1}) : view(bias, {-1, 1, 1, 1}));
}

Tensor convolve(const char* op, size_t dims, const Tensor& x, const Tensor& weight, const Tensor& bias, IntSpan stride,
                IntSpan padding, IntSpan dilation, int64_t groups) {
  return convolve(make_arguments(op, dims, false, stride, padding, dilation, {0}, groups), x, weight, bias);
}

Tensor convolve_named(const char* op, size_t dims, const Tensor& x, const Tensor& weight, const Tensor& bias,
                      IntSpan stride, NamedPadding padding, IntSpan dilation, int64_t groups) {
  if (padding == NamedPadding::Valid) return convolve(op, dims, x, weight, bias, stride, {0}, dilation, groups);
  for (const int64_t s : stride)
    TERCEL_CHECK(s == 1, RuntimeError, "padding='same' is not supported for strided convolutions");
  check_strided(op, x, "input");
  check_strided(op, weight, "weight");
  const Arguments a = make_arguments(op, dims, false, stride, {0}, dilation, {0}, groups);
  TERCEL_CHECK(weight.dim() == static_cast<int64_t>(dims) + 2 && x.dim() >= static_cast<int64_t>(dims) + 1,
               RuntimeError, "Expected ", dims + 2, "-dimensional input for ", dims + 2, "-dimensional weight ",
               weight.sizes(), ", but got ", x.dim(), "-dimensional input of size ", x.sizes(), " instead");
  // If the total is odd, one more is needed at the end: the image is padded there.
  DimVector before;
  Tensor image = x;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t total =
        checked(op, a.geometry.dilation[3 - dims + d], weight.size(static_cast<int64_t>(d) + 2) - 1, 0);
    TERCEL_CHECK(total >= 0, RuntimeError, op, ": expected a kernel that is not empty but got weight ", weight.sizes());
    before.push_back(total / 2);
    if (total % 2 == 0) continue;
    const int64_t dim = image.dim() - static_cast<int64_t>(dims - d);
    DimVector sizes(image.sizes());
    sizes[static_cast<size_t>(dim)] = 1;
    const Tensor parts[] = {image, zeros(sizes, image.options())};
    image = cat(parts, dim);
  }
  return convolve(op, dims, image, weight, bias, stride, before, dilation, groups);
}

}  // namespace

#define TERCEL_CONV(name, dims)                                                                                \
  Tensor name(const Tensor& x, const Tensor& weight, const Tensor& bias, IntSpan stride, IntSpan padding,      \
              IntSpan dilation, int64_t groups) {                                                              \
    return convolve(#name, dims, x, weight, bias, stride, padding, dilation, groups);                          \
  }                                                                                                            \
  Tensor name(const Tensor& x, const Tensor& weight, const Tensor& bias, IntSpan stride, NamedPadding padding, \
              IntSpan dilation, int64_t groups) {                                                              \
    return convolve_named(#name, dims, x, weight, bias, stride, padding, dilation, groups);                    \
  }
#define TERCEL_CONV_TRANSPOSE(name, dims)                                                                            \
  Tensor name(const Tensor& x, const Tensor& weight, const Tensor& bias, IntSpan stride, IntSpan padding,            \
              IntSpan output_padding, int64_t groups, IntSpan dilation) {                                            \
    return convolve(make_arguments(#name, dims, true, stride, padding, dilation, output_padding, groups), x, weight, \
                    bias);                                                                                           \
  }
TERCEL_CONV(conv1d, 1)
TERCEL_CONV(conv2d, 2)
TERCEL_CONV(conv3d, 3)
TERCEL_CONV_TRANSPOSE(conv_transpose1d, 1)
TERCEL_CONV_TRANSPOSE(conv_transpose2d, 2)
TERCEL_CONV_TRANSPOSE(conv_transpose3d, 3)
#undef TERCEL_CONV
#undef TERCEL_CONV_TRANSPOSE

}  // namespace tercel
