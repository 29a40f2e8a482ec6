#include "tercel/ops/reduce/scan.h"

#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/assign_inplace_impl.h"
#include "tercel/ops/common/complex_logs_impl.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/value_selecting_reduction_backward_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/scan_kernels.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<ScanFn> scan_kernels = TERCEL_CPU_KERNELS(scan);

constexpr int64_t kGrainElements = 16384;
constexpr int64_t kLeastStrip = 64;
const double kInfinity = std::numeric_limits<double>::infinity();

Compute scan_compute(ScalarType t) { return is_floating(t) ? compute_of(t) : Compute::I64; }

void run_columns(ScanLoop& loop, ScanFn* kernel, int64_t outer) {
  // Columns are independent, so strips may depend on the number of threads.
  const int64_t wanted = std::max<int64_t>(1, num_threads() / std::max<int64_t>(1, outer));
  const int64_t each = ceil_div(loop.inner, wanted);
  loop.strip = std::clamp(round_up(each, kLeastStrip), kLeastStrip, kMaxScanStrip);
  const int64_t strips = ceil_div(loop.inner, loop.strip);
  parallel_for(0, outer * strips, std::max<int64_t>(1, kGrainElements / (loop.n * std::min(loop.inner, loop.strip))),
               [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
}

void run_rows(ScanLoop& loop, ScanFn* kernel, int64_t outer) {
  const auto run = [&](ScanPhase phase, int64_t tasks, int64_t grain) {
    loop.phase = phase;
    parallel_for(0, tasks, grain, [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
  };
  const bool splits = loop.op != ScanOp::Product && loop.op != ScanOp::LogSumExp;
  const int64_t threads = in_parallel_region() ? 1 : num_threads();
  loop.blocks = ceil_div(loop.n, kScanBlock);
  // Two passes read everything twice, and are used only if the rows alone leave threads idle.
  if (!splits || threads == 1 || outer >= threads || loop.blocks < 4)
    return run(ScanPhase::Whole, outer, std::max<int64_t>(1, kGrainElements / loop.n));
  const Tensor carries = empty({outer * loop.blocks * kScanCarryBytes}, kUInt8);
  loop.carries = static_cast<char*>(carries.data_ptr());
  run(ScanPhase::Totals, outer * loop.blocks, 1);
  run(ScanPhase::Carries, outer, outer);
  run(ScanPhase::Finish, outer * loop.blocks, 1);
}

/** The scan of x in its compute type. `indices` is for extrema, else null. */
Tensor scan_along(ScanOp op, const Tensor& x, int64_t dim, bool reverse, Tensor* indices = nullptr) {
  const NoRecordGuard no_record;
  const Compute compute = scan_compute(x.dtype());
  const Tensor input = contiguous(to(x, native_dtype(compute)));
  Tensor out = empty(x.sizes(), input.options());
  if (indices) *indices = empty(x.sizes(), TensorOptions(kInt64, x.device()));
  if (x.numel() == 0) return out;
  ScanLoop loop{};
  loop.op = op;
  loop.compute = compute;
  loop.reverse = reverse;
  loop.x = input.data_ptr();
  loop.out = out.data_ptr();
  loop.indices = indices ? static_cast<int64_t*>(indices->data_ptr()) : nullptr;
  const IntSpan sizes = x.sizes();
  const size_t d = static_cast<size_t>(dim);
  int64_t outer = 1;
  loop.n = sizes.empty() ? 1 : sizes[d];
  loop.inner = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i < d) outer *= sizes[i];
    if (i > d) loop.inner *= sizes[i];
  }
  ScanFn* kernel = scan_kernels[x.device()];
  if (loop.inner > 1)
    run_columns(loop, kernel, outer);
  else
    run_rows(loop, kernel, outer);
  return out;
}

/** x in the dtype of the result. */
Tensor converted(const Tensor& x, ScalarType dtype) {
  if (dtype != ScalarType::Undefined) return to(x, dtype);
  return is_integral(x.dtype(), true) && x.dtype() != kUInt64 ? to(x, kInt64) : x;
}

/** The sum from either end; each is the gradient of the other. */
Tensor sum_scan(const Tensor& x, int64_t dim, bool reverse) {
  if (x.is_complex()) return complex(sum_scan(real(x), dim, reverse), sum_scan(imag(x), dim, reverse));
  const Tensor out = to(scan_along(ScanOp::Sum, x, dim, reverse), x.dtype());
  if (should_record(x))
    record("CumsumBackward0", out, {x},
           [dim, reverse](BackwardCall& call) { call.set(0, sum_scan(call.grad(), dim, !reverse)); });
  return out;
}

Tensor log_sum_exp_scan(const Tensor& x, int64_t dim, bool reverse) {
  return to(scan_along(ScanOp::LogSumExp, x, dim, reverse), x.dtype());
}

/**
 * The gradient of a product with zeros among its factors, composed of differentiable ops: for every k, the products
 * from k on, without the factor k.
 */
Tensor cumprod_backward_by_slices(const Tensor& grad, const Tensor& x, int64_t dim) {
  const int64_t n = x.size(dim);
  std::vector<Tensor> slices;
  Tensor before = ones_like(narrow(x, dim, 0, 1));
  for (int64_t k = 0; k < n; ++k) {
    Tensor omitted = before;
    if (k + 1 < n) {
      const Tensor after[] = {ones_like(before), cumprod(narrow(x, dim, k + 1, n - k - 1), dim)};
      omitted = mul(before, cat(after, dim));
    }
    slices.push_back(sum(mul(narrow(grad, dim, k, n - k), omitted), {dim}, true));
    before = mul(before, narrow(x, dim, k, 1));
  }
  return cat(slices, dim);
}

/**
 * Before the first zero of a line, the gradient is the sum of the following products, divided by the factor; at the
 * first zero, it is that sum with the zero replaced by 1; after it, the gradient is zero.
 */
Tensor cumprod_backward(const Tensor& grad, const Tensor& x, const Tensor& out, int64_t dim) {
  const Tensor zero = eq(x, 0);
  if (!any(zero).item<bool>()) return div(sum_scan(mul(grad, out), dim, true), x);
  if (should_record(grad, x)) return cumprod_backward_by_slices(grad, x, dim);
  const Tensor zeros_so_far = cumsum(zero, dim);
  const Tensor first = logical_and(zero, eq(zeros_so_far, 1));
  const Tensor patched = where(first, 1, x);
  const Tensor products = cumprod(patched, dim);
  // products * grad from the first zero on; `out` is 0 there, so the two sums do not mix.
  const Tensor at_first = sum_scan(where(gt(zeros_so_far, 0), mul(grad, products), 0), dim, true);
  const Tensor before = div(sum_scan(mul(grad, out), dim, true), where(zero, 1, x));
  return where(first, at_first, where(eq(zeros_so_far, 0), before, 0));
}

/** Products of 2, 4, 8 ... neighbours, each the product of two of the previous step. */
Tensor complex_products(const Tensor& x, int64_t dim) {
  const NoRecordGuard no_record;
  if (x.dim() == 0) return clone(x);
  const int64_t n = x.size(dim);
  Tensor out = clone(x);
  for (int64_t reach = 1; reach < n; reach *= 2) {
    const Tensor parts[] = {narrow(out, dim, 0, reach),
                            mul(narrow(out, dim, reach, n - reach), narrow(out, dim, 0, n - reach))};
    out = cat(parts, dim);
  }
  return out;
}

Tensor product_scan(const Tensor& x, int64_t dim) {
  const Tensor out =
      x.is_complex() ? complex_products(x, dim) : to(scan_along(ScanOp::Product, x, dim, false), x.dtype());
  if (should_record(x))
    record("CumprodBackward0", out, {x}, [x = SavedTensor(x), out = SavedTensor::output(out), dim](BackwardCall& call) {
      if (x.get().dim() == 0) return call.set(0, call.take());
      call.set(0, cumprod_backward(call.grad(), conj(x.get()), conj(out.get(call)), dim));
    });
  return out;
}

ValuesAndIndices extreme_scan(const char* op, const char* backward_name, ScanOp scan_op, const Tensor& x, int64_t d) {
  check_strided(op, x, "x");
  const int64_t dim = wrap_dim(d, x.dim());
  ValuesAndIndices out;
  if (x.dim() == 0 && x.is_complex()) return {clone(x), zeros({}, kInt64)};  // a single number needs no comparison
  check_real(op, x);
  if (x.dtype() == kUInt64) {
    // The kernel compares signed numbers: flipping the top bit preserves the order.
    const auto turned = [](const Tensor& t) { return bitwise_xor(t, INT64_MIN); };
    out.values = scan_along(scan_op, turned(to(x, kInt64)), dim, false, &out.indices);
    out.values = to(turned(out.values), kUInt64);
    return out;
  }
  out.values = to(scan_along(scan_op, x, dim, false, &out.indices), x.dtype());
  record_value_selecting_reduction(backward_name, out.values, x, out.indices, dim, true);
  return out;
}

/** d out[j] / d x[i] is exp(x[i] - out[j]), summed in logarithms, separately for positive and negative gradients. */
Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& x, const Tensor& out, int64_t dim) {
  if (should_record(grad, x)) {
    // With differentiable ops, which have a smaller range.
    const Tensor top = amax(x, {dim}, true).detach();
    return mul(exp(sub(x, top)), sum_scan(mul(grad, exp(sub(top, out))), dim, true));
  }
  const auto part = [&](const Tensor& positive) {
    const Tensor logs = where(logical_and(gt(positive, 0), ne(out, -kInfinity)), sub(log(positive), out), -kInfinity);
    return exp(add(log_sum_exp_scan(logs, dim, true), x));
  };
  return sub(part(grad), part(neg(grad)));
}

const Tensor& in_place(const char* op, const Tensor& x, ScalarType dtype, Tensor (*scan)(const Tensor&, int64_t),
                       int64_t d) {
  check_strided(op, x);
  TERCEL_CHECK(dtype == ScalarType::Undefined || dtype == x.dtype(), RuntimeError,
               "Bad in-place call: input tensor dtype ", scalar_type_word(x.dtype()), " and output tensor dtype ",
               scalar_type_word(dtype), " should match");
  const int64_t dim = wrap_dim(d, x.dim());
  check_inplace(x, should_record(x));
  // A recorded scan saves its input, which this overwrites.
  return assign_inplace(op, x, scan(should_record(x) ? clone(x) : x, dim));
}

}  // namespace

Tensor cumsum(const Tensor& x, int64_t dim, ScalarType dtype) {
  check_strided("cumsum", x, "x");
  return sum_scan(converted(x, dtype), wrap_dim(dim, x.dim()), false);
}
const Tensor& cumsum_(const Tensor& x, int64_t dim, ScalarType dtype) {
  return in_place(
      "cumsum_", x, dtype, [](const Tensor& t, int64_t d) { return sum_scan(t, d, false); }, dim);
}

Tensor cumprod(const Tensor& x, int64_t dim, ScalarType dtype) {
  check_strided("cumprod", x, "x");
  return product_scan(converted(x, dtype), wrap_dim(dim, x.dim()));
}
const Tensor& cumprod_(const Tensor& x, int64_t dim, ScalarType dtype) {
  return in_place(
      "cumprod_", x, dtype, [](const Tensor& t, int64_t d) { return product_scan(t, d); }, dim);
}

ValuesAndIndices cummax(const Tensor& x, int64_t dim) {
  return extreme_scan("cummax", "CummaxBackward0", ScanOp::Maximum, x, dim);
}
ValuesAndIndices cummin(const Tensor& x, int64_t dim) {
  return extreme_scan("cummin", "CumminBackward0", ScanOp::Minimum, x, dim);
}

Tensor logcumsumexp(const Tensor& x, int64_t d) {
  check_strided("logcumsumexp", x, "x");
  if (!x.is_floating_point() && !x.is_complex()) refuse_dtype("logcumsumexp_out_cpu", x.dtype());
  const int64_t dim = wrap_dim(d, x.dim());
  if (x.is_complex()) return complex_logcumsumexp(x, dim);
  const Tensor out = log_sum_exp_scan(x, dim, false);
  if (should_record(x))
    record("LogcumsumexpBackward0", out, {x},
           [x = SavedTensor(x), out = SavedTensor::output(out), dim](BackwardCall& call) {
             if (x.get().dim() == 0) return call.set(0, call.take());
             call.set(0, logcumsumexp_backward(call.grad(), x.get(), out.get(call), dim));
           });
  return out;
}

}  // namespace tercel
