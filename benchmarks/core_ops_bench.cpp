// Core tensor operations, as a user of libtorch would time them: small ones, whose cost is that of a call, and large
// ones, whose cost is memory.
//
//   core_ops_bench [threads [part of a row's name]]
//
// Small: 4 x 6 float32 on one thread. Large rows show the share of the machine's stream or gather rate that they reach,
// counting each operand once. The peer is the same calls on libtorch; alternate.py runs both by turns:
//
//   benchmarks/alternate.py --ours "build/release/bin/core_ops_bench 1" --peer "ops_torch all"
//     --row "x + y=[grad] add 4x6: x+y" ...
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "benchmarks/machine_limits.h"
#include "benchmarks/measure.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/binary.h"
#include "tercel/ops/embedding_bag.h"
#include "tercel/ops/factories.h"
#include "tercel/ops/random.h"
#include "tercel/ops/reduce.h"
#include "tercel/ops/unary.h"
#include "tercel/ops/views.h"
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
  Tensor g = randn({4, 6});
  g.requires_grad_();
  small("empty", [] { keep(empty({2, 3})); });
  small("view", [&] { keep(view(x, {6, 4})); });
  small("select", [&] { keep(select(x, 0, 1)); });
  small("slice", [&] { keep(slice(x, 0, 1, 3)); });
  small("transpose", [&] { keep(transpose(x, 0, 1)); });
  small("x + y", [&] { keep(x + y); });
  small("x.add_(y)", [&] { add_(x, y); });
  small("x + 1.0", [&] { keep(x + 1.0); });
  small("broadcast add", [&] { keep(x + row); });
  small("relu", [&] { keep(relu(x)); });
  small("sum", [&] { keep(sum(y)); });
  small("recorded g * y", [&] { keep(g * y); });
  small("recorded (g * y).sum() and backward", [&] { (g * y).sum().backward(); });
}

void memory_rows(double stream) {
  constexpr int64_t kElements = int64_t{64} << 20, kSide = 4096;
  const NoGradGuard no_grad;
  const double bytes = static_cast<double>(kElements * 4);
  {
    const Tensor a = rand({kElements}), b = rand({kElements}), out = zeros({kElements});
    large("64 M f32: add into a fresh output", 3 * bytes, stream, [&] { keep(a + b); });
    large("64 M f32: add into a given output", 3 * bytes, stream, [&] { add_out(out, a, b); });
    const Tensor matrix = view(a, {8192, 8192});
    // Only read: a stream that also writes moves the same bytes at best.
    large("8192 x 8192: sum over dim 0", bytes, stream, [&] { keep(sum(matrix, {0})); });
    large("8192 x 8192: sum over dim 1", bytes, stream, [&] { keep(sum(matrix, {1})); });
  }
  const Tensor a = rand({kSide, kSide}), out = zeros({kSide, kSide});
  large("4096 x 4096: a + a.t()", static_cast<double>(kSide * kSide * 12), stream, [&] { add_out(out, a, t(a)); });
}

void gather_rows(int64_t threads) {
  constexpr int64_t kRows = 1'000'000, kDim = 64, kBags = 8192 * 26;
  const char *same = "embedding_bag 1 M x 64, 212,992 bags of 1", *other = "embedding_bag, other bags each call";
  if (!wanted(same) && !wanted(other)) return;
  const Tensor weight = rand({kRows, kDim}), offsets = arange(0, kBags);
  std::vector<Tensor> keys;
  for (int i = 0; i < 8; ++i) keys.push_back(randint(0, kRows, {kBags}));
  EmbeddingBagOptions options;
  options.mode = BagMode::Sum;
  const NoGradGuard no_grad;
  // As the peer does it: some of the same rows are still in the cache, so that no share of a limit is meaningful.
  large(same, 0, 0, [&] { keep(embedding_bag(weight, keys[0], offsets, options)); });
  size_t turn = 0;
  large(other, static_cast<double>(kBags), limits::gather_rate(threads, kRows, kDim),
        [&] { keep(embedding_bag(weight, keys[turn++ % keys.size()], offsets, options)); });
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
  gather_rows(threads);
  return 0;
}
