#include "tercel/ops/reduce.h"

#include <cmath>

#include "tercel/autograd/record.h"
#include "tercel/ops/binary.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/factories.h"
#include "tercel/ops/indexing.h"
#include "tercel/ops/reduce_impl.h"
#include "tercel/ops/ternary.h"
#include "tercel/ops/unary.h"
#include "tercel/ops/views.h"

namespace tercel {

namespace {

template <class Op>
constexpr int op_index = index_of<Op, ReduceOps>;

// Which dimensions to reduce; an empty list means all.
DimMask dim_mask(const char* op, const Tensor& x, IntSpan dims) {
  check_defined(x, op, "x");
  const int64_t ndim = x.dim();
  TERCEL_CHECK(ndim <= 64, ValueError, op, ": expected at most 64 dimensions but got ", ndim);
  if (dims.empty()) return ndim == 64 ? ~DimMask{0} : (DimMask{1} << ndim) - 1;
  DimMask mask = 0;
  for (const int64_t d : dims) {
    const int64_t dim = wrap_dim(d, ndim);
    TERCEL_CHECK((mask >> dim & 1) == 0, ValueError, op, ": dim ", dim, " appears multiple times in the list of dims");
    mask |= DimMask{1} << dim;
  }
  return ndim == 0 ? 0 : mask;
}

bool is_reduced(DimMask mask, size_t d) { return (mask >> d & 1) != 0; }

// Fresh row-major memory under other sizes.
Tensor with_sizes(const Tensor& fresh, IntSpan sizes) {
  return Tensor(make_intrusive<TensorImpl>(fresh.storage(), fresh.dtype(), sizes));
}

DimVector kept_as_one(IntSpan sizes, DimMask mask) {
  DimVector kept(sizes);
  for (size_t d = 0; d < kept.size(); ++d)
    if (is_reduced(mask, d)) kept[d] = 1;
  return kept;
}

int64_t reduced_count(const Tensor& x, DimMask mask) {
  int64_t n = 1;
  for (size_t d = 0; d < x.sizes().size(); ++d)
    if (is_reduced(mask, d)) n *= x.sizes()[d];
  return n;
}

// The op's result in the compute type.
Tensor reduce(int op, Compute compute, const Tensor& x, DimMask mask, bool keepdim) {
  Tensor out = reduce_over(op, compute, x, mask);
  return keepdim ? with_sizes(out, kept_as_one(x.sizes(), mask)) : out;
}

// A result, or its gradient, with the reduced dimensions as 1.
Tensor with_reduced_dims(Tensor t, size_t ndim, DimMask mask, bool keepdim) {
  if (keepdim) return t;
  for (size_t d = 0; d < ndim; ++d)
    if (is_reduced(mask, d)) t = unsqueeze(t, static_cast<int64_t>(d));
  return t;
}

// Sums of integers are int64; of others in what they are calculated in.
Compute sum_compute(ScalarType t) { return is_floating(t) ? compute_of(t) : Compute::I64; }
ScalarType sum_dtype(ScalarType t) { return is_floating(t) ? t : kInt64; }

void check_floating(const char* op, const Tensor& x) {
  TERCEL_CHECK(x.is_floating_point(), TypeError, op, "(): could not infer output dtype. Input dtype must be either a ",
               "floating point or complex dtype. Got: ", to_string(x.dtype()));
}

void check_not_empty(const char* op, const Tensor& x, DimMask mask, bool all) {
  if (x.numel() != 0) return;
  TERCEL_CHECK(!all, ValueError, op, "(): Expected reduction dim to be specified for input.numel() == 0. Specify the ",
               "reduction dim with the 'dim' argument.");
  for (size_t d = 0; d < x.sizes().size(); ++d)
    TERCEL_CHECK(!is_reduced(mask, d) || x.sizes()[d] != 0, IndexError, op, "(): Expected reduction dim ", d,
                 " to have non-zero size.");
}

Tensor sum_of(const Tensor& x, DimMask mask, bool keepdim) {
  const Tensor out = to(reduce(op_index<op::Sum>, sum_compute(x.dtype()), x, mask, keepdim), sum_dtype(x.dtype()));
  if (should_record(x))
    record("SumBackward0", out, {x}, [sizes = DimVector(x.sizes()), mask, keepdim](BackwardCall& call) {
      call.set(0, expand(with_reduced_dims(call.take(), sizes.size(), mask, keepdim), sizes));
    });
  return out;
}

Tensor mean_of(const Tensor& x, DimMask mask, bool keepdim) {
  check_floating("mean", x);
  const double n = static_cast<double>(reduced_count(x, mask));
  Tensor out;
  {
    NoGradGuard no_grad;
    out = reduce(op_index<op::Sum>, compute_of(x.dtype()), x, mask, keepdim);
    out = to(div_(out, n), x.dtype());
  }
  if (should_record(x))
    record("MeanBackward0", out, {x}, [sizes = DimVector(x.sizes()), mask, keepdim, n](BackwardCall& call) {
      call.set(0, expand(with_reduced_dims(div(call.grad(), n), sizes.size(), mask, keepdim), sizes));
    });
  return out;
}

// The gradient is g * out / x, but where zeros are: one gets the product of the others, two leave nothing.
Tensor prod_backward(const Tensor& grad, const Tensor& x, DimMask mask) {
  const Tensor zero = eq(x, 0);
  const Tensor others = where(zero, 1, x);
  const Compute compute = compute_of(x.dtype());
  const Tensor product = to(reduce(op_index<op::Prod>, compute, others, mask, true), x.dtype());
  const Tensor zeros = reduce(op_index<op::Sum>, Compute::I64, zero, mask, true);
  const Tensor g = mul(grad, product);
  const Tensor without = where(eq(zeros, 0), g, 0), with_one = where(eq(zeros, 1), g, 0);
  return where(zero, with_one, div(without, others));
}

Tensor prod_of(const Tensor& x, DimMask mask, bool keepdim) {
  const Tensor out = to(reduce(op_index<op::Prod>, sum_compute(x.dtype()), x, mask, keepdim), sum_dtype(x.dtype()));
  if (should_record(x))
    record("ProdBackward0", out, {x}, [x = SavedTensor(x), mask, keepdim](BackwardCall& call) {
      const Tensor& input = x.get();
      const Tensor grad = with_reduced_dims(call.grad(), input.sizes().size(), mask, keepdim);
      call.set(0, prod_backward(grad, input, mask));
    });
  return out;
}

// The gradient of a result that equals some of the elements, shared among them.
Tensor share_among(const Tensor& grad, const Tensor& equal, DimMask mask) {
  const Tensor count = reduce(op_index<op::Sum>, Compute::I64, equal, mask, true);
  return mul(div(grad, count), equal);
}

template <class Op>
Tensor extreme(const char* name, const char* backward_name, const Tensor& x, DimMask mask, bool keepdim, bool all) {
  check_not_empty(name, x, mask, all);
  const Tensor out = to(reduce(op_index<Op>, compute_of(x.dtype()), x, mask, keepdim), x.dtype());
  if (should_record(x))
    record(backward_name, out, {x},
           [x = SavedTensor(x), out = SavedTensor::output(out), mask, keepdim](BackwardCall& call) {
             const Tensor& input = x.get();
             const size_t ndim = input.sizes().size();
             const Tensor equal = eq(input, with_reduced_dims(out.get(), ndim, mask, keepdim));
             call.set(0, share_among(with_reduced_dims(call.grad(), ndim, mask, keepdim), equal, mask));
           });
  return out;
}

template <class Op>
ValuesAndIndices extreme_with_index(const char* name, const char* backward_name, const Tensor& x, int64_t d,
                                    bool keepdim) {
  check_defined(x, name, "x");
  const int64_t dim = wrap_dim(d, x.dim());
  check_not_empty(name, x, dim_mask(name, x, {dim}), false);
  ValuesAndIndices out;
  {
    NoGradGuard no_grad;
    const Tensor at_least_1d = x.dim() == 0 ? view(x, {1}) : x;
    arg_reduce_over(index_of<Op, ArgReduceOps>, at_least_1d, dim, &out.values, out.indices);
    if (keepdim && x.dim() > 0) {
      const DimVector sizes = kept_as_one(x.sizes(), DimMask{1} << dim);
      out.values = with_sizes(out.values, sizes);
      out.indices = with_sizes(out.indices, sizes);
    }
  }
  if (should_record(x))
    record(backward_name, out.values, {x},
           [indices = SavedTensor(out.indices), sizes = DimVector(x.sizes()), dim, keepdim](BackwardCall& call) {
             Tensor grad = call.grad(), index = indices.get();
             const Tensor zero = zeros(sizes, grad.options());
             if (sizes.empty()) return call.set(0, grad);
             if (!keepdim) {
               grad = unsqueeze(grad, dim);
               index = unsqueeze(index, dim);
             }
             call.set(0, scatter_add(zero, dim, index, grad));
           });
  return out;
}

template <class Op>
Tensor arg_extreme(const char* name, const Tensor& x) {
  check_defined(x, name, "x");
  check_not_empty(name, x, 0, true);
  const NoGradGuard no_grad;
  Tensor indices;
  arg_reduce_over(index_of<Op, ArgReduceOps>, view(contiguous(x), {-1}), 0, nullptr, indices);
  return indices;
}

template <class Op>
Tensor arg_extreme(const char* name, const Tensor& x, int64_t d, bool keepdim) {
  const NoGradGuard no_grad;
  return extreme_with_index<Op>(name, "", x, d, keepdim).indices;
}

Tensor norm_of(const Tensor& x, double p, DimMask mask, bool keepdim) {
  check_floating("norm", x);
  TERCEL_CHECK(p == 1 || p == 2 || p == HUGE_VAL, ValueError, "norm: expected p to be 1, 2 or infinity but got ", p);
  const int op = p == 1 ? op_index<op::AbsSum> : p == 2 ? op_index<op::SquareSum> : op_index<op::AbsMax>;
  Tensor out;
  {
    NoGradGuard no_grad;
    out = reduce(op, compute_of(x.dtype()), x, mask, keepdim);
    if (p == 2) sqrt_(out);
    out = to(out, x.dtype());
  }
  if (should_record(x))
    record("NormBackward0", out, {x},
           [x = SavedTensor(x), out = SavedTensor::output(out), mask, keepdim, p](BackwardCall& call) {
             const Tensor& input = x.get();
             const size_t ndim = input.sizes().size();
             const Tensor grad = with_reduced_dims(call.grad(), ndim, mask, keepdim);
             const Tensor norms = with_reduced_dims(out.get(), ndim, mask, keepdim);
             if (p == 1)
               call.set(0, mul(sign(input), grad));
             else if (p == 2)
               call.set(0, mul(input, where(eq(norms, 0), 0, div(grad, norms))));
             else
               call.set(0, mul(sign(input), share_among(grad, eq(abs(input), norms), mask)));
           });
  return out;
}

template <class Op>
Tensor test_of(const Tensor& x, DimMask mask, bool keepdim) {
  const NoGradGuard no_grad;
  return to(reduce(op_index<Op>, compute_of(x.dtype()), x, mask, keepdim), kBool);
}

}  // namespace

Tensor sum(const Tensor& x) { return sum_of(x, dim_mask("sum", x, {}), false); }
Tensor sum(const Tensor& x, IntSpan dims, bool keepdim) { return sum_of(x, dim_mask("sum", x, dims), keepdim); }
Tensor mean(const Tensor& x) { return mean_of(x, dim_mask("mean", x, {}), false); }
Tensor mean(const Tensor& x, IntSpan dims, bool keepdim) { return mean_of(x, dim_mask("mean", x, dims), keepdim); }
Tensor prod(const Tensor& x) { return prod_of(x, dim_mask("prod", x, {}), false); }
Tensor prod(const Tensor& x, IntSpan dims, bool keepdim) { return prod_of(x, dim_mask("prod", x, dims), keepdim); }

Tensor var(const Tensor& x, IntSpan dims, double correction, bool keepdim) {
  const DimMask mask = dim_mask("var", x, dims);
  check_floating("var", x);
  const double n = static_cast<double>(reduced_count(x, mask)) - correction;
  return div(sum_of(square(sub(x, mean_of(x, mask, true))), mask, keepdim), n > 0 ? n : 0);
}

Tensor max(const Tensor& x) { return extreme<op::Max>("max", "MaxBackward0", x, dim_mask("max", x, {}), false, true); }
Tensor min(const Tensor& x) { return extreme<op::Min>("min", "MinBackward0", x, dim_mask("min", x, {}), false, true); }
Tensor amax(const Tensor& x, IntSpan dims, bool keepdim) {
  return extreme<op::Max>("amax", "AmaxBackward0", x, dim_mask("amax", x, dims), keepdim, dims.empty());
}
Tensor amin(const Tensor& x, IntSpan dims, bool keepdim) {
  return extreme<op::Min>("amin", "AminBackward0", x, dim_mask("amin", x, dims), keepdim, dims.empty());
}

ValuesAndIndices max(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_with_index<op::Max>("max", "MaxBackward1", x, dim, keepdim);
}
ValuesAndIndices min(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_with_index<op::Min>("min", "MinBackward1", x, dim, keepdim);
}
Tensor argmax(const Tensor& x) { return arg_extreme<op::Max>("argmax", x); }
Tensor argmax(const Tensor& x, int64_t dim, bool keepdim) { return arg_extreme<op::Max>("argmax", x, dim, keepdim); }
Tensor argmin(const Tensor& x) { return arg_extreme<op::Min>("argmin", x); }
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim) { return arg_extreme<op::Min>("argmin", x, dim, keepdim); }

Tensor norm(const Tensor& x, double p) { return norm_of(x, p, dim_mask("norm", x, {}), false); }
Tensor norm(const Tensor& x, double p, IntSpan dims, bool keepdim) {
  return norm_of(x, p, dim_mask("norm", x, dims), keepdim);
}

Tensor count_nonzero(const Tensor& x, IntSpan dims, bool keepdim) {
  const DimMask mask = dim_mask("count_nonzero", x, dims);
  const NoGradGuard no_grad;
  return reduce(op_index<op::Sum>, Compute::I64, ne(x, 0), mask, keepdim);
}

Tensor any(const Tensor& x) { return test_of<op::Any>(x, dim_mask("any", x, {}), false); }
Tensor any(const Tensor& x, IntSpan dims, bool keepdim) {
  return test_of<op::Any>(x, dim_mask("any", x, dims), keepdim);
}
Tensor all(const Tensor& x) { return test_of<op::All>(x, dim_mask("all", x, {}), false); }
Tensor all(const Tensor& x, IntSpan dims, bool keepdim) {
  return test_of<op::All>(x, dim_mask("all", x, dims), keepdim);
}

Tensor Tensor::sum() const { return tercel::sum(*this); }
Tensor Tensor::sum(IntSpan dims, bool keepdim) const { return tercel::sum(*this, dims, keepdim); }
Tensor Tensor::mean() const { return tercel::mean(*this); }
Tensor Tensor::mean(IntSpan dims, bool keepdim) const { return tercel::mean(*this, dims, keepdim); }

}  // namespace tercel
