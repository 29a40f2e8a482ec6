// Core tensor operations: small ones, bound by the cost of a call, and large ones, bound by memory or arithmetic.
//
//   core_ops_bench [threads [part of a row's name]]
//
// Small rows ([grad]): 4 x 6 float32 on one thread, with recording enabled. Large ones ([1T], [2T] by threads) show the
// percentage of the machine's limit for streaming, updating, reading, gathering rows or multiply-adds, counting each
// operand once.
//
// The same source measures libtorch, without limits, and alternate.py pairs the rows of both:
//
//   g++ -O2 -std=c++20 -I. -DBENCHMARK_LIBTORCH benchmarks/core_ops_bench.cpp -o core_ops_torch $FLAGS
//   benchmarks/alternate.py --ours "build/release/bin/core_ops_bench 1" --peer "./core_ops_torch 1" --same-names
//
// with TORCH the folder of Python's package torch and FLAGS="-I$TORCH/include -I$TORCH/include/torch/csrc/api/include
// -L$TORCH/lib -Wl,-rpath,$TORCH/lib -Wl,--no-as-needed -ltorch -ltorch_cpu -lc10".
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "benchmarks/measure.h"
#ifdef BENCHMARK_LIBTORCH
#include <ATen/Parallel.h>
#include <torch/torch.h>
#else
#include "benchmarks/machine_limits.h"
#include "tercel/autograd/autograd.h"
#include "tercel/ops/ops.h"
#include "tercel/util/parallel.h"
#endif

namespace {

// Differences between the two libraries' APIs.
#ifdef BENCHMARK_LIBTORCH
namespace lib = torch;
using lib::Tensor;

namespace limits {
double no_rate(int64_t) { return 0; }
constexpr auto stream_rate = no_rate, update_rate = no_rate, read_rate = no_rate, fma_peak = no_rate;
double gather_rate(int64_t, int64_t, int64_t) { return 0; }
}  // namespace limits

Tensor bags_of(const Tensor& weight, const Tensor& keys, const Tensor& offsets, bool sparse = false) {
  return std::get<0>(lib::embedding_bag(weight, keys, offsets, false, /*mode=sum*/ 0, sparse));
}
void forget_gradient(const Tensor& x) { x.mutable_grad() = Tensor(); }
int64_t thread_count() { return lib::get_num_threads(); }
#else
namespace lib = tercel;
using lib::Tensor;

Tensor bags_of(const Tensor& weight, const Tensor& keys, const Tensor& offsets, bool sparse = false) {
  lib::EmbeddingBagOptions options;
  options.mode = lib::BagMode::Sum;
  options.sparse = sparse;
  return lib::embedding_bag(weight, keys, offsets, options);
}
void forget_gradient(const Tensor& x) { lib::clear_gradient(x); }
int64_t thread_count() { return lib::num_threads(); }
#endif

using bench::keep;
using bench::measure;
using bench::Times;

std::string g_filter;

bool wanted(const char* name) { return std::strstr(name, g_filter.c_str()) != nullptr; }

template <class F>
void small(const char* name, F&& call) {
  if (!wanted(name)) return;
  const Times t = measure(call, 0.02, 15);
  std::printf("%-44s median %9.1f ns (min %.1f)\n", name, t.median * 1e9, t.least * 1e9);
  std::fflush(stdout);
}

/** `units` of work (bytes, rows) per call; the machine can do `limit` of them per second (0: not compared). */
template <class F>
void large(const char* name, double units, double limit, F&& call) {
  if (!wanted(name)) return;
  const Times t = measure(call, 0.05, 9);
  std::printf("%-44s median %9.3f ms (min %.3f)", name, t.median * 1e3, t.least * 1e3);
  if (limit > 0) std::printf("  %5.1f %% of the limit", 100 * units / t.least / limit);
  std::printf("\n");
  std::fflush(stdout);
}

void small_rows() {
  const Tensor x = lib::randn({4, 6}), y = lib::randn({4, 6}), row = lib::randn({6});
  const Tensor one = lib::randn({1}), other = lib::randn({1}), two = lib::randn({2, 2});
  Tensor g = lib::randn({4, 6});
  g.requires_grad_();
  const Tensor index = lib::arange(0, 2);
  float buffer[6] = {};
  small("[grad] torch::empty({2,3})", [] { keep(lib::empty({2, 3})); });
  small("[grad] at::empty_like(x)", [&] { keep(lib::empty_like(x)); });
  small("[grad] torch::zeros({2,3})", [] { keep(lib::zeros({2, 3})); });
  small("[grad] x.view({6,4})", [&] { keep(x.view({6, 4})); });
  small("[grad] x.reshape({6,4})", [&] { keep(x.reshape({6, 4})); });
  small("[grad] x.narrow(0,1,2)", [&] { keep(x.narrow(0, 1, 2)); });
  small("[grad] x.slice(0,1,3)", [&] { keep(x.slice(0, 1, 3)); });
  small("[grad] x.select(0,1)", [&] { keep(x.select(0, 1)); });
  small("[grad] x.t()", [&] { keep(x.t()); });
  small("[grad] x.transpose(0,1)", [&] { keep(x.transpose(0, 1)); });
  small("[grad] x.permute({1,0})", [&] { keep(x.permute({1, 0})); });
  small("[grad] x.unsqueeze(0)", [&] { keep(x.unsqueeze(0)); });
  small("[grad] x.expand({3,4,6})", [&] { keep(x.expand({3, 4, 6})); });
  small("[grad] x.as_strided({2,2},{1,1})", [&] { keep(x.as_strided({2, 2}, {1, 1})); });
  small("[grad] x.detach()", [&] { keep(x.detach()); });
  small("[grad] x.clone() 4x6", [&] { keep(x.clone()); });
  small("[grad] add 1-element: o+p", [&] { keep(one + other); });
  small("[grad] add 4x6: x+y", [&] { keep(x + y); });
  small("[grad] add scalar: x+1.0", [&] { keep(x + 1.0); });
  small("[grad] broadcast add 4x6 + 6", [&] { keep(x + y.select(0, 0)); });
  small("[grad] x.add_(y) 4x6", [&] { x.add_(y); });
  small("[grad] relu(x)", [&] { keep(lib::relu(x)); });
  small("[grad] exp(x)", [&] { keep(lib::exp(y)); });
  small("[grad] x.sum() 4x6", [&] { keep(y.sum()); });
  small("[grad] x.sum(0) 4x6", [&] { keep(y.sum(0)); });
  small("[grad] mm 2x2", [&] { keep(lib::mm(two, two)); });
  small("[grad] index_select(0,[0,1]) 4x6", [&] { keep(y.index_select(0, index)); });
  small("[grad] y.index({idx})", [&] { keep(y.index({index})); });
  small("[grad] cat({x,y})", [&] { keep(lib::cat({x, y})); });
  small("[grad] o.item<float>()", [&] { keep(one.item<float>()); });
  small("[grad] torch::from_blob", [&] { keep(lib::from_blob(buffer, {2, 3})); });
  small("[grad] requires_grad: g*y forward", [&] { keep(g * y); });
  small("[grad] requires_grad: g+y forward", [&] { keep(g + y); });
  small("[grad] requires_grad: g.view fwd", [&] { keep(g.view({6, 4})); });
  small("[grad] requires_grad: (g*y).sum() fwd", [&] { keep((g * y).sum()); });
  small("[grad] requires_grad: (g*y).sum().backward()", [&] { (g * y).sum().backward(); });
}

/** "[2T] name". */
std::string label(const std::string& name) { return "[" + std::to_string(thread_count()) + "T] " + name; }

/** Bytes per second. */
struct Rates {
  double stream, update, read;
};

void memory_rows(const Rates& rates) {
  constexpr int64_t kElements = int64_t{64} << 20, kSide = 8192;
  constexpr double kBytes = 4.0 * kElements;
  const lib::NoGradGuard no_grad;
  const auto bytes = [&](const char* name, double count, const auto& call) {
    large(label(name).c_str(), count, rates.stream, call);
  };
  const auto read = [&](const char* name, double count, const auto& call) {
    large(label(name).c_str(), count, rates.read, call);
  };
  {
    const Tensor a = lib::randn({kElements}), b = lib::randn({kElements});
    Tensor out = lib::zeros({kElements});
    bytes("add_out 64M f32 (3x256MB traffic)", 3 * kBytes, [&] { lib::add_out(out, a, b); });
    bytes("a+b 64M f32, fresh output (page faults)", 3 * kBytes, [&] { keep(a + b); });
    bytes("copy_ 64M f32", 2 * kBytes, [&] { out.copy_(a); });
    large(label("mul_ scalar 64M").c_str(), 2 * kBytes, rates.update, [&] { out.mul_(1.0001); });
    bytes("exp_out 64M", 2 * kBytes, [&] { lib::exp_out(out, a); });
    read("sum() all 64M", kBytes, [&] { keep(a.sum()); });
    const Tensor matrix = a.view({kSide, kSide});
    Tensor square = out.view({kSide, kSide});
    read("sum(dim=0) 8192x8192", kBytes, [&] { keep(matrix.sum(0)); });
    read("sum(dim=1) 8192x8192", kBytes, [&] { keep(matrix.sum(1)); });
    read("max(dim=1) 8192x8192", kBytes, [&] { keep(matrix.max(1)); });
    const Tensor cube = a.view({256, 1024, 256});
    read("sum(dim=0) 256x1024x256", kBytes, [&] { keep(cube.sum(0)); });
    read("sum(dim=1) 256x1024x256", kBytes, [&] { keep(cube.sum(1)); });
    read("sum(dim=2) 256x1024x256", kBytes, [&] { keep(cube.sum(2)); });
    bytes("softmax(dim=1) 8192x8192", 2 * kBytes, [&] { keep(matrix.softmax(1)); });
    bytes("softmax(dim=0) 8192x8192", 2 * kBytes, [&] { keep(matrix.softmax(0)); });
    const Tensor row = matrix.select(0, 0);
    bytes("broadcast add 8192x8192 + row[8192]", 2 * kBytes, [&] { lib::add_out(square, matrix, row); });
    bytes("broadcast add 8192x8192 + col[8192,1]", 2 * kBytes, [&] { lib::add_out(square, matrix, row.unsqueeze(1)); });
  }
  constexpr int64_t kHalf = kSide / 2;
  constexpr double kSquare = 4.0 * kHalf * kHalf;
  const Tensor a = lib::randn({kHalf, kHalf});
  Tensor out = lib::zeros({kHalf, kHalf});
  bytes("transposed copy_ 4096x4096 f32", 2 * kSquare, [&] { out.copy_(a.t()); });
  bytes("add_out(a, a.t()) 4096x4096", 3 * kSquare, [&] { lib::add_out(out, a, a.t()); });
  bytes("contiguous copy_ 4096x4096 f32", 2 * kSquare, [&] { out.copy_(a); });
  const Tensor every_other = lib::randn({kHalf, kSide}).slice(1, 0, kSide, 2);
  bytes("strided copy_ [:, ::2] 4096x8192", 2 * kSquare, [&] { out.copy_(every_other); });
  const Tensor images = lib::randn({32, 64, 56, 56});
  const Tensor last = lib::zeros({32, 64, 56, 56}).contiguous(lib::MemoryFormat::ChannelsLast);
  bytes("NCHW->NHWC copy_ 32x64x56x56", 8.0 * static_cast<double>(images.numel()), [&] { last.copy_(images); });
}

void product_rows(double peak) {
  const lib::NoGradGuard no_grad;
  for (const int64_t n : {64, 128, 256, 512, 1024, 2048}) {
    const Tensor a = lib::randn({n, n}), b = lib::randn({n, n});
    Tensor out = lib::zeros({n, n});
    const std::string name = "mm_out f32 " + std::to_string(n) + "^3";
    const double flops = 2.0 * static_cast<double>(n * n * n);
    large(label(name).c_str(), flops, peak, [&] { lib::mm_out(out, a, b); });
    if (n == 1024) large(label(name + ", b transposed").c_str(), flops, peak, [&] { lib::mm_out(out, a, b.t()); });
  }
}

void gather_rows(int64_t threads) {
  constexpr int64_t kRows = 1'000'000, kDim = 64, kBags = 8192 * 26;
  const double rate = limits::gather_rate(threads, kRows, kDim);
  const Tensor weight = lib::randn({kRows, kDim});
  const auto bags = [&](const std::string& name, const Tensor& keys, const Tensor& offsets) {
    large(label(name).c_str(), static_cast<double>(keys.numel()), rate, [&] { keep(bags_of(weight, keys, offsets)); });
  };
  {
    const lib::NoGradGuard no_grad;
    for (const int64_t k : {1, 20}) {
      const Tensor keys = lib::randint(kRows, {kBags * k}, lib::kInt64), offsets = lib::arange(0, kBags * k, k);
      const std::string count = std::to_string(k);
      bags("embedding_bag sum 1Mx64, " + std::to_string(kBags) + " bags x " + count, keys, offsets);
      bags("embedding_bag sum int32 idx, x " + count, keys.to(lib::kInt32), offsets.to(lib::kInt32));
      if (k == 1)
        large(label("index_select 1Mx64, " + std::to_string(kBags) + " rows").c_str(), static_cast<double>(kBags), rate,
              [&] { keep(weight.index_select(0, keys)); });
    }
    {
      const Tensor narrow = lib::randn({4 * kRows, kDim / 4}), keys = lib::randint(4 * kRows, {kBags}, lib::kInt64);
      large(label("index_select 4Mx16, " + std::to_string(kBags) + " rows").c_str(), static_cast<double>(kBags), rate,
            [&] { keep(narrow.index_select(0, keys)); });
    }
    // The rows above stay partly cached from one call to the next; here few do.
    std::vector<Tensor> keys;
    for (int i = 0; i < 8; ++i) keys.push_back(lib::randint(kRows, {kBags}, lib::kInt64));
    const Tensor offsets = lib::arange(0, kBags);
    size_t turn = 0;
    large(label("embedding_bag x 1, other bags each call").c_str(), static_cast<double>(kBags), rate,
          [&] { keep(bags_of(weight, keys[turn++ % keys.size()], offsets)); });
  }
  const Tensor keys = lib::randint(kRows, {kBags}, lib::kInt64), offsets = lib::arange(0, kBags),
               gradient = lib::randn({kBags, kDim});
  Tensor trained = weight.detach();
  trained.requires_grad_();
  for (const bool sparse : {false, true}) {
    large(label(std::string("embedding_bag fwd+bwd x1, sparse_grad=") + (sparse ? "1" : "0")).c_str(), 0, 0, [&] {
      forget_gradient(trained);
      bags_of(trained, keys, offsets, sparse).backward(gradient);
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t threads = argc > 1 ? std::max(1LL, std::atoll(argv[1])) : 1;
  if (argc > 2) g_filter = argv[2];
  std::printf("%lld threads (small operations: 1)\n", static_cast<long long>(threads));
  lib::set_num_threads(1);
  small_rows();
  lib::set_num_threads(threads);
  memory_rows({limits::stream_rate(threads), limits::update_rate(threads), limits::read_rate(threads)});
  product_rows(limits::fma_peak(threads));
  gather_rows(threads);
  return 0;
}
