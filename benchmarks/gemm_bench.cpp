// Matrix products of CTR models compared with oneDNN's sgemm, if installed: percentage of the measured FMA peak.
//
//   gemm_bench [threads [rounds [dlrm|mlperf|square|packed]]]
//
// The two sides alternate; the minimum time of each counts. Every product is measured with the operations fused into it
// in a training step (bias and ReLU; the ReLU's mask; the bias gradient); oneDNN's is the bare product. dlrm is a step
// of batch 2048 with bottom 13-512-256-64-16 and top 367-512-256-1, mlperf one with bottom 13-512-256-128 and top
// 479-1024-1024-512-256-1. square is plain products of n x n matrices, n from 64 to 2048. packed compares linear() by a
// weight packed once, by to_mkldnn(), with linear() by the same weight as it is; from 32 rows on, the latter packs in
// each call.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "benchmarks/machine_limits.h"
#include "tercel/ops/linalg/gemm_impl.h"
#include "tercel/ops/linalg/packed_weight.h"
#include "tercel/ops/nn/linear.h"
#include "tercel/util/parallel.h"

namespace {

constexpr int64_t kBatch = 2048;

// The signature is the same in oneDNN 2 and 3. It is loaded with dlopen, since nothing else in the project needs it.
using Sgemm = int (*)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, float,
                      float*, int64_t);

Sgemm load_onednn() {
  for (const char* name : {"libdnnl.so.3", "libdnnl.so.2"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return reinterpret_cast<Sgemm>(dlsym(library, "dnnl_sgemm"));
  }
  return nullptr;
}

struct FreeAligned {
  void operator()(float* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float[], FreeAligned>;

Floats random_floats(int64_t count) {
  Floats result(static_cast<float*>(std::aligned_alloc(64, static_cast<size_t>(count + 16) / 16 * 64)));
  static std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t i = 0; i < count; ++i) result[static_cast<size_t>(i)] = uniform(random);
  return result;
}

struct Layer {
  int64_t in, out;
  bool first;  // the gradient of its input is not needed
};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/** Prints the results of one product; returns the minimum times of Tercel and oneDNN. */
std::pair<double, double> measure(const char* what, const Layer& layer, const tercel::Gemm<float>& g, Sgemm onednn,
                                  double peak, int rounds) {
  const double flops = 2.0 * static_cast<double>(g.m * g.n * g.k);
  if (flops < 1e8) rounds *= 10;
  double ours = 1e30, theirs = 1e30;
  for (int r = 0; r < rounds; ++r) {
    double start = seconds();
    tercel::gemm(g);
    ours = std::min(ours, seconds() - start);
    if (!onednn) continue;
    start = seconds();
    onednn(g.trans_a ? 'T' : 'N', g.trans_b ? 'T' : 'N', g.m, g.n, g.k, 1, g.a, g.lda, g.b, g.ldb, 0, g.c, g.ldc);
    theirs = std::min(theirs, seconds() - start);
  }
  std::printf("%5ld -%5ld  %-24s %5ld x %4ld x %4ld  %8.1f us  %6.1f GFLOP/s %5.1f %%", static_cast<long>(layer.in),
              static_cast<long>(layer.out), what, static_cast<long>(g.m), static_cast<long>(g.n),
              static_cast<long>(g.k), ours * 1e6, flops / ours * 1e-9, 100 * flops / ours / peak);
  if (onednn) std::printf("   oneDNN %6.1f GFLOP/s %5.1f %%", flops / theirs * 1e-9, 100 * flops / theirs / peak);
  std::printf("\n");
  std::fflush(stdout);
  return {ours, theirs};
}

void measure_squares(Sgemm onednn, double peak, int rounds) {
  for (int64_t n = 64; n <= 2048; n *= 2) {
    const Floats a = random_floats(n * n), b = random_floats(n * n), c = random_floats(n * n);
    const tercel::Gemm<float> g = {
        .m = n, .n = n, .k = n, .a = a.get(), .lda = n, .b = b.get(), .ldb = n, .c = c.get(), .ldc = n};
    measure("square", {n, n, true}, g, onednn, peak, n < 1024 ? rounds : std::max(1, rounds / 4));
  }
}

void measure_packed(int rounds) {
  constexpr Layer kLayers[] = {{512, 512, false}, {1024, 1024, false}, {4096, 1024, false}, {1024, 4096, false}};
  for (const Layer& layer : kLayers) {
    for (const int64_t batch : {1, 4, 8, 12, 16, 32, 64, 256}) {
      tercel::Tensor x = tercel::empty({batch, layer.in}), weight = tercel::empty({layer.out, layer.in});
      for (const tercel::Tensor& t : {x, weight}) {
        const Floats values = random_floats(t.numel());
        std::copy_n(values.get(), t.numel(), t.data<float>());
      }
      const tercel::Tensor packed = tercel::to_mkldnn(weight);
      double strided = 1e30, once = 1e30;
      for (int r = 0; r < 10 * rounds; ++r) {
        double start = seconds();
        tercel::linear(x, weight);
        strided = std::min(strided, seconds() - start);
        start = seconds();
        tercel::linear(x, packed);
        once = std::min(once, seconds() - start);
      }
      const double flops = 2.0 * static_cast<double>(batch * layer.in * layer.out);
      std::printf(
          "%5ld -%5ld  batch %4ld  strided %8.1f us %6.1f GFLOP/s   packed %8.1f us %6.1f GFLOP/s   ratio %5.2f\n",
          static_cast<long>(layer.in), static_cast<long>(layer.out), static_cast<long>(batch), strided * 1e6,
          flops / strided * 1e-9, once * 1e6, flops / once * 1e-9, strided / once);
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t threads = argc > 1 ? std::atoll(argv[1]) : 1;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 30;
  const bool mlperf = argc > 3 && std::strcmp(argv[3], "mlperf") == 0;
  tercel::set_num_threads(threads);
  ::setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);  // for oneDNN, before it is loaded
  const Sgemm onednn = load_onednn();
  const double peak = limits::fma_peak(threads);
  std::printf("%s, %ld threads, FMA peak %.1f GFLOP/s, oneDNN %s\n", tercel::gemm_info().c_str(),
              static_cast<long>(threads), peak * 1e-9, onednn ? "found" : "not found");

  if (argc > 3 && std::strcmp(argv[3], "square") == 0) {
    measure_squares(onednn, peak, rounds);
    return 0;
  }
  if (argc > 3 && std::strcmp(argv[3], "packed") == 0) {
    measure_packed(rounds);
    return 0;
  }

  const std::vector<Layer> dlrm = {{13, 512, true},   {512, 256, false}, {256, 64, false}, {64, 16, false},
                                   {367, 512, false}, {512, 256, false}, {256, 1, false}};
  const std::vector<Layer> large = {{13, 512, true},     {512, 256, false},  {256, 128, false}, {479, 1024, false},
                                    {1024, 1024, false}, {1024, 512, false}, {512, 256, false}, {256, 1, false}};
  // For both orders of the weights: [in, out], as in HugeCTR, and [out, in], as in PyTorch.
  for (const bool in_out : {true, false}) {
    double flops = 0, ours = 0, theirs = 0;
    for (const Layer& layer : mlperf ? large : dlrm) {
      const int64_t in = layer.in, out = layer.out;
      const Floats x = random_floats(kBatch * in), w = random_floats(in * out), y = random_floats(kBatch * out);
      const Floats dx = random_floats(kBatch * in), dy = random_floats(kBatch * out), dw = random_floats(in * out);
      const Floats bias = random_floats(out), dbias = random_floats(out);
      const auto add = [&](const std::pair<double, double>& times, const tercel::Gemm<float>& g) {
        flops += 2.0 * static_cast<double>(g.m * g.n * g.k);
        ours += times.first;
        theirs += times.second;
      };
      tercel::Gemm<float> g;
      g = {.m = kBatch,
           .n = out,
           .k = in,
           .a = x.get(),
           .lda = in,
           .b = w.get(),
           .ldb = in_out ? out : in,
           .trans_b = !in_out,
           .c = y.get(),
           .ldc = out,
           .bias = bias.get(),
           .relu = out > 1};
      add(measure(in_out ? "forward, W [in, out]" : "forward, W [out, in]", layer, g, onednn, peak, rounds), g);
      if (!layer.first) {
        g = {.m = kBatch,
             .n = in,
             .k = out,
             .a = dy.get(),
             .lda = out,
             .b = w.get(),
             .ldb = in_out ? out : in,
             .trans_b = in_out,
             .c = dx.get(),
             .ldc = in,
             .mask = x.get(),
             .ldmask = in};
        add(measure("data gradient", layer, g, onednn, peak, rounds), g);
      }
      if (in_out) {
        g = {.m = in,
             .n = out,
             .k = kBatch,
             .a = x.get(),
             .lda = in,
             .trans_a = true,
             .b = dy.get(),
             .ldb = out,
             .c = dw.get(),
             .ldc = out,
             .b_sums = dbias.get()};
      } else {
        g = {.m = out,
             .n = in,
             .k = kBatch,
             .a = dy.get(),
             .lda = out,
             .trans_a = true,
             .b = x.get(),
             .ldb = in,
             .c = dw.get(),
             .ldc = in,
             .a_sums = dbias.get()};
      }
      add(measure("weight and bias gradient", layer, g, onednn, peak, rounds), g);
    }
    std::printf("step: limit %.2f ms, Tercel %.2f ms (%.1f %%)", flops / peak * 1e3, ours * 1e3,
                100 * flops / peak / ours);
    if (onednn) std::printf(", oneDNN's products %.2f ms (%.1f %%)", theirs * 1e3, 100 * flops / peak / theirs);
    std::printf("\n\n");
  }

  // Dot interaction of 27 vectors of 16: T T^t forward, (G + G^t) T backward.
  const int64_t fields = 27, dim = mlperf ? 128 : 16;
  const Floats t = random_floats(kBatch * fields * dim), z = random_floats(kBatch * fields * fields);
  const Floats dt = random_floats(kBatch * fields * dim);
  for (const bool forward : {true, false}) {
    tercel::Gemm<float> g;
    if (forward) {
      g = {.m = fields,
           .n = fields,
           .k = dim,
           .a = t.get(),
           .lda = dim,
           .b = t.get(),
           .ldb = dim,
           .trans_b = true,
           .c = z.get(),
           .ldc = fields};
    } else {
      g = {.m = fields,
           .n = dim,
           .k = fields,
           .a = z.get(),
           .lda = fields,
           .b = t.get(),
           .ldb = dim,
           .c = dt.get(),
           .ldc = dim};
    }
    double best = 1e30;
    for (int r = 0; r < 3 * rounds; ++r) {
      const double start = seconds();
      tercel::gemm_batched(g, kBatch, g.m * g.k, fields * dim, g.m * g.n);
      best = std::min(best, seconds() - start);
    }
    const double flops = 2.0 * static_cast<double>(kBatch * g.m * g.n * g.k);
    std::printf("%ld times %ld x %ld x %ld: %.1f us, %.1f GFLOP/s %.1f %%\n", static_cast<long>(kBatch),
                static_cast<long>(g.m), static_cast<long>(g.n), static_cast<long>(g.k), best * 1e6, flops / best * 1e-9,
                100 * flops / best / peak);
  }
}
