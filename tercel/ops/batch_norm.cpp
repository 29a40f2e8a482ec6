#include "tercel/ops/batch_norm.h"

#include <algorithm>

#include "tercel/autograd/not_implemented.h"
#include "tercel/autograd/record.h"
#include "tercel/ops/batch_norm_impl.h"
#include "tercel/ops/binary.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/factories.h"
#include "tercel/ops/reduce.h"
#include "tercel/ops/ternary.h"
#include "tercel/ops/unary.h"
#include "tercel/ops/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<BatchNormFn> statistics_kernels = TERCEL_CPU_KERNELS(batch_norm_statistics);
constinit const KernelTable<BatchNormFn> forward_kernels = TERCEL_CPU_KERNELS(batch_norm);
constinit const KernelTable<BatchNormFn> backward_kernels = TERCEL_CPU_KERNELS(batch_norm_backward);

constexpr const char* kOp = "batch_norm";
// Elements worth another thread.
constexpr int64_t kGrain = 32768;

ScalarType compute_dtype(const Tensor& x) { return native_dtype(compute_of(x.dtype())); }

// x [n, channels, ...] as a contiguous matrix of the compute type, channels last.
Tensor as_rows(const Tensor& x, ScalarType dtype) {
  const Tensor last = x.dim() > 2 ? transpose(flatten(x, 2, -1), 1, 2) : x;
  const int64_t channels = last.size(-1), n = last.size(0) * (x.dim() > 2 ? last.size(1) : 1);
  return view(contiguous(to(last, dtype)), {n, channels});
}

// The reverse, for a result of x's sizes.
Tensor as_given(const Tensor& rows, const Tensor& like) {
  const Tensor converted = to(rows, like.dtype());
  if (like.dim() == 2) return converted;
  const int64_t n = like.size(0), channels = like.size(1), inner = flatten(like, 2, -1).size(2);
  return view(contiguous(transpose(view(converted, {n, inner, channels}), 1, 2)), like.sizes());
}

void run(const KernelTable<BatchNormFn>& kernels, const BatchNormLoop& loop, Device device) {
  const auto kernel = kernels[device];
  const int64_t strips = (loop.channels + kBatchNormStrip - 1) / kBatchNormStrip;
  parallel_for(0, strips, std::max<int64_t>(1, kGrain / (std::max<int64_t>(1, loop.n) * kBatchNormStrip)),
               [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
}

void check_channels(const Tensor& t, const char* name, int64_t channels) {
  if (t.defined())
    TERCEL_CHECK(t.dim() == 1 && t.size(0) == channels && t.is_floating_point(), RuntimeError, kOp, ": expected ", name,
                 " [", channels, "] but got ", describe(t));
}

void* data_or_null(const Tensor& t) { return t.defined() ? t.data_ptr() : nullptr; }

// Statistics and parameters of a call, in the compute type.
struct Channels {
  Tensor mean, inverse_std, weight;
};

BatchNormLoop make_loop(const Tensor& rows, const Channels& channels, const BatchNormOptions& options) {
  BatchNormLoop loop{};
  loop.compute = compute_of(rows.dtype());
  loop.n = rows.size(0);
  loop.channels = rows.size(1);
  loop.x = rows.data_ptr();
  loop.weight = data_or_null(channels.weight);
  loop.mean = data_or_null(channels.mean);
  loop.inverse_std = data_or_null(channels.inverse_std);
  loop.eps = options.eps;
  loop.training = options.training;
  return loop;
}

// running = (1 - momentum) * running + momentum * now
void move_running(const Tensor& running, const Tensor& now, double momentum) {
  if (running.defined()) lerp_(running, to(now, running.dtype()), momentum);
}

Channels statistics(const Tensor& rows, const Tensor& running_mean, const Tensor& running_var,
                    const BatchNormOptions& options) {
  Channels channels;
  const TensorOptions like(rows.dtype(), rows.device());
  if (!options.training) {
    channels.mean = contiguous(to(running_mean, rows.dtype()));
    channels.inverse_std = rsqrt(add(to(running_var, rows.dtype()), options.eps));
    return channels;
  }
  if (rows.size(0) == 0) {  // nothing to learn from
    channels.mean = channels.inverse_std = zeros({rows.size(1)}, like);
    return channels;
  }
  channels.mean = empty({rows.size(1)}, like);
  channels.inverse_std = empty({rows.size(1)}, like);
  const Tensor var = empty({rows.size(1)}, like);
  BatchNormLoop loop = make_loop(rows, channels, options);
  loop.var = var.data_ptr();
  run(statistics_kernels, loop, rows.device());
  const double n = static_cast<double>(rows.size(0));
  move_running(running_mean, channels.mean, options.momentum);
  if (running_var.defined()) move_running(running_var, mul(var, n / (n - 1)), options.momentum);
  return channels;
}

// The gradients from ops, for second derivatives: the statistics of a batch are functions of x there.
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

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                  const Tensor& bias, const BatchNormOptions& options) {
  check_defined(x, kOp, "x");
  TERCEL_CHECK(x.is_floating_point(), RuntimeError, kOp, ": expected floating x but got ", describe(x));
  TERCEL_CHECK(x.dim() >= 2, RuntimeError, kOp, ": expected x [n, channels, ...] but got ", describe(x));
  const int64_t channels = x.size(1);
  check_channels(running_mean, "running_mean", channels);
  check_channels(running_var, "running_var", channels);
  check_channels(weight, "weight", channels);
  check_channels(bias, "bias", channels);
  TERCEL_CHECK(options.training || (running_mean.defined() && running_var.defined()), RuntimeError, kOp,
               ": Expected running_mean and running_var to be defined when training=False");
  check_without_gradient("native_batch_norm", "running_mean", running_mean);
  check_without_gradient("native_batch_norm", "running_var", running_var);
  TERCEL_CHECK(!options.training || channels == 0 || x.numel() / channels != 1, RuntimeError, kOp,
               ": Expected more than 1 value per channel when training, got input size ", x.sizes());

  Tensor out;
  Channels saved;
  {
    const NoRecordGuard no_record;
    const ScalarType dtype = compute_dtype(x);
    const Tensor rows = as_rows(x, dtype);
    saved = statistics(rows, running_mean, running_var, options);
    Tensor shift;
    if (weight.defined()) saved.weight = contiguous(to(weight, dtype));
    if (bias.defined()) shift = contiguous(to(bias, dtype));
    out = empty(rows.sizes(), rows.options());
    BatchNormLoop loop = make_loop(rows, saved, options);
    loop.bias = data_or_null(shift);
    loop.out = out.data_ptr();
    run(forward_kernels, loop, x.device());
    out = as_given(out, x);
  }
  if (should_record(x, weight, bias))
    record("BatchNormBackward0", out, {x, weight, bias},
           [x = SavedTensor(x), mean = SavedTensor(saved.mean), inverse_std = SavedTensor(saved.inverse_std),
            weight = SavedTensor(saved.weight), given_weight = SavedTensor(weight), options,
            weight_dtype = weight.dtype(), bias_dtype = bias.dtype()](BackwardCall& call) {
             if (is_recording()) {
               recorded_gradient(call, x.get(), {mean.get(), inverse_std.get(), given_weight.get()}, options);
               if (call.needs(2)) call.set(2, to(call.result(2).values, bias_dtype));
               return;
             }
             const ScalarType dtype = compute_dtype(x.get());
             const Tensor rows = as_rows(x.get(), dtype), grad = as_rows(call.grad(), dtype);
             BatchNormLoop loop = make_loop(rows, {mean.get(), inverse_std.get(), weight.get()}, options);
             loop.grad = grad.data_ptr();
             Tensor x_grad, weight_grad, bias_grad;
             if (call.needs(0)) x_grad = empty(rows.sizes(), rows.options());
             if (call.needs(1)) weight_grad = empty({rows.size(1)}, rows.options());
             if (call.needs(2)) bias_grad = empty({rows.size(1)}, rows.options());
             loop.out = data_or_null(x_grad);
             loop.weight_grad = data_or_null(weight_grad);
             loop.bias_grad = data_or_null(bias_grad);
             run(backward_kernels, loop, rows.device());
             if (call.needs(0)) call.set(0, as_given(x_grad, x.get()));
             if (call.needs(1)) call.set(1, to(weight_grad, weight_dtype));
             if (call.needs(2)) call.set(2, to(bias_grad, bias_dtype));
           });
  return out;
}

}  // namespace tercel
