#include "tercel/ops/nn/loss.h"

#include "tercel/autograd/record.h"
#include "tercel/core/launch.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/linear_beyond_impl.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/elementwise/activation.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/nn/loss_kernels.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<LossFn> cross_entropy_kernels = TERCEL_CPU_KERNELS(binary_cross_entropy_with_logits);

constexpr int64_t kGrainElements = 8192;

void check_target(const char* op, const Tensor& x, const Tensor& target) {
  check_strided(op, x, "x");
  check_strided(op, target, "target");
  TERCEL_CHECK(x.is_floating_point(), RuntimeError, op, ": expected floating x but got ", describe(x));
  TERCEL_CHECK(x.sizes() == target.sizes(), RuntimeError, op, ": Target size (", target.sizes(),
               ") must be the same as input size (", x.sizes(), ")");
}

ScalarType compute_dtype(const Tensor& x) { return native_dtype(compute_of(x.dtype())); }

// Lower bound of the divisor x (1 - x) in the gradient of binary_cross_entropy(), which keeps it finite at 0 and 1.
constexpr double kLeastDivisor = 1e-12;

void check_pair(const char* op, const Tensor& x, const Tensor& target) {
  check_strided(op, x, "input");
  check_strided(op, target, "target");
}

/** Half the squared difference of x and target if that is less than `limit`, linear beyond, times `scale`. */
Tensor linear_beyond(const char* backward, const Tensor& x, const Tensor& target, double limit, double scale) {
  Tensor losses;
  {
    const NoRecordGuard no_record;
    losses = linear_beyond_into(sub(x, target), limit, scale);
  }
  if (should_record(x, target))
    record(backward, losses, {x, target},
           [x = SavedTensor(x), target = SavedTensor(target), limit, scale](BackwardCall& call) {
             Tensor slope = clamp(sub(x.get(), target.get()), -limit, limit);
             if (scale != 1) slope = mul(slope, scale);
             slope = mul(slope, call.grad());
             const auto set = [&call](size_t i, const Tensor& gradient, const Tensor& of) {
               if (call.needs(i)) call.set(i, to(sum_to_size(gradient, of.sizes()), of.dtype()));
             };
             set(0, slope, x.get());
             if (call.needs(1)) set(1, neg(slope), target.get());
           });
  return losses;
}

}  // namespace

Tensor reduce_loss(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::Mean: return mean(losses);
    case Reduction::Sum: return sum(losses);
    case Reduction::None: break;
  }
  return losses;
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const Tensor& weight,
                                        Reduction reduction) {
  const ProfileRange range("binary_cross_entropy_with_logits", RangeKind::Op);
  constexpr const char* kOp = "binary_cross_entropy_with_logits";
  check_target(kOp, x, target);
  const bool records = should_record(x, target);
  Tensor out, x_grad;
  {
    const NoRecordGuard no_record;
    const Compute compute = compute_of(x.dtype());
    const ScalarType dtype = native_dtype(compute);
    const Tensor input = contiguous(to(x, dtype)), labels = contiguous(to(target, dtype));
    Tensor weights;
    if (weight.defined()) weights = contiguous(to(expand(weight, x.sizes()), dtype));
    const Tensor losses = empty(x.sizes(), input.options());
    if (records && is_tracked(x)) x_grad = empty(x.sizes(), input.options());

    LossLoop loop{};
    loop.compute = compute;
    loop.x = input.data_ptr();
    loop.target = labels.data_ptr();
    loop.weight = weights.defined() ? weights.data_ptr() : nullptr;
    loop.loss = losses.data_ptr();
    loop.grad = x_grad.defined() ? x_grad.data_ptr() : nullptr;
    loop.scale = reduction == Reduction::Mean ? 1 / static_cast<double>(x.numel()) : 1;
    const auto kernel = cross_entropy_kernels[x.device()];
    launch(x.device(), 0, x.numel(), kGrainElements, [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
    out = to(reduce_loss(losses, reduction), x.dtype());
  }
  if (records)
    record(
        "BinaryCrossEntropyWithLogitsBackward0", out, {x, target},
        [x_grad = SavedTensor(x_grad), x = SavedTensor(x), target = SavedTensor(target), weight = SavedTensor(weight),
         reduction, dtype = x.dtype(), target_dtype = target.dtype()](BackwardCall& call) {
          const Tensor& grad = call.grad();
          if (call.needs(0) && is_recording()) {
            // The gradient that was computed together with the loss has no history.
            Tensor slope = sub(sigmoid(x.get()), target.get());
            if (weight.defined()) slope = mul(slope, weight.get());
            if (reduction == Reduction::Mean) slope = div(slope, slope.numel());
            call.set(0, to(mul(slope, grad), dtype));
          } else if (call.needs(0)) {
            call.set(0, to(mul(x_grad.get(), grad), dtype));
          }
          if (!call.needs(1)) return;
          Tensor target_grad = mul(neg(x.get()), grad);
          if (weight.defined()) target_grad = mul(target_grad, weight.get());
          if (reduction == Reduction::Mean) target_grad = div(target_grad, target_grad.numel());
          call.set(1, to(target_grad, target_dtype));
        });
  return out;
}

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  check_target("mse_loss", x, target);
  return reduce_loss(square(sub(x, target)), reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const Tensor& weight,
                                        Reduction reduction, const Tensor& pos_weight) {
  if (!pos_weight.defined()) return binary_cross_entropy_with_logits(x, target, weight, reduction);
  check_target("binary_cross_entropy_with_logits", x, target);
  const Tensor positive = add(mul(sub(pos_weight, 1), target), 1);
  // Not log1p(exp(-|x|)) + relu(-x), whose derivative at 0 would be 0.
  Tensor losses = sub(mul(sub(1, target), x), mul(positive, logsigmoid(x)));
  if (weight.defined()) losses = mul(losses, weight);
  return reduce_loss(losses, reduction);
}

Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const Tensor& weight, Reduction reduction) {
  check_pair("binary_cross_entropy", x, target);
  TERCEL_CHECK(x.sizes() == target.sizes(), ValueError, "Using a target size (", target.sizes(),
               ") that is different to the input size (", x.sizes(),
               ") is deprecated. Please ensure they have the same size.");
  TERCEL_CHECK(x.is_floating_point(), RuntimeError, "Found dtype ", to_string(x.dtype()),
               " but expected a floating one");
  {
    const NoRecordGuard no_record;
    TERCEL_CHECK(x.numel() == 0 || all(logical_and(ge(x, 0), le(x, 1))).item<bool>(), RuntimeError,
                 "all elements of input should be between 0 and 1");
  }
  Tensor losses;
  {
    const NoRecordGuard no_record;
    losses = neg(add(mul(target, clamp_min(log(x), -100)), mul(sub(1, target), clamp_min(log1p(neg(x)), -100))));
  }
  if (should_record(x, target))
    record("BinaryCrossEntropyBackward0", losses, {x, target},
           [x = SavedTensor(x), target = SavedTensor(target)](BackwardCall& call) {
             const Tensor p = to(x.get(), compute_dtype(x.get())), t = target.get();
             if (call.needs(0)) {
               const Tensor slope = div(sub(p, t), clamp_min(mul(p, sub(1, p)), kLeastDivisor));
               call.set(0, to(mul(slope, call.grad()), x.get().dtype()));
             }
             if (call.needs(1)) call.set(1, to(mul(sub(log1p(neg(p)), log(p)), call.grad()), t.dtype()));
           });
  if (weight.defined()) losses = mul(losses, weight);
  return reduce_loss(losses, reduction);
}

Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  check_pair("l1_loss", x, target);
  return reduce_loss(abs(sub(x, target)), reduction);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, Reduction reduction, double beta) {
  check_pair("smooth_l1_loss", x, target);
  TERCEL_CHECK(beta >= 0, RuntimeError, "smooth_l1_loss does not support negative values for beta.");
  if (beta == 0) return l1_loss(x, target, reduction);
  return reduce_loss(linear_beyond("SmoothL1LossBackward0", x, target, beta, 1 / beta), reduction);
}

Tensor huber_loss(const Tensor& x, const Tensor& target, Reduction reduction, double delta) {
  check_pair("huber_loss", x, target);
  TERCEL_CHECK(delta > 0, RuntimeError, "huber_loss does not support non-positive values for delta.");
  return reduce_loss(linear_beyond("HuberLossBackward0", x, target, delta, 1), reduction);
}

Tensor kl_div(const Tensor& x, const Tensor& target, Reduction reduction, bool log_target) {
  check_pair("kl_div", x, target);
  if (log_target) return reduce_loss(mul(exp(target), sub(target, x)), reduction);
  // t log t is 0 at 0; there log(1) is used instead, so that the gradient is finite.
  const Tensor entropy = mul(target, log(where(eq(target, 0), 1, target)));
  return reduce_loss(sub(entropy, mul(target, x)), reduction);
}

Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, bool log_input, bool full, double eps,
                        Reduction reduction) {
  check_pair("poisson_nll_loss", x, target);
  Tensor losses = log_input ? sub(exp(x), mul(target, x)) : sub(x, mul(target, log(add(x, eps))));
  if (full) {
    constexpr double kTwoPi = 6.283185307179586;
    const Tensor large = gt(target, 1), safe = where(large, target, 1);
    const Tensor stirling = add(sub(mul(safe, log(safe)), safe), mul(log(mul(safe, kTwoPi)), 0.5));
    losses = add(losses, where(large, stirling, 0));
  }
  return reduce_loss(losses, reduction);
}

Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var, bool full, double eps,
                         Reduction reduction) {
  check_pair("gaussian_nll_loss", x, target);
  check_strided("gaussian_nll_loss", var, "var");
  Tensor spread = var;
  if (var.sizes() != x.sizes()) {
    // One variance per sample, with or without a last dimension of size 1.
    const bool lacks_last = var.dim() + 1 == x.dim() && var.sizes() == x.sizes().subspan(0, var.sizes().size());
    const bool single = var.dim() == x.dim() && x.dim() > 0 && var.size(-1) == 1 &&
                        var.sizes().subspan(0, var.sizes().size() - 1) == x.sizes().subspan(0, x.sizes().size() - 1);
    TERCEL_CHECK(lacks_last || single, ValueError, "var is of incorrect size");
    if (lacks_last) spread = unsqueeze(var, -1);
  }
  Tensor at_least;
  {
    const NoRecordGuard no_record;
    TERCEL_CHECK(!any(lt(var, 0)).item<bool>(), ValueError, "var has negative entry/entries");
    at_least = clamp_min(spread, eps);
  }
  // The gradient ignores the clamp.
  const Tensor v = add(spread, sub(at_least, spread.detach()));
  Tensor losses = mul(add(log(v), div(square(sub(x, target)), v)), 0.5);
  if (full) losses = add(losses, 0.9189385332046727);
  return reduce_loss(losses, reduction);
}

}  // namespace tercel
