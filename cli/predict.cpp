#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/model_report.h"
#include "tercel/data/dataset.h"
#include "tercel/data/random_access_file.h"
#include "tercel/recsys/prediction.h"
#include "tercel/recsys/prediction_file.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::cli {

CommandFunction run_predict;

namespace {

struct PredictFlags {
  std::string out;
  recsys::PredictionFormat format = recsys::PredictionFormat::Csv;
  std::string id;
  bool row_number = false;
  data::PartName part = data::PartName::Test;
  int64_t threads = 0;

  static constexpr auto fields() {
    return option_list(
        option_field<&PredictFlags::out>("out", "file to write; default: the standard output, as csv"),
        option_field<&PredictFlags::format>(
            "format",
            "csv: a line 'probability', then one number a line, or a column for each head or class; npy: float32 "
            "[rows], or [rows, columns] of several, with ids records of named fields, also where --out ends in .npy; "
            "parquet: columns of these names, also where --out ends in .parquet or .pq"),
        option_field<&PredictFlags::id>(
            "id",
            "column written beside the probabilities: of text, any column but the label's, by its name or number; of "
            "a dataset, a slot with one key, a dense value, or a further column of the files"),
        option_field<&PredictFlags::row_number>("row_number", "write the numbers of the rows, from 0, as column 'row'"),
        option_field<&PredictFlags::part>("part", "which rows of a dataset"),
        option_field<&PredictFlags::threads>("threads", "threads; 0: one for each CPU that may be used", at_least(0),
                                             at_most(1024)));
  }
};

/** The format of --out: by its name's end, unless --format says another one. */
recsys::PredictionFormat format_of(const PredictFlags& flags) {
  using recsys::PredictionFormat;
  if (flags.format != PredictionFormat::Csv) return flags.format;
  if (flags.out.ends_with(".npy")) return PredictionFormat::Npy;
  return flags.out.ends_with(".parquet") || flags.out.ends_with(".pq") ? PredictionFormat::Parquet
                                                                       : PredictionFormat::Csv;
}

/** Whether a URL names a dataset rather than a text file. */
bool is_dataset_url(const std::string& url) {
  if (url.ends_with(".json")) return true;
  try {
    return data::data_path_info(join_path(url, data::kDatasetFile)).has_value();
  } catch (const IoError&) {  // some servers forbid names that do not exist
    return false;
  }
}

}  // namespace

int run_predict(CommandLine& line) {
  std::string model_path;
  std::vector<std::string> inputs;
  PredictFlags flags;
  CommonOptions common;
  line.argument("MODEL", "folder of a run (its best checkpoint is taken) or of a checkpoint in it", model_path);
  line.arguments("IN",
                 "folder of a dataset, or files of raw text (plain or gzip) like that which the model's dataset "
                 "was converted from, with or without the label; '-': the standard input",
                 inputs);
  line.options(flags);
  line.options(common);
  line.example("tercel predict runs/first new.tsv --id user_id --out scores.csv");
  if (!line.parse()) return 0;
  const recsys::PredictionFormat format = format_of(flags);
  TERCEL_CHECK(format == recsys::PredictionFormat::Csv || !flags.out.empty(), ConfigError, "predict: --format ",
               to_string(format), " needs --out FILE");
  TERCEL_CHECK(!flags.row_number || flags.id.empty(), ConfigError,
               "predict: options --id and --row-number exclude each other");
  TERCEL_CHECK(!common.json || !flags.out.empty(), ConfigError, "predict: --json needs --out FILE");
  use_threads(flags.threads, common);

  recsys::LoadedModel model = recsys::load_model(model_path);
  report_model(common, model);
  const bool is_dataset =
      inputs.size() == 1 && (is_url(inputs[0]) ? is_dataset_url(inputs[0]) : is_directory(inputs[0]));
  std::optional<data::Dataset> dataset;
  int64_t total = 0;
  if (is_dataset) {
    dataset = data::load_dataset(inputs[0]);
    total = dataset->part(flags.part).rows();
  }
  const std::vector<std::string> names = recsys::prediction_names(model.model.graph().heads);
  recsys::IdColumn id{flags.row_number ? "row" : flags.id};
  if (!flags.id.empty())
    id.type = dataset ? recsys::RowIds(dataset->schema, model.model.sparse_inputs(), id.name, dataset->name()).type()
                      : data::ValueType::Text;
  const auto print = [](std::string_view text) { print_exactly(text); };
  const std::unique_ptr<recsys::PredictionWriter> output =
      flags.out.empty() ? recsys::make_prediction_text(print, names, id)
                        : recsys::make_prediction_file(format, flags.out, names, id);
  std::optional<Progress> progress(std::in_place, common, "predict");
  int64_t rows = 0;
  std::vector<int64_t> numbers;
  const auto sink = [&](const recsys::Predictions& found) {
    check_interrupted();
    recsys::Predictions written = found;
    if (flags.row_number) {
      numbers.resize(static_cast<size_t>(found.rows));
      std::iota(numbers.begin(), numbers.end(), rows);
      written.ids.integers = numbers;
    }
    output->write(written);
    rows += found.rows;
    progress->update(total > 0 ? static_cast<double>(rows) / static_cast<double>(total) : 0, rows);
  };
  if (dataset) {
    recsys::predict(model, *dataset, flags.part, sink, flags.id);
  } else {
    std::vector<data::TextSource> sources;
    for (const std::string& path : inputs) sources.push_back({path, path == "-" ? "standard input" : path});
    recsys::predict_text(model, std::move(sources), sink, flags.id);
  }
  check_interrupted();
  output->commit();
  progress.reset();
  if (!flags.out.empty())
    print_text(common, str_cat({"wrote ", format_count(rows * static_cast<int64_t>(names.size())), " probabilities to ",
                                printable(flags.out), "\n"}));
  if (common.json) print_line(dump_json_line({{"out", flags.out}, {"rows", rows}, {"checkpoint", model.checkpoint}}));
  return 0;
}

}  // namespace tercel::cli
