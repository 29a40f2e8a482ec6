#include "tercel/ops/random.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tercel/autograd/record.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/factories_impl.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

/**
 * Fills x in the order of its indices: block i of the generator's range gives elements i * width to i * width + width,
 * as draw(block, values) writes them.
 */
template <class T, int64_t kWidth, class Draw>
void fill_by_blocks(const Tensor& x, Generator& generator, Draw draw) {
  const int64_t numel = x.numel(), blocks = (numel + kWidth - 1) / kWidth;
  const GeneratorState state = generator.reserve(static_cast<uint64_t>(blocks));
  const Philox philox{state.seed, 0};
  Tensor target = x.is_contiguous() ? x : empty(x.sizes(), x.options());
  T* out = target.data<T>();
  parallel_for(0, blocks, 1 << 12, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      T values[kWidth];
      draw(philox(state.offset + static_cast<uint64_t>(b)), values);
      const int64_t at = b * kWidth, n = std::min(kWidth, numel - at);
      for (int64_t i = 0; i < n; ++i) out[at + i] = values[i];
    }
  });
  if (!x.is_contiguous()) {
    const NoGradGuard no_grad;
    copy_(x, target);
  } else {
    x.impl().bump_version();
  }
}

void check_random(const Tensor& x, const char* op) {
  check_defined(x, op, "self");
  check_inplace(x, x.requires_grad());
}

/** Calls draw with the type it works in: double for float64, float for other floating types. */
template <class Draw32, class Draw64>
void fill_floating(const Tensor& x, const char* op, Generator& generator, Draw32 draw32, Draw64 draw64) {
  visit_floating_types(op, x.dtype(), [&]<class T> {
    if constexpr (std::is_same_v<T, double>)
      fill_by_blocks<T, 2>(x, generator, draw64);
    else
      fill_by_blocks<T, 4>(x, generator, [&](PhiloxBlock block, T* out) {
        float values[4];
        draw32(block, values);
        for (int i = 0; i < 4; ++i) out[i] = T(values[i]);
      });
  });
}

uint64_t low_half(PhiloxBlock b) { return random_u64(b.word[0], b.word[1]); }
uint64_t high_half(PhiloxBlock b) { return random_u64(b.word[2], b.word[3]); }

}  // namespace

const Tensor& uniform_(const Tensor& x, double low, double high, Generator& generator) {
  check_random(x, "uniform_");
  TERCEL_CHECK(low <= high && std::isfinite(high - low), RuntimeError,
               "uniform_ expects to return a [from, to) range, but found from=", low, " > to=", high);
  const auto low32 = static_cast<float>(low), span32 = static_cast<float>(high - low);
  fill_floating(
      x, "uniform_", generator,
      [=](PhiloxBlock block, float* out) {
        for (int i = 0; i < 4; ++i) out[i] = low32 + span32 * uniform_f32(block.word[i]);
      },
      [=](PhiloxBlock block, double* out) {
        out[0] = low + (high - low) * uniform_f64(low_half(block));
        out[1] = low + (high - low) * uniform_f64(high_half(block));
      });
  return x;
}

const Tensor& normal_(const Tensor& x, double mean, double stddev, Generator& generator) {
  check_random(x, "normal_");
  TERCEL_CHECK(stddev >= 0, RuntimeError, "normal_ expects std >= 0.0, but found std ", stddev);
  const auto mean32 = static_cast<float>(mean), stddev32 = static_cast<float>(stddev);
  fill_floating(
      x, "normal_", generator,
      [=](PhiloxBlock block, float* out) {
        for (int i = 0; i < 4; i += 2) {
          const NormalPairF32 pair = normal_f32(block.word[i], block.word[i + 1]);
          out[i] = mean32 + stddev32 * pair.first;
          out[i + 1] = mean32 + stddev32 * pair.second;
        }
      },
      [=](PhiloxBlock block, double* out) {
        const NormalPairF64 pair = normal_f64(low_half(block), high_half(block));
        out[0] = mean + stddev * pair.first;
        out[1] = mean + stddev * pair.second;
      });
  return x;
}

const Tensor& bernoulli_(const Tensor& x, double p, Generator& generator) {
  check_random(x, "bernoulli_");
  TERCEL_CHECK(p >= 0 && p <= 1, RuntimeError, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  visit_all_types("bernoulli_", x.dtype(), [&]<class T> {
    fill_by_blocks<T, 2>(x, generator, [p](PhiloxBlock block, T* out) {
      out[0] = Scalar(uniform_f64(low_half(block)) < p ? 1 : 0).to<T>();
      out[1] = Scalar(uniform_f64(high_half(block)) < p ? 1 : 0).to<T>();
    });
  });
  return x;
}

Tensor rand(IntSpan sizes, TensorOptions options, Generator& generator) {
  return detail::made(sizes, options, [&](Tensor& out) { uniform_(out, 0, 1, generator); });
}

Tensor randn(IntSpan sizes, TensorOptions options, Generator& generator) {
  return detail::made(sizes, options, [&](Tensor& out) { normal_(out, 0, 1, generator); });
}

Tensor randint(int64_t low, int64_t high, IntSpan sizes, TensorOptions options, Generator& generator) {
  TERCEL_CHECK(low < high, RuntimeError, "random_ expects 'from' to be less than 'to', but got from=", low,
               " >= to=", high);
  const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  return detail::made(sizes, options, [&](Tensor& out) {
    visit_real_types("randint", out.dtype(), [&]<class T> {
      fill_by_blocks<T, 2>(out, generator, [low, span](PhiloxBlock block, T* values) {
        values[0] =
            Scalar(static_cast<int64_t>(static_cast<uint64_t>(low) + uniform_int(low_half(block), span))).to<T>();
        values[1] =
            Scalar(static_cast<int64_t>(static_cast<uint64_t>(low) + uniform_int(high_half(block), span))).to<T>();
      });
    });
  });
}

Tensor randperm(int64_t n, Generator& generator) {
  TERCEL_CHECK(n >= 0, RuntimeError, "randperm: n must be non-negative, got ", n);
  const GeneratorState state = generator.reserve(static_cast<uint64_t>(n));
  const Philox philox{state.seed, 0};
  Tensor out = empty({n}, kInt64);
  int64_t* p = out.data<int64_t>();
  std::iota(p, p + n, int64_t{0});
  // Fisher-Yates: element i changes places with one of those up to it.
  for (int64_t i = n - 1; i > 0; --i) {
    const PhiloxBlock block = philox(state.offset + static_cast<uint64_t>(i));
    std::swap(p[i], p[uniform_int(low_half(block), static_cast<uint64_t>(i) + 1)]);
  }
  return out;
}

}  // namespace tercel
