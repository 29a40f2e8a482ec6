#include "tercel/data/dataset.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/model/config_impl.h"
#include "tercel/recsys/prediction.h"
#include "tercel/recsys/report/run_report.h"
#include "tercel/recsys/report/slice_titles.h"
#include "tercel/recsys/run_folder_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

namespace {

constexpr int64_t kMaxConfigBytes = int64_t{16} << 20;

/** Adds every entry that is no object, with its path. */
void add_entries(const Json& json, const std::string& path, std::vector<std::pair<std::string, std::string>>& out) {
  if (!json.is_object()) {
    out.emplace_back(path, json.is_string() ? json.get<std::string>() : dump_json_line(json));
    return;
  }
  for (const auto& [key, value] : json.items()) add_entries(value, path.empty() ? key : path + "." + key, out);
}

std::vector<std::pair<std::string, std::string>> entries_of(const ModelConfig& config) {
  Json json = config_to_json(config);
  const Json layers = json.at("layers");
  json.erase("layers");
  std::vector<std::pair<std::string, std::string>> entries;
  add_entries(json, "", entries);
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string name = layer_name(layers[i]);
    add_entries(layers[i], "layers." + (name.empty() ? std::to_string(i) : name), entries);
  }
  return entries;
}

/** The best whole checkpoint; none if there is none that can be opened: what else there is can be reported. */
std::optional<Checkpoint> best_checkpoint(const RunFolder& run) {
  std::vector<std::string> warnings;
  try {
    return open_checkpoint(run.checkpoints(), Which::Best, Verify::Sizes, warnings);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

}  // namespace

RunContent read_run(const std::string& folder) {
  TERCEL_CHECK(is_directory(folder), IoError, printable(folder), ": no such folder");
  const RunFolder run(folder);
  TERCEL_CHECK(is_model_folder(folder) && !is_checkpoint_folder(folder), DataError, printable(folder),
               ": expected the folder of a run, with config.json, metrics.jsonl and checkpoints");
  RunContent content;
  content.name = folder;
  const std::optional<Checkpoint> best = best_checkpoint(run);
  const bool has_config = exists(run.config());
  TERCEL_CHECK(best || has_config, DataError, printable(folder),
               ": expected config.json or a whole checkpoint, found neither");
  // That of a checkpoint has every option of every layer.
  const ModelConfig config =
      best ? best->identity().config : parse_config(read_file(run.config(), kMaxConfigBytes), run.config());
  content.model_name = config.model_name;
  content.config = entries_of(config);
  if (best) {
    content.best_step = best->info().step;
    content.tables = growth_of(*best);
    content.facts.emplace_back("tercel", best->identity().tercel_version);
    content.facts.emplace_back("instruction set", best->identity().instruction_set);
    for (const data::PartIdentity& part : best->identity().data.parts) {
      int64_t rows = 0;
      for (const data::FileIdentity& file : part.files) rows += file.rows;
      content.facts.emplace_back(std::string(to_string(part.part)) + " rows", format_count(rows));
    }
  }
  content.records = read_metrics(run.metrics(), content.warnings);
  content.details = read_details(run.details());
  const data::Dataset described = exists(run.description()) ? run.read_description() : data::Dataset();
  for (EvaluationDetails& details : content.details) {
    const SliceTitles titles(described, details.slice_by);
    for (HeadDetails& head : details.heads) titles.set(head.slices);
  }
  return content;
}

}  // namespace tercel::recsys
