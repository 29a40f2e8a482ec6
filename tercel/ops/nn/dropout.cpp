#include "tercel/ops/nn/dropout.h"

#include <algorithm>
#include <cmath>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/dropout_kernels.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<DropoutFn> dropout_kernels = TERCEL_CPU_KERNELS(dropout);

constexpr int64_t kGrainGroups = 256;

// Dropout of x, with the mask given by this generator state.
Tensor drop(const Tensor& x, double p, GeneratorState state) {
  const ProfileRange range("dropout", RangeKind::Op);
  if (p == 1) return zeros_like(x);
  const Tensor input = contiguous(to(x, native_dtype(compute_of(x.dtype()))));
  const Tensor out = empty(x.sizes(), input.options());
  DropoutLoop loop{};
  loop.compute = compute_of(x.dtype());
  loop.x = input.data_ptr();
  loop.out = out.data_ptr();
  loop.n = x.numel();
  loop.seed = state.seed;
  loop.offset = state.offset;
  loop.threshold = static_cast<uint32_t>(std::min(std::nearbyint(p * 0x1p32), 0x1p32 - 1));
  loop.scale = 1 / (1 - p);
  const auto kernel = dropout_kernels[x.device()];
  parallel_for(0, ceil_div(loop.n, kDropoutGroup), kGrainGroups,
               [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
  return to(out, x.dtype());
}

// The same, recorded; the gradient uses the same mask.
Tensor dropped(const Tensor& x, double p, GeneratorState state) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = drop(x, p, state);
  }
  if (should_record(x))
    record("DropoutBackward0", out, {x},
           [p, state](BackwardCall& call) { call.set(0, dropped(call.grad(), p, state)); });
  return out;
}

void check_probability(double p) {
  TERCEL_CHECK(p >= 0 && p <= 1, RuntimeError, "dropout: dropout probability has to be between 0 and 1, but got ", p);
}

// Ones for each slice x[i, c], with sizes that broadcast to x [n, channels, ...].
Tensor channels_of(const Tensor& x) {
  TERCEL_CHECK(x.dim() >= 2, RuntimeError, "Feature dropout requires at least 2 dimensions in the input");
  DimVector sizes(x.sizes());
  std::fill(sizes.begin() + 2, sizes.end(), 1);
  return ones(sizes, TensorOptions(x.dtype(), x.device()));
}

// Minus the limit of selu() at -infinity; dropped elements become that limit.
constexpr double kSeluLimit = 1.7580993408473766;

// alpha_dropout() of x, with a mask of the shape of `ones`, which broadcasts to x.
Tensor alpha_dropped(const Tensor& x, const Tensor& ones, double p, Generator& generator) {
  if (p == 1) return mul(x, 0);
  const double scale = 1 / std::sqrt((kSeluLimit * kSeluLimit * p + 1) * (1 - p));
  const Tensor kept = to(ne(dropout(ones, p, true, generator), 0), x.dtype());
  return add(mul(add(mul(x, kept), mul(sub(kept, 1), kSeluLimit)), scale), kSeluLimit * scale * p);
}

}  // namespace

Tensor dropout(const Tensor& x, double p, bool training, Generator& generator) {
  check_strided("dropout", x, "x");
  check_probability(p);
  if (!training || p == 0) return x;
  if (p == 1 && !x.is_differentiable()) return zeros_like(x);
  TERCEL_CHECK(x.is_differentiable(), RuntimeError, "result type Float can't be cast to the desired output type ",
               scalar_type_word(x.dtype()));
  if (x.is_complex())
    return mul(x, dropout(ones(x.sizes(), TensorOptions(real_dtype(x.dtype()), x.device())), p, true, generator));
  const int64_t groups = ceil_div(x.numel(), kDropoutGroup);
  const GeneratorState state = generator.reserve(static_cast<uint64_t>(groups * kDropoutBlocks));
  return dropped(x, p, state);
}

Tensor feature_dropout(const Tensor& x, double p, bool training, Generator& generator) {
  check_strided("feature_dropout", x, "x");
  check_probability(p);
  if (!training || p == 0) return x;
  return mul(x, dropout(channels_of(x), p, true, generator));
}

Tensor alpha_dropout(const Tensor& x, double p, bool training, Generator& generator) {
  check_strided("alpha_dropout", x, "x");
  check_probability(p);
  if (!training || p == 0) return x;
  return alpha_dropped(x, ones(x.sizes(), TensorOptions(x.dtype(), x.device())), p, generator);
}

Tensor feature_alpha_dropout(const Tensor& x, double p, bool training, Generator& generator) {
  check_strided("feature_alpha_dropout", x, "x");
  check_probability(p);
  if (!training || p == 0) return x;
  return alpha_dropped(x, channels_of(x), p, generator);
}

}  // namespace tercel
