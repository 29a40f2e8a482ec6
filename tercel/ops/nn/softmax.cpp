#include "tercel/ops/nn/softmax.h"

#include <algorithm>
#include <limits>

#include "tercel/autograd/record.h"
#include "tercel/core/default_dtype.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex_logs_impl.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/nn/softmax_kernels.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/reduce_impl.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<SoftmaxFn> forward_kernels = TERCEL_CPU_KERNELS(softmax);
constinit const KernelTable<SoftmaxFn> backward_kernels = TERCEL_CPU_KERNELS(softmax_backward);

constexpr int64_t kGrainExponentials = 8192;
// A strip of columns that is still in the cache when it is read again.
constexpr int64_t kStripBytes = 256 * 1024;
// Columns whose rows are read one after the other at the memory's rate; fewer are worth it where they stay in the
// cache.
constexpr int64_t kCachedColumns = 256;
// The narrowest strip for the sake of several threads.
constexpr int64_t kLeastColumns = 64;
// Results that do not stay in a cache.
constexpr int64_t kStreamBytes = int64_t{32} << 20;

// Sizes alone decide how sums are formed; how wide a strip is does not, and may follow the number of threads.
void choose_strip(SoftmaxLoop& loop, int64_t outer, int64_t item) {
  const int64_t fitting = kStripBytes / (loop.n * item);
  loop.cached = fitting >= std::min(loop.inner, kCachedColumns);
  loop.strip = kMaxStripColumns;
  if (loop.cached) loop.strip = std::min(loop.strip, std::max(fitting / kLeastColumns * kLeastColumns, kLeastColumns));
  while (loop.strip >= 2 * kLeastColumns && outer * ((loop.inner + loop.strip - 1) / loop.strip) < 2 * num_threads())
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
  const int64_t strips = (loop.inner + loop.strip - 1) / loop.strip;
  parallel_for(0, outer * strips, std::max<int64_t>(1, kGrainExponentials / (loop.n * loop.strip)),
               [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
}

// The gradient from ops, for second derivatives.
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

Tensor logsumexp(const Tensor& given, IntSpan dim, bool keepdim) {
  const DimMask mask = reduction::dim_mask("logsumexp", given, dim);
  if (given.is_complex()) return complex_logsumexp(given, dim, keepdim);
  const Tensor x = given.is_floating_point() ? given : to(given, default_dtype());
  const size_t ndim = x.sizes().size();
  Tensor out;
  {
    const NoRecordGuard no_record;
    const Compute compute = compute_of(x.dtype());
    const auto reduced = [&](int op, const Tensor& t) { return reduction::reduce(op, compute, t, mask, keepdim); };
    const Tensor top = reduced(reduction::op_index<op::Max>, x);
    // Infinities have no differences: they reach the result through exp and log.
    const Tensor shift = where(isfinite(top), top, 0);
    const Tensor below = sub(to(x, native_dtype(compute)), reduction::with_reduced_dims(shift, ndim, mask, keepdim));
    out = to(add(log(reduced(reduction::op_index<op::Sum>, exp(below))), shift), x.dtype());
  }
  if (should_record(x))
    record("LogsumexpBackward0", out, {x},
           [x = SavedTensor(x), out = SavedTensor::output(out), mask, keepdim, ndim](BackwardCall& call) {
             const Tensor result = reduction::with_reduced_dims(out.get(call), ndim, mask, keepdim);
             const Tensor grad = reduction::with_reduced_dims(call.grad(), ndim, mask, keepdim);
             // -inf is the result of -infs alone, whose difference would be NaN.
             const Tensor shift = where(eq(result, -std::numeric_limits<double>::infinity()), 0, result);
             call.set(0, mul(grad, exp(sub(x.get(), shift))));
           });
  return out;
}

}  // namespace tercel
