#include "tercel/ops/nn/pool.h"

#include <algorithm>
#include <limits>

#include "tercel/autograd/record.h"
#include "tercel/core/allocator.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/scatter.h"
#include "tercel/ops/nn/pool_kernels.h"
#include "tercel/ops/nn/separable_resize_impl.h"
#include "tercel/ops/nn/spatial_impl.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/scan.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<MaxPoolFn> max_kernels = TERCEL_CPU_KERNELS(max_pool);
constinit const KernelTable<MaxPoolBackwardFn> max_backward_kernels = TERCEL_CPU_KERNELS(max_pool_backward);

constexpr int64_t kGrainElements = 16384;

// Windows of the outputs along one dimension.
struct Windows {
  int64_t step = 1;
  std::vector<int64_t> start, count;  // inside the image
  std::vector<int64_t> padded;        // the count with padding
  std::vector<int64_t> outside;       // outputs whose window is only padding; start and count give the first pixel
};

// A pooling's arguments, expanded to three dimensions.
struct Pooling {
  const char* op;
  size_t dims;
  std::array<Windows, 3> windows;
};

std::string with_times(const char* separator, int64_t first, IntSpan rest) {
  std::string out = str_cat({"(", first});
  for (const int64_t v : rest) out += str_cat({separator, v});
  return out + ")";
}

/** Whether the dtype is supported; `own_loop`: pooling without indices that has a separate loop in PyTorch. */
bool pools(std::string_view op, ScalarType dtype, bool own_loop) {
  if (is_floating(dtype)) return true;
  if (op.starts_with("avg")) return dtype == kInt64;
  return is_integral(dtype, false) && !own_loop;
}

void check_input(const char* op, const Tensor& x, size_t dims, bool own_loop) {
  check_strided(op, x, "input");
  const int64_t least = static_cast<int64_t>(dims) + 1;
  bool fits = x.dim() == least || x.dim() == least + 1, empty = false;
  for (int64_t d = std::max<int64_t>(x.dim() - least, 0); d < x.dim(); ++d) {
    if (fits && x.size(d) == 0 && dims == 3)
      TERCEL_CHECK(std::string_view(op).starts_with("avg"), RuntimeError, op,
                   ": Expected input's non-batch dimensions to have positive length, but input has a shape of ",
                   x.sizes(), " and non-batch dimension ", d, " has length zero!");
    empty = empty || x.size(d) == 0;
  }
  TERCEL_CHECK((fits && !empty) || dims != 3, RuntimeError, op,
               ": non-empty 4D or 5D (batch mode) tensor expected for input, but got ", x.sizes());
  TERCEL_CHECK(fits && !empty, RuntimeError, op, ": Expected ", least, "D or ", least + 1,
               "D (batch mode) tensor with optional 0 dim batch size for input, but got:", x.sizes());
  if (!pools(op, x.dtype(), own_loop)) refuse_dtype(op, x.dtype());
}

int64_t pooled_size(const char* op, int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                    bool ceil_mode) {
  const int64_t reach = checked(op, dilation, kernel - 1, 1);
  int64_t room = checked(op, 2, padding, in) - reach;
  if (ceil_mode) room = checked(op, 1, room, stride - 1);
  int64_t out = floor_div(room, stride) + 1;
  // The last window must begin inside the image or the padding before it.
  if (ceil_mode && (out - 1) * stride >= in + padding) --out;
  return out;
}

/** The checks of PyTorch's one-dimensional loop, which is used without indices and gradients. */
void check_max_pool1d(int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  const auto positive = [](const char* name, int64_t value) {
    TERCEL_CHECK(value > 0, RuntimeError, "max_pool1d() ", name, " must be greater than zero, but got ", value);
  };
  positive("kernel_size", kernel);
  positive("stride", stride);
  TERCEL_CHECK(padding >= 0, RuntimeError, "max_pool1d() padding must be non-negative, but got ", padding);
  TERCEL_CHECK(padding <= kernel / 2, RuntimeError,
               "max_pool1d() padding should be at most half of kernel size, but got padding=", padding,
               " and kernel_size=", kernel);
  positive("dilation", dilation);
}

void check_padding(size_t dims, const Spatial& kernel, const Spatial& padding) {
  bool fits = true;
  for (size_t d = 0; d < 3; ++d) fits = fits && padding[d] <= kernel[d] / 2;
  if (dims == 3)
    TERCEL_CHECK(
        fits, RuntimeError, "pad should be smaller than or equal to half of kernel size, but got kT: ", kernel[0],
        " kW: ", kernel[2], " kH: ", kernel[1], " padT: ", padding[0], " padW: ", padding[2], " padH: ", padding[1]);
  else
    TERCEL_CHECK(fits, RuntimeError,
                 "pad should be smaller than or equal to half of kernel size, but got padW = ", padding[2],
                 ", padH = ", padding[1], ", kW = ", kernel[2], ", kH = ", kernel[1]);
}

Pooling make_pooling(const char* op, size_t dims, const Tensor& x, IntSpan kernel_list, IntSpan stride_list,
                     IntSpan padding_list, IntSpan dilation_list, bool ceil_mode, bool own_loop = false) {
  const auto check_list = [&](const char* name, IntSpan list, bool may_be_empty) {
    TERCEL_CHECK(list.size() == 1 || list.size() == dims || (may_be_empty && list.empty()), RuntimeError, op, ": ",
                 name, " must either be ", may_be_empty ? "omitted, " : "", "a single int, or a tuple of ",
                 dims == 1   ? "one int"
                 : dims == 2 ? "two ints"
                             : "three ints");
  };
  check_list("kernel_size", kernel_list, false);
  check_list("stride", stride_list, true);
  check_list("padding", padding_list, false);
  check_list("dilation", dilation_list, false);
  const Spatial kernel = spread(kernel_list, dims, 1),
                stride = spread(stride_list.empty() ? kernel_list : stride_list, dims, 1),
                padding = spread(padding_list, dims, 0), dilation = spread(dilation_list, dims, 1);
  own_loop = own_loop && dims == 1;
  if (own_loop) check_max_pool1d(kernel[2], stride[2], padding[2], dilation[2]);
  for (size_t d = 3 - dims; d < 3; ++d) {
    TERCEL_CHECK(stride[d] != 0, RuntimeError, "stride should not be zero");
    TERCEL_CHECK(kernel[d] > 0 && stride[d] > 0, RuntimeError, "kernel size should be greater than zero, but got ",
                 kernel_list, " and stride ", stride_list);
    TERCEL_CHECK(dilation[d] > 0, RuntimeError,
                 "dilation should be greater than zero, but got dilation: ", dilation_list);
    TERCEL_CHECK(padding[d] >= 0, RuntimeError, "pad must be non-negative, but got pad: ", padding[d]);
    TERCEL_CHECK(padding[d] <= (checked(op, dilation[d], kernel[d] - 1, 1)) / 2, RuntimeError,
                 "pad should be at most half of effective kernel size, but got pad=", padding[d],
                 ", kernel_size=", kernel[d], " and dilation=", dilation[d]);
  }
  check_input(op, x, dims, own_loop);
  check_padding(dims, kernel, padding);
  const Spatial in = spatial_sizes(x.sizes(), dims);
  Pooling pooling{op, dims, {}};
  DimVector sizes, outs;
  bool fits = true;
  for (size_t d = 0; d < 3; ++d) {
    const int64_t out = pooled_size(op, in[d], kernel[d], stride[d], padding[d], dilation[d], ceil_mode);
    if (d + std::max<size_t>(dims, 2) >= 3) {  // a line is treated as an image of one row
      sizes.push_back(in[d]);
      outs.push_back(out);
    }
    fits = fits && out >= 1;
    Windows& w = pooling.windows[d];
    w.step = dilation[d];
    for (int64_t o = 0; o < out && fits; ++o) {
      const int64_t begin = o * stride[d] - padding[d], end = begin + dilation[d] * (kernel[d] - 1) + 1;
      const int64_t skipped = begin < 0 ? (-begin - 1) / dilation[d] + 1 : 0;
      const int64_t start = begin + skipped * dilation[d], last = std::min(end, in[d]);
      const bool sees_pixels = last > start;
      if (!sees_pixels) w.outside.push_back(o);
      w.start.push_back(sees_pixels ? start : 0);
      w.count.push_back(sees_pixels ? (last - start - 1) / dilation[d] + 1 : 1);
      w.padded.push_back(std::min(begin + kernel[d], in[d] + padding[d]) - begin);
    }
  }
  const int64_t channels = x.size(x.dim() - static_cast<int64_t>(dims) - 1);
  TERCEL_CHECK(fits || !own_loop, RuntimeError, "max_pool1d() Invalid computed output size: ", outs.back());
  TERCEL_CHECK(fits, RuntimeError, "Given input size: ", with_times("x", channels, sizes),
               ". Calculated output size: ", with_times("x", channels, outs), ". Output size is too small");
  return pooling;
}

Pooling make_adaptive(const char* op, size_t dims, const Tensor& x, IntSpan output_size, bool averages = false) {
  check_strided(op, x, "input");
  const int64_t least = static_cast<int64_t>(dims) + 1;
  TERCEL_CHECK(output_size.size() == 1 || output_size.size() == dims, RuntimeError, op, "(): output_size must be ",
               dims, " numbers but got ", output_size);
  TERCEL_CHECK(x.dim() == least || x.dim() == least + 1, RuntimeError, op, "(): Expected ", least, "D or ", least + 1,
               "D tensor, but got ", x.sizes());
  for (int64_t d = x.dim() - static_cast<int64_t>(dims); d < x.dim(); ++d)
    TERCEL_CHECK(x.size(d) > 0, RuntimeError, op,
                 "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ", x.sizes(),
                 " with dimension ", d, " being empty");
  // The average of all elements is a mean, which complex numbers support.
  const bool whole = averages && std::all_of(output_size.begin(), output_size.end(), [](int64_t n) { return n == 1; });
  if (!x.is_floating_point() && !(x.is_complex() && whole)) refuse_dtype(op, x.dtype());
  const Spatial in = spatial_sizes(x.sizes(), dims), out = spread(output_size, dims, 1);
  for (const int64_t size : out)
    TERCEL_CHECK(size >= 0, RuntimeError, op,
                 ": elements of output_size must be greater than or equal to 0 but received ", output_size);
  check_room(x, dims, out);
  Pooling pooling{op, dims, {}};
  for (size_t d = 0; d < 3; ++d) {
    numel_of(IntSpan{out[d], in[d]});
    for (int64_t o = 0; o < out[d]; ++o) {
      const int64_t begin = o * in[d] / out[d], end = ((o + 1) * in[d] + out[d] - 1) / out[d];
      pooling.windows[d].start.push_back(begin);
      pooling.windows[d].count.push_back(end - begin);
      pooling.windows[d].padded.push_back(end - begin);
    }
  }
  return pooling;
}

// The gradient of x: adds gradients to the elements at the indices of the maxima.
Tensor max_pool_backward(const Tensor& grad, const Tensor& indices, IntSpan x_sizes, size_t dims) {
  const int64_t first = static_cast<int64_t>(x_sizes.size() - dims);
  DimVector flat(x_sizes.subspan(0, x_sizes.size() - dims));
  int64_t pixels = 1;
  for (size_t d = x_sizes.size() - dims; d < x_sizes.size(); ++d) pixels *= x_sizes[d];
  flat.push_back(pixels);
  if (should_record(grad))
    return view(scatter_add(zeros(flat, grad.options()), -1, flatten(contiguous(indices), first),
                            flatten(contiguous(grad), first)),
                x_sizes);
  const bool last = is_channels_last(indices, dims);
  const MemoryFormat format = last ? channels_last_format(indices.dim()) : MemoryFormat::Contiguous;
  const Tensor g = grad.is_contiguous(format) ? grad : clone(grad, format);
  const Tensor out = empty_strided(x_sizes, strides_for(x_sizes, format), grad.options());
  if (out.numel() == 0) return out;
  MaxPoolBackwardLoop loop{};
  loop.wide = grad.dtype() == kFloat64;
  loop.inner = last ? x_sizes[1] : 1;
  loop.in_pixels = pixels;
  const int64_t outer = out.numel() / pixels / loop.inner;
  loop.out_pixels = g.numel() / outer / loop.inner;
  loop.grad = g.data_ptr();
  loop.indices = indices.data<int64_t>();
  loop.x_grad = out.data_ptr();
  const auto kernel = max_backward_kernels[grad.device()];
  parallel_for(0, outer, std::max<int64_t>(1, kGrainElements / (pixels * loop.inner)),
               [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
  return out;
}

ValuesAndIndices run_max(const Tensor& x, const Pooling& p, bool with_indices) {
  const bool last = is_channels_last(x, p.dims);
  const Tensor input = last ? x : contiguous(x);
  MaxPoolLoop loop{};
  DimVector sizes(x.sizes());
  for (size_t d = 0; d < 3; ++d) {
    const Windows& w = p.windows[d];
    loop.in[d] = d + p.dims >= 3 ? x.sizes()[x.sizes().size() - 3 + d] : 1;
    loop.out[d] = static_cast<int64_t>(w.start.size());
    loop.step[d] = w.step;
    loop.start[d] = w.start.data();
    loop.count[d] = w.count.data();
    if (d + p.dims >= 3) sizes[sizes.size() - 3 + d] = loop.out[d];
  }
  TERCEL_CHECK(loop.in[0] * loop.in[1] <= INT32_MAX, RuntimeError, p.op, ": more than 2^31 rows in an image");
  const DimVector strides = strides_for(sizes, last ? channels_last_format(x.dim()) : MemoryFormat::Contiguous);
  ValuesAndIndices out{empty_strided(sizes, strides, x.options()), {}};
  if (with_indices) out.indices = empty_strided(sizes, strides, TensorOptions(kInt64, x.device()));
  if (out.values.numel() == 0) return out;
  loop.dtype = x.dtype();
  loop.inner = last ? x.size(1) : 1;
  loop.x = input.data_ptr();
  loop.out_values = out.values.data_ptr();
  loop.indices = with_indices ? out.indices.data<int64_t>() : nullptr;
  const auto kernel = max_kernels[x.device()];
  const int64_t width = loop.in[2] * loop.inner;
  parallel_for(0, out.values.numel() / (loop.out[2] * loop.inner), std::max<int64_t>(1, kGrainElements / width),
               [&](int64_t begin, int64_t end) {
                 const DataPtr scratch = cpu_allocator().allocate(static_cast<size_t>(width) * 2 * sizeof(double));
                 kernel(loop, scratch.get(), begin, end);
               });
  return out;
}

Scalar lowest_of(ScalarType dtype) {
  if (is_floating(dtype)) return -std::numeric_limits<double>::infinity();
  return visit_types<int64_t, int32_t, int16_t, int8_t, uint64_t, uint32_t, uint16_t, uint8_t>(
      "max_pool", dtype, []<class T>() { return Scalar(std::numeric_limits<T>::lowest()); });
}

/** Windows that contain only padding get the lowest number, and no gradient. */
Tensor without_outside(Tensor values, const Pooling& p) {
  for (size_t d = 3 - p.dims; d < 3; ++d) {
    const Windows& w = p.windows[d];
    if (w.outside.empty()) continue;
    DimVector column(3 - d, 1);
    column[0] = static_cast<int64_t>(w.start.size());
    const Tensor mask = zeros(column, kBool);
    for (const int64_t o : w.outside) mask.data<bool>()[o] = true;
    values = masked_fill(values, mask, lowest_of(values.dtype()));
  }
  return values;
}

ValuesAndIndices largest(const char* backward_name, const Tensor& x, const Pooling& p, bool want_indices) {
  if (x.dtype() != kFloat32 && x.dtype() != kFloat64 && x.dtype() != kInt64) {
    const ScalarType dtype = x.is_floating_point() ? kFloat32 : kInt64;
    ValuesAndIndices out = largest(backward_name, to(x, dtype), p, want_indices);
    out.values = without_outside(to(out.values, x.dtype()), p);
    return out;
  }
  ValuesAndIndices out;
  const bool records = should_record(x);
  {
    const NoRecordGuard no_record;
    out = run_max(x, p, want_indices || records);
  }
  if (records)
    record(backward_name, out.values, {x},
           [indices = SavedTensor(out.indices), sizes = DimVector(x.sizes()), dims = p.dims](BackwardCall& call) {
             call.set(0, max_pool_backward(call.grad(), indices.get(), sizes, dims));
           });
  out.values = without_outside(std::move(out.values), p);
  return out;
}

// Weights of an average over windows: 1 and a common divisor, if all windows have the same size; else reciprocals.
SpatialMap average_map(const Tensor& x, const Pooling& p, bool count_padding, std::optional<int64_t> divisor) {
  SpatialMap map;
  const Spatial in = spatial_sizes(x.sizes(), p.dims);
  for (size_t d = 0; d < 3; ++d) {
    const Windows& w = p.windows[d];
    const std::vector<int64_t>& counts = count_padding ? w.padded : w.count;
    const bool equal = divisor || std::all_of(counts.begin(), counts.end(), [&](int64_t c) { return c == counts[0]; });
    if (equal && !divisor && !counts.empty()) map.divisor *= static_cast<double>(counts[0]);
    Taps& taps = map.taps[d];
    taps.in = in[d];
    for (size_t o = 0; o < w.start.size(); ++o) {
      for (int64_t k = 0; k < w.count[o]; ++k)
        taps.add(w.start[o] + k * w.step, equal ? 1 : 1 / static_cast<double>(counts[o]));
      taps.end_output();
    }
  }
  if (divisor) map.divisor = static_cast<double>(*divisor);
  return map;
}

Tensor numbers(const std::vector<int64_t>& list) {
  Tensor out = empty({static_cast<int64_t>(list.size())}, kInt64);
  std::copy(list.begin(), list.end(), out.data<int64_t>());
  return out;
}

/** For integers: exact differences of running sums, dimension by dimension; quotients are truncated. */
Tensor average_integers(const Tensor& x, const Pooling& p, bool count_padding, std::optional<int64_t> divisor) {
  Tensor sums = x, divisors = full({1}, divisor.value_or(1), kInt64);
  for (size_t d = 3 - p.dims; d < 3; ++d) {
    const Windows& w = p.windows[d];
    const int64_t dim = x.dim() - 3 + static_cast<int64_t>(d);
    DimVector before(sums.sizes()), column(3 - d, 1);
    before[static_cast<size_t>(dim)] = 1;
    column[0] = static_cast<int64_t>(w.start.size());
    const Tensor parts[] = {zeros(before, x.options()), cumsum(sums, dim)};
    const Tensor running = cat(parts, dim), start = numbers(w.start);
    sums = sub(index_select(running, dim, add(start, numbers(w.count))), index_select(running, dim, start));
    if (!divisor) divisors = mul(divisors, view(numbers(count_padding ? w.padded : w.count), column));
  }
  return div(sums, divisors, "trunc");
}

Tensor average(const char* op, const char* backward_name, size_t dims, const Tensor& x, IntSpan kernel_size,
               IntSpan stride, IntSpan padding, bool ceil_mode, bool count_include_pad,
               std::optional<int64_t> divisor_override) {
  TERCEL_CHECK(!divisor_override || *divisor_override != 0, RuntimeError, "divisor must be not zero");
  const Pooling p = make_pooling(op, dims, x, kernel_size, stride, padding, {1}, ceil_mode);
  if (x.dtype() == kInt64) return average_integers(x, p, count_include_pad, divisor_override);
  return separable_resize(backward_name, x, dims, average_map(x, p, count_include_pad, divisor_override));
}

Tensor adaptive_average(const char* op, const char* backward_name, size_t dims, const Tensor& x, IntSpan output_size) {
  const Pooling p = make_adaptive(op, dims, x, output_size, true);
  if (x.is_complex()) {
    DimVector last;
    for (size_t d = dims; d > 0; --d) last.push_back(-static_cast<int64_t>(d));
    return mean(x, last, true);
  }
  return separable_resize(backward_name, x, dims, average_map(x, p, true, {}));
}

}  // namespace

#define TERCEL_MAX_POOL(dims, Backward)                                                                             \
  Tensor max_pool##dims##d(const Tensor& x, IntSpan kernel_size, IntSpan stride, IntSpan padding, IntSpan dilation, \
                           bool ceil_mode) {                                                                        \
    return largest(Backward, x,                                                                                     \
                   make_pooling("max_pool" #dims "d", dims, x, kernel_size, stride, padding, dilation, ceil_mode,   \
                                !should_record(x)),                                                                 \
                   false)                                                                                           \
        .values;                                                                                                    \
  }                                                                                                                 \
  ValuesAndIndices max_pool##dims##d_with_indices(const Tensor& x, IntSpan kernel_size, IntSpan stride,             \
                                                  IntSpan padding, IntSpan dilation, bool ceil_mode) {              \
    return largest(Backward, x,                                                                                     \
                   make_pooling("max_pool" #dims "d", dims, x, kernel_size, stride, padding, dilation, ceil_mode),  \
                   true);                                                                                           \
  }                                                                                                                 \
  ValuesAndIndices adaptive_max_pool##dims##d(const Tensor& x, IntSpan output_size) {                               \
    return largest("AdaptiveMaxPool" #dims "DBackward0", x,                                                         \
                   make_adaptive("adaptive_max_pool" #dims "d", dims, x, output_size), true);                       \
  }                                                                                                                 \
  Tensor adaptive_avg_pool##dims##d(const Tensor& x, IntSpan output_size) {                                         \
    return adaptive_average("adaptive_avg_pool" #dims "d", "AdaptiveAvgPool" #dims "DBackward0", dims, x,           \
                            output_size);                                                                           \
  }
TERCEL_MAX_POOL(1, "MaxPool1DWithIndicesBackward0")
TERCEL_MAX_POOL(2, "MaxPool2DWithIndicesBackward0")
TERCEL_MAX_POOL(3, "MaxPool3DWithIndicesBackward0")
#undef TERCEL_MAX_POOL

Tensor avg_pool1d(const Tensor& x, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                  bool count_include_pad) {
  return average("avg_pool1d", "AvgPool1DBackward0", 1, x, kernel_size, stride, padding, ceil_mode, count_include_pad,
                 {});
}
Tensor avg_pool2d(const Tensor& x, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor_override) {
  return average("avg_pool2d", "AvgPool2DBackward0", 2, x, kernel_size, stride, padding, ceil_mode, count_include_pad,
                 divisor_override);
}
Tensor avg_pool3d(const Tensor& x, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor_override) {
  return average("avg_pool3d", "AvgPool3DBackward0", 3, x, kernel_size, stride, padding, ceil_mode, count_include_pad,
                 divisor_override);
}

}  // namespace tercel
