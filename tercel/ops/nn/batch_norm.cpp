#include "tercel/ops/nn/batch_norm.h"

#include <algorithm>

#include "tercel/autograd/not_implemented.h"
#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/batch_norm_kernels.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<BatchNormFn> statistics_kernels = TERCEL_CPU_KERNELS(batch_norm_statistics);
constinit const KernelTable<BatchNormFn> forward_kernels = TERCEL_CPU_KERNELS(batch_norm);
constinit const KernelTable<BatchNormFn> sums_kernels = TERCEL_CPU_KERNELS(batch_norm_sums);
constinit const KernelTable<BatchNormFn> backward_kernels = TERCEL_CPU_KERNELS(batch_norm_backward);

constexpr const char* kOp = "batch_norm";
constexpr int64_t kGrainElements = 32768;

ScalarType compute_dtype(const Tensor& x) { return native_dtype(compute_of(x.dtype())); }

// x in its suggested memory format: channels last, or one plane per channel of an image.
Tensor in_order(const Tensor& x, ScalarType dtype, MemoryFormat format) { return contiguous(to(x, dtype), format); }

bool has_channels_last(const Tensor& x, MemoryFormat format) {
  return x.dim() == 2 || format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d;
}

// Runs a kernel over channels, in units of a cache line.
void run_channels(const KernelTable<BatchNormFn>& kernels, const BatchNormLoop& loop, Device device) {
  const auto kernel = kernels[device];
  const int64_t unit = loop.channels_last ? kBatchNormChannels : 1, size = loop.images * loop.pixels * unit;
  parallel_for(0, ceil_div(loop.channels, unit), std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, size)),
               [&](int64_t begin, int64_t end) { kernel(loop, begin * unit, std::min(end * unit, loop.channels)); });
}
// Runs a kernel over rows.
void run_rows(const KernelTable<BatchNormFn>& kernels, const BatchNormLoop& loop, Device device) {
  const auto kernel = kernels[device];
  const int64_t rows = loop.images * (loop.channels_last ? loop.pixels : loop.channels);
  const int64_t length = std::max<int64_t>(1, loop.channels_last ? loop.channels : loop.pixels);
  parallel_for(0, rows, std::max<int64_t>(1, kGrainElements / length),
               [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
}

void check_parameter(const Tensor& t, const char* name, int64_t channels) {
  check_channels(kOp, t, name, channels);
  TERCEL_CHECK(!t.defined() || t.is_floating_point(), RuntimeError, kOp, ": expected floating ", name, " but got ",
               describe(t));
}

void* data_or_null(const Tensor& t) { return t.defined() ? t.data_ptr() : nullptr; }

// Statistics and parameters of a call, in the compute type.
struct Channels {
  Tensor mean, inverse_std, weight;
};

// Describes x as images, channels and pixels.
BatchNormLoop make_loop(const Tensor& x, MemoryFormat format, const Channels& channels,
                        const BatchNormOptions& options) {
  BatchNormLoop loop{};
  loop.compute = compute_of(x.dtype());
  loop.channels_last = has_channels_last(x, format);
  loop.channels = x.size(1);
  // A matrix is one image.
  loop.images = x.dim() == 2 ? 1 : x.size(0);
  loop.pixels = x.numel() == 0 ? 0 : x.numel() / loop.channels / loop.images;
  loop.x = x.data_ptr();
  loop.weight = data_or_null(channels.weight);
  loop.mean = data_or_null(channels.mean);
  loop.inverse_std = data_or_null(channels.inverse_std);
  loop.eps = options.eps;
  return loop;
}

// running = (1 - momentum) * running + momentum * now
void move_running(const Tensor& running, const Tensor& now, double momentum) {
  if (running.defined()) lerp_(running, to(now, running.dtype()), momentum);
}

Channels statistics(const Tensor& x, MemoryFormat format, const Tensor& running_mean, const Tensor& running_var,
                    const BatchNormOptions& options) {
  Channels channels;
  const TensorOptions like(x.dtype(), x.device());
  if (!options.training) {
    channels.mean = contiguous(to(running_mean, x.dtype()));
    channels.inverse_std = contiguous(rsqrt(add(to(running_var, x.dtype()), options.eps)));
    return channels;
  }
  const DimVector size = {x.size(1)};
  if (x.numel() == 0) {  // no statistics to update
    channels.mean = channels.inverse_std = zeros(size, like);
    return channels;
  }
  channels.mean = empty(size, like);
  channels.inverse_std = empty(size, like);
  const Tensor var = empty(size, like);
  BatchNormLoop loop = make_loop(x, format, channels, options);
  loop.var = var.data_ptr();
  run_channels(statistics_kernels, loop, x.device());
  const auto n = static_cast<double>(loop.images * loop.pixels);
  move_running(running_mean, channels.mean, options.momentum);
  if (running_var.defined()) move_running(running_var, mul(var, n / (n - 1)), options.momentum);
  return channels;
}

// For second derivatives: x [n, channels, ...] as a contiguous matrix of the compute type, with channels last.
Tensor as_rows(const Tensor& x, ScalarType dtype) {
  const Tensor last = x.dim() > 2 ? transpose(flatten(x, 2, -1), 1, 2) : x;
  const int64_t channels = last.size(-1), n = last.size(0) * (x.dim() > 2 ? last.size(1) : 1);
  return view(contiguous(to(last, dtype)), {n, channels});
}

// The reverse of as_rows(), for a result with x's sizes.
Tensor as_given(const Tensor& rows, const Tensor& like) {
  const Tensor converted = to(rows, like.dtype());
  if (like.dim() == 2) return converted;
  const int64_t n = like.size(0), channels = like.size(1), inner = flatten(like, 2, -1).size(2);
  return view(contiguous(transpose(view(converted, {n, inner, channels}), 1, 2)), like.sizes());
}

// The gradients composed of ops, for second derivatives: the statistics of a batch are then functions of x.
void recorded_gradient(BackwardCall& call, const Tensor& given, const Channels& channels,
                       const BatchNormOptions& options) {
  const ScalarType dtype = compute_dtype(given);
  const Tensor x = as_rows(given, dtype), g = as_rows(call.grad(), dtype);
  const auto mean_of = [](const Tensor& t) { return mean(t, {0}, true); };
  Tensor centered, inverse_std;
  if (options.training) {
    centered = sub(x, mean_of(x));
    inverse_std = rsqrt(add(mean_of(square(centered)), options.eps));
  } else {
    centered = sub(x, channels.mean);
    inverse_std = channels.inverse_std;
  }
  const Tensor normal = mul(centered, inverse_std);
  if (call.needs(0)) {
    Tensor scaled = channels.weight.defined() ? mul(g, to(channels.weight, dtype)) : g;
    if (options.training) scaled = sub(sub(scaled, mean_of(scaled)), mul(normal, mean_of(mul(scaled, normal))));
    call.set(0, as_given(mul(scaled, inverse_std), given));
  }
  if (call.needs(1)) call.set(1, to(sum(mul(g, normal), {0}), channels.weight.dtype()));
  if (call.needs(2)) call.set(2, sum(g, {0}));
}

// Saved tensors, and gradients computed by kernels.
struct Backward {
  SavedTensor x, mean, inverse_std, weight, given_weight;
  BatchNormOptions options;
  ScalarType weight_dtype, bias_dtype;

  void operator()(BackwardCall& call) const {
    if (is_recording()) {
      recorded_gradient(call, x.get(), {mean.get(), inverse_std.get(), given_weight.get()}, options);
      if (call.needs(2)) call.set(2, to(call.result(2).values, bias_dtype));
      return;
    }
    const Tensor given = x.get();
    const ScalarType dtype = compute_dtype(given);
    const MemoryFormat format = given.suggest_memory_format();
    const Tensor ordered = in_order(given, dtype, format), grad = in_order(call.grad(), dtype, format);
    BatchNormLoop loop = make_loop(ordered, format, {mean.get(), inverse_std.get(), weight.get()}, options);
    loop.grad = grad.data_ptr();
    const auto of_channels = [&] { return empty({loop.channels}, ordered.options()); };
    Tensor sums[2], averages[2];
    if (options.training || call.needs(1) || call.needs(2)) {
      for (Tensor& t : sums) t = of_channels();
      loop.grad_sum = sums[0].data_ptr();
      loop.grad_dot = sums[1].data_ptr();
      if (options.training) {
        for (Tensor& t : averages) t = of_channels();
        loop.shift = averages[0].data_ptr();
        loop.slope = averages[1].data_ptr();
      }
      run_channels(sums_kernels, loop, ordered.device());
    }
    if (call.needs(0)) {
      const Tensor out = empty(ordered.sizes(), ordered.options(), format);
      loop.out = out.data_ptr();
      run_rows(backward_kernels, loop, ordered.device());
      call.set(0, to(out, given.dtype()));
    }
    if (call.needs(1)) call.set(1, to(sums[1], weight_dtype));
    if (call.needs(2)) call.set(2, to(sums[0], bias_dtype));
  }
};

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                  const Tensor& bias, const BatchNormOptions& options) {
  const ProfileRange range("batch_norm", RangeKind::Op);
  check_strided(kOp, x, "x");
  TERCEL_CHECK(x.is_floating_point(), RuntimeError, kOp, ": expected floating x but got ", describe(x));
  TERCEL_CHECK(x.dim() >= 2, RuntimeError, kOp, ": expected x [n, channels, ...] but got ", describe(x));
  const int64_t channels = x.size(1);
  check_parameter(running_mean, "running_mean", channels);
  check_parameter(running_var, "running_var", channels);
  check_parameter(weight, "weight", channels);
  check_parameter(bias, "bias", channels);
  TERCEL_CHECK(options.training || (running_mean.defined() && running_var.defined()), RuntimeError, kOp,
               ": Expected running_mean and running_var to be defined when training=False");
  check_without_gradient("native_batch_norm", running_mean, "running_mean");
  check_without_gradient("native_batch_norm", running_var, "running_var");
  TERCEL_CHECK(!options.training || channels == 0 || x.numel() / channels != 1, RuntimeError, kOp,
               ": Expected more than 1 value per channel when training, got input size ", x.sizes());

  Tensor out;
  Channels saved;
  {
    const NoRecordGuard no_record;
    const ScalarType dtype = compute_dtype(x);
    const MemoryFormat format = x.suggest_memory_format();
    const Tensor ordered = in_order(x, dtype, format);
    saved = statistics(ordered, format, running_mean, running_var, options);
    Tensor shift;
    if (weight.defined()) saved.weight = contiguous(to(weight, dtype));
    if (bias.defined()) shift = contiguous(to(bias, dtype));
    out = empty(ordered.sizes(), ordered.options(), format);
    BatchNormLoop loop = make_loop(ordered, format, saved, options);
    loop.bias = data_or_null(shift);
    loop.out = out.data_ptr();
    run_rows(forward_kernels, loop, x.device());
    out = to(out, x.dtype());
  }
  if (should_record(x, weight, bias))
    record("BatchNormBackward0", out, {x, weight, bias},
           Backward{SavedTensor(x), SavedTensor(saved.mean), SavedTensor(saved.inverse_std), SavedTensor(saved.weight),
                    SavedTensor(weight), options, weight.dtype(), bias.dtype()});
  return out;
}

}  // namespace tercel
