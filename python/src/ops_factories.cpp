// New tensors.
#include <algorithm>

#include "python/src/factory.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/views/resize.h"
#include "tercel/ops/views/views.h"

namespace tercel::python {

namespace {

/** The default dtype for a number: of its category, and of the width of the default floating dtype. */
ScalarType dtype_for(Scalar value) {
  if (value.is_complex()) return complex_dtype(default_dtype());
  return value.is_floating() ? default_dtype() : value.dtype();
}

/** The dtype of a range: int64 if all its numbers are integers. */
ScalarType range_dtype(std::initializer_list<Scalar> numbers) {
  for (const Scalar& n : numbers)
    if (!n.is_integral()) return default_dtype();
  return kInt64;
}

/** The default dtype of linspace() and logspace(). */
ScalarType spread_dtype(const char* op, Scalar start, Scalar end, const FactoryOptions& o) {
  if (!start.is_complex() && !end.is_complex()) return default_dtype();
  const ScalarType type = complex_dtype(default_dtype());
  TERCEL_CHECK(!o.dtype || is_complex(*o.dtype), RuntimeError, op, "(): inferred dtype ", legacy_name(type),
               " can't be safely cast to passed dtype ", legacy_name(o.dtype.value_or(type)));
  return type;
}

constexpr const char* kRoundingAdvice =
    ". Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor of shape (";

/**
 * made() for a sequence of numbers, which fills an `out` with that many elements whatever its sizes. Any other `out` is
 * resized, since the count may depend on rounding.
 */
template <class Make>
Tensor made_in_order(const char* op, const Tensor& out, const FactoryOptions& o, ScalarType otherwise, Make make) {
  if (!out.defined() || out.numel() == 0) return made(op, out, o, otherwise, make);
  const Tensor result = make(TensorOptions(out.dtype()));
  if (result.numel() != out.numel())
    warn(str_cat({"The number of elements in the out tensor of shape ", out.sizes(), " is ", out.numel(),
                  " which does not match the computed number of elements ", result.numel(), kRoundingAdvice,
                  result.numel(), ",)."}));
  const IntSpan sizes = result.numel() == out.numel() ? out.sizes() : result.sizes();
  if (out.sizes() != sizes) resize_(out, sizes);
  sized(op, out, sizes, o);
  return into(op, out, view(result, sizes));
}

/** Row-major strides of the dimensions in the order `layout`. */
DimVector permuted_strides(IntSpan size, IntSpan layout) {
  TERCEL_CHECK(layout.size() == size.size(), RuntimeError,
               "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = ",
               size.size(), " is not equal to len(physical_layout) = ", layout.size());
  numel_of(size);  // refuses sizes whose strides would overflow
  DimVector strides(size.size(), -1);
  int64_t step = 1;
  for (size_t i = layout.size(); i-- > 0;) {
    const int64_t dim = layout[i];
    TERCEL_CHECK(dim >= 0 && dim < static_cast<int64_t>(size.size()), RuntimeError,
                 "Dimension out of range (expected to be between 0 and ", size.size() - 1, ", but got ", dim,
                 " at index ", i, ")");
    int64_t& stride = strides[static_cast<size_t>(dim)];
    TERCEL_CHECK(stride == -1, RuntimeError, "Duplicate dim not allowed");
    stride = step;
    step *= std::max<int64_t>(size[static_cast<size_t>(dim)], 1);
  }
  return strides;
}

constexpr const char* kRangeAdvice =
    "tercel.range is deprecated because its behavior is inconsistent with Python's range builtin. Instead, use "
    "tercel.arange, which produces values in [start, end).";

}  // namespace

Span<Entry> factories_ops() {
  static const Entry table[] = {
      entry(
          "empty(int[] size, *, Tensor out=None, memory_format memory_format=None, " TERCEL_FACTORY_OPTIONS ")",
          [](const DimVector& size, const Tensor& out, std::optional<MemoryFormat> format, FactoryOptions o) {
            if (out.defined()) return finished(sized("empty", out, size, o), o);
            if (Tensor sparse = empty_sparse(size, o.resolve()); sparse.defined()) return sparse;
            if (!format || *format == MemoryFormat::Contiguous) return empty(size, o.resolve());
            return empty_strided(size, strides_for(size, *format), o.resolve());
          },
          kFunction | kCheap | kCoo, "A tensor whose elements are not set."),
      entry(
          "empty_strided(int[] size, int[] stride, *, " TERCEL_FACTORY_OPTIONS ")",
          [](const DimVector& size, const DimVector& stride, FactoryOptions o) {
            return empty_strided(size, stride, o.resolve());
          },
          kFunction | kCheap),
      entry(
          "zeros(int[] size, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](const DimVector& size, const Tensor& out, FactoryOptions o) -> Tensor {
            if (out.defined()) return finished(zero_(sized("zeros", out, size, o)), o);
            const Tensor sparse = empty_sparse(size, o.resolve());
            return sparse.defined() ? sparse : zeros(size, o.resolve());
          },
          kFunction | kCoo),
      entry(
          "ones(int[] size, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](const DimVector& size, const Tensor& out, FactoryOptions o) -> Tensor {
            return out.defined() ? finished(fill_(sized("ones", out, size, o), 1), o) : ones(size, o.resolve());
          },
          kFunction),
      entry(
          "full(int[] size, Scalar fill_value, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](const DimVector& size, Scalar value, const Tensor& out, FactoryOptions o) -> Tensor {
            return out.defined() ? finished(fill_(sized("full", out, size, o), value), o)
                                 : full(size, value, o.resolve(dtype_for(value)));
          },
          kFunction),
      entry(
          "empty_like(Tensor input, *, " TERCEL_LIKE_OPTIONS ")",
          [](const Tensor& x, FactoryOptions o, std::optional<MemoryFormat> f) { return fresh_like(x, o, f); },
          kFunction | kCheap | kCoo),
      entry(
          "zeros_like(Tensor input, *, " TERCEL_LIKE_OPTIONS ")",
          [](const Tensor& x, FactoryOptions o, std::optional<MemoryFormat> f) {
            const TensorOptions options = o.resolve(x);
            TERCEL_CHECK(!f || options.layout == Layout::Strided, RuntimeError,
                         "memory format option is only supported by strided tensors");
            if (x.layout() == options.layout || (is_compressed(x.layout()) && is_sparse(options.layout)))
              return zeros_like(x, options, f.value_or(MemoryFormat::Preserve));
            // Of another sparse layout: without entries.
            const Tensor sparse = empty_sparse(x.sizes(), options, x);
            return sparse.defined() ? sparse : zeros(x.sizes(), options);
          },
          kFunction | kCoo),
      entry(
          "ones_like(Tensor input, *, " TERCEL_LIKE_OPTIONS ")",
          [](const Tensor& x, FactoryOptions o, std::optional<MemoryFormat> f) {
            if (x.layout() == Layout::SparseCoo && o.resolve(x).layout == x.layout())
              refuse_layout("ones_like", x.layout());
            return ones_like(x, o.resolve(x), f.value_or(MemoryFormat::Preserve));
          },
          kFunction | kCoo),
      entry(
          "full_like(Tensor input, Scalar fill_value, *, " TERCEL_LIKE_OPTIONS ")",
          [](const Tensor& x, Scalar value, FactoryOptions o, std::optional<MemoryFormat> f) {
            return full_like(x, value, o.resolve(x), f.value_or(MemoryFormat::Preserve));
          },
          kFunction | kCoo),
      entry(
          "new_empty(Tensor input, int[] size, *, " TERCEL_FACTORY_OPTIONS ")",
          [](const Tensor& x, const DimVector& size, FactoryOptions o) {
            const Tensor sparse = empty_sparse(size, o.resolve(x));
            return sparse.defined() ? sparse : empty(size, o.resolve(x));
          },
          kMethod | kCheap | kCoo),
      entry(
          "new_empty_strided(Tensor input, int[] size, int[] stride, *, " TERCEL_FACTORY_OPTIONS ")",
          [](const Tensor& x, const DimVector& size, const DimVector& stride, FactoryOptions o) {
            return empty_strided(size, stride, o.resolve(x));
          },
          kMethod | kCheap),
      entry(
          "new_zeros(Tensor input, int[] size, *, " TERCEL_FACTORY_OPTIONS ")",
          [](const Tensor& x, const DimVector& size, FactoryOptions o) {
            const Tensor sparse = empty_sparse(size, o.resolve(x));
            return sparse.defined() ? sparse : zeros(size, o.resolve(x));
          },
          kMethod | kCoo),
      entry(
          "new_ones(Tensor input, int[] size, *, " TERCEL_FACTORY_OPTIONS ")",
          [](const Tensor& x, const DimVector& size, FactoryOptions o) { return ones(size, o.resolve(x)); }, kMethod),
      entry(
          "new_full(Tensor input, int[] size, Scalar fill_value, *, " TERCEL_FACTORY_OPTIONS ")",
          [](const Tensor& x, const DimVector& size, Scalar value, FactoryOptions o) {
            return full(size, value, o.resolve(x));
          },
          kMethod),
      entry(
          "empty_permuted(int[] size, int[] physical_layout, *, " TERCEL_FACTORY_OPTIONS ")",
          [](const DimVector& size, const DimVector& layout, FactoryOptions o) {
            return empty_strided(size, permuted_strides(size, layout), o.resolve());
          },
          kFunction | kCheap,
          "An uninitialised dense tensor whose dimensions are in the order of physical_layout in memory."),
      entry(
          "arange(Scalar end, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](Scalar end, const Tensor& out, FactoryOptions o) {
            return made_in_order("arange", out, o, range_dtype({end}),
                                 [&](TensorOptions to) { return arange(0, end, 1, to); });
          },
          kFunction),
      entry(
          "arange(Scalar start, Scalar end, Scalar step=1, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](Scalar start, Scalar end, Scalar step, const Tensor& out, FactoryOptions o) {
            return made_in_order("arange", out, o, range_dtype({start, end, step}),
                                 [&](TensorOptions to) { return arange(start, end, step, to); });
          },
          kFunction, "start, start + step, ... up to end (exclusive)."),
      entry(
          "range(Scalar start, Scalar end, Scalar step=1, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](Scalar start, Scalar end, Scalar step, const Tensor& out, FactoryOptions o) {
            warn(kRangeAdvice);
            return made_in_order("range", out, o, default_dtype(),
                                 [&](TensorOptions to) { return range(start, end, step, to); });
          },
          kFunction, "start, start + step, ... up to end (inclusive)."),
      entry(
          "linspace(Scalar start, Scalar end, int steps, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](Scalar start, Scalar end, int64_t steps, const Tensor& out, FactoryOptions o) {
            return made_in_order("linspace", out, o, spread_dtype("linspace", start, end, o),
                                 [&](TensorOptions to) { return linspace(start, end, steps, to); });
          },
          kFunction, "Numbers from start to end, both included."),
      entry(
          "logspace(Scalar start, Scalar end, int steps, float base=10.0, *, Tensor "
          "out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](Scalar start, Scalar end, int64_t steps, double base, const Tensor& out, FactoryOptions o) {
            return made_in_order("logspace", out, o, spread_dtype("logspace", start, end, o),
                                 [&](TensorOptions to) { return logspace(start, end, steps, base, to); });
          },
          kFunction, "The base to the power of numbers from start to end."),
      entry(
          "eye(int n, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](int64_t n, const Tensor& out, FactoryOptions o) {
            return made("eye", out, o, default_dtype(), [&](TensorOptions to) { return eye(n, -1, to); });
          },
          kFunction),
      entry(
          "eye(int n, int m, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](int64_t n, int64_t m, const Tensor& out, FactoryOptions o) {
            TERCEL_CHECK(m >= 0, RuntimeError, "m must be greater or equal to 0, got ", m);
            return made("eye", out, o, default_dtype(), [&](TensorOptions to) { return eye(n, m, to); });
          },
          kFunction),
  };
  return table;
}

}  // namespace tercel::python
