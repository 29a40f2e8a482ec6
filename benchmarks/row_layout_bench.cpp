// Two layouts of an embedding table with the states of its optimizer: [weight | states] in each row, and an array each.
//
//   row_layout_bench [threads=1 [rounds=40 [slot_rows=100000]]]
//
// 2048 samples x 26 slots of a table of 26 x slot_rows rows, uniform within each slot, other keys in each round: the
// lookup of a step, its update, and both. Prints the least time of each; the layouts alternate.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "benchmarks/measure.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/embedding/batched_embedding_bag.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/views/views.h"
#include "tercel/optim/optimizer.h"
#include "tercel/util/parallel.h"

namespace {

using namespace tercel;
using optim::Optimizer;
using optim::Rule;

constexpr int64_t kBatch = 2048, kSlots = 26;

struct Layout {
  Tensor weight;
  Optimizer optimizer;
  double lookup = 1e30, update = 1e30, both = 1e30;

  void round(const Tensor& keys, const Tensor& offsets, const Tensor& values, int64_t step) {
    const double start = bench::seconds();
    bench::keep(batched_embedding_bag(weight, keys, offsets, kSlots));
    const double middle = bench::seconds();
    optimizer.update_rows({values, keys}, 0.01, step);
    const double end = bench::seconds();
    lookup = std::min(lookup, middle - start);
    update = std::min(update, end - middle);
    both = std::min(both, end - start);
  }
};

Tensor random_keys(std::mt19937_64& random, int64_t slot_rows) {
  Tensor keys = empty({kBatch * kSlots}, kInt64);
  auto* const k = keys.data<int64_t>();
  for (int64_t i = 0; i < keys.numel(); ++i)
    k[i] = i % kSlots * slot_rows + static_cast<int64_t>(random() % static_cast<uint64_t>(slot_rows));
  return keys;
}

void measure(Rule rule, int64_t dim, int rounds, int64_t slot_rows) {
  const NoGradGuard guard;
  optim::OptimizerOptions options;
  options.type = rule;
  const auto num_states = static_cast<int64_t>(Optimizer::state_names(rule).size());
  const Tensor block = zeros({kSlots * slot_rows, dim * (1 + num_states)}), apart = zeros({kSlots * slot_rows, dim});
  std::vector<Tensor> states;
  for (int64_t k = 1; k <= num_states; ++k) states.push_back(block.narrow(1, k * dim, dim));
  const Tensor inside = block.narrow(1, 0, dim);
  Layout layouts[] = {{inside, Optimizer(options, inside, states)}, {apart, Optimizer(options, apart)}};
  std::mt19937_64 random(1);
  const Tensor offsets = arange(kBatch * kSlots + 1), values = rand({kBatch * kSlots, dim});
  for (int64_t r = 1; r <= rounds; ++r)
    for (Layout& layout : layouts) layout.round(random_keys(random, slot_rows), offsets, values, r);
  for (size_t i = 0; i < 2; ++i)
    std::printf("%-12s dim %3lld %-14s lookup %6.2f ms  update %6.2f ms  both %6.2f ms\n",
                std::string(to_string(rule)).c_str(), static_cast<long long>(dim),
                i == 0 ? "in each row" : "an array each", layouts[i].lookup * 1e3, layouts[i].update * 1e3,
                layouts[i].both * 1e3);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  set_num_threads(argc > 1 ? std::atoll(argv[1]) : 1);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 40;
  const int64_t slot_rows = argc > 3 ? std::atoll(argv[3]) : 100'000;
  for (const Rule rule : {Rule::AdaGrad, Rule::Adam})
    for (const int64_t dim : {1, 4, 16, 64}) measure(rule, dim, rounds, slot_rows);
  return 0;
}
