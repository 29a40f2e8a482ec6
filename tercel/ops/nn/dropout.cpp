#include "tercel/ops/nn/dropout.h"

#include <algorithm>
#include <cmath>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/core/launch.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/dropout_kernels.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<DropoutFn> dropout_kernels = TERCEL_CPU_KERNELS(dropout);

constexpr int64_t kGrainGroups = 256;

// Where a mask begins: element 0 takes word `skip` of the group of blocks from `block` on.
struct MaskStart {
  uint64_t seed, stream, block;
  int64_t skip;
};

// Dropout of x, with the mask that begins there.
Tensor drop(const Tensor& x, double p, const MaskStart& start) {
  const ProfileRange range("dropout", RangeKind::Op);
  if (p == 1) return zeros_like(x);
  const Tensor input = contiguous(to(x, native_dtype(compute_of(x.dtype()))));
  const Tensor out = empty(x.sizes(), input.options());
  DropoutLoop loop{};
  loop.compute = compute_of(x.dtype());
  loop.x = input.data_ptr();
  loop.out = out.data_ptr();
  loop.n = x.numel();
  loop.seed = start.seed;
  loop.stream = start.stream;
  loop.block = start.block;
  loop.skip = start.skip;
  loop.threshold = static_cast<uint32_t>(std::min(std::nearbyint(p * 0x1p32), 0x1p32 - 1));
  loop.scale = 1 / (1 - p);
  const auto kernel = dropout_kernels[x.device()];
  const int64_t groups = loop.n == 0 ? 0 : ceil_div(loop.skip + loop.n, kDropoutGroup);
  launch(x.device(), 0, groups, kGrainGroups, [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
  return to(out, x.dtype());
}

// The same, recorded; the gradient uses the same mask.
Tensor dropped(const Tensor& x, double p, const MaskStart& start) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = drop(x, p, start);
  }
  if (should_record(x))
    record("DropoutBackward0", out, {x},
           [p, start](BackwardCall& call) { call.set(0, dropped(call.grad(), p, start)); });
  return out;
}

void check_probability(double p) {
  TERCEL_CHECK(p >= 0 && p <= 1, RuntimeError, "dropout: dropout probability has to be between 0 and 1, but got ", p);
}

void check_differentiable(const Tensor& x) {
  TERCEL_CHECK(x.is_differentiable(), RuntimeError, "result type Float can't be cast to the desired output type ",
               scalar_type_word(x.dtype()));
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
  check_differentiable(x);
  if (x.is_complex())
    return mul(x, dropout(ones(x.sizes(), TensorOptions(real_dtype(x.dtype()), x.device())), p, true, generator));
  const int64_t groups = ceil_div(x.numel(), kDropoutGroup);
  const GeneratorState state = generator.reserve(static_cast<uint64_t>(groups * kDropoutBlocks));
  return dropped(x, p, {state.seed, 0, state.offset, 0});
}

Tensor dropout(const Tensor& x, double p, const DropoutMask& mask) {
  check_strided("dropout", x, "x");
  check_probability(p);
  check_differentiable(x);
  int64_t end = 0;
  TERCEL_CHECK(mask.first >= 0 && !__builtin_add_overflow(mask.first, x.numel(), &end), RuntimeError,
               "dropout: expected positions from 0 to 2^63 - 1 but got ", x.numel(), " from ", mask.first, " on");
  if (p == 0) return x;
  if (x.is_complex())
    return mul(x, dropout(ones(x.sizes(), TensorOptions(real_dtype(x.dtype()), x.device())), p, mask));
  return dropped(x, p,
                 {mask.seed, mask.stream, static_cast<uint64_t>(mask.first / kDropoutGroup * kDropoutBlocks),
                  mask.first % kDropoutGroup});
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
