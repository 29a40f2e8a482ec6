#include <array>
#include <optional>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/model_report.h"
#include "tercel/data/dataset.h"
#include "tercel/data/random_access_file.h"
#include "tercel/io/npy.h"
#include "tercel/recsys/prediction.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::cli {

CommandFunction run_predict;

namespace {

enum class OutputFormat : uint8_t { Csv, Npy };

constexpr auto enum_names(OutputFormat) {
  return std::to_array<EnumName<OutputFormat>>({{OutputFormat::Csv, "csv"}, {OutputFormat::Npy, "npy"}});
}

struct PredictFlags {
  std::string out;
  OutputFormat format = OutputFormat::Csv;
  data::PartName part = data::PartName::Test;
  int64_t threads = 0;

  static constexpr auto fields() {
    return std::tuple(
        Field{"out", &PredictFlags::out, "file to write; default: the standard output, as csv"},
        Field{"format", &PredictFlags::format,
              "csv: a line 'probability', then one number a line, or a column for each head or class; npy: float32 "
              "[rows], or [rows, columns] of several, also where --out ends in .npy"},
        Field{"part", &PredictFlags::part, "which rows of a dataset"},
        Field{"threads", &PredictFlags::threads, "threads; 0: one for each CPU that may be used", at_least(0),
              at_most(1024)});
  }
};

/** Quoted where the text has separators of CSV. */
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

/**
 * "probability", or a name for each of several heads, "probability/loss1,probability/loss2", and for each column or
 * class of a head with several, "probability/loss/0,probability/loss/1".
 */
std::string csv_header(const std::vector<recsys::Head>& heads) {
  if (heads.size() == 1 && heads[0].columns == 1) return "probability\n";
  std::string text;
  for (const recsys::Head& head : heads)
    for (int64_t column = 0; column < head.columns; ++column) {
      const std::string name = "probability/" + head.name;
      text += (text.empty() ? "" : ",") + csv_field(head.columns == 1 ? name : name + "/" + std::to_string(column));
    }
  return text + "\n";
}

std::string csv_lines(Span<float> probabilities, size_t columns) {
  std::string text;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    char number[32];
    text.append(number, static_cast<size_t>(std::snprintf(number, sizeof(number), "%.9g", double{probabilities[i]})));
    text += (i + 1) % columns == 0 ? '\n' : ',';
  }
  return text;
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
  line.example("tercel predict runs/first new.tsv --out probabilities.csv");
  if (!line.parse()) return 0;
  const bool npy = flags.format == OutputFormat::Npy || flags.out.ends_with(".npy");
  TERCEL_CHECK(!npy || !flags.out.empty(), ConfigError, "predict: --format npy needs --out FILE");
  TERCEL_CHECK(!common.json || !flags.out.empty(), ConfigError, "predict: --json needs --out FILE");
  use_threads(flags.threads, common);

  recsys::LoadedModel model = recsys::load_model(model_path);
  report_model(common, model);
  std::optional<io::NpyWriter> npy_file;
  std::optional<AtomicFile> csv_file;
  const std::vector<recsys::Head>& heads = model.model.graph().heads;
  const auto columns = static_cast<size_t>(model.model.graph().prediction_columns());
  const DimVector npy_row = columns == 1 ? DimVector() : DimVector{static_cast<int64_t>(columns)};
  if (npy) npy_file.emplace(flags.out, npy_row);
  if (!npy && !flags.out.empty()) csv_file.emplace(flags.out);
  const auto write_csv = [&](std::string_view text) { csv_file ? csv_file->write(text) : print_exactly(text); };
  std::optional<Progress> progress(std::in_place, common, "predict");
  int64_t rows = 0, total = 0;
  const auto sink = [&](Span<float> probabilities) {
    check_interrupted();
    if (npy_file) {
      npy_file->write(probabilities);
    } else {
      if (rows == 0) write_csv(csv_header(heads));  // created only after the model and the first rows have been read
      write_csv(csv_lines(probabilities, columns));
    }
    rows += static_cast<int64_t>(probabilities.size() / columns);
    progress->update(total > 0 ? static_cast<double>(rows) / static_cast<double>(total) : 0, rows);
  };
  const bool is_dataset =
      inputs.size() == 1 && (is_url(inputs[0]) ? is_dataset_url(inputs[0]) : is_directory(inputs[0]));
  if (is_dataset) {
    const data::Dataset dataset = data::load_dataset(inputs[0]);
    total = dataset.part(flags.part).rows();
    recsys::predict(model, dataset, flags.part, sink);
  } else {
    std::vector<data::TextSource> sources;
    for (const std::string& path : inputs) sources.push_back({path, path == "-" ? "standard input" : path});
    recsys::predict_text(model, std::move(sources), sink);
  }
  if (!npy && rows == 0) write_csv(csv_header(heads));
  if (npy_file) npy_file->commit();
  if (csv_file) csv_file->commit();
  progress.reset();
  if (!flags.out.empty())
    print_text(common, str_cat({"wrote ", format_count(rows * static_cast<int64_t>(columns)), " probabilities to ",
                                printable(flags.out), "\n"}));
  if (common.json) print_line(dump_json_line({{"out", flags.out}, {"rows", rows}, {"checkpoint", model.checkpoint}}));
  return 0;
}

}  // namespace tercel::cli
