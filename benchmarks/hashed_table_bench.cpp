// A table that grows against one with a range of keys: lookup and update, without a model.
//
//   hashed_table_bench [threads=1 [rounds=40 [slot_rows=100000]]]
//
// 2048 samples x 26 slots of 26 x slot_rows keys, uniform within each slot, other keys in each round. Both tables have
// all rows before. The hashed table's keys are any 64-bit numbers, and its rows are in a random order of keys, as those
// of a trained table. Prints the least time of each phase; the tables alternate. Then a hashed table grows from
// nothing: time of the slowest round relative to the median, and bytes of the index for each row.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/measure.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/embedding/batched_embedding_bag.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/random/random.h"
#include "tercel/optim/optimizer.h"
#include "tercel/recsys/embedding/hashed_table.h"
#include "tercel/recsys/embedding/static_table.h"
#include "tercel/util/parallel.h"

namespace {

using namespace tercel;
using namespace tercel::recsys;
using optim::Optimizer;

constexpr int64_t kBatch = 2048, kSlots = 26, kKeys = kBatch * kSlots;

/** A 64-bit key for a small one, and different ones for different keys. */
int64_t spread(int64_t key) { return static_cast<int64_t>(static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15U); }

struct Measured {
  std::unique_ptr<EmbeddingTable> table;
  std::unique_ptr<Optimizer> optimizer;
  double find = 1e30, lookup = 1e30, update = 1e30, all = 1e30, last = 0;

  Measured(std::unique_ptr<EmbeddingTable> made, const optim::OptimizerOptions& options) : table(std::move(made)) {
    const RowStates states{Optimizer::state_names(options.type), Optimizer::initial_state(options)};
    table->allocate(1, states, {}, [] { return true; });
    optimizer = std::make_unique<Optimizer>(options, table->weight(), table->store().states());
  }

  void round(const Tensor& keys, const Tensor& offsets, const Tensor& values, int64_t step) {
    const double start = bench::seconds();
    const Tensor rows = table->find_rows(keys, NewKeys::Insert);
    const double found = bench::seconds();
    {
      const NoGradGuard guard;
      bench::keep(batched_embedding_bag(table->weight(), rows, offsets, kSlots));
    }
    const double looked = bench::seconds();
    optimizer->update_rows({values, rows}, 0.01, step);
    table->updated();
    const double end = bench::seconds();
    find = std::min(find, found - start);
    lookup = std::min(lookup, looked - found);
    update = std::min(update, end - looked);
    last = end - start;
    all = std::min(all, last);
  }

  void print(const char* name) const {
    std::printf("  %-7s find %6.2f ms  lookup %6.2f ms  update %6.2f ms  together %6.2f ms\n", name, find * 1e3,
                lookup * 1e3, update * 1e3, all * 1e3);
  }
};

/** Keys of a round, and the same for the hashed table. */
void draw(std::mt19937_64& random, int64_t slot_rows, const Tensor& keys, const Tensor& spread_keys) {
  auto* const k = keys.data<int64_t>();
  auto* const s = spread_keys.data<int64_t>();
  for (int64_t i = 0; i < kKeys; ++i) {
    k[i] = i % kSlots * slot_rows + static_cast<int64_t>(random() % static_cast<uint64_t>(slot_rows));
    s[i] = spread(k[i]);
  }
}

/** Gives all keys rows, in a random order. */
void insert_all(EmbeddingTable& table, int64_t rows) {
  Tensor keys = empty({rows}, kInt64);
  auto* const k = keys.data<int64_t>();
  for (int64_t i = 0; i < rows; ++i) k[i] = spread(i);
  std::shuffle(k, k + rows, std::mt19937_64(3));
  table.find_rows(keys, NewKeys::Insert);
}

void measure(optim::Rule rule, int64_t dim, int rounds, int64_t slot_rows) {
  const nn::Init init = nn::Init::uniform(0.05);
  optim::OptimizerOptions options;
  options.type = rule;
  const Tensor offsets = arange(kKeys + 1), keys = empty({kKeys}, kInt64), spread_keys = empty({kKeys}, kInt64),
               values = rand({kKeys, dim});
  std::printf("%s dim %lld\n", std::string(to_string(rule)).c_str(), static_cast<long long>(dim));
  std::mt19937_64 random(1);
  Measured fixed(std::make_unique<StaticTable>("t", 0, kSlots * slot_rows, dim, init), options);
  Measured hashed(std::make_unique<HashedTable>("t", dim, init), options);
  insert_all(*hashed.table, kSlots * slot_rows);
  for (int64_t r = 1; r <= rounds; ++r) {
    draw(random, slot_rows, keys, spread_keys);
    fixed.round(keys, offsets, values, r);
    hashed.round(spread_keys, offsets, values, r);
  }
  fixed.print("static");
  hashed.print("hashed");
  std::printf("  rate of the hashed table: %.2f of the static one's\n", fixed.all / hashed.all);

  Measured growing(std::make_unique<HashedTable>("t", dim, init), options);
  std::vector<double> times;
  for (int64_t r = 1; r <= rounds; ++r) {
    draw(random, slot_rows, keys, spread_keys);
    growing.round(spread_keys, offsets, values, r);
    times.push_back(growing.last);
  }
  const double slowest = *std::max_element(times.begin() + 1, times.end());  // the first one allocates scratch memory
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  const auto& table = dynamic_cast<const HashedTable&>(*growing.table);
  std::printf("  growing to %lld rows: median %.2f ms, slowest %.2f ms, index %.1f bytes a row\n",
              static_cast<long long>(table.rows()), times[static_cast<size_t>(rounds / 2)] * 1e3, slowest * 1e3,
              16 / table.statistics().load);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  set_num_threads(argc > 1 ? std::atoll(argv[1]) : 1);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 40;
  const int64_t slot_rows = argc > 3 ? std::atoll(argv[3]) : 100'000;
  for (const int64_t dim : {4, 16, 64}) measure(optim::Rule::AdaGrad, dim, rounds, slot_rows);
  return 0;
}
