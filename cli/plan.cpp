#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/model_config.h"
#include "cli/ranks.h"
#include "tercel/data/batch_reader.h"
#include "tercel/data/dataset.h"
#include "tercel/recsys/machine_rates.h"
#include "tercel/recsys/placement_plan.h"
#include "tercel/recsys/ranks.h"
#include "tercel/recsys/table_placements.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::cli {

CommandFunction run_plan;

namespace {

constexpr double kGiga = 1e9, kMicro = 1e-6;

struct PlanFlags {
  std::string model = "dlrm";
  int64_t ranks = 0;
  int64_t threads = 0;
  bool simulate = false;
  int64_t most_ranks = 1024;
  bool rows_per_rank = false;
  int64_t sample_rows = 65536;
  double network = 0;
  double latency = 0;
  double memory = 0;
  double row_time = 0;

  static constexpr auto fields() {
    return option_list(
        option_field<&PlanFlags::model>("model", "as for train"),
        option_field<&PlanFlags::ranks>("ranks", "processes; 0: those of mpirun or srun, without these 2", at_least(0),
                                        at_most(1 << 16)),
        option_field<&PlanFlags::threads>("threads", "of a rank; 0: one for each CPU that may be used", at_least(0),
                                          at_most(1024)),
        option_field<&PlanFlags::simulate>("simulate", "also estimate 1, 2, 4, ... ranks"),
        option_field<&PlanFlags::most_ranks>("most_ranks", "with --simulate: up to so many", at_least(1),
                                             at_most(1 << 16)),
        option_field<&PlanFlags::rows_per_rank>(
            "rows_per_rank", "with --simulate: solver.batchsize is the part of a rank, not the batch"),
        option_field<&PlanFlags::sample_rows>("sample_rows", "train rows whose keys are counted", at_least(1),
                                              at_most(1 << 24)),
        option_field<&PlanFlags::network>(
            "network", "GB/s that a rank sends; 0: measured under mpirun or srun, else 1.25 (10 Gbit/s)", at_least(0)),
        option_field<&PlanFlags::latency>(
            "latency", "microseconds of an exchange of few bytes; 0: as --network, else 20", at_least(0)),
        option_field<&PlanFlags::memory>("memory", "GB/s of rows at random places; 0: measured", at_least(0)),
        option_field<&PlanFlags::row_time>(
            "row_time", "microseconds of a rank for a row of its batch; 0: measured by training some steps",
            at_least(0)));
  }
};

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), seconds < 0.1 ? "%.2f ms" : "%.0f ms", seconds * 1e3);
  return text;
}

std::string bytes_text(double bytes) { return format_bytes(static_cast<int64_t>(bytes)); }

/** ConfigError for numbers that no machine has, whose times could not be computed with. */
void check_rates(const PlanFlags& flags) {
  constexpr double kLeast = 1e-6, kMost = 1e9;
  const std::pair<std::string_view, double> rates[] = {{"--network", flags.network},
                                                       {"--latency", flags.latency},
                                                       {"--memory", flags.memory},
                                                       {"--row-time", flags.row_time}};
  for (const auto& [name, rate] : rates)
    TERCEL_CHECK(rate == 0 || (rate >= kLeast && rate <= kMost), ConfigError, "plan: ", name,
                 ": expected 0 or a number from 1e-06 to 1e+09, found ", format_double(rate));
}

/** Rates that options give, or that are measured or assumed; all ranks call it. */
recsys::MachineRates rates_of(const PlanFlags& flags, distributed::ProcessGroup* group) {
  constexpr double kAssumedNetwork = 1.25, kAssumedLatency = 20;
  recsys::MachineRates rates;
  rates.network_bytes = (flags.network > 0 ? flags.network : kAssumedNetwork) * kGiga;
  rates.latency_seconds = (flags.latency > 0 ? flags.latency : kAssumedLatency) * kMicro;
  if (group != nullptr && group->size() > 1) {
    const recsys::MachineRates measured = recsys::measure_network(*group);
    if (flags.network == 0) rates.network_bytes = measured.network_bytes;
    if (flags.latency == 0) rates.latency_seconds = measured.latency_seconds;
  }
  rates.memory_bytes = flags.memory > 0 ? flags.memory * kGiga : recsys::measure_row_rate();
  return rates;
}

/** "distributed over ranks 0, 2": of a placement on some of the ranks. */
std::string placement_text(const recsys::TablePlacement& placement, int64_t ranks) {
  std::string text(to_string(placement.placement));
  if (placement.placement == recsys::Placement::Replicated || static_cast<int64_t>(placement.ranks.size()) == ranks)
    return text;
  text += placement.ranks.size() == 1 ? " on rank" : " over ranks";
  for (size_t i = 0; i < placement.ranks.size(); ++i) text += str_cat({i == 0 ? " " : ", ", placement.ranks[i]});
  return text;
}

/** Of a rank; a table that grows has no size yet. */
std::string memory_text(const recsys::TableLoad& table, const recsys::PlacementCost& cost) {
  if (table.rows > 0) return str_cat({format_bytes(cost.memory_bytes), " of memory"});
  return str_cat({format_bytes(table.numbers_per_row * static_cast<int64_t>(sizeof(float))), " of memory a row"});
}

/** A line for each table: the chosen placement, and what others cost. */
std::string tables_text(Span<recsys::TableLoad> tables, const recsys::StepEstimate& step,
                        const recsys::MachineRates& rates, Json& json) {
  std::vector<int64_t> all(static_cast<size_t>(step.ranks));
  for (size_t r = 0; r < all.size(); ++r) all[r] = static_cast<int64_t>(r);
  std::string text;
  for (size_t t = 0; t < tables.size(); ++t) {
    const recsys::TableLoad& table = tables[t];
    text += str_cat({"table ", printable(table.name), ": ",
                     table.rows > 0 ? format_count(table.rows) + " rows of " : "grows, rows of ", table.dim, ", ",
                     placement_text(step.placements[t], step.ranks), "\n"});
    Json entry;
    entry["table"] = table.name;
    entry["rows"] = table.rows;
    entry["dim"] = table.dim;
    entry["placement"] = to_string(step.placements[t].placement);
    entry["ranks"] = step.placements[t].ranks;
    entry["row_bytes"] = table.numbers_per_row * static_cast<int64_t>(sizeof(float));
    for (const recsys::Placement placement : {recsys::Placement::Replicated, recsys::Placement::Distributed}) {
      const recsys::TablePlacement candidate{placement, all};
      const recsys::PlacementCost cost = recsys::placement_cost(table, candidate, step.ranks, step.batch_rows, rates);
      const bool is_chosen = placement == step.placements[t].placement;
      text +=
          str_cat({is_chosen ? "  * " : "    ", to_string(placement), ": a rank sends ", bytes_text(cost.bytes_sent),
                   " a step, changes ", format_count(static_cast<int64_t>(cost.rows_changed)), " rows and takes ",
                   seconds_text(cost.seconds), "; ", memory_text(table, cost), "\n"});
      Json& option = entry[std::string(to_string(placement))];
      option["bytes_sent"] = cost.bytes_sent;
      option["rows_changed"] = cost.rows_changed;
      option["seconds"] = cost.seconds;
      option["memory_bytes"] = cost.memory_bytes;
    }
    json.push_back(std::move(entry));
  }
  return text;
}

Json json_of(const recsys::StepEstimate& step) {
  Json json;
  json["ranks"] = step.ranks;
  json["batch_rows"] = step.batch_rows;
  json["seconds"] = step.seconds;
  json["compute_seconds"] = step.compute_seconds;
  json["dense_seconds"] = step.dense_seconds;
  json["table_seconds"] = step.table_seconds;
  json["dense_bytes"] = step.dense_bytes;
  json["table_bytes"] = step.table_bytes;
  json["table_memory_bytes"] = step.table_memory;
  json["samples_per_second"] = step.samples_per_second();
  return json;
}

/** A line for each number of ranks; efficiency is that of `ranks` times the rate of one. */
std::string scaling_text(Span<recsys::StepEstimate> steps, Json& json) {
  std::string text =
      " ranks      batch       step    compute      dense     tables  sent of a rank    samples/s  efficiency\n";
  for (const recsys::StepEstimate& step : steps) {
    const double efficiency =
        step.samples_per_second() / (static_cast<double>(step.ranks) * steps[0].samples_per_second());
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%6lld %10lld %10s %10s %10s %10s %15s %12s %10.2f\n",
                  static_cast<long long>(step.ranks), static_cast<long long>(step.batch_rows),
                  seconds_text(step.seconds).c_str(), seconds_text(step.compute_seconds).c_str(),
                  seconds_text(step.dense_seconds).c_str(), seconds_text(step.table_seconds).c_str(),
                  bytes_text(step.dense_bytes + step.table_bytes).c_str(),
                  format_count(static_cast<int64_t>(step.samples_per_second())).c_str(), efficiency);
    text += line.data();
    Json entry = json_of(step);
    entry["efficiency"] = efficiency;
    json.push_back(std::move(entry));
  }
  return text;
}

/**
 * The dense gradients and the times of a step. All ranks measure them at once, as those of a job share machines; the
 * times are those of the slowest.
 */
recsys::StepLoad step_load_of(const data::Dataset& dataset, const recsys::ModelConfig& config, const PlanFlags& flags,
                              int64_t ranks, distributed::ProcessGroup* group) {
  recsys::Model model(config, dataset.schema);
  recsys::StepLoad load = recsys::step_load(model);
  if (flags.row_time > 0) {
    load.row_seconds = flags.row_time * kMicro;
    return load;
  }
  const int64_t part = std::max<int64_t>(1, config.solver.batchsize / ranks);
  if (group != nullptr) group->barrier().wait();
  recsys::measure_steps(config, dataset, flags.rows_per_rank ? config.solver.batchsize : part, load, [] {
    check_interrupted();
    return true;
  });
  if (group == nullptr) return load;
  constexpr double kPico = 1e-12;
  for (double* seconds : {&load.fixed_seconds, &load.row_seconds}) {
    const std::vector<int64_t> all = recsys::numbers_of_ranks(*group, std::llround(*seconds / kPico));
    *seconds = static_cast<double>(*std::max_element(all.begin(), all.end())) * kPico;
  }
  return load;
}

/** What rank 0 prints; `measured`: seconds of a step of all ranks, 0 where these were not started. */
void plan(const data::Dataset& dataset, const recsys::ModelConfig& config, const PlanFlags& flags, int64_t ranks,
          const recsys::MachineRates& rates, const recsys::StepLoad& load, double measured,
          const CommonOptions& common) {
  recsys::Model model(config, dataset.schema);
  data::ReaderOptions reading;
  reading.batch_size = std::min<int64_t>(config.solver.batchsize, 8192);
  reading.shuffle = config.data.shuffle;
  reading.seed = config.solver.seed;
  reading.inputs = model.sparse_inputs();
  reading.binary_labels = model.graph().has_binary_labels();
  data::BatchReader reader(dataset, data::PartName::Train, reading);
  check_interrupted();
  std::vector<recsys::TableLoad> tables = recsys::sampled_table_loads(model, reader, flags.sample_rows);
  recsys::set_given_placements(config.solver.table_placements, ranks, tables);
  check_interrupted();
  const recsys::PlacementChoice choice = config.solver.placement;
  const recsys::StepEstimate step = recsys::estimate_step(load, tables, choice, ranks, config.solver.batchsize, rates);
  Json json = json_of(step);
  json["model"] = config.model_name;
  json["network_bytes_per_second"] = rates.network_bytes;
  json["latency_seconds"] = rates.latency_seconds;
  json["memory_bytes_per_second"] = rates.memory_bytes;
  json["tables"] = Json::array();
  std::string text = str_cat({"rates: network ", bytes_text(rates.network_bytes), "/s and ",
                              format_double(std::round(rates.latency_seconds / kMicro * 10) / 10),
                              " us an exchange, rows in memory ", bytes_text(rates.memory_bytes), "/s\n"});
  text += tables_text(tables, step, rates, json["tables"]);
  text += str_cat({"a step of ", format_count(step.batch_rows), " rows on ", ranks,
                   ranks == 1 ? " rank: " : " ranks: ", seconds_text(step.seconds), " (computation ",
                   seconds_text(step.compute_seconds), ", dense gradients ", seconds_text(step.dense_seconds),
                   ", tables ", seconds_text(step.table_seconds), "), ",
                   format_count(static_cast<int64_t>(step.samples_per_second())), " samples/s\n"});
  if (measured > 0) {
    const double rate = static_cast<double>(step.batch_rows) / measured;
    json["measured_seconds"] = measured;
    json["measured_samples_per_second"] = rate;
    text += str_cat(
        {"measured: ", seconds_text(measured), " a step, ", format_count(static_cast<int64_t>(rate)), " samples/s\n"});
  }
  const bool has_growing =
      std::any_of(tables.begin(), tables.end(), [](const recsys::TableLoad& table) { return table.rows == 0; });
  text += str_cat({"a rank sends ", bytes_text(step.dense_bytes), " of dense gradients and ",
                   bytes_text(step.table_bytes), " for tables a step, and has ", format_bytes(step.table_memory),
                   " of tables", has_growing ? " besides those that grow" : "", "\n"});
  if (flags.simulate) {
    std::vector<recsys::StepEstimate> steps;
    for (int64_t n = 1; n <= flags.most_ranks; n *= 2)
      steps.push_back(recsys::estimate_step(load, tables, choice, n,
                                            config.solver.batchsize * (flags.rows_per_rank ? n : 1), rates));
    json["simulation"] = Json::array();
    text += scaling_text(steps, json["simulation"]);
  }
  print_text(common, text);
  if (common.json) print_line(dump_json_line(json));
}

}  // namespace

int run_plan(CommandLine& line) {
  std::string data_path;
  PlanFlags flags;
  CommonOptions common;
  std::vector<std::string> assignments;
  line.argument("DATA", "folder of the dataset", data_path);
  line.options(flags);
  line.repeated("--set", "as for train: solver.batchsize=8192, solver.placement=distributed", assignments);
  line.options(common);
  line.example("tercel plan data --model dlrm --ranks 4 --simulate");
  if (!line.parse()) return 0;
  check_rates(flags);
  recsys::ModelConfig config = named_config(flags.model);
  for (const std::string& assignment : assignments) recsys::set_config(config, assignment);
  use_threads(flags.threads, common);
  const std::unique_ptr<distributed::ProcessGroup> group = connect_ranks(flags.ranks, common);
  const auto work = [&] {
    const data::Dataset dataset = data::load_dataset(data_path);
    const int64_t ranks = group ? group->size() : flags.ranks > 0 ? flags.ranks : 2;
    const recsys::MachineRates rates = rates_of(flags, group.get());
    const recsys::StepLoad load = step_load_of(dataset, config, flags, ranks, group.get());
    const bool measures = group && group->size() > 1 && flags.row_time == 0;
    const double measured = measures ? recsys::measure_step_of_ranks(config, dataset, *group) : 0;
    if (!group || group->rank() == 0) plan(dataset, config, flags, ranks, rates, load, measured, common);
  };
  if (group)
    work_with(*group, work);
  else
    work();
  return 0;
}

}  // namespace tercel::cli
