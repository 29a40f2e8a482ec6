#include "tercel/ops/nn/softmax.h"

#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/nn/softmax_kernels.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<SoftmaxFn> forward_kernels = TERCEL_CPU_KERNELS(softmax);
constinit const KernelTable<SoftmaxFn> backward_kernels = TERCEL_CPU_KERNELS(softmax_backward);

constexpr int64_t kGrainExponentials = 8192;
// Size of a strip of columns that is still in the cache when it is read again.
constexpr int64_t kStripBytes = 256 * 1024;
// Minimum number of columns, unless there are fewer, for which strips are cached: their rows are read at memory
// bandwidth.
constexpr int64_t kCachedColumns = 256;
// Minimum width of strips that are split for several threads.
constexpr int64_t kLeastColumns = 64;
// Results of at least this size do not stay in a cache.
constexpr int64_t kStreamBytes = int64_t{32} << 20;

// The order of sums depends only on sizes, not on a strip's width, which may depend on the number of threads.
void choose_strip(SoftmaxLoop& loop, int64_t outer, int64_t item) {
  const int64_t fitting = kStripBytes / (loop.n * item);
  loop.cached = fitting >= std::min(loop.inner, kCachedColumns);
  loop.strip = kMaxStripColumns;
  if (loop.cached) loop.strip = std::min(loop.strip, std::max(fitting / kLeastColumns * kLeastColumns, kLeastColumns));
  while (loop.strip >= 2 * kLeastColumns && outer * ceil_div(loop.inner, loop.strip) < 2 * num_threads())
    loop.strip /= 2;
}

void run(const KernelTable<SoftmaxFn>& kernels, SoftmaxLoop& loop, const Tensor& like, int64_t dim) {
  const size_t d = static_cast<size_t>(dim);
  const IntSpan sizes = like.sizes();
  if (like.numel() == 0) return;
  int64_t outer = 1;
  loop.n = sizes.empty() ? 1 : sizes[d];
  loop.inner = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i < d) outer *= sizes[i];
    if (i > d) loop.inner *= sizes[i];
  }
  loop.compute = compute_of(like.dtype());
  loop.stream = static_cast<int64_t>(like.nbytes()) >= kStreamBytes;
  const auto kernel = kernels[like.device()];
  if (loop.inner == 1) {
    parallel_for(0, outer, std::max<int64_t>(1, kGrainExponentials / loop.n),
                 [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
    return;
  }
  choose_strip(loop, outer, static_cast<int64_t>(like.itemsize()));
  const int64_t strips = ceil_div(loop.inner, loop.strip);
  parallel_for(0, outer * strips, std::max<int64_t>(1, kGrainExponentials / (loop.n * loop.strip)),
               [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
}

// The gradient composed of ops, for second derivatives.
Tensor recorded_gradient(const Tensor& g, const Tensor& y, int64_t dim, bool log) {
  if (log) return sub(g, mul(exp(y), sum(g, {dim}, true)));
  return mul(y, sub(g, sum(mul(g, y), {dim}, true)));
}

Tensor softmax_of(const char* op, const char* backward_name, const Tensor& unconverted, int64_t d, bool log,
                  ScalarType asked) {
  const ProfileRange range(op, RangeKind::Op);
  check_strided(op, unconverted, "x");
  const Tensor x = asked == ScalarType::Undefined ? unconverted : to(unconverted, asked);
  TERCEL_CHECK(x.is_floating_point(), NotImplementedError, "\"", op, "_lastdim_kernel_impl\" not implemented for '",
               scalar_type_word(x.dtype()), "'");
  const int64_t dim = wrap_dim(d, x.dim());
  Tensor out;
  {
    const NoRecordGuard no_record;
    const Tensor input = contiguous(to(x, native_dtype(compute_of(x.dtype()))));
    out = empty(x.sizes(), input.options());
    SoftmaxLoop loop{};
    loop.log = log;
    loop.x = input.data_ptr();
    loop.out = out.data_ptr();
    run(forward_kernels, loop, input, dim);
    out = to(out, x.dtype());
  }
  if (should_record(x))
    record(backward_name, out, {x}, [out = SavedTensor::output(out), dim, log](BackwardCall& call) {
      const Tensor y = out.get(call);
      if (should_record(call.grad(), y)) return call.set(0, recorded_gradient(call.grad(), y, dim, log));
      const ScalarType given = y.dtype(), dtype = native_dtype(compute_of(given));
      const Tensor result = to(y, dtype), grad = contiguous(to(call.grad(), dtype));
      const Tensor x_grad = empty(result.sizes(), result.options());
      SoftmaxLoop loop{};
      loop.log = log;
      loop.x = result.data_ptr();
      loop.grad = grad.data_ptr();
      loop.out = x_grad.data_ptr();
      run(backward_kernels, loop, result, dim);
      call.set(0, to(x_grad, given));
    });
  return out;
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim, ScalarType dtype) {
  return softmax_of("softmax", "SoftmaxBackward0", x, dim, false, dtype);
}
Tensor log_softmax(const Tensor& x, int64_t dim, ScalarType dtype) {
  return softmax_of("log_softmax", "LogSoftmaxBackward0", x, dim, true, dtype);
}

}  // namespace tercel
