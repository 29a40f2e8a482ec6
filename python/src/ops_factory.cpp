// New tensors.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/factories.h"
#include "tercel/ops/random.h"

namespace tercel::python {

namespace {

/** `out` resized to these sizes, for a factory that fills it. */
const Tensor& sized(const char* op, const Tensor& out, IntSpan sizes) {
  prepare_out(op, out, sizes, false);
  return out;
}

Tensor make_full(IntSpan size, Scalar value, const FactoryOptions& o) {
  return full(size, value, o.resolve(value.is_floating() ? default_dtype() : value.dtype()));
}

/** The dtype of a range: int64 if all its numbers are integers. */
ScalarType range_dtype(std::initializer_list<Scalar> numbers) {
  for (const Scalar& n : numbers)
    if (n.is_floating()) return default_dtype();
  return kInt64;
}

Tensor leaf(Tensor t, bool requires_grad) {
  if (requires_grad) t.requires_grad_(true);
  return t;
}

/** A fresh tensor like x: its order of dimensions unless a format is asked for. */
Tensor fresh_like(const Tensor& x, const FactoryOptions& o, std::optional<MemoryFormat> format) {
  const TensorOptions options = o.resolve(x);
  const MemoryFormat wanted = format.value_or(MemoryFormat::Preserve);
  if (wanted == MemoryFormat::Preserve) {
    const DimVector strides =
        x.impl().is_non_overlapping_and_dense() ? DimVector(x.strides()) : infer_dense_strides(x.sizes(), x.strides());
    return empty_strided(x.sizes(), strides, options);
  }
  return empty_strided(x.sizes(), strides_for(x.sizes(), wanted), options);
}

Tensor without_grad(const Tensor& t, bool requires_grad) { return leaf(t, requires_grad); }

#define TERCEL_LIKE_OPTIONS TERCEL_FACTORY_OPTIONS ", memory_format memory_format=None"

}  // namespace

Span<Entry> factory_ops() {
  static const Entry table[] = {
      entry(
          "empty(int[] size, *, Tensor out=None, memory_format memory_format=None, " TERCEL_FACTORY_OPTIONS ")",
          [](const DimVector& size, const Tensor& out, std::optional<MemoryFormat> format, FactoryOptions o) {
            if (out.defined()) return sized("empty", out, size);
            if (!format || *format == MemoryFormat::Contiguous) return empty(size, o.resolve());
            return empty_strided(size, strides_for(size, *format), o.resolve());
          },
          kFunction | kCheap, "A tensor whose elements are not set."),
      entry(
          "empty_strided(int[] size, int[] stride, *, " TERCEL_FACTORY_OPTIONS ")",
          [](const DimVector& size, const DimVector& stride, FactoryOptions o) {
            return empty_strided(size, stride, o.resolve());
          },
          kFunction | kCheap),
      entry(
          "zeros(int[] size, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](const DimVector& size, const Tensor& out, FactoryOptions o) -> Tensor {
            return out.defined() ? zero_(sized("zeros", out, size)) : zeros(size, o.resolve());
          },
          kFunction),
      entry(
          "ones(int[] size, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](const DimVector& size, const Tensor& out, FactoryOptions o) -> Tensor {
            return out.defined() ? fill_(sized("ones", out, size), 1) : ones(size, o.resolve());
          },
          kFunction),
      entry(
          "full(int[] size, Scalar fill_value, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](const DimVector& size, Scalar value, const Tensor& out, FactoryOptions o) -> Tensor {
            return out.defined() ? fill_(sized("full", out, size), value) : make_full(size, value, o);
          },
          kFunction),
      entry(
          "empty_like(Tensor input, *, " TERCEL_LIKE_OPTIONS ")",
          [](const Tensor& x, FactoryOptions o, std::optional<MemoryFormat> f) { return fresh_like(x, o, f); },
          kFunction | kCheap),
      entry(
          "zeros_like(Tensor input, *, " TERCEL_LIKE_OPTIONS ")",
          [](const Tensor& x, FactoryOptions o, std::optional<MemoryFormat> f) {
            const bool requires_grad = std::exchange(o.requires_grad, false);
            return without_grad(zero_(fresh_like(x, o, f)), requires_grad);
          },
          kFunction),
      entry(
          "ones_like(Tensor input, *, " TERCEL_LIKE_OPTIONS ")",
          [](const Tensor& x, FactoryOptions o, std::optional<MemoryFormat> f) {
            const bool requires_grad = std::exchange(o.requires_grad, false);
            return without_grad(fill_(fresh_like(x, o, f), 1), requires_grad);
          },
          kFunction),
      entry(
          "full_like(Tensor input, Scalar fill_value, *, " TERCEL_LIKE_OPTIONS ")",
          [](const Tensor& x, Scalar value, FactoryOptions o, std::optional<MemoryFormat> f) {
            const bool requires_grad = std::exchange(o.requires_grad, false);
            return without_grad(fill_(fresh_like(x, o, f), value), requires_grad);
          },
          kFunction),
      entry(
          "new_empty(Tensor input, int[] size, *, " TERCEL_FACTORY_OPTIONS ")",
          [](const Tensor& x, const DimVector& size, FactoryOptions o) { return empty(size, o.resolve(x)); },
          kMethod | kCheap),
      entry(
          "new_empty_strided(Tensor input, int[] size, int[] stride, *, " TERCEL_FACTORY_OPTIONS ")",
          [](const Tensor& x, const DimVector& size, const DimVector& stride, FactoryOptions o) {
            return empty_strided(size, stride, o.resolve(x));
          },
          kMethod | kCheap),
      entry(
          "new_zeros(Tensor input, int[] size, *, " TERCEL_FACTORY_OPTIONS ")",
          [](const Tensor& x, const DimVector& size, FactoryOptions o) { return zeros(size, o.resolve(x)); }, kMethod),
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
          "arange(Scalar end, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](Scalar end, const Tensor& out, FactoryOptions o) {
            return into("arange", out, arange(0, end, 1, o.resolve(range_dtype({end}))));
          },
          kFunction),
      entry(
          "arange(Scalar start, Scalar end, Scalar step=1, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](Scalar start, Scalar end, Scalar step, const Tensor& out, FactoryOptions o) {
            return into("arange", out, arange(start, end, step, o.resolve(range_dtype({start, end, step}))));
          },
          kFunction, "start, start + step, ... before end."),
      entry(
          "linspace(Scalar start, Scalar end, int steps, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](Scalar start, Scalar end, int64_t steps, const Tensor& out, FactoryOptions o) {
            return into("linspace", out, linspace(start.to_double(), end.to_double(), steps, o.resolve()));
          },
          kFunction),
      entry(
          "eye(int n, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](int64_t n, const Tensor& out, FactoryOptions o) { return into("eye", out, eye(n, -1, o.resolve())); },
          kFunction),
      entry(
          "eye(int n, int m, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](int64_t n, int64_t m, const Tensor& out, FactoryOptions o) {
            TERCEL_CHECK(m >= 0, RuntimeError, "m must be greater or equal to 0, got ", m);
            return into("eye", out, eye(n, m, o.resolve()));
          },
          kFunction),
      entry(
          "scalar_tensor(Scalar s, *, " TERCEL_FACTORY_OPTIONS ")",
          [](Scalar s, FactoryOptions o) { return scalar_tensor(s, o.resolve()); }, kFunction),
  };
  return table;
}

Span<Entry> random_ops() {
  static const Entry table[] = {
      entry(
          "rand(int[] size, *, Generator? generator=None, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](const DimVector& size, Generator& g, const Tensor& out, FactoryOptions o) -> Tensor {
            return out.defined() ? uniform_(sized("rand", out, size), 0, 1, g) : rand(size, o.resolve(), g);
          },
          kFunction, "Uniform in [0, 1)."),
      entry(
          "randn(int[] size, *, Generator? generator=None, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](const DimVector& size, Generator& g, const Tensor& out, FactoryOptions o) -> Tensor {
            return out.defined() ? normal_(sized("randn", out, size), 0, 1, g) : randn(size, o.resolve(), g);
          },
          kFunction, "Standard normal."),
      entry(
          "randint(int high, int[] size, *, Generator? generator=None, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](int64_t high, const DimVector& size, Generator& g, const Tensor& out, FactoryOptions o) {
            return into("randint", out, randint(0, high, size, o.resolve(kInt64), g));
          },
          kFunction),
      entry(
          "randint(int low, int high, int[] size, *, Generator? generator=None, Tensor "
          "out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](int64_t low, int64_t high, const DimVector& size, Generator& g, const Tensor& out, FactoryOptions o) {
            return into("randint", out, randint(low, high, size, o.resolve(kInt64), g));
          },
          kFunction, "Integers in [low, high)."),
      entry(
          "randperm(int n, *, Generator? generator=None, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](int64_t n, Generator& g, const Tensor& out, FactoryOptions o) {
            return into("randperm", out, to(randperm(n, g), o.resolve(kInt64).dtype));
          },
          kFunction, "The numbers 0 to n - 1 in random order."),
      entry(
          "rand_like(Tensor input, *, " TERCEL_LIKE_OPTIONS ")",
          [](const Tensor& x, FactoryOptions o, std::optional<MemoryFormat> f) {
            const bool requires_grad = std::exchange(o.requires_grad, false);
            return without_grad(uniform_(fresh_like(x, o, f)), requires_grad);
          },
          kFunction),
      entry(
          "randn_like(Tensor input, *, " TERCEL_LIKE_OPTIONS ")",
          [](const Tensor& x, FactoryOptions o, std::optional<MemoryFormat> f) {
            const bool requires_grad = std::exchange(o.requires_grad, false);
            return without_grad(normal_(fresh_like(x, o, f)), requires_grad);
          },
          kFunction),
      entry(
          "uniform_(Tensor input, float from=0.0, float to=1.0, *, Generator? generator=None)",
          [](const Tensor& x, double low, double high, Generator& g) -> Tensor { return uniform_(x, low, high, g); },
          kMethod),
      entry(
          "normal_(Tensor input, float mean=0.0, float std=1.0, *, Generator? generator=None)",
          [](const Tensor& x, double mean, double std, Generator& g) -> Tensor { return normal_(x, mean, std, g); },
          kMethod),
      entry(
          "bernoulli_(Tensor input, float p=0.5, *, Generator? generator=None)",
          [](const Tensor& x, double p, Generator& g) -> Tensor { return bernoulli_(x, p, g); }, kMethod),
  };
  return table;
}

}  // namespace tercel::python
