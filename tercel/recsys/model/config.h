// Configuration of a model and its training: HugeCTR's JSON, with the sections solver, optimizer and data.
//
// docs/guide/config.md lists every entry. The layers stay JSON until they are built, because each layer knows its own
// options; everything else is read into structs here.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/optim/learning_rate.h"
#include "tercel/optim/optimizer.h"
#include "tercel/recsys/metrics/metric_options.h"
#include "tercel/recsys/table_placements.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

/** What happens to a batch whose loss, or the norm of whose gradients, is not finite. */
enum class OnNan : uint8_t {
  Stop,  ///< an error
  Skip   ///< it is left out
};
constexpr auto enum_names(OnNan) {
  return std::to_array<EnumName<OnNan>>({{OnNan::Stop, "stop"}, {OnNan::Skip, "skip"}});
}

/** Where embedding tables are when several ranks train. */
enum class PlacementChoice : uint8_t {
  Auto,        ///< of each table, what is expected to be the fastest
  Replicated,  ///< as in Placement
  Distributed,
  Localized
};
constexpr auto enum_names(PlacementChoice) {
  return std::to_array<EnumName<PlacementChoice>>({{PlacementChoice::Auto, "auto"},
                                                   {PlacementChoice::Replicated, "replicated"},
                                                   {PlacementChoice::Distributed, "distributed"},
                                                   {PlacementChoice::Localized, "localized"}});
}

struct SolverOptions : optim::LearningRateOptions, MetricOptions {
  uint64_t seed = 1;
  int64_t batchsize = 2048;
  int64_t batchsize_eval = 8192;
  int64_t epochs = 0;
  int64_t max_iter = 0;
  int64_t eval_interval = 0;
  int64_t early_stop = -1;
  int64_t checkpoint_interval = 0;
  double checkpoint_minutes = 10;
  int64_t keep_checkpoints = 2;
  double display_seconds = 1;
  double clip_grad_norm = 0;
  double clip_grad_value = 0;
  OnNan on_nan = OnNan::Stop;
  int64_t max_nan_batches = 100;
  bool tensorboard = false;
  PlacementChoice placement = PlacementChoice::Auto;
  std::vector<GivenPlacement> table_placements;

  static constexpr auto fields() {
    return option_list(
        option_field<&SolverOptions::seed>("seed", "of initial values, dropout and the order of rows"),
        option_field<&SolverOptions::batchsize>("batchsize", "rows of a step", at_least(1), at_most(1 << 24)),
        option_field<&SolverOptions::batchsize_eval>("batchsize_eval", "rows of a step of evaluation", at_least(1),
                                                     at_most(1 << 24)),
        option_field<&SolverOptions::epochs>(
            "epochs",
            "passes over the train rows; 0: as many as max_iter needs; without either, at most 10 with "
            "validation rows, else 1",
            at_least(0)),
        option_field<&SolverOptions::max_iter>("max_iter", "steps after which to stop; 0: at the end of the epochs",
                                               at_least(0)),
        option_field<&SolverOptions::eval_interval>(
            "eval_interval", "steps between validations; 0: one at the end of each epoch", at_least(0)),
        option_field<&SolverOptions::early_stop>(
            "early_stop",
            "the run ends after so many validations without a better one; 0: never; -1: never if epochs or "
            "max_iter is given, else 2",
            at_least(-1)),
        option_field<&SolverOptions::checkpoint_interval>(
            "checkpoint_interval", "steps between checkpoints; 0: at each evaluation", at_least(0)),
        option_field<&SolverOptions::checkpoint_minutes>(
            "checkpoint_minutes", "maximum minutes between checkpoints; 0: no maximum", at_least(0)),
        option_field<&SolverOptions::keep_checkpoints>(
            "keep_checkpoints", "last checkpoints to keep, in addition to the best", at_least(1)),
        option_field<&SolverOptions::display_seconds>(
            "display_seconds", "seconds between lines of metrics.jsonl about training", above(0)),

        option_field<&SolverOptions::clip_grad_norm>(
            "clip_grad_norm", "largest norm of the gradients of a step, of dense weights and rows together; 0: any",
            at_least(0)),
        option_field<&SolverOptions::clip_grad_value>(
            "clip_grad_value", "largest magnitude of an element of a gradient; 0: any", at_least(0)),
        option_field<&SolverOptions::on_nan>("on_nan", "at a batch whose loss is not finite: stop, or skip the batch"),
        option_field<&SolverOptions::max_nan_batches>("max_nan_batches", "batches that may be skipped for that",
                                                      at_least(0)),
        option_field<&SolverOptions::tensorboard>("tensorboard", "write a file of events for TensorBoard"),
        option_field<&SolverOptions::placement>(
            "placement",
            "where the rows of embedding tables are with several ranks: replicated, every rank has all; distributed, "
            "by key; localized, by slot; auto: of each table, what is expected to be the fastest"),
        option_field<&SolverOptions::table_placements>("table_placements",
                                                       "placements of single tables, instead of placement"),
        inherited_options<SolverOptions, MetricOptions>(), optim::LearningRateOptions::fields());
  }

  /** Passes over the train rows; 0: as many as max_iter needs, which alone ends the run. */
  int64_t epochs_to_read() const { return epochs > 0 ? epochs : max_iter > 0 ? 0 : 1; }
};

/** Which rows choose the best checkpoint and when a run ends. */
enum class Validation : uint8_t { Auto, Part, HeldOut, None };

constexpr auto enum_names(Validation) {
  return std::to_array<EnumName<Validation>>({{Validation::Auto, "auto"},
                                              {Validation::Part, "part"},
                                              {Validation::HeldOut, "held_out"},
                                              {Validation::None, "none"}});
}

struct DataOptions {
  Validation validation = Validation::Auto;
  int64_t hold_out = 10;
  bool shuffle = true;
  data::ShuffleUnit shuffle_unit = data::ShuffleUnit::Rows;
  int64_t shuffle_window = 32768;
  bool drop_last = false;
  int64_t num_workers = 1;
  int64_t prefetch = 2;
  data::OnBadRecord on_bad_record = data::OnBadRecord::Fail;
  int64_t max_bad_records = 1000;
  std::string weight;

  static constexpr auto fields() {
    return option_list(
        option_field<&DataOptions::validation>(
            "validation",
            "rows that choose the best checkpoint and the end of a run: the validation part of the dataset, rows held "
            "out from the train part, or none; auto: the part if there is one, else rows held out"),
        option_field<&DataOptions::hold_out>("hold_out", "one of so many train rows is held out for held_out",
                                             at_least(2)),
        option_field<&DataOptions::shuffle>("shuffle", "read the train rows of each epoch in a random order"),
        option_field<&DataOptions::shuffle_unit>("shuffle_unit", "rows, or batches, whose rows keep their order"),
        option_field<&DataOptions::shuffle_window>("shuffle_window", "rows that are mixed, held in memory", at_least(1),
                                                   at_most(data::kMaxShuffleWindow)),
        option_field<&DataOptions::drop_last>("drop_last", "leave out the last step of an epoch if its batch is short"),
        option_field<&DataOptions::num_workers>("num_workers", "threads that decode", at_least(1),
                                                at_most(data::kMaxWorkers)),
        option_field<&DataOptions::prefetch>("prefetch", "batches prepared ahead", at_least(1),
                                             at_most(data::kMaxPrefetch)),
        option_field<&DataOptions::on_bad_record>("on_bad_record", "fail, or leave out the row"),
        option_field<&DataOptions::max_bad_records>(
            "max_bad_records", "rows that may be left out, of training over all epochs, and of each evaluation",
            at_least(0)),
        option_field<&DataOptions::weight>(
            "weight",
            "further column of the dataset with the weight of each row, in losses and metrics; empty: all weigh 1"));
  }
};

struct ModelConfig {
  std::string model_name;
  SolverOptions solver;
  optim::OptimizerOptions optimizer;
  DataOptions data;
  /** The list of layers, as JSON text; Data first, then embeddings, then the others in order. */
  std::string layers = "[]";
};

/** Reads a configuration; ConfigError that names the entry. `name` is the file, for messages. */
TERCEL_API ModelConfig parse_config(std::string_view json, std::string_view name);
/** The whole configuration as indented JSON; parse_config() reads it back. */
TERCEL_API std::string to_json(const ModelConfig& config);
/** Applies "section.option=value" (solver, optimizer, data, or layers.NAME.option...); messages begin with `flag`. */
TERCEL_API void set_config(ModelConfig& config, std::string_view assignment, std::string_view flag = "--set");

/** Names of the shipped models, those of the files in presets/. */
TERCEL_API Span<std::string_view> preset_names();
/** The configuration of a shipped model, with a section `about`. ConfigError with the nearest name if there is none. */
TERCEL_API std::string_view preset(std::string_view name);

}  // namespace tercel::recsys
