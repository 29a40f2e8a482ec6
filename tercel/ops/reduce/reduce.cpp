#include "tercel/ops/reduce/reduce.h"

#include <cmath>
#include <limits>

#include "tercel/autograd/record.h"
#include "tercel/core/default_dtype.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/complex_logs_impl.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/value_selecting_reduction_backward_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/out_variants.h"
#include "tercel/ops/reduce/reduce_impl.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

DimVector kept_as_one(IntSpan sizes, DimMask mask) {
  DimVector kept(sizes);
  for (size_t d = 0; d < kept.size(); ++d)
    if (reduction::is_reduced(mask, d)) kept[d] = 1;
  return kept;
}

}  // namespace

namespace reduction {

DimMask dim_mask(const char* op, const Tensor& x, IntSpan dims) {
  check_strided(op, x, "x");
  const int64_t ndim = x.dim();
  TERCEL_CHECK(ndim <= 64, RuntimeError, op, ": only tensors with up to 64 dims are supported, not ", ndim);
  if (dims.empty()) return ndim == 64 ? ~DimMask{0} : (DimMask{1} << ndim) - 1;
  DimMask mask = 0;
  for (const int64_t d : dims) {
    const int64_t dim = wrap_dim(d, ndim);
    TERCEL_CHECK((mask >> dim & 1) == 0, RuntimeError, op, ": dim ", dim,
                 " appears multiple times in the list of dims");
    mask |= DimMask{1} << dim;
  }
  return ndim == 0 ? 0 : mask;
}

Tensor with_sizes(const Tensor& fresh, IntSpan sizes) {
  return Tensor(make_intrusive<TensorImpl>(fresh.storage(), fresh.dtype(), sizes));
}

int64_t reduced_count(const Tensor& x, DimMask mask) {
  int64_t n = 1;
  for (size_t d = 0; d < x.sizes().size(); ++d)
    if (is_reduced(mask, d)) n *= x.sizes()[d];
  return n;
}

Tensor reduce(int op, Compute compute, const Tensor& x, DimMask mask, bool keepdim) {
  Tensor out = reduce_over(op, compute, x, mask);
  return keepdim ? with_sizes(out, kept_as_one(x.sizes(), mask)) : out;
}

Tensor with_reduced_dims(Tensor t, size_t ndim, DimMask mask, bool keepdim) {
  // A single number is expanded without reshaping.
  if (keepdim || t.dim() == 0) return t;
  for (size_t d = 0; d < ndim; ++d)
    if (is_reduced(mask, d)) t = unsqueeze(t, static_cast<int64_t>(d));
  return t;
}

void check_floating_result(const char* op, ScalarType dtype, const char* which) {
  TERCEL_CHECK(is_differentiable(dtype), NotImplementedError, op, "(): could not infer output dtype. ", which,
               " dtype must be either a floating point or complex dtype. Got: ", scalar_type_word(dtype));
}

Tensor share_among(const Tensor& grad, const Tensor& equal, DimMask mask) {
  const Tensor count = reduce(op_index<op::Sum>, Compute::I64, equal, mask, true);
  return mul(div(grad, count), equal);
}

}  // namespace reduction

using reduction::check_floating_result;
using reduction::dim_mask;
using reduction::is_reduced;
using reduction::op_index;
using reduction::reduce;
using reduction::reduced_count;
using reduction::share_among;
using reduction::with_reduced_dims;
using reduction::with_sizes;

namespace {

void check_not_empty(const char* op, const Tensor& x, DimMask mask, bool all) {
  if (x.numel() != 0) return;
  TERCEL_CHECK(!all, RuntimeError, op,
               "(): Expected reduction dim to be specified for input.numel() == 0. Specify the ",
               "reduction dim with the 'dim' argument.");
  for (size_t d = 0; d < x.sizes().size(); ++d)
    TERCEL_CHECK(!is_reduced(mask, d) || x.sizes()[d] != 0, IndexError, op, "(): Expected reduction dim ", d,
                 " to have non-zero size.");
}

// Sums of integers are int64, or uint64 for uint64; other sums have the input's dtype.
ScalarType sum_dtype(ScalarType t) { return is_differentiable(t) || t == kUInt64 ? t : kInt64; }
Compute sum_compute(ScalarType t) { return compute_of(sum_dtype(t)); }

void check_no_complex(const char* op, const Tensor& x) {
  TERCEL_CHECK(!x.is_complex(), TypeError, op, "(): does not support complex input");
}

// x converted for a sum in a dtype; x itself if the kernel converts on load.
Tensor summed_in(const Tensor& x, ScalarType dtype) {
  return dtype == x.dtype() || (!x.is_complex() && (is_floating(dtype) || dtype == kInt64)) ? x : to(x, dtype);
}

Tensor sum_of(const Tensor& x, DimMask mask, bool keepdim, ScalarType dtype) {
  const ScalarType result = dtype == ScalarType::Undefined ? sum_dtype(x.dtype()) : dtype;
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = to(reduce(op_index<op::Sum>, sum_compute(result), summed_in(x, result), mask, keepdim), result);
  }
  if (should_record(x) && is_differentiable(result))
    record("SumBackward0", out, {x},
           [sizes = DimVector(x.sizes()), mask, keepdim, given = x.dtype()](BackwardCall& call) {
             call.set(0, to(expand(with_reduced_dims(call.take(), sizes.size(), mask, keepdim), sizes), given));
           });
  return out;
}

Tensor mean_of(const Tensor& x, DimMask mask, bool keepdim, ScalarType dtype) {
  const ScalarType result = dtype == ScalarType::Undefined ? x.dtype() : dtype;
  check_floating_result("mean", result, dtype == ScalarType::Undefined ? "Input" : "Optional");
  const double n = static_cast<double>(reduced_count(x, mask));
  Tensor out;
  {
    NoRecordGuard no_grad;
    out = reduce(op_index<op::Sum>, compute_of(result), summed_in(x, result), mask, keepdim);
    out = to(div_(out, n), result);
  }
  if (should_record(x))
    record("MeanBackward0", out, {x},
           [sizes = DimVector(x.sizes()), mask, keepdim, n, given = x.dtype()](BackwardCall& call) {
             const Tensor grad = with_reduced_dims(div(call.grad(), n), sizes.size(), mask, keepdim);
             call.set(0, to(expand(grad, sizes), given));
           });
  return out;
}

Tensor nansum_of(const Tensor& x, DimMask mask, bool keepdim, ScalarType dtype) {
  TERCEL_CHECK(!x.is_complex(), NotImplementedError, "nansum on CPU does not support complex inputs");
  if (!x.is_floating_point()) return sum_of(x, mask, keepdim, dtype);
  const ScalarType result = dtype == ScalarType::Undefined ? x.dtype() : dtype;
  // NaN is replaced before a conversion could turn it into a number.
  if (!is_floating(result)) return sum_of(where(isnan(x), 0, x), mask, keepdim, dtype);
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = to(reduce(op_index<op::NanSum>, compute_of(result), x, mask, keepdim), result);
  }
  if (should_record(x))
    record("NansumBackward0", out, {x}, [x = SavedTensor(x), mask, keepdim](BackwardCall& call) {
      const Tensor& input = x.get();
      const Tensor grad = with_reduced_dims(call.grad(), input.sizes().size(), mask, keepdim);
      call.set(0, where(isnan(input), 0, to(grad, input.dtype())));
    });
  return out;
}

Tensor prod_of(const Tensor& given, DimMask mask, bool keepdim, ScalarType dtype);

// The same, recorded: each element's gradient is the product of the others. If there are zeros it is computed without
// division, since a quotient has wrong derivatives there.
Tensor prod_backward_recorded(const Tensor& grad, const Tensor& x, DimMask mask) {
  const Tensor zero = eq(x, 0);
  if (!any(zero).item<bool>()) return mul(grad, conj(div(prod_of(x, mask, true, ScalarType::Undefined), x)));
  // x with the reduced dimensions last, merged into one.
  DimVector order, kept;
  for (size_t d = 0; d < x.sizes().size(); ++d)
    if (!is_reduced(mask, d)) {
      order.push_back(static_cast<int64_t>(d));
      kept.push_back(x.sizes()[d]);
    }
  for (size_t d = 0; d < x.sizes().size(); ++d)
    if (is_reduced(mask, d)) order.push_back(static_cast<int64_t>(d));
  const Tensor moved = permute(x, order);
  const int64_t n = reduced_count(x, mask);
  DimVector rows(kept), square_sizes(kept);
  rows.push_back(1);
  rows.push_back(n);
  square_sizes.push_back(n);
  square_sizes.push_back(n);
  const Tensor others = where(eye(n, n, kBool), 1, expand(reshape(moved, rows), square_sizes));
  const Tensor products = prod_of(others, DimMask{1} << (kept.size() + 1), false, ScalarType::Undefined);
  DimVector back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return mul(grad, conj(permute(reshape(products, moved.sizes()), back)));
}

// Without zeros the gradient is g * out / x; a single zero gets the product of the others; with two zeros all are 0.
Tensor prod_backward(const Tensor& grad, const Tensor& x, DimMask mask) {
  if (should_record(grad, x)) return prod_backward_recorded(grad, x, mask);
  const Tensor zero = eq(x, 0);
  const Tensor others = where(zero, 1, x);
  const Compute compute = compute_of(x.dtype());
  const Tensor product = conj(to(reduce(op_index<op::Prod>, compute, others, mask, true), x.dtype()));
  const Tensor zeros = reduce(op_index<op::Sum>, Compute::I64, zero, mask, true);
  const Tensor g = mul(grad, product);
  const Tensor without = where(eq(zeros, 0), g, 0), with_one = where(eq(zeros, 1), g, 0);
  return where(zero, with_one, div(without, conj(others)));
}

Tensor prod_of(const Tensor& given, DimMask mask, bool keepdim, ScalarType dtype) {
  const Tensor x = dtype == ScalarType::Undefined ? given : to(given, dtype);
  const ScalarType result = dtype == ScalarType::Undefined ? sum_dtype(x.dtype()) : dtype;
  const Tensor out = to(reduce(op_index<op::Prod>, sum_compute(result), x, mask, keepdim), result);
  if (should_record(x))
    record("ProdBackward0", out, {x}, [x = SavedTensor(x), mask, keepdim](BackwardCall& call) {
      const Tensor& input = x.get();
      const Tensor grad = with_reduced_dims(call.grad(), input.sizes().size(), mask, keepdim);
      call.set(0, prod_backward(grad, input, mask));
    });
  return out;
}

template <class Op>
Tensor extreme(const char* name, const char* backward_name, const Tensor& x, DimMask mask, bool keepdim, bool all) {
  check_not_empty(name, x, mask, all);
  if (x.is_complex()) refuse_dtype(str_cat({name, "_cpu"}), x.dtype());
  const Tensor out = to(reduce(op_index<Op>, compute_of(x.dtype()), x, mask, keepdim), x.dtype());
  if (should_record(x))
    record(backward_name, out, {x},
           [x = SavedTensor(x), out = SavedTensor::output(out), mask, keepdim](BackwardCall& call) {
             const Tensor& input = x.get();
             const size_t ndim = input.sizes().size();
             const Tensor result = with_reduced_dims(out.get(call), ndim, mask, keepdim);
             Tensor equal = eq(input, result);
             // If the result is NaN, all NaN elements share the gradient.
             if (const Tensor lost = isnan(result); tercel::any(lost).item<bool>())
               equal = logical_or(equal, logical_and(isnan(input), lost));
             call.set(0, share_among(with_reduced_dims(call.grad(), ndim, mask, keepdim), equal, mask));
           });
  return out;
}

template <class Op>
ValuesAndIndices extreme_with_index(const char* name, const char* backward_name, const Tensor& x, int64_t d,
                                    bool keepdim) {
  check_strided(name, x, "x");
  const int64_t dim = wrap_dim(d, x.dim());
  check_not_empty(name, x, dim_mask(name, x, {dim}), false);
  check_no_complex(name, x);
  ValuesAndIndices out;
  {
    NoRecordGuard no_grad;
    const Tensor at_least_1d = x.dim() == 0 ? view(x, {1}) : x;
    arg_reduce_over(index_of<Op, ArgReduceOps>, at_least_1d, dim, &out.values, out.indices);
    if (keepdim && x.dim() > 0) {
      const DimVector sizes = kept_as_one(x.sizes(), DimMask{1} << dim);
      out.values = with_sizes(out.values, sizes);
      out.indices = with_sizes(out.indices, sizes);
    }
  }
  record_value_selecting_reduction(backward_name, out.values, x, out.indices, dim, keepdim);
  return out;
}

template <class Op>
Tensor arg_extreme(const char* name, const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  const NoRecordGuard no_record;
  if (dim) return extreme_with_index<Op>(name, "", x, *dim, keepdim).indices;
  check_strided(name, x, "x");
  check_no_complex(name, x);
  TERCEL_CHECK(x.numel() != 0, IndexError, name, "(): Expected reduction dim to be specified for input.numel() == 0.");
  Tensor indices;
  arg_reduce_over(index_of<Op, ArgReduceOps>, view(contiguous(x), {-1}), 0, nullptr, indices);
  return keepdim ? view(indices, DimVector(x.sizes().size(), 1)) : indices;
}

template <class Op>
Tensor test_of(const Tensor& x, DimMask mask, bool keepdim) {
  const NoRecordGuard no_record;
  const Tensor tested = x.is_complex() ? ne(x, 0) : x;
  return to(reduce(op_index<Op>, compute_of(tested.dtype()), tested, mask, keepdim),
            x.dtype() == kUInt8 ? kUInt8 : kBool);
}

}  // namespace

#define TERCEL_WHOLE_OUT(name) \
  const Tensor& name##_out(const Tensor& out, const Tensor& x) { return name##_out(out, x, IntSpan()); }
TERCEL_WHOLE_OUT(sum)
TERCEL_WHOLE_OUT(mean)
TERCEL_WHOLE_OUT(prod)
#undef TERCEL_WHOLE_OUT

Tensor sum(const Tensor& x) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_sum(x, {}, false, ScalarType::Undefined);
  return sum_of(x, dim_mask("sum", x, {}), false, ScalarType::Undefined);
}
Tensor sum(const Tensor& x, IntSpan dim, bool keepdim, ScalarType dtype) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_sum(x, dim, keepdim, dtype);
  return sum_of(x, dim_mask("sum", x, dim), keepdim, dtype);
}
Tensor nansum(const Tensor& x, IntSpan dim, bool keepdim, ScalarType dtype) {
  return nansum_of(x, dim_mask("nansum", x, dim), keepdim, dtype);
}
Tensor mean(const Tensor& x) { return mean_of(x, dim_mask("mean", x, {}), false, ScalarType::Undefined); }
Tensor mean(const Tensor& x, IntSpan dim, bool keepdim, ScalarType dtype) {
  return mean_of(x, dim_mask("mean", x, dim), keepdim, dtype);
}
Tensor nanmean(const Tensor& x, IntSpan dim, bool keepdim, ScalarType dtype) {
  const DimMask mask = dim_mask("nanmean", x, dim);
  TERCEL_CHECK(x.is_floating_point(), NotImplementedError,
               "nanmean(): expected input to have floating point or complex dtype but got ",
               scalar_type_word(x.dtype()));
  const Tensor count = sum_of(logical_not(isnan(x)), mask, keepdim, ScalarType::Undefined);
  return div(nansum_of(x, mask, keepdim, dtype), count);
}
Tensor prod(const Tensor& x) { return prod_of(x, dim_mask("prod", x, {}), false, ScalarType::Undefined); }
Tensor prod(const Tensor& x, IntSpan dim, bool keepdim, ScalarType dtype) {
  return prod_of(x, dim_mask("prod", x, dim), keepdim, dtype);
}

Tensor max(const Tensor& x) { return extreme<op::Max>("max", "MaxBackward0", x, dim_mask("max", x, {}), false, true); }
Tensor min(const Tensor& x) { return extreme<op::Min>("min", "MinBackward0", x, dim_mask("min", x, {}), false, true); }
Tensor amax(const Tensor& x, IntSpan dim, bool keepdim) {
  return extreme<op::Max>("amax", "AmaxBackward0", x, dim_mask("amax", x, dim), keepdim, dim.empty());
}
Tensor amin(const Tensor& x, IntSpan dim, bool keepdim) {
  return extreme<op::Min>("amin", "AminBackward0", x, dim_mask("amin", x, dim), keepdim, dim.empty());
}

ValuesAndIndices max(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_with_index<op::Max>("max", "MaxBackward1", x, dim, keepdim);
}
ValuesAndIndices min(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_with_index<op::Min>("min", "MinBackward1", x, dim, keepdim);
}
Tensor argmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  return arg_extreme<op::Max>("argmax", x, dim, keepdim);
}
Tensor argmin(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  return arg_extreme<op::Min>("argmin", x, dim, keepdim);
}

MinAndMax aminmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  check_strided("aminmax", x, "x");
  if (dim) {
    const DimMask mask = dim_mask("aminmax", x, {*dim});
    return {extreme<op::Min>("aminmax", "AminmaxBackward0", x, mask, keepdim, false),
            extreme<op::Max>("aminmax", "AminmaxBackward0", x, mask, keepdim, false)};
  }
  TERCEL_CHECK(x.numel() != 0, RuntimeError,
               "aminmax(): cannot compute aminmax over an empty dimension as the "
               "operation has no identity.");
  const DimMask mask = dim_mask("aminmax", x, {});
  return {extreme<op::Min>("aminmax", "AminmaxBackward0", x, mask, keepdim, true),
          extreme<op::Max>("aminmax", "AminmaxBackward0", x, mask, keepdim, true)};
}

Tensor count_nonzero(const Tensor& x, IntSpan dim, bool keepdim) {
  const DimMask mask = dim_mask("count_nonzero", x, dim);
  const NoRecordGuard no_record;
  return reduce(op_index<op::Sum>, Compute::I64, ne(x, 0), mask, keepdim);
}

Tensor any(const Tensor& x) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_any(x);
  return test_of<op::Any>(x, dim_mask("any", x, {}), false);
}
Tensor any(const Tensor& x, IntSpan dim, bool keepdim) { return test_of<op::Any>(x, dim_mask("any", x, dim), keepdim); }
Tensor all(const Tensor& x) { return test_of<op::All>(x, dim_mask("all", x, {}), false); }
Tensor all(const Tensor& x, IntSpan dim, bool keepdim) { return test_of<op::All>(x, dim_mask("all", x, dim), keepdim); }

Tensor logsumexp(const Tensor& given, IntSpan dim, bool keepdim) {
  const DimMask mask = dim_mask("logsumexp", given, dim);
  if (given.is_complex()) return complex_logsumexp(given, dim, keepdim);
  const Tensor x = given.is_floating_point() ? given : to(given, default_dtype());
  const size_t ndim = x.sizes().size();
  Tensor out;
  {
    const NoRecordGuard no_record;
    const Compute compute = compute_of(x.dtype());
    const auto reduced = [&](int op, const Tensor& t) { return reduce(op, compute, t, mask, keepdim); };
    const Tensor top = reduced(op_index<op::Max>, x);
    // Infinities have no differences: they reach the result through exp and log.
    const Tensor shift = where(isfinite(top), top, 0);
    const Tensor below = sub(to(x, native_dtype(compute)), with_reduced_dims(shift, ndim, mask, keepdim));
    out = to(add(log(reduced(op_index<op::Sum>, exp(below))), shift), x.dtype());
  }
  if (should_record(x))
    record("LogsumexpBackward0", out, {x},
           [x = SavedTensor(x), out = SavedTensor::output(out), mask, keepdim, ndim](BackwardCall& call) {
             const Tensor result = with_reduced_dims(out.get(call), ndim, mask, keepdim);
             const Tensor grad = with_reduced_dims(call.grad(), ndim, mask, keepdim);
             // -inf is the result of -infs alone, whose difference would be NaN.
             const Tensor shift = where(eq(result, -std::numeric_limits<double>::infinity()), 0, result);
             call.set(0, mul(grad, exp(sub(x.get(), shift))));
           });
  return out;
}

}  // namespace tercel
