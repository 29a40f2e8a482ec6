// Optimizer steps of a CTR model compared with the machine's limits.
//
//   optimizer_bench [threads [rounds]]
//
// Rows: 2048 samples x 26 slots of a table of 2.6 M rows x 16, uniform within each slot, as in one step: first
// UniqueRows alone, then the whole step. The limit is reading, changing and writing as many rows in random order, in as
// many arrays as the rule has (weight and states), with prefetching, in the same kind of memory; a step also sorts,
// reads the gradient and sums duplicates. Dense: an arena of 16 M elements; the limit is the streaming rate. The
// minimum time of all rounds counts; the step and its limit alternate.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "benchmarks/machine_limits.h"
#include "tercel/ops/embedding/row_gradient.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/random/random.h"
#include "tercel/optim/optimizer.h"
#include "tercel/util/parallel.h"

namespace {

using namespace tercel;
using optim::Optimizer;
using optim::OptimizerOptions;
using optim::Rule;

constexpr int64_t kBatch = 2048, kSlots = 26, kSlotRows = 100'000, kDim = 16;
constexpr int64_t kLookups = kBatch * kSlots, kRows = kSlots * kSlotRows, kArena = 1 << 24;
constexpr Rule kRules[] = {Rule::Sgd,     Rule::MomentumSgd,    Rule::Nesterov, Rule::Adam, Rule::AdamW,
                           Rule::AdaGrad, Rule::RowWiseAdaGrad, Rule::RmsProp,  Rule::Ftrl};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class Run>
void take_least(double& least, Run&& run) {
  const double start = seconds();
  run();
  least = std::min(least, seconds() - start);
}

std::vector<int64_t> random_keys(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> keys(kLookups);
  for (size_t i = 0; i < keys.size(); ++i)
    keys[i] = static_cast<int64_t>(i % kSlots) * kSlotRows + static_cast<int64_t>(random() % kSlotRows);
  return keys;
}

/** Changes every element of the given rows, in their order, in each array. */
void change_rows(const std::vector<int64_t>& rows, const std::vector<Tensor>& arrays) {
  std::vector<float*> bases;
  for (const Tensor& t : arrays) bases.push_back(t.data<float>());
  parallel_for(0, static_cast<int64_t>(rows.size()), 1024, [&](int64_t begin, int64_t end) {
    constexpr int64_t kAhead = 16;
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAhead < end)
        for (float* base : bases) __builtin_prefetch(base + rows[static_cast<size_t>(i + kAhead)] * kDim, 1);
      for (float* base : bases) {
        float* row = base + rows[static_cast<size_t>(i)] * kDim;
        for (int64_t j = 0; j < kDim; ++j) row[j] += 1;
      }
    }
  });
}

void measure_rows(Rule rule, int rounds) {
  OptimizerOptions options;
  options.type = rule;
  const Tensor table = zeros({kRows, kDim});
  Optimizer optimizer(options, table, optim::ParameterKind::Table);
  UniqueRows unique;
  std::vector<Tensor> arrays = {zeros({kRows, kDim})};
  for (size_t k = 0; k < optimizer.states().size(); ++k)
    if (optimizer.states()[k].size(1) == kDim) arrays.push_back(zeros({kRows, kDim}));

  double whole = 1e30, reduce = 1e30, limit = 1e30;
  int64_t n = 0;
  for (int r = 1; r <= rounds; ++r) {
    // Other rows each time, so that none of them is cached.
    std::vector<int64_t> keys = random_keys(static_cast<uint64_t>(r));
    const Gradient gradient{rand({kLookups, kDim}), from_blob(keys.data(), {kLookups}, kInt64)};
    take_least(whole, [&] { optimizer.update_rows(gradient, 0.01, r); });
    take_least(reduce, [&] { n = unique.reduce(gradient).rows.numel(); });
    std::vector<int64_t> others = random_keys(static_cast<uint64_t>(r) + 1'000'000);
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    std::shuffle(others.begin(), others.end(), std::mt19937_64(1));
    take_least(limit, [&] { change_rows(others, arrays); });
  }
  const double count = static_cast<double>(n);
  std::printf(
      "%-14s %6lld rows  step %6.1f ns/row  (unique %5.1f)   random change of %zu arrays %5.1f ns/row  %5.1f %%\n",
      std::string(to_string(rule)).c_str(), static_cast<long long>(n), whole / count * 1e9, reduce / count * 1e9,
      arrays.size(), limit / count * 1e9, 100 * limit / whole);
  std::fflush(stdout);
}

void measure_dense(Rule rule, int rounds, double stream) {
  OptimizerOptions options;
  options.type = rule;
  Optimizer optimizer(options, rand({kArena}));
  const Tensor gradient = rand({kArena});
  double time = 1e30;
  for (int r = 1; r <= rounds; ++r) take_least(time, [&] { optimizer.update_dense(gradient, 0.01, r); });
  // Weight and states are read and written, the gradient is read.
  const double bytes = static_cast<double>(kArena * 4) * (3 + 2 * static_cast<double>(optimizer.states().size()));
  std::printf("%-14s dense  %6.3f ns/element  %6.1f GB/s  %5.1f %% of a stream from memory\n",
              std::string(to_string(rule)).c_str(), time / kArena * 1e9, bytes / time * 1e-9,
              100 * bytes / time / stream);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t threads = argc > 1 ? std::atoll(argv[1]) : 1;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 30;
  set_num_threads(threads);
  std::printf("%lld threads; a table of %lld x %lld, %lld lookups\n", static_cast<long long>(threads),
              static_cast<long long>(kRows), static_cast<long long>(kDim), static_cast<long long>(kLookups));
  for (const Rule rule : kRules) measure_rows(rule, rounds);
  const double stream = limits::stream_rate(threads);
  for (const Rule rule : kRules) measure_dense(rule, rounds, stream);
  return 0;
}
