#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/metric_text.h"
#include "cli/model_report.h"
#include "cli/part_summary.h"
#include "tercel/data/convert.h"
#include "tercel/data/dataset.h"
#include "tercel/data/movielens.h"
#include "tercel/recsys/evaluate.h"
#include "tercel/recsys/prediction.h"
#include "tercel/recsys/report/slice_titles.h"
#include "tercel/recsys/row_keys.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::cli {

CommandFunction run_eval;

namespace {

struct EvalFlags {
  data::PartName part = data::PartName::Test;
  data::OnBadRecord on_bad_record = data::OnBadRecord::Fail;
  int64_t max_bad_records = 1000;
  int64_t top = 0;
  int64_t group_rows = 0;
  std::vector<std::string> metrics;
  std::string group_by;
  std::string slice_by;
  int64_t slices = 0;
  std::string weight;
  bool unweighted = false;
  int64_t threads = 0;

  static constexpr auto fields() {
    return option_list(
        option_field<&EvalFlags::part>("part", "which rows"),
        option_field<&EvalFlags::on_bad_record>("on_bad_record", "fail, or leave out the row"),
        option_field<&EvalFlags::max_bad_records>("max_bad_records", "rows that may be left out", at_least(0)),
        option_field<&EvalFlags::top>(
            "top",
            "adds hit rate and NDCG of the best K rows of each group of rows, in the order of the "
            "files; 0: neither",
            at_least(0)),
        option_field<&EvalFlags::group_rows>(
            "group_rows", "rows of a group for --top; 0: those of a user, in the test part of 'convert movielens'",
            at_least(0)),
        option_field<&EvalFlags::metrics>("metrics", "what to measure, as auc,gauc,ne; empty: what the run measured"),
        option_field<&EvalFlags::group_by>("group_by", "slot whose keys are the groups of gauc, hit_rate@K and ndcg@K"),
        option_field<&EvalFlags::slice_by>("slice_by", "slot whose most frequent keys are evaluated apart"),
        option_field<&EvalFlags::slices>("slices", "how many of them; 0: as configured", at_least(0), at_most(10000)),
        option_field<&EvalFlags::weight>("weight",
                                         "further column with the weight of each row; default: that of the training"),
        option_field<&EvalFlags::unweighted>("unweighted", "all rows weigh 1"),
        option_field<&EvalFlags::threads>("threads", "threads; 0: one for each CPU that may be used", at_least(0),
                                          at_most(1024)));
  }
};

/** Rows of a group of the part. */
int64_t group_rows_of(const EvalFlags& flags, const data::Dataset& dataset) {
  if (flags.group_rows > 0) return flags.group_rows;
  const bool known =
      dataset.conversion && dataset.conversion->tool == "movielens" && flags.part == data::PartName::Test;
  const std::string* const negatives = known ? dataset.conversion->setting("test_negatives") : nullptr;
  TERCEL_CHECK(negatives != nullptr, ConfigError, "eval: --top: expected --group-rows too, found none");
  data::MovielensOptions options;
  set_option(options, "movielens", "test_negatives", *negatives);
  return options.test_negatives + 1;
}

/** What to measure: what the run measured, but for the flags. */
recsys::MetricOptions options_of(const EvalFlags& flags, const recsys::MetricOptions& configured) {
  recsys::MetricOptions options = configured;
  options.targets.clear();
  if (!flags.metrics.empty()) options.metrics = flags.metrics;
  if (!flags.group_by.empty()) options.group_by = flags.group_by;
  if (!flags.slice_by.empty()) options.slice_by = flags.slice_by;
  if (flags.slices > 0) options.slices = flags.slices;
  recsys::check_metric_options(options, "eval");
  return options;
}

/** A line for each slice: "  c3  1,200 rows  mean label 0.2500  auc 0.7871  log_loss 0.4338". */
std::string slice_lines(const recsys::HeadDetails& head, bool named, const std::string& slot) {
  std::string text = str_cat({"by ", printable(slot), named ? ", head " + printable(head.name) : "", ":\n"});
  for (const recsys::Slice& slice : head.slices)
    text +=
        str_cat({"  ", printable(slice.title), "  ", format_count(slice.rows), slice.rows == 1 ? " row  " : " rows  ",
                 metric_text({{"mean label", slice.label}}), "  ", metric_text(slice.values), "\n"});
  return text;
}

Json slices_json(const recsys::HeadDetails& head) {
  Json list = Json::array();
  for (const recsys::Slice& slice : head.slices) {
    Json entry{{"key", slice.key}, {"value", slice.title}, {"rows", slice.rows}};
    add_metrics(entry, {{"label", slice.label}});
    add_metrics(entry, slice.values);
    list.push_back(std::move(entry));
  }
  return list;
}

/** The dataset of a folder or URL, or files of text converted as the model's dataset was, in a folder for that time. */
class EvaluatedData {
 public:
  EvaluatedData(const std::vector<std::string>& paths, const std::string& model, const CommonOptions& common) {
    is_text_ =
        paths.size() > 1 || paths[0] == "-" || (!is_url(paths[0]) && exists(paths[0]) && !is_directory(paths[0]));
    if (!is_text_) {
      dataset_ = data::load_dataset(paths[0]);
      return;
    }
    const data::Dataset like = recsys::text_description(model);
    folder_.emplace(join_path(std::filesystem::temp_directory_path().string(), "tercel-eval"));
    Progress progress(common, "convert");
    const auto observer = [&](const data::ConvertProgress& now) {
      check_interrupted();
      const double share =
          now.bytes_total > 0 ? static_cast<double>(now.bytes_done) / static_cast<double>(now.bytes_total) : 0;
      progress.update(share, now.rows);
    };
    dataset_ =
        data::convert_like(like, paths, join_path(folder_->temporary_path(), "data"), {}, false, observer).dataset;
  }

  const data::Dataset& dataset() const { return dataset_; }
  /** All of its rows are in the train part. */
  bool is_text() const { return is_text_; }

 private:
  bool is_text_ = false;
  std::optional<AtomicDir> folder_;  // removed at the end
  data::Dataset dataset_;
};

}  // namespace

int run_eval(CommandLine& line) {
  std::string model_path;
  std::vector<std::string> data_paths;
  EvalFlags flags;
  CommonOptions common;
  line.argument("MODEL", "folder of a run (its best checkpoint is taken) or of a checkpoint in it", model_path);
  line.arguments(
      "DATA",
      "folder of a dataset with the model's vocabulary, or files of text like that which the model's dataset "
      "was converted from, of which all rows are taken; '-': the standard input",
      data_paths);
  line.options(flags);
  line.options(common);
  line.example("tercel eval runs/first data --metrics auc,gauc,ne --group-by user --slice-by country");
  if (!line.parse()) return 0;
  use_threads(flags.threads, common);

  recsys::LoadedModel model = recsys::load_model(model_path);
  report_model(common, model);
  const EvaluatedData data(data_paths, model_path, common);
  const data::Dataset& dataset = data.dataset();
  if (data.is_text()) flags.part = data::PartName::Train;
  if (const std::string difference = recsys::check_dataset_fits(model.data, dataset); !difference.empty())
    print_warning(common, str_cat({dataset.folder, ": ", difference}));
  const data::DataPart& part = dataset.part(flags.part);
  for (const auto& [flag, name] :
       {std::pair("eval: --group-by", &flags.group_by), {"eval: --slice-by", &flags.slice_by}})
    if (!name->empty())
      static_cast<void>(recsys::RowKeys(model.model.schema(), model.model.sparse_inputs(), *name, flag));
  static_cast<recsys::MetricOptions&>(model.config.solver) = options_of(flags, model.config.solver);
  const recsys::MetricOptions& options = model.config.solver;
  data::ReaderOptions reading = recsys::evaluation_reading(model.model, model.config);
  reading.on_bad_record = flags.on_bad_record;
  reading.max_bad_records = flags.max_bad_records;
  TERCEL_CHECK(flags.weight.empty() || !flags.unweighted, ConfigError,
               "eval: options --weight and --unweighted exclude each other");
  if (flags.unweighted || !flags.weight.empty()) reading.weight = flags.weight;
  const auto is_weight = [&reading](const data::Column& column) { return column.name == reading.weight; };
  TERCEL_CHECK(
      reading.weight.empty() || std::any_of(dataset.schema.columns.begin(), dataset.schema.columns.end(), is_weight),
      ConfigError, "eval: ", printable(dataset.folder), " has no further column '", printable(reading.weight),
      flags.weight.empty() ? "', by which the training weighs rows; --unweighted takes all rows alike" : "'");
  std::optional<recsys::RankingMetrics> ranking;
  if (flags.top > 0) {
    TERCEL_CHECK(flags.on_bad_record == data::OnBadRecord::Fail, ConfigError,
                 "eval: options --top and --on-bad-record skip exclude each other: rows that are left out move the "
                 "groups");
    ranking.emplace(group_rows_of(flags, dataset), flags.top);
  }
  data::BatchReader reader(dataset, flags.part, reading);
  recsys::EvaluationResult found;
  {
    Progress progress(common, "eval");
    const auto observer = [&](int64_t rows) {
      progress.update(static_cast<double>(rows) / static_cast<double>(part.rows()), rows);
      check_interrupted();
      return true;
    };
    found = recsys::measure(model.model, reader, options, observer,
                            recsys::sampling_shift(model.data, dataset, flags.part), ranking ? &*ranking : nullptr);
  }
  if (!options.slice_by.empty()) {
    const recsys::SliceTitles titles(dataset, options.slice_by);
    for (recsys::HeadDetails& head : found.heads) titles.set(head.slices);
  }
  const recsys::MetricValues& values = found.values;
  print_text(common, str_cat({metric_text(values), "\n"}));
  for (const recsys::HeadDetails& head : found.heads)
    if (!head.slices.empty()) print_text(common, slice_lines(head, found.heads.size() > 1, options.slice_by));
  print_bad_records(common, reader.bad_records(), reader.first_bad_record());
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
    json["rows"] = part.rows() - reader.bad_records();
    json["bad_records"] = reader.bad_records();
    add_metrics(json, values);
    if (!options.slice_by.empty())
      for (const recsys::HeadDetails& head : found.heads)
        json[found.heads.size() > 1 ? "slices/" + head.name : "slices"] = slices_json(head);
    if (part.truth) {
      json["true_auc"] = part.truth->auc;
      json["true_log_loss"] = part.truth->log_loss;
    }
    print_line(dump_json_line(json));
  }
  return 0;
}

}  // namespace tercel::cli
