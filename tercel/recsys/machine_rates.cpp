#include "tercel/recsys/machine_rates.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/recsys/ranks.h"
#include "tercel/recsys/session.h"
#include "tercel/util/cpu_info.h"

namespace tercel::recsys {

namespace {

double seconds_of(FunctionRef<void()> work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/** The least of several times. */
double least_seconds(int64_t times, FunctionRef<void()> work) {
  double least = seconds_of(work);
  for (int64_t i = 1; i < times; ++i) least = std::min(least, seconds_of(work));
  return least;
}

double median_seconds(int64_t times, FunctionRef<void()> work) {
  std::vector<double> seconds;
  for (int64_t i = 0; i < times; ++i) seconds.push_back(seconds_of(work));
  const auto middle = seconds.begin() + times / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

// Steps that are trained before those whose time is taken, and least number of the latter.
constexpr int64_t kWarmUp = 3, kLeastSteps = 3;
// Of steps whose times are taken.
constexpr double kSeconds = 1;

/** A configuration that trains for ever, and nothing else, with batches of so many rows. */
ModelConfig timed_config(ModelConfig config, int64_t batch) {
  config.solver.batchsize = batch;
  config.solver.epochs = 1 << 20;
  config.solver.max_iter = 0;
  config.data.validation = Validation::None;
  return config;
}

}  // namespace

MachineRates measure_network(distributed::ProcessGroup& group) {
  constexpr int64_t kLarge = int64_t{1} << 23, kTimes = 9;  // bytes for each rank
  const int64_t others = group.size() - 1;
  MachineRates rates;
  if (others == 0) return rates;
  const auto exchange = [&](int64_t bytes) {
    const Tensor x = zeros({bytes * group.size()}, kUInt8), out = zeros({bytes * group.size()}, kUInt8);
    group.barrier().wait();
    return median_seconds(kTimes, [&] { group.await([&] { return group.all_to_all(out, x); }); });
  };
  const double small = exchange(8), large = exchange(kLarge);
  const Tensor both = empty({2}, kFloat64);
  both.data<double>()[0] = small;
  both.data<double>()[1] = std::max(large - small, 1e-9);
  group.await([&] { return group.broadcast(both, 0); });
  const double of_messages = static_cast<double>(others - 1) * rates.message_seconds;
  rates.latency_seconds = std::max(both.data<double>()[0] - of_messages, 1e-7);
  rates.network_bytes = static_cast<double>(kLarge * others) / both.data<double>()[1];
  return rates;
}

double measure_row_rate() {
  constexpr int64_t kDim = 16, kRows = int64_t{1} << 16;
  const int64_t table = std::clamp<int64_t>(memory_info().total / 64 / (kDim * 4), kRows, int64_t{1} << 22);
  const Tensor weight = zeros({table, kDim}, kFloat32), rows = empty({kRows}, kInt64);
  uint64_t state = 1;
  for (int64_t i = 0; i < kRows; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    rows.data<int64_t>()[i] = static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(table));
  }
  const double seconds = least_seconds(5, [&] { index_select(weight, 0, rows); });
  return static_cast<double>(kRows * kDim * 4) / seconds;
}

StepLoad step_load(Model& model) {
  StepLoad load;
  for (const auto& entry : model.parameters().entries())
    load.gradient_bytes += 4 * static_cast<double>(numel_of(IntSpan(entry.sizes)));
  return load;
}

void measure_steps(const ModelConfig& config, const data::Dataset& dataset, int64_t rows, StepLoad& load,
                   FunctionRef<bool()> go_on) {
  struct Point {
    double rows, seconds;
  };
  std::vector<Point> points;
  for (const int64_t batch : {rows, std::max<int64_t>(1, rows / 16)}) {
    Session session(timed_config(config, batch), dataset);
    if (!session.initialize({}, go_on)) return;
    for (int64_t i = 0; i < kWarmUp; ++i) session.step();
    // The mean, as some steps wait for rows.
    double total = 0;
    int64_t steps = 0;
    for (; total < kSeconds || steps < kLeastSteps; ++steps) {
      if (!go_on()) return;
      total += seconds_of([&] { session.step(); });
    }
    points.push_back({static_cast<double>(batch), total / static_cast<double>(steps)});
    load.row_seconds = points[0].seconds / points[0].rows;
    if (batch == 1) return;
  }
  const double slope = (points[0].seconds - points[1].seconds) / (points[0].rows - points[1].rows);
  if (slope <= 0) return;
  load.row_seconds = slope;
  load.fixed_seconds = std::max(0.0, points[0].seconds - slope * points[0].rows);
}

double measure_step_of_ranks(const ModelConfig& config, const data::Dataset& dataset,
                             distributed::ProcessGroup& group) {
  Session session(timed_config(config, config.solver.batchsize), dataset, group);
  session.initialize();
  const auto train = [&](int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) session.step();
  };
  train(kWarmUp);
  // All ranks train as many.
  const double slowest = seconds_of([&] { train(kLeastSteps); }) / kLeastSteps;
  const std::vector<int64_t> numbers = numbers_of_ranks(group, std::llround(std::ceil(kSeconds / slowest)));
  const int64_t steps = std::max(kLeastSteps, *std::min_element(numbers.begin(), numbers.end()));
  return seconds_of([&] { train(steps); }) / static_cast<double>(steps);
}

}  // namespace tercel::recsys
