// Random tensors.
#include "python/src/factory.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/random/sampling.h"
#include "tercel/ops/sparse/coo.h"

namespace tercel::python {

namespace {

/** Warns if [low, high) contains integers that a floating dtype cannot represent. */
void warn_of_gaps(ScalarType type, int64_t low, std::optional<int64_t> high) {
  if (!is_floating(type)) return;
  const int digits = type == kFloat64 ? 53 : type == kFloat32 ? 24 : type == kFloat16 ? 11 : 8;
  const int64_t end = int64_t{1} << digits;
  const auto check = [&](int64_t bound, const char* name) {
    if (bound < -end || bound > end)
      warn(str_cat({name, " is out of bounds [-(2^", digits, "), 2^", digits, "]. Due to precision limitations ",
                    to_string(type), " can support discrete uniform distribution only within this range."}));
  };
  check(low, "from");
  if (high) check(*high - 1, "to - 1");
}

const Tensor& fill_random(const Tensor& x, int64_t low, std::optional<int64_t> high, Generator& g) {
  if (!high || low < *high) warn_of_gaps(x.dtype(), low, high);
  return random_(x, low, high, g);
}

Tensor make_randint(int64_t low, int64_t high, IntSpan size, Generator& g, const Tensor& out, const FactoryOptions& o) {
  if (out.defined()) return fill_random(sized("randint", out, size, o), low, high, g);
  const TensorOptions options = o.resolve(kInt64);
  if (low < high) warn_of_gaps(options.dtype, low, high);
  return randint(low, high, size, options, g);
}

MemoryFormat format_of(std::optional<MemoryFormat> format) { return format.value_or(MemoryFormat::Preserve); }

/** make(x, options), or for a compressed tensor its pattern with such values. */
template <class Make>
Tensor random_like(const Tensor& x, FactoryOptions o, std::optional<MemoryFormat> format, Make make) {
  const TensorOptions options = o.resolve(x);
  if (!is_compressed(x.layout()) || options.layout != x.layout()) return make(x, options);
  return filled_like(x.detach(), o, format, [&](const Tensor& out) {
    const Tensor elements = values(out);
    copy_(elements, make(elements, elements.options()));
  });
}

Tensor make_randint_like(const Tensor& x, int64_t low, int64_t high, Generator& g, const FactoryOptions& o,
                         std::optional<MemoryFormat> format) {
  return random_like(x, o, format, [&](const Tensor& like, const TensorOptions& options) {
    if (low < high) warn_of_gaps(options.dtype, low, high);
    return randint_like(like, low, high, options, format_of(format), g);
  });
}

#define TERCEL_GENERATOR ", *, Generator? generator=None"
#define TERCEL_RANDOM_FACTORY TERCEL_GENERATOR ", Tensor out=None, " TERCEL_FACTORY_OPTIONS ")"
#define TERCEL_RANDOM_LIKE TERCEL_GENERATOR ", " TERCEL_LIKE_OPTIONS ")"
#define TERCEL_RANDOM_INPLACE TERCEL_GENERATOR ")"

}  // namespace

Span<Entry> random_ops() {
  static const Entry table[] = {
      entry(
          "rand(int[] size" TERCEL_RANDOM_FACTORY,
          [](const DimVector& size, Generator& g, const Tensor& out, FactoryOptions o) -> Tensor {
            return out.defined() ? uniform_(sized("rand", out, size, o), 0, 1, g) : rand(size, o.resolve(), g);
          },
          kFunction, "Uniform in [0, 1)."),
      entry(
          "randn(int[] size" TERCEL_RANDOM_FACTORY,
          [](const DimVector& size, Generator& g, const Tensor& out, FactoryOptions o) -> Tensor {
            return out.defined() ? normal_(sized("randn", out, size, o), 0, 1, g) : randn(size, o.resolve(), g);
          },
          kFunction, "Standard normal."),
      entry(
          "randint(int high, int[] size" TERCEL_RANDOM_FACTORY,
          [](int64_t high, const DimVector& size, Generator& g, const Tensor& out, FactoryOptions o) {
            return make_randint(0, high, size, g, out, o);
          },
          kFunction),
      entry(
          "randint(int low, int high, int[] size" TERCEL_RANDOM_FACTORY,
          [](int64_t low, int64_t high, const DimVector& size, Generator& g, const Tensor& out, FactoryOptions o) {
            return make_randint(low, high, size, g, out, o);
          },
          kFunction, "Integers in [low, high)."),
      entry(
          "randperm(int n" TERCEL_RANDOM_FACTORY,
          [](int64_t n, Generator& g, const Tensor& out, FactoryOptions o) {
            return made("randperm", out, o, kInt64, [&](TensorOptions to) { return randperm(n, to, g); });
          },
          kFunction, "The integers 0 to n - 1 in random order."),
      entry(
          "rand_like(Tensor input" TERCEL_RANDOM_LIKE,
          [](const Tensor& x, Generator& g, FactoryOptions o, std::optional<MemoryFormat> f) {
            return random_like(x, o, f, [&](const Tensor& like, const TensorOptions& options) {
              return rand_like(like, options, format_of(f), g);
            });
          },
          kFunction | kCoo),
      entry(
          "randn_like(Tensor input" TERCEL_RANDOM_LIKE,
          [](const Tensor& x, Generator& g, FactoryOptions o, std::optional<MemoryFormat> f) {
            return random_like(x, o, f, [&](const Tensor& like, const TensorOptions& options) {
              return randn_like(like, options, format_of(f), g);
            });
          },
          kFunction | kCoo),
      entry(
          "randint_like(Tensor input, int high" TERCEL_RANDOM_LIKE,
          [](const Tensor& x, int64_t high, Generator& g, FactoryOptions o, std::optional<MemoryFormat> f) {
            return make_randint_like(x, 0, high, g, o, f);
          },
          kFunction | kCoo),
      entry(
          "randint_like(Tensor input, int low, int high" TERCEL_RANDOM_LIKE,
          [](const Tensor& x, int64_t low, int64_t high, Generator& g, FactoryOptions o,
             std::optional<MemoryFormat> f) { return make_randint_like(x, low, high, g, o, f); },
          kFunction | kCoo, "Integers in [low, high)."),
      entry(
          "random_(Tensor input, int to" TERCEL_RANDOM_INPLACE,
          [](const Tensor& x, int64_t high, Generator& g) -> Tensor { return fill_random(x, 0, high, g); }, kMethod),
      entry(
          "random_(Tensor input, int from, int? to" TERCEL_RANDOM_INPLACE,
          [](const Tensor& x, int64_t low, std::optional<int64_t> high, Generator& g) -> Tensor {
            return fill_random(x, low, high, g);
          },
          kMethod, "Integers in [from, to)."),
      entry(
          "bernoulli(Tensor input" TERCEL_GENERATOR ", Tensor out=None)",
          [](const Tensor& p, Generator& g, const Tensor& out) -> Tensor {
            if (!out.defined()) return bernoulli(p, g);
            prepare_out("bernoulli", out, p.sizes());
            return bernoulli_(out, p, g);
          },
          kBoth, "1 with the probability that input gives, else 0."),
      entry("bernoulli(Tensor input, float p" TERCEL_RANDOM_INPLACE,
            [](const Tensor& x, double p, Generator& g) -> Tensor { return bernoulli_(empty_like(x), p, g); }),
      entry(
          "normal(float mean, float std, int[] size" TERCEL_RANDOM_FACTORY,
          [](double mean, double std, const DimVector& size, Generator& g, const Tensor& out,
             FactoryOptions o) -> Tensor {
            if (out.defined()) return normal_(sized("normal", out, size, o), mean, std, g);
            const bool requires_grad = std::exchange(o.requires_grad, false);
            Tensor fresh = empty(size, o.resolve());
            normal_(fresh, mean, std, g);
            return requires_grad ? fresh.requires_grad_() : fresh;
          },
          kFunction, "Normal random numbers with the given means and standard deviations."),
      entry(
          "multinomial(Tensor input, int num_samples, bool replacement=False" TERCEL_GENERATOR ", Tensor out=None)",
          [](const Tensor& weights, int64_t samples, bool replacement, Generator& g, const Tensor& out) {
            TERCEL_CHECK(!out.defined() || out.dtype() == kInt64, RuntimeError,
                         "multinomial expects Long tensor out, got: ", legacy_name(out.dtype()));
            return into("multinomial", out, multinomial(weights, samples, replacement, g));
          },
          kBoth, "Indices drawn with probabilities proportional to each row's weights."),
  };
  return table;
}

}  // namespace tercel::python
