#include "tercel/ops/loss.h"

#include "tercel/autograd/record.h"
#include "tercel/ops/binary.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/loss_impl.h"
#include "tercel/ops/reduce.h"
#include "tercel/ops/unary.h"
#include "tercel/ops/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<LossFn> cross_entropy_kernels = TERCEL_CPU_KERNELS(binary_cross_entropy_with_logits);

constexpr int64_t kGrain = 8192;

Tensor reduced(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::Mean: return mean(losses);
    case Reduction::Sum: return sum(losses);
    case Reduction::None: break;
  }
  return losses;
}

void check_target(const char* op, const Tensor& x, const Tensor& target) {
  check_defined(x, op, "x");
  check_defined(target, op, "target");
  TERCEL_CHECK(x.is_floating_point(), TypeError, op, ": expected floating x but got ", describe(x));
  TERCEL_CHECK(x.sizes() == target.sizes(), ValueError, op, ": Target size (", target.sizes(),
               ") must be the same as input size (", x.sizes(), ")");
}

}  // namespace

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, const Tensor& weight,
                                        Reduction reduction) {
  constexpr const char* kOp = "binary_cross_entropy_with_logits";
  check_target(kOp, x, target);
  const bool records = should_record(x, target);
  Tensor out, x_grad;
  {
    const NoGradGuard no_grad;
    const Compute compute = compute_of(x.dtype());
    const ScalarType dtype = native_dtype(compute);
    const Tensor input = contiguous(to(x, dtype)), labels = contiguous(to(target, dtype));
    Tensor weights;
    if (weight.defined()) weights = contiguous(to(expand(weight, x.sizes()), dtype));
    const Tensor losses = empty(x.sizes(), input.options());
    if (records && x.requires_grad()) x_grad = empty(x.sizes(), input.options());

    LossLoop loop{};
    loop.compute = compute;
    loop.x = input.data_ptr();
    loop.target = labels.data_ptr();
    loop.weight = weights.defined() ? weights.data_ptr() : nullptr;
    loop.loss = losses.data_ptr();
    loop.grad = x_grad.defined() ? x_grad.data_ptr() : nullptr;
    loop.scale = reduction == Reduction::Mean ? 1 / static_cast<double>(x.numel()) : 1;
    const auto kernel = cross_entropy_kernels[x.device()];
    parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
    out = to(reduced(losses, reduction), x.dtype());
  }
  if (records)
    record("BinaryCrossEntropyWithLogitsBackward0", out, {x, target},
           [x_grad = SavedTensor(x_grad), x = SavedTensor::when(target.requires_grad(), x),
            weight = SavedTensor::when(target.requires_grad(), weight), reduction, dtype = x.dtype(),
            target_dtype = target.dtype()](BackwardCall& call) {
             const Tensor& grad = call.grad();
             if (call.needs(0)) call.set(0, to(mul(x_grad.get(), grad), dtype));
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
  return reduced(square(sub(x, target)), reduction);
}

}  // namespace tercel
