#include "tercel/ops/softmax.h"

#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/softmax_impl.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<SoftmaxFn> forward_kernels = TERCEL_CPU_KERNELS(softmax);
constinit const KernelTable<SoftmaxFn> backward_kernels = TERCEL_CPU_KERNELS(softmax_backward);

// Exponentials worth another thread.
constexpr int64_t kGrain = 8192;
// A strip of columns that is still in the cache when it is read again.
constexpr int64_t kStripBytes = 256 * 1024;
// Columns of a cache line, and of a page.
constexpr int64_t kLeastColumns = 16;
constexpr int64_t kMostColumns = 1024;

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
  const auto kernel = kernels[like.device()];
  if (loop.inner == 1) {
    parallel_for(0, outer, std::max<int64_t>(1, kGrain / loop.n),
                 [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
    return;
  }
  const int64_t fitting = kStripBytes / (loop.n * static_cast<int64_t>(like.itemsize()));
  loop.strip = std::clamp(fitting / kLeastColumns * kLeastColumns, kLeastColumns, kMostColumns);
  const int64_t strips = (loop.inner + loop.strip - 1) / loop.strip;
  parallel_for(0, outer * strips, std::max<int64_t>(1, kGrain / (loop.n * loop.strip)),
               [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
}

Tensor softmax_of(const char* op, const char* backward_name, const Tensor& x, int64_t d, bool log) {
  check_defined(x, op, "x");
  TERCEL_CHECK(x.is_floating_point(), TypeError, op, ": expected floating x but got ", describe(x));
  const int64_t dim = wrap_dim(d, x.dim());
  Tensor out;
  {
    const NoGradGuard no_grad;
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
      const ScalarType given = out.get().dtype(), dtype = native_dtype(compute_of(given));
      const Tensor result = to(out.get(), dtype), grad = contiguous(to(call.grad(), dtype));
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

Tensor softmax(const Tensor& x, int64_t dim) { return softmax_of("softmax", "SoftmaxBackward0", x, dim, false); }
Tensor log_softmax(const Tensor& x, int64_t dim) {
  return softmax_of("log_softmax", "LogSoftmaxBackward0", x, dim, true);
}

}  // namespace tercel
