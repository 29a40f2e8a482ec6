#include "cli/command.h"
#include "cli/console.h"
#include "cli/metric_text.h"
#include "cli/model_report.h"
#include "tercel/data/dataset.h"
#include "tercel/recsys/evaluate.h"
#include "tercel/recsys/prediction.h"
#include "tercel/util/format.h"

namespace tercel::cli {

CommandFunction run_eval;

namespace {

struct EvalFlags {
  data::PartName part = data::PartName::Test;
  int64_t threads = 0;

  static constexpr auto fields() {
    return std::tuple(Field{"part", &EvalFlags::part, "which rows"},
                      Field{"threads", &EvalFlags::threads, "threads; 0: one for each CPU that may be used",
                            at_least(0), at_most(1024)});
  }
};

}  // namespace

int run_eval(CommandLine& line) {
  std::string model_path, data_path;
  EvalFlags flags;
  CommonOptions common;
  line.argument("MODEL", "folder of a run (its best checkpoint is taken) or of a checkpoint in it", model_path);
  line.argument("DATA", "folder of a dataset with the model's vocabulary", data_path);
  line.options(flags);
  line.options(common);
  line.example("tercel eval runs/first data");
  if (!line.parse()) return 0;
  use_threads(flags.threads, common);

  recsys::LoadedModel model = recsys::load_model(model_path);
  report_model(common, model);
  const data::Dataset dataset = data::load_dataset(data_path);
  if (const std::string difference = recsys::check_dataset_fits(model.data, dataset); !difference.empty())
    print_warning(common, str_cat({dataset.folder, ": ", difference}));
  const data::DataPart& part = dataset.part(flags.part);
  recsys::MetricValues values;
  {
    Progress progress(common, "eval");
    values = recsys::evaluate(model.model, dataset, flags.part, model.config, [&](int64_t rows) {
      progress.update(static_cast<double>(rows) / static_cast<double>(part.rows()), rows);
      check_interrupted();
      return true;
    });
  }
  print_text(common, str_cat({metric_text(values), "\n"}));
  if (part.truth) {
    print_text(common, str_cat({metric_text({{"true auc", part.truth->auc}, {"true log_loss", part.truth->log_loss}}),
                                "  (of the probabilities that generated the rows)\n"}));
    for (const auto& [name, value] : values)
      if (name == "auc")
        print_text(common,
                   metric_text({{"share of (true auc - 0.5)", (value - 0.5) / (part.truth->auc - 0.5)}}) + "\n");
  }
  if (common.json) {
    Json json;
    json["checkpoint"] = model.checkpoint;
    json["step"] = model.step;
    json["part"] = to_string(flags.part);
    json["rows"] = part.rows();
    add_metrics(json, values);
    if (part.truth) {
      json["true_auc"] = part.truth->auc;
      json["true_log_loss"] = part.truth->log_loss;
    }
    print_line(dump_json_line(json));
  }
  return 0;
}

}  // namespace tercel::cli
