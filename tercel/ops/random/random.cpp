#include "tercel/ops/random/random.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "tercel/core/convert.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/new_tensor_impl.h"
#include "tercel/ops/random/random_impl.h"
#include "tercel/util/ceil_div.h"

namespace tercel {

void detail::fill_by_words(const Tensor& x, Generator& generator, int64_t each, size_t size, FillBatch fill) {
  fill_contiguous(x, [&](const Tensor& target) {
    const int64_t words_in_all = target.numel() * static_cast<int64_t>(target.itemsize() / size) * each;
    const GeneratorState state = generator.reserve(static_cast<uint64_t>((words_in_all + 3) / 4));
    auto* out = static_cast<std::byte*>(target.data_ptr());
    parallel_for(0, (words_in_all + 3) / 4, 1 << 12, [&](int64_t first, int64_t last) {
      alignas(64) uint32_t words[kBatchWords];
      for (int64_t b = first; b < last; b += kBatchBlocks) {
        const int64_t blocks = std::min(kBatchBlocks, last - b);
        const int64_t rounded = round_up(blocks, kRandomLanes);
        random_words_kernels[kCpu](state.seed, 0, state.offset + static_cast<uint64_t>(b), rounded, words);
        const int64_t count = std::min(4 * blocks, words_in_all - 4 * b) / each;
        fill(words, count, out + static_cast<size_t>(4 * b / each) * size);
      }
    });
  });
}

namespace {

using detail::check_random;
using detail::fill_by_number;
using detail::fill_by_words;
using detail::open_uniform;
using detail::record_overwritten;

constexpr KernelTable<UniformF32Fn> kUniformF32 = TERCEL_CPU_KERNELS(uniform_numbers_f32);
constexpr KernelTable<UniformF64Fn> kUniformF64 = TERCEL_CPU_KERNELS(uniform_numbers_f64);
constexpr KernelTable<NormalF32Fn> kNormalF32 = TERCEL_CPU_KERNELS(normal_numbers_f32);
constexpr KernelTable<NormalF64Fn> kNormalF64 = TERCEL_CPU_KERNELS(normal_numbers_f64);
constexpr KernelTable<RandomLogFn> kLog = TERCEL_CPU_KERNELS(random_log);

template <class T>
constexpr bool is_float_v = std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/** Upper end of a type's integers within int64; for floating types, of consecutive representable integers. */
template <class T>
constexpr int64_t last_integer() {
  if constexpr (std::is_same_v<T, double>) return int64_t{1} << 53;
  if constexpr (std::is_same_v<T, float>) return int64_t{1} << 24;
  if constexpr (std::is_same_v<T, Half>) return int64_t{1} << 11;
  if constexpr (std::is_same_v<T, BFloat16>) return int64_t{1} << 8;
  if constexpr (std::is_same_v<T, uint64_t>) return std::numeric_limits<int64_t>::max();
  if constexpr (std::is_integral_v<T>) return static_cast<int64_t>(std::numeric_limits<T>::max());
}

/** The largest finite number of a floating type. */
template <class T>
double highest() {
  if constexpr (std::is_same_v<T, Half>) return 65504;
  if constexpr (std::is_same_v<T, BFloat16>) return 0x1.fep127;
  return static_cast<double>(std::numeric_limits<T>::max());
}

/** Fills x by put(normal, count, out), which converts standard normal numbers, in pairs except at the end. */
template <class T, class Put>
void fill_from_normal(const Tensor& x, Generator& generator, Put put) {
  constexpr bool kDouble = std::is_same_v<T, double>;
  constexpr int64_t kWords = kDouble ? 2 : 1;
  using Number = std::conditional_t<kDouble, double, float>;
  fill_by_words<T, kWords>(x, generator, [put](const uint32_t* words, int64_t count, T* out) {
    alignas(64) Number normal[detail::kBatchWords];
    const int64_t rounded = round_up(count, kNormalsTogether);
    if constexpr (kDouble)
      kNormalF64[kCpu](words, rounded, normal);
    else
      kNormalF32[kCpu](words, rounded, normal);
    put(normal, count, out);
  });
}

/** Fills x with value(u), or value(log u) if kOfLog, for u uniform in (0, 1). */
template <bool kOfLog, class T, class Value>
void fill_from_uniform(const Tensor& x, Generator& generator, Value value) {
  fill_by_words<T, 2>(x, generator, [value](const uint32_t* words, int64_t count, T* out) {
    double u[detail::kBatchWords / 2];
    for (int64_t i = 0; i < count; ++i) u[i] = open_uniform(random_u64(words[2 * i], words[2 * i + 1]));
    if (kOfLog) kLog[kCpu](count, u);
    for (int64_t i = 0; i < count; ++i) out[i] = convert<T>(value(u[i]));
  });
}

void check_continuous(const char* distribution, const Tensor& x) {
  TERCEL_CHECK(
      is_floating(x.dtype()), RuntimeError, distribution,
      " distribution is a continuous probability distribution. dtype must be a floating point but you specified ",
      to_string(x.dtype()));
}

/** Uniform in [0, 1) with the precision of T, so that no value is rounded to 1. */
template <class T>
float uniform_of(uint32_t bits) {
  if constexpr (std::is_same_v<T, float>) return uniform_f32(bits);
  constexpr auto kSteps = static_cast<uint32_t>(last_integer<T>());
  return static_cast<float>(bits & (kSteps - 1)) / static_cast<float>(kSteps);
}

/** Moves a sample that was rounded to the end of the range below it. */
template <class T, class Wide>
T below(Wide value, Wide low, T high) {
  const T rounded = static_cast<T>(value);
  return static_cast<Wide>(rounded) < static_cast<Wide>(high) ? rounded : static_cast<T>(low);
}

/** Fills with low + (0 to count - 1), wrapping around; count = 0 means 2^64. */
template <class T>
void fill_integers(const Tensor& x, Generator& generator, int64_t low, uint64_t count) {
  fill_by_number<T>(x, generator, [low, count](uint64_t bits) {
    const uint64_t value = static_cast<uint64_t>(low) + (count == 0 ? bits : uniform_int(bits, count));
    if constexpr (std::is_same_v<T, uint64_t>) return value;
    return convert<T>(static_cast<int64_t>(value));
  });
}

template <class T>
void check_in_range(int64_t value, const char* name) {
  bool inside = value >= 0;
  if constexpr (is_float_v<T>)
    inside = std::abs(static_cast<double>(value)) <= highest<T>();
  else if constexpr (!std::is_same_v<T, uint64_t>)
    inside = value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max();
  TERCEL_CHECK(inside, RuntimeError, name, " is out of bounds for ", cpp_type_name(scalar_type_of<T>()));
}

/** The smallest T not below `value`, or the largest not above it. */
template <class T>
int64_t representable(int64_t value, bool above) {
  if constexpr (is_float_v<T>) {
    // Distance of adjacent numbers of T at this value.
    const uint64_t size = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    uint64_t step = 1;
    while (size / step > static_cast<uint64_t>(last_integer<T>())) step <<= 1;
    const uint64_t part = static_cast<uint64_t>(value) & (step - 1);
    return static_cast<int64_t>(static_cast<uint64_t>(value) - part + (above && part != 0 ? step : 0));
  }
  return value;
}

/** Integers from low to below high, or to the end of T's range. */
template <class T>
void fill_range(const Tensor& x, Generator& generator, int64_t low, std::optional<int64_t> high) {
  if constexpr (is_float_v<T> || std::is_same_v<T, int64_t>)
    if (!high && low == INT64_MIN) return fill_integers<T>(x, generator, 0, 0);
  TERCEL_CHECK(!high || low < *high, RuntimeError, "random_ expects 'from' to be less than 'to', but got from=", low,
               " >= to=", *high);
  check_in_range<T>(low, "from");
  if (high) check_in_range<T>(*high - 1, "to - 1");
  const int64_t first = representable<T>(low, true);
  const int64_t last = high ? representable<T>(*high - 1, false) : last_integer<T>();
  TERCEL_CHECK(first <= last, RuntimeError, "random_ expects 'from' casted to dtype to be less than 'to' casted to ",
               "dtype, but got from=", first, " > to - 1=", last);
  fill_integers<T>(x, generator, first, static_cast<uint64_t>(last) - static_cast<uint64_t>(first) + 1);
}

/** Checks that the dtype can represent the numbers 0 to n - 1. */
void check_permutation(int64_t n, ScalarType type) {
  TERCEL_CHECK(n >= 0, RuntimeError, "Trying to create tensor with negative dimension ", n, ": [", n, "]");
  TERCEL_CHECK(type != kBool && !is_complex(type), NotImplementedError, "randperm: not implemented for dtype ",
               to_string(type));
  visit_real_types("randperm", type, [&]<class T> {
    if constexpr (is_float_v<T>)
      TERCEL_CHECK(n <= last_integer<T>() + 1 || (std::is_same_v<T, BFloat16>), RuntimeError,
                   "n cannot be greater than ", last_integer<T>() + 1, " for ", to_string(type), " type.");
    else
      TERCEL_CHECK(n == 0 || n - 1 <= last_integer<T>(), RuntimeError, "value cannot be converted to type ",
                   to_string(type), " without overflow: ", n - 1);
  });
}

}  // namespace

const Tensor& uniform_(const Tensor& x, double from, double to, Generator& generator) {
  check_random("uniform_", x);
  visit_floating_types("uniform_", real_dtype(x.dtype()), [&]<class T> {
    TERCEL_CHECK(std::abs(from) <= highest<T>(), RuntimeError, "from is out of bounds for ",
                 cpp_type_name(scalar_type_of<T>()));
    TERCEL_CHECK(std::abs(to) <= highest<T>(), RuntimeError, "to is out of bounds for ",
                 cpp_type_name(scalar_type_of<T>()));
    TERCEL_CHECK(from <= to, RuntimeError, "uniform_ expects to return a [from, to) range, but found from=", from,
                 " > to=", to);
    TERCEL_CHECK(to - from <= highest<T>(), RuntimeError, "uniform_ expects to-from <= std::numeric_limits<",
                 cpp_type_name(scalar_type_of<T>()), ">::max(), but found to=", to, " and from=", from,
                 " which result in to-from to exceed the limit");
  });
  const auto low32 = static_cast<float>(from), span32 = static_cast<float>(to - from), high32 = static_cast<float>(to);
  visit_floating_types("uniform_", real_dtype(x.dtype()), [&]<class T> {
    if constexpr (std::is_same_v<T, double>)
      fill_by_words<T, 2>(x, generator, [=](const uint32_t* words, int64_t count, T* out) {
        kUniformF64[kCpu](words, count, from, to - from, to, out);
      });
    else
      fill_by_words<T, 1>(x, generator, [=](const uint32_t* words, int64_t count, T* out) {
        if constexpr (std::is_same_v<T, float>)
          kUniformF32[kCpu](words, count, low32, span32, high32, out);
        else
          for (int64_t i = 0; i < count; ++i)
            out[i] = below(low32 + span32 * uniform_of<T>(words[i]), low32, T(high32));
      });
  });
  return record_overwritten("UniformBackward0", x);
}

const Tensor& normal_(const Tensor& x, double mean, double std, Generator& generator) {
  check_random("normal_", x);
  TERCEL_CHECK(std >= 0, RuntimeError, "normal expects std >= 0.0, but found std ", std);
  // The mean of complex numbers is real, and each is two generated numbers.
  const bool pairs = is_complex(x.dtype());
  if (pairs) std *= std::sqrt(0.5);
  const double second_mean = pairs ? 0 : mean;
  visit_floating_types("normal_", real_dtype(x.dtype()), [&]<class T> {
    fill_from_normal<T>(x, generator, [=]<class Number>(const Number* normal, int64_t count, T* out) {
      const auto first = static_cast<Number>(mean), second = static_cast<Number>(second_mean);
      const auto factor = static_cast<Number>(std);
      int64_t i = 0;
      for (; i + 2 <= count; i += 2) {
        out[i] = T(first + factor * normal[i]);
        out[i + 1] = T(second + factor * normal[i + 1]);
      }
      if (i < count) out[i] = T(first + factor * normal[i]);
    });
  });
  return record_overwritten("NormalBackward0", x);
}

const Tensor& log_normal_(const Tensor& x, double mean, double std, Generator& generator) {
  check_random("log_normal_", x);
  TERCEL_CHECK(std > 0, RuntimeError, "log_normal_ expects std > 0.0, but found std=", std);
  visit_floating_types("log_normal_", x.dtype(), [&]<class T> {
    fill_from_normal<T>(x, generator, [=]<class Number>(const Number* normal, int64_t count, T* out) {
      for (int64_t i = 0; i < count; ++i) out[i] = convert<T>(std::exp(mean + std * static_cast<double>(normal[i])));
    });
  });
  return record_overwritten("LogNormalBackward0", x);
}

const Tensor& exponential_(const Tensor& x, double lambd, Generator& generator) {
  check_random("exponential_", x);
  TERCEL_CHECK(lambd > 0, RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=", lambd);
  check_continuous("Exponential", x);
  // float16 would round the smallest number to 0.
  const double least = x.dtype() == kFloat16 ? 0x1p-24 : 0;
  visit_floating_types("exponential_", x.dtype(), [&]<class T> {
    fill_from_uniform<true, T>(x, generator,
                               [=](double log_u) { return std::max(-log_u / lambd, std::isinf(lambd) ? 0 : least); });
  });
  return record_overwritten("ExponentialBackward0", x);
}

const Tensor& cauchy_(const Tensor& x, double median, double sigma, Generator& generator) {
  check_random("cauchy_", x);
  TERCEL_CHECK(sigma > 0, RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  check_continuous("Cauchy", x);
  visit_floating_types("cauchy_", x.dtype(), [&]<class T> {
    fill_from_uniform<false, T>(
        x, generator, [=](double u) { return median + sigma * std::tan(3.14159265358979323846 * (u - 0.5)); });
  });
  return record_overwritten("CauchyBackward0", x);
}

const Tensor& geometric_(const Tensor& x, double p, Generator& generator) {
  check_random("geometric_", x);
  TERCEL_CHECK(p > 0 && p < 1, RuntimeError, "geometric_ expects p to be in (0, 1), but got p=", p);
  TERCEL_CHECK(x.dtype() != kBool, NotImplementedError, "geometric_: not implemented for dtype bool");
  const double log_q = std::log1p(-p);
  visit_real_types("geometric_", x.dtype(), [&]<class T> {
    fill_from_uniform<true, T>(x, generator, [log_q](double log_u) { return std::max(1.0, std::ceil(log_u / log_q)); });
  });
  return record_overwritten("GeometricBackward0", x);
}

const Tensor& bernoulli_(const Tensor& x, double p, Generator& generator) {
  check_random("bernoulli_", x);
  TERCEL_CHECK(p >= 0 && p <= 1, RuntimeError, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  visit_all_types("bernoulli_", x.dtype(), [&]<class T> {
    fill_by_number<T>(x, generator, [p](uint64_t bits) { return convert<T>(uniform_f64(bits) < p); });
  });
  return record_overwritten("BernoulliBackward0", x);
}

const Tensor& random_(const Tensor& x, Generator& generator) {
  check_random("random_", x);
  visit_real_types("random_", x.dtype(), [&]<class T> {
    const uint64_t count = std::is_same_v<T, uint64_t> ? 0 : static_cast<uint64_t>(last_integer<T>()) + 1;
    fill_integers<T>(x, generator, 0, count);
  });
  return record_overwritten("RandomBackward0", x);
}

const Tensor& random_(const Tensor& x, int64_t low, std::optional<int64_t> high, Generator& generator) {
  check_random("random_", x);
  visit_real_types("random_", x.dtype(), [&]<class T> { fill_range<T>(x, generator, low, high); });
  return record_overwritten("RandomBackward0", x);
}

namespace {

/** A new tensor, filled by fill() through a second handle, so that its version is 0. */
template <class Fill>
Tensor drawn(IntSpan sizes, TensorOptions options, Fill fill) {
  return detail::made(sizes, options, [&](Tensor& out) { fill(out.data()); });
}
template <class Fill>
Tensor drawn_like(const Tensor& x, TensorOptions options, MemoryFormat format, Fill fill) {
  return detail::made_like(x, options, format, [&](Tensor& out) { fill(out.data()); });
}

}  // namespace

Tensor rand(IntSpan sizes, TensorOptions options, Generator& generator) {
  return drawn(sizes, options, [&](const Tensor& out) { uniform_(out, 0, 1, generator); });
}

Tensor randn(IntSpan sizes, TensorOptions options, Generator& generator) {
  return drawn(sizes, options, [&](const Tensor& out) { normal_(out, 0, 1, generator); });
}

Tensor randint(int64_t low, int64_t high, IntSpan sizes, TensorOptions options, Generator& generator) {
  return drawn(sizes, options, [&](const Tensor& out) { random_(out, low, high, generator); });
}

Tensor randint(int64_t high, IntSpan sizes, TensorOptions options, Generator& generator) {
  return randint(0, high, sizes, options, generator);
}

Tensor rand_like(const Tensor& x, TensorOptions options, MemoryFormat format, Generator& generator) {
  return drawn_like(x, options, format, [&](const Tensor& out) { uniform_(out, 0, 1, generator); });
}
Tensor rand_like(const Tensor& x, MemoryFormat format, Generator& generator) {
  return rand_like(x, x.options(), format, generator);
}
Tensor randn_like(const Tensor& x, TensorOptions options, MemoryFormat format, Generator& generator) {
  return drawn_like(x, options, format, [&](const Tensor& out) { normal_(out, 0, 1, generator); });
}
Tensor randn_like(const Tensor& x, MemoryFormat format, Generator& generator) {
  return randn_like(x, x.options(), format, generator);
}
Tensor randint_like(const Tensor& x, int64_t low, int64_t high, TensorOptions options, MemoryFormat format,
                    Generator& generator) {
  return drawn_like(x, options, format, [&](const Tensor& out) { random_(out, low, high, generator); });
}
Tensor randint_like(const Tensor& x, int64_t low, int64_t high, MemoryFormat format, Generator& generator) {
  return randint_like(x, low, high, x.options(), format, generator);
}
Tensor randint_like(const Tensor& x, int64_t high, TensorOptions options, MemoryFormat format, Generator& generator) {
  return randint_like(x, 0, high, options, format, generator);
}
Tensor randint_like(const Tensor& x, int64_t high, MemoryFormat format, Generator& generator) {
  return randint_like(x, 0, high, x.options(), format, generator);
}

Tensor randperm(int64_t n, Generator& generator) { return randperm(n, kInt64, generator); }

Tensor randperm(int64_t n, TensorOptions options, Generator& generator) {
  check_permutation(n, options.dtype);
  const GeneratorState state = generator.reserve(static_cast<uint64_t>(n));
  const Tensor numbers = empty({n}, kInt64);
  int64_t* p = numbers.data<int64_t>();
  std::iota(p, p + n, int64_t{0});
  // Fisher-Yates: swaps element i with a random one up to it.
  alignas(64) uint32_t words[detail::kBatchWords];
  for (int64_t end = n; end > 1;) {
    const int64_t first = std::max<int64_t>(end - detail::kBatchBlocks, 0);
    const int64_t blocks = round_up(end - first, kRandomLanes);
    detail::random_words_kernels[kCpu](state.seed, 0, state.offset + static_cast<uint64_t>(first), blocks, words);
    int64_t other[detail::kBatchBlocks];
    for (int64_t i = first; i < end; ++i) {
      const uint32_t* block = words + 4 * (i - first);
      other[i - first] =
          static_cast<int64_t>(uniform_int(random_u64(block[0], block[1]), static_cast<uint64_t>(i) + 1));
      __builtin_prefetch(p + other[i - first], 1);
    }
    for (int64_t i = end - 1; i >= first; --i) std::swap(p[i], p[other[i - first]]);
    end = first;
  }
  return drawn({n}, options, [&](const Tensor& out) { copy_(out, numbers); });
}

}  // namespace tercel
