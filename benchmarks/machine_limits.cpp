#include "benchmarks/machine_limits.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "tercel/core/dispatch.h"
#include "tercel/core/tensor.h"
#include "tercel/util/philox.h"

namespace limits {

namespace {

/** Minimum time of a few rounds in which every thread runs `work(thread)`. */
double best_time(int64_t threads, int rounds, const std::function<void(int64_t)>& work) {
  double best = 1e30;
  for (int r = 0; r < rounds; ++r) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (int64_t t = 1; t < threads; ++t) others.emplace_back(work, t);
    work(0);
    for (std::thread& other : others) other.join();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

constexpr int64_t kFmaRounds = 20'000'000;

// Ten independent chains: more than a latency of four on two units requires. The empty asm keeps each in a register.
#define TERCEL_TEN(step) step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9)

[[gnu::target("avx2,fma")]] float fma_avx2() {
  __m256 a[10];
#define TERCEL_SET(i) a[i] = _mm256_set1_ps(1.0f + i);
  TERCEL_TEN(TERCEL_SET)
#undef TERCEL_SET
  __m256 a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3], a4 = a[4], a5 = a[5], a6 = a[6], a7 = a[7], a8 = a[8], a9 = a[9];
  const __m256 b = _mm256_set1_ps(0.999f), c = _mm256_set1_ps(0.001f);
  for (int64_t r = 0; r < kFmaRounds; ++r) {
#define TERCEL_FMA(i)                 \
  a##i = _mm256_fmadd_ps(a##i, b, c); \
  asm volatile("" : "+x"(a##i));
    TERCEL_TEN(TERCEL_FMA)
#undef TERCEL_FMA
  }
  return _mm256_cvtss_f32(a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9);
}

[[gnu::target("avx512f")]] float fma_avx512() {
  __m512 a0 = _mm512_set1_ps(1.0f), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0, a8 = a0, a9 = a0;
  const __m512 b = _mm512_set1_ps(0.999f), c = _mm512_set1_ps(0.001f);
  for (int64_t r = 0; r < kFmaRounds; ++r) {
#define TERCEL_FMA(i)                 \
  a##i = _mm512_fmadd_ps(a##i, b, c); \
  asm volatile("" : "+v"(a##i));
    TERCEL_TEN(TERCEL_FMA)
#undef TERCEL_FMA
  }
  return _mm512_cvtss_f32(a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9);
}

float fma_sse2() {
  __m128 a0 = _mm_set1_ps(1.0f), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0, a8 = a0, a9 = a0;
  const __m128 b = _mm_set1_ps(0.999f), c = _mm_set1_ps(0.001f);
  for (int64_t r = 0; r < kFmaRounds; ++r) {
#define TERCEL_FMA(i)                        \
  a##i = _mm_add_ps(_mm_mul_ps(a##i, b), c); \
  asm volatile("" : "+x"(a##i));
    TERCEL_TEN(TERCEL_FMA)
#undef TERCEL_FMA
  }
  return _mm_cvtss_f32(a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9);
}

volatile float g_sink;

/** Sums elements of the selected rows in a few registers: less work than any real use of the rows. */
float sum_of_rows(const float* base, int64_t dim, const int64_t* pick, int64_t n, int64_t ahead) {
  __m128 sums[4] = {_mm_setzero_ps(), _mm_setzero_ps(), _mm_setzero_ps(), _mm_setzero_ps()};
  float rest = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i + ahead < n) {
      const float* row = base + pick[i + ahead] * dim;
      // The first cache lines are unrolled, which avoids a branch misprediction per row.
      __builtin_prefetch(row);
      if (dim > 16) __builtin_prefetch(row + 16);
      if (dim > 32) __builtin_prefetch(row + 32);
      if (dim > 48) __builtin_prefetch(row + 48);
      for (int64_t j = 64; j < dim; j += 16) __builtin_prefetch(row + j);
    }
    const float* row = base + pick[i] * dim;
    int64_t j = 0;
    for (; j + 16 <= dim; j += 16)
#pragma GCC unroll 4  // otherwise the sums would be in memory, and the additions the limit
      for (int64_t k = 0; k < 4; ++k) sums[k] = _mm_add_ps(sums[k], _mm_loadu_ps(row + j + 4 * k));
    for (; j < dim; ++j) rest += row[j];
  }
  return rest + _mm_cvtss_f32(_mm_add_ps(_mm_add_ps(sums[0], sums[1]), _mm_add_ps(sums[2], sums[3])));
}

using Line [[gnu::vector_size(64), gnu::may_alias]] = float;

[[gnu::target_clones("avx512f", "avx2", "default")]] void scale(float* data, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += 16) *reinterpret_cast<Line*>(data + i) *= 1.0001F;
}

[[gnu::target_clones("avx512f", "avx2", "default")]] float total(const float* data, int64_t begin, int64_t end) {
  Line sums[4] = {};
  for (int64_t i = begin; i + 64 <= end; i += 64)
    for (int64_t k = 0; k < 4; ++k) sums[k] += *reinterpret_cast<const Line*>(data + i + 16 * k);
  return (sums[0] + sums[1] + sums[2] + sums[3])[0];
}

// Elements of an array larger than any cache.
constexpr int64_t kStreamed = int64_t{32} << 20;

tercel::Tensor filled() {
  const tercel::Tensor x = tercel::empty({kStreamed});
  std::fill_n(x.data<float>(), kStreamed, 1.0f);
  return x;
}

/** Minimum time of `work(begin, end)` over all elements, one part per thread; parts begin at cache lines. */
template <class F>
double time_of_parts(int64_t threads, F work) {
  return best_time(
      threads, 5, [=](int64_t t) { work(kStreamed / 16 * t / threads * 16, kStreamed / 16 * (t + 1) / threads * 16); });
}

}  // namespace

double fma_peak(int64_t threads) {
  const tercel::CpuIsa isa = tercel::cpu_isa();
  const double lanes = isa == tercel::CpuIsa::Avx512 ? 16 : isa == tercel::CpuIsa::Avx2 ? 8 : 4;
  const double seconds = best_time(threads, 3, [isa](int64_t) {
    g_sink = isa == tercel::CpuIsa::Avx512 ? fma_avx512() : isa == tercel::CpuIsa::Avx2 ? fma_avx2() : fma_sse2();
  });
  return static_cast<double>(threads) * static_cast<double>(kFmaRounds) * 10 * 2 * lanes / seconds;
}

double stream_rate(int64_t threads) {
  const tercel::Tensor a = tercel::empty({kStreamed}), b = filled(), c = filled();
  // Raw pointers: vector stores may alias anything, so the compiler would reload a tensor's data pointer each time.
  float* const out = a.data<float>();
  const float *const first = b.data<float>(), *const second = c.data<float>();
  return 12.0 * kStreamed / time_of_parts(threads, [=](int64_t begin, int64_t end) {
           const __m128 s = _mm_set1_ps(3.0f);
           for (int64_t i = begin; i < end; i += 4)
             _mm_stream_ps(out + i, _mm_add_ps(_mm_load_ps(first + i), _mm_mul_ps(s, _mm_load_ps(second + i))));
           _mm_sfence();
         });
}

double update_rate(int64_t threads) {
  const tercel::Tensor a = filled();
  float* const data = a.data<float>();
  return 8.0 * kStreamed / time_of_parts(threads, [=](int64_t begin, int64_t end) { scale(data, begin, end); });
}

double read_rate(int64_t threads) {
  const tercel::Tensor a = filled();
  const float* const data = a.data<float>();
  return 4.0 * kStreamed /
         time_of_parts(threads, [=](int64_t begin, int64_t end) { g_sink = total(data, begin, end); });
}

double gather_rate(int64_t threads, int64_t rows, int64_t dim) {
  constexpr int64_t kRows = 400'000;
  const tercel::Tensor table = tercel::empty({rows, dim});
  std::fill_n(table.data<float>(), table.numel(), 1.0f);
  const tercel::Philox random{7, 0};
  std::vector<int64_t> picks(static_cast<size_t>(kRows * threads));
  for (size_t i = 0; i < picks.size(); ++i) {
    const tercel::PhiloxBlock block = random(i);
    picks[i] = static_cast<int64_t>(
        tercel::uniform_int(tercel::random_u64(block.word[0], block.word[1]), static_cast<uint64_t>(rows)));
  }
  const float* const base = table.data<float>();
  double seconds = 1e30;
  // The best prefetch distance depends on the machine and on the length of a row.
  for (const int64_t ahead : {8, 16, 32, 64}) {
    seconds = std::min(seconds, best_time(threads, 3, [&, ahead](int64_t t) {
                         g_sink = sum_of_rows(base, dim, picks.data() + t * kRows, kRows, ahead);
                       }));
  }
  return static_cast<double>(kRows * threads) / seconds;
}

}  // namespace limits
