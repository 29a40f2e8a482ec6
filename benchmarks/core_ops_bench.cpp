// Core tensor operations, as a user of libtorch would time them: small ones, whose cost is that of a call, and large
// ones, whose cost is memory or arithmetic.
//
//   core_ops_bench [threads [part of a row's name]]
//
// Small rows ([grad]): 4 x 6 float32 on one thread, recording switched on. Large ones ([1T], [2T] by threads) show the
// share that they reach of the machine's rate of streaming, of gathering rows or of multiply-adds, counting each
// operand once. Rows are named as in a program that calls libtorch, so that alternate.py can pair them:
//
//   benchmarks/alternate.py --ours "build/release/bin/core_ops_bench 1" --peer "ops_torch all" --same-names
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "benchmarks/machine_limits.h"
#include "benchmarks/measure.h"
#include "tercel/autograd/autograd.h"
#include "tercel/ops/ops.h"
#include "tercel/util/parallel.h"

namespace {

using namespace tercel;
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

/** `units` of work (bytes, rows) a call, of which the machine can do `limit` a second (0: not compared). */
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
  const Tensor x = randn({4, 6}), y = randn({4, 6}), row = randn({6});
  const Tensor one = randn({1}), other = randn({1}), two = randn({2, 2});
  Tensor g = randn({4, 6});
  g.requires_grad_();
  const Tensor index = arange(0, 2);
  float buffer[6] = {};
  small("[grad] torch::empty({2,3})", [] { keep(empty({2, 3})); });
  small("[grad] at::empty_like(x)", [&] { keep(empty_like(x)); });
  small("[grad] torch::zeros({2,3})", [] { keep(zeros({2, 3})); });
  small("[grad] x.view({6,4})", [&] { keep(view(x, {6, 4})); });
  small("[grad] x.reshape({6,4})", [&] { keep(reshape(x, {6, 4})); });
  small("[grad] x.narrow(0,1,2)", [&] { keep(narrow(x, 0, 1, 2)); });
  small("[grad] x.slice(0,1,3)", [&] { keep(slice(x, 0, 1, 3)); });
  small("[grad] x.select(0,1)", [&] { keep(select(x, 0, 1)); });
  small("[grad] x.t()", [&] { keep(t(x)); });
  small("[grad] x.transpose(0,1)", [&] { keep(transpose(x, 0, 1)); });
  small("[grad] x.permute({1,0})", [&] { keep(permute(x, {1, 0})); });
  small("[grad] x.unsqueeze(0)", [&] { keep(unsqueeze(x, 0)); });
  small("[grad] x.expand({3,4,6})", [&] { keep(expand(x, {3, 4, 6})); });
  small("[grad] x.as_strided({2,2},{1,1})", [&] { keep(as_strided(x, {2, 2}, {1, 1})); });
  small("[grad] x.detach()", [&] { keep(x.detach()); });
  small("[grad] x.clone() 4x6", [&] { keep(x.clone()); });
  small("[grad] add 1-element: o+p", [&] { keep(one + other); });
  small("[grad] add 4x6: x+y", [&] { keep(x + y); });
  small("[grad] add scalar: x+1.0", [&] { keep(x + 1.0); });
  small("[grad] broadcast add 4x6 + 6", [&] { keep(x + select(y, 0, 0)); });
  small("[grad] x.add_(y) 4x6", [&] { add_(x, y); });
  small("[grad] relu(x)", [&] { keep(relu(x)); });
  small("[grad] exp(x)", [&] { keep(exp(y)); });
  small("[grad] x.sum() 4x6", [&] { keep(sum(y)); });
  small("[grad] x.sum(0) 4x6", [&] { keep(sum(y, {0})); });
  small("[grad] mm 2x2", [&] { keep(mm(two, two)); });
  small("[grad] index_select(0,[0,1]) 4x6", [&] { keep(index_select(y, 0, index)); });
  small("[grad] y.index({idx})", [&] { keep(tercel::index(y, {index})); });
  small("[grad] cat({x,y})", [&] { keep(cat({x, y})); });
  small("[grad] o.item<float>()", [&] { keep(one.item<float>()); });
  small("[grad] torch::from_blob", [&] { keep(from_blob(buffer, {2, 3})); });
  small("[grad] requires_grad: g*y forward", [&] { keep(g * y); });
  small("[grad] requires_grad: g+y forward", [&] { keep(g + y); });
  small("[grad] requires_grad: g.view fwd", [&] { keep(view(g, {6, 4})); });
  small("[grad] requires_grad: (g*y).sum() fwd", [&] { keep((g * y).sum()); });
  small("[grad] requires_grad: (g*y).sum().backward()", [&] { (g * y).sum().backward(); });
}

/** "[2T] name". */
std::string label(const std::string& name) { return str_cat({"[", std::to_string(num_threads()), "T] ", name}); }

void memory_rows(double stream) {
  constexpr int64_t kElements = int64_t{64} << 20, kSide = 8192;
  constexpr double kBytes = 4.0 * kElements;
  const NoGradGuard no_grad;
  const auto bytes = [&](const char* name, double count, const auto& call) {
    large(label(name).c_str(), count, stream, call);
  };
  {
    const Tensor a = randn({kElements}), b = randn({kElements}), out = zeros({kElements});
    bytes("add_out 64M f32 (3x256MB traffic)", 3 * kBytes, [&] { add_out(out, a, b); });
    bytes("a+b 64M f32, fresh output (page faults)", 3 * kBytes, [&] { keep(a + b); });
    bytes("copy_ 64M f32", 2 * kBytes, [&] { copy_(out, a); });
    bytes("mul_ scalar 64M", 2 * kBytes, [&] { mul_(out, 1.0001); });
    bytes("exp_out 64M", 2 * kBytes, [&] { exp_out(out, a); });
    // What is only read: a stream that also writes moves the same bytes at best.
    bytes("sum() all 64M", kBytes, [&] { keep(sum(a)); });
    const Tensor matrix = view(a, {kSide, kSide}), square = view(out, {kSide, kSide});
    bytes("sum(dim=0) 8192x8192", kBytes, [&] { keep(sum(matrix, {0})); });
    bytes("sum(dim=1) 8192x8192", kBytes, [&] { keep(sum(matrix, {1})); });
    bytes("max(dim=1) 8192x8192", kBytes, [&] { keep(max(matrix, 1)); });
    const Tensor cube = view(a, {256, 1024, 256});
    bytes("sum(dim=0) 256x1024x256", kBytes, [&] { keep(sum(cube, {0})); });
    bytes("sum(dim=1) 256x1024x256", kBytes, [&] { keep(sum(cube, {1})); });
    bytes("sum(dim=2) 256x1024x256", kBytes, [&] { keep(sum(cube, {2})); });
    bytes("softmax(dim=1) 8192x8192", 2 * kBytes, [&] { keep(softmax(matrix, 1)); });
    bytes("softmax(dim=0) 8192x8192", 2 * kBytes, [&] { keep(softmax(matrix, 0)); });
    const Tensor row = select(matrix, 0, 0);
    bytes("broadcast add 8192x8192 + row[8192]", 2 * kBytes, [&] { add_out(square, matrix, row); });
    bytes("broadcast add 8192x8192 + col[8192,1]", 2 * kBytes, [&] { add_out(square, matrix, unsqueeze(row, 1)); });
  }
  constexpr int64_t kHalf = kSide / 2;
  constexpr double kSquare = 4.0 * kHalf * kHalf;
  const Tensor a = randn({kHalf, kHalf}), out = zeros({kHalf, kHalf});
  bytes("transposed copy_ 4096x4096 f32", 2 * kSquare, [&] { copy_(out, t(a)); });
  bytes("add_out(a, a.t()) 4096x4096", 3 * kSquare, [&] { add_out(out, a, t(a)); });
  bytes("contiguous copy_ 4096x4096 f32", 2 * kSquare, [&] { copy_(out, a); });
  const Tensor every_other = slice(randn({kHalf, kSide}), 1, 0, kSide, 2);
  bytes("strided copy_ [:, ::2] 4096x8192", 2 * kSquare, [&] { copy_(out, every_other); });
  const Tensor images = randn({32, 64, 56, 56});
  const Tensor last = empty({32, 64, 56, 56}, {}, MemoryFormat::ChannelsLast);
  bytes("NCHW->NHWC copy_ 32x64x56x56", 8.0 * static_cast<double>(images.numel()), [&] { copy_(last, images); });
}

void product_rows(double peak) {
  const NoGradGuard no_grad;
  for (const int64_t n : {64, 128, 256, 512, 1024, 2048}) {
    const Tensor a = randn({n, n}), b = randn({n, n}), out = zeros({n, n});
    const std::string name = str_cat({"mm_out f32 ", std::to_string(n), "^3"});
    const double flops = 2.0 * static_cast<double>(n * n * n);
    large(label(name).c_str(), flops, peak, [&] { mm_out(out, a, b); });
    if (n == 1024) large(label(name + ", b transposed").c_str(), flops, peak, [&] { mm_out(out, a, t(b)); });
  }
}

void gather_rows(int64_t threads) {
  constexpr int64_t kRows = 1'000'000, kDim = 64, kBags = 8192 * 26;
  const double rate = limits::gather_rate(threads, kRows, kDim);
  const Tensor weight = randn({kRows, kDim});
  EmbeddingBagOptions options;
  options.mode = BagMode::Sum;
  const auto bags = [&](const std::string& name, const Tensor& keys, const Tensor& offsets) {
    large(label(name).c_str(), static_cast<double>(keys.numel()), rate,
          [&] { keep(embedding_bag(weight, keys, offsets, options)); });
  };
  {
    const NoGradGuard no_grad;
    for (const int64_t k : {1, 20}) {
      const Tensor keys = randint(0, kRows, {kBags * k}), offsets = arange(0, kBags * k, k);
      const std::string count = std::to_string(k);
      bags(str_cat({"embedding_bag sum 1Mx64, ", std::to_string(kBags), " bags x ", count}), keys, offsets);
      bags("embedding_bag sum int32 idx, x " + count, to(keys, kInt32), to(offsets, kInt32));
      if (k == 1)
        large(label(str_cat({"index_select 1Mx64, ", std::to_string(kBags), " rows"})).c_str(),
              static_cast<double>(kBags), rate, [&] { keep(index_select(weight, 0, keys)); });
    }
    // Some of the rows above are still in the cache from one call to the next; here few are.
    std::vector<Tensor> keys;
    for (int i = 0; i < 8; ++i) keys.push_back(randint(0, kRows, {kBags}));
    const Tensor offsets = arange(0, kBags);
    size_t turn = 0;
    large(label("embedding_bag x 1, other bags each call").c_str(), static_cast<double>(kBags), rate,
          [&] { keep(embedding_bag(weight, keys[turn++ % keys.size()], offsets, options)); });
  }
  const Tensor keys = randint(0, kRows, {kBags}), offsets = arange(0, kBags), gradient = randn({kBags, kDim});
  Tensor trained = weight.detach();
  trained.requires_grad_();
  for (const bool sparse : {false, true}) {
    options.sparse = sparse;
    large(label(str_cat({"embedding_bag fwd+bwd x1, sparse_grad=", sparse ? "1" : "0"})).c_str(), 0, 0, [&] {
      clear_gradient(trained);
      embedding_bag(trained, keys, offsets, options).backward(gradient);
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t threads = argc > 1 ? std::max(1LL, std::atoll(argv[1])) : 1;
  if (argc > 2) g_filter = argv[2];
  std::printf("%lld threads (small operations: 1)\n", static_cast<long long>(threads));
  set_num_threads(1);
  small_rows();
  set_num_threads(threads);
  memory_rows(limits::stream_rate(threads));
  product_rows(limits::fma_peak(threads));
  gather_rows(threads);
  return 0;
}
