#include "tercel/ops/index/scatter.h"

#include <limits>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/elementwise_impl.h"
#include "tercel/ops/common/overlap_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/gather_scatter_plan_impl.h"
#include "tercel/ops/index/scatter_kernels.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

constinit const KernelTable<ScatterFn> scatter_kernels = TERCEL_CPU_KERNELS(scatter);

/** Checks the arguments before anything is written; returns the wrapped dimension. */
int64_t check_scatter(const char* op, const Tensor& x, int64_t d, const Tensor& index, const Tensor& source) {
  check_strided(op, x);
  check_strided(op, source, "src");
  check_index(op, index);
  const int64_t dim = wrap_dim(d, x.dim());
  TERCEL_CHECK(source.dtype() == x.dtype(), RuntimeError, op, "(): Expected self.dtype to be equal to src.dtype, got ",
               describe(x), " and ", describe(source));
  if (index.numel() == 0) return dim;
  check_index_sizes(op, index, x, "self", dim, false);
  check_index_sizes(op, index, source, "src", dim, true);
  check_no_internal_overlap(op, x);
  for (const Tensor* other : {&index, &source})
    TERCEL_CHECK(!x.is_alias_of(*other), RuntimeError, op,
                 "(): unsupported operation: the written-to tensor and an input share memory. Please clone() the input "
                 "before performing the operation.");
  check_bounds(index, dim, x.dim() == 0 ? 1 : x.sizes()[static_cast<size_t>(dim)]);
  return dim;
}

/** x[index] = kind(itself, source), not recorded. */
void scatter_elements(ScatterKind kind, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  ScatterFn* kernel = scatter_kernels[x.device()];
  run_gather_scatter(x, dim, index, source,
                     [&](const GatherLoop& loop, int64_t begin, int64_t end) { kernel(kind, loop, begin, end); });
  x.impl().bump_version();
}

/** The gradient of source: gathered elements, and zeros outside the index. */
Tensor gathered_gradient(const Tensor& grad, int64_t dim, const Tensor& index, IntSpan sizes) {
  const Tensor gathered = gather(grad, dim, index);
  if (index.sizes() == sizes) return gathered;
  Tensor whole = zeros(sizes, gathered.options());
  Tensor part = whole;
  for (int64_t d = 0; d < index.dim(); ++d) part = narrow(part, d, 0, index.size(d));
  if (index.numel() != 0) copy_(part, gathered);
  return whole;
}

const Tensor& scatter_op(const char* op, const char* backward, ScatterKind kind, const Tensor& x, int64_t d,
                         const Tensor& index, const Tensor& source) {
  const int64_t dim = check_scatter(op, x, d, index, source);
  const bool records = should_record(x, source);
  check_inplace(x, records);
  scatter_elements(kind, x, dim, index, source);
  if (records)
    record_inplace(backward, x, {x, source},
                   [kind, dim, index = SavedTensor(index), sizes = DimVector(source.sizes())](BackwardCall& call) {
                     const Tensor& g = call.grad();
                     if (call.needs(1)) call.set(1, gathered_gradient(g, dim, index.get(), sizes));
                     if (call.needs(0)) call.set(0, kind == ScatterKind::Add ? g : scatter(g, dim, index.get(), 0));
                   });
  return x;
}

}  // namespace

const Tensor& scatter_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  return scatter_op("scatter", "ScatterBackward0", ScatterKind::Set, x, dim, index, source);
}

const Tensor& scatter_add_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_op("scatter_add", "ScatterAddBackward0", ScatterKind::Add, x, dim, index, src);
}

const Tensor& scatter_(const Tensor& x, int64_t dim, const Tensor& index, Scalar value) {
  check_strided("scatter", x);
  check_index("scatter", index);
  return scatter_(x, dim, index, expand(scalar_tensor(value, TensorOptions(x.dtype(), x.device())), index.sizes()));
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  check_strided("scatter", x);
  return scatter_(clone(x), dim, index, source);
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Scalar value) {
  check_strided("scatter", x);
  return scatter_(clone(x), dim, index, value);
}

Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  check_strided("scatter_add", x);
  return scatter_add_(clone(x), dim, index, src);
}

// ---- reductions

ScatterReduction parse_scatter_reduction(std::string_view name) {
  if (name == "sum") return ScatterReduction::Sum;
  if (name == "prod") return ScatterReduction::Product;
  if (name == "mean") return ScatterReduction::Mean;
  if (name == "amax") return ScatterReduction::Maximum;
  if (name == "amin") return ScatterReduction::Minimum;
  throw_error<RuntimeError>({"reduce argument must be either sum, prod, mean, amax or amin, got ", name, "."});
}

namespace {

ScatterKind kind_of(ScatterReduction reduction) {
  switch (reduction) {
    case ScatterReduction::Product: return ScatterKind::Multiply;
    case ScatterReduction::Maximum: return ScatterKind::Maximum;
    case ScatterReduction::Minimum: return ScatterKind::Minimum;
    default: return ScatterKind::Add;
  }
}

/** The identity of the reduction. */
Scalar identity_of(ScatterReduction reduction, ScalarType dtype) {
  const bool most = reduction == ScatterReduction::Minimum;
  switch (reduction) {
    case ScatterReduction::Product: return 1;
    case ScatterReduction::Maximum:
    case ScatterReduction::Minimum:
      if (is_floating(dtype))
        return most ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
      return visit_all_types("scatter_reduce", dtype, [&]<class T>() -> Scalar {
        if constexpr (std::is_integral_v<T>)
          return most ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
        else
          return 0;
      });
    default: return 0;
  }
}

/** The number of elements reduced into each element, in x's dtype, at least 1. */
Tensor counts_of(const Tensor& x, int64_t dim, const Tensor& index, bool include_self) {
  const TensorOptions options(real_dtype(x.dtype()), x.device());
  const Tensor counts = include_self ? ones(x.sizes(), options) : zeros(x.sizes(), options);
  scatter_elements(ScatterKind::Add, counts, dim, index, expand(ones({}, options), index.sizes()));
  return clamp_min_(counts, 1);
}

/** Reduces into x; not recorded. */
void reduce_into(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, ScatterReduction reduction,
                 bool include_self) {
  TERCEL_CHECK(!x.is_complex() || (reduction != ScatterReduction::Maximum && reduction != ScatterReduction::Minimum),
               NotImplementedError, "scatter_reduce: amax and amin are not implemented for dtype ",
               to_string(x.dtype()));
  const NoRecordGuard no_record;
  if (index.numel() == 0) return;
  if (!include_self) {
    const Tensor start = scalar_tensor(identity_of(reduction, x.dtype()), TensorOptions(x.dtype(), x.device()));
    scatter_elements(ScatterKind::Set, x, dim, index, expand(start, index.sizes()));
  }
  scatter_elements(kind_of(reduction), x, dim, index, source);
  if (reduction == ScatterReduction::Mean) {
    const Tensor counts = counts_of(x, dim, index, include_self);
    if (x.is_differentiable())
      div_(x, counts);
    else
      floor_divide_(x, counts);
  }
}

/** Gradients of x and source. */
struct ScatterReduceBackward {
  ScatterReduction reduction;
  bool include_self;
  int64_t dim;
  SavedTensor self, index, source, result;

  void operator()(BackwardCall& call) const {
    const Tensor& g = call.grad();
    const Tensor at = index.get();
    Tensor grad_self, grad_source;
    switch (reduction) {
      case ScatterReduction::Sum:
        grad_self = g;
        grad_source = gather(g, dim, at);
        break;
      case ScatterReduction::Mean: {
        const Tensor share = div(g, counts_of(zeros_like(g), dim, at, include_self));
        grad_self = share;
        grad_source = gather(share, dim, at);
        break;
      }
      case ScatterReduction::Product: product(g, at, grad_self, grad_source); break;
      default: {
        // Elements equal to the result share its gradient.
        const Tensor y = result.get(call);
        const Tensor from = narrowed(source.get(), at);
        Tensor self_share = to(eq(self.get(), y), g.dtype());
        const Tensor source_share = to(eq(from, gather(y, dim, at)), g.dtype());
        if (!include_self) self_share = scatter(self_share, dim, at, 0);
        const Tensor shared = div(g, clamp_min(scatter_add(self_share, dim, at, source_share), 1));
        grad_self = mul(self_share, shared);
        grad_source = mul(source_share, gather(shared, dim, at));
      }
    }
    if (call.needs(0)) call.set(0, include_self ? grad_self : scatter(grad_self, dim, at, 0));
    if (call.needs(1)) call.set(1, widened(grad_source, source.get().sizes()));
  }

  /** The part of source that is indexed. */
  static Tensor narrowed(Tensor t, const Tensor& index) {
    for (int64_t d = 0; d < index.dim(); ++d) t = narrow(t, d, 0, index.size(d));
    return t;
  }
  static Tensor widened(const Tensor& part, IntSpan sizes) {
    if (part.sizes() == sizes) return part;
    Tensor whole = zeros(sizes, part.options());
    copy_(narrowed(whole, part), part);
    return whole;
  }

  /**
   * Each factor's gradient is the product of the others. Zeros are counted instead of divided by: if the others contain
   * a single zero their product is 0, but differentiable with respect to that zero, which is kept as its factor.
   */
  void product(const Tensor& g, const Tensor& at, Tensor& grad_self, Tensor& grad_source) const {
    const Tensor x = self.get();
    const Tensor from = narrowed(source.get(), at);
    const Tensor x_zero = to(eq(x, 0), g.dtype()), from_zero = to(eq(from, 0), g.dtype());
    const Tensor x_other = where(eq(x, 0), 1, x), from_other = where(eq(from, 0), 1, from);
    Tensor zeros_at = include_self ? x_zero : scatter(x_zero, dim, at, 0);
    zeros_at = scatter_add(zeros_at, dim, at, from_zero);
    const Tensor others = scatter_reduce(x_other, dim, at, from_other, ScatterReduction::Product, include_self);
    const Tensor x_zeros = include_self ? x_zero : zeros_like(x_zero);
    // The sum of the zeros, with their history.
    const Tensor x_part = mul(x, to(x_zeros, x.dtype())), from_part = mul(from, to(from_zero, from.dtype()));
    const Tensor zero_at = scatter_add(x_part, dim, at, from_part);
    const auto gradient = [](const Tensor& gradient_there, const Tensor& zeros_there, const Tensor& zero_there,
                             const Tensor& product_there, const Tensor& is_zero, const Tensor& own_zero,
                             const Tensor& factor) {
      const Tensor other_zeros = sub(zeros_there, is_zero);
      const Tensor zero = where(eq(other_zeros, 1), sub(zero_there, own_zero), 0);
      return mul(gradient_there, conj(mul(where(eq(other_zeros, 0), 1, zero), div(product_there, factor))));
    };
    grad_self = gradient(g, zeros_at, zero_at, others, x_zeros, x_part, x_other);
    grad_source = gradient(gather(g, dim, at), gather(zeros_at, dim, at), gather(zero_at, dim, at),
                           gather(others, dim, at), from_zero, from_part, from_other);
  }
};

}  // namespace

const Tensor& scatter_reduce_(const Tensor& x, int64_t d, const Tensor& index, const Tensor& source,
                              ScatterReduction reduction, bool include_self) {
  const int64_t dim = check_scatter("scatter_reduce", x, d, index, source);
  const bool records = should_record(x, source);
  check_inplace(x, records);
  SavedTensor before;
  if (records) before = save_before_change(x);
  reduce_into(x, dim, index, source, reduction, include_self);
  if (records)
    record_inplace("ScatterReduceBackward0", x, {x, source},
                   ScatterReduceBackward{reduction, include_self, dim, std::move(before), SavedTensor(index),
                                         SavedTensor(source), SavedTensor::output(x)});
  return x;
}

Tensor scatter_reduce(const Tensor& x, int64_t d, const Tensor& index, const Tensor& source, ScatterReduction reduction,
                      bool include_self) {
  check_strided("scatter_reduce", x);
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = clone(x);
  }
  const int64_t dim = check_scatter("scatter_reduce", out, d, index, source);
  reduce_into(out, dim, index, source, reduction, include_self);
  if (should_record(x, source))
    record("ScatterReduceBackward0", out, {x, source},
           ScatterReduceBackward{reduction, include_self, dim, SavedTensor(x), SavedTensor(index), SavedTensor(source),
                                 SavedTensor::output(out)});
  return out;
}

const Tensor& index_reduce_(const Tensor& x, int64_t d, const Tensor& index, const Tensor& source,
                            ScatterReduction reduction, bool include_self) {
  const char* op = "index_reduce";
  check_strided(op, x);
  check_strided(op, source, "source");
  check_index(op, index);
  TERCEL_CHECK(index.dim() <= 1, RuntimeError, op, "(): Index is supposed to be a vector, but got ", describe(index));
  const auto dim = static_cast<size_t>(wrap_dim(d, x.dim()));
  DimVector expected(x.sizes());
  if (!expected.empty()) expected[dim] = index.numel();
  TERCEL_CHECK(source.sizes() == IntSpan(expected) || source.dim() == 0, RuntimeError, op,
               "(): expected source of sizes ", IntSpan(expected), " but got ", source.sizes());
  DimVector sizes(source.sizes().size(), 1);
  if (!sizes.empty()) sizes[dim] = index.numel();
  scatter_reduce_(x, static_cast<int64_t>(dim), expand(reshape(index, sizes), source.sizes()), source, reduction,
                  include_self);
  return x;
}

Tensor index_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, ScatterReduction reduction,
                    bool include_self) {
  check_strided("index_reduce", x);
  return index_reduce_(clone(x), dim, index, source, reduction, include_self);
}

}  // namespace tercel
