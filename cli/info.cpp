#include <string>

#include "cli/command.h"
#include "cli/console.h"
#include "tercel/data/dataset.h"
#include "tercel/recsys/checkpoint.h"
#include "tercel/recsys/prediction.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/options_impl.h"

namespace tercel::cli {

CommandFunction run_info;

namespace {

void add_facts(Json& json, const std::vector<data::FileFact>& facts) {
  for (const data::FileFact& fact : facts) {
    switch (fact.kind) {
      case data::FileFact::Kind::Text: json[fact.name] = fact.values.front(); break;
      case data::FileFact::Kind::Number: json[fact.name] = std::stoll(fact.values.front()); break;
      case data::FileFact::Kind::List: json[fact.name] = fact.values; break;
    }
  }
}

Json describe_part(const data::Dataset& dataset, const data::DataPart& part) {
  Json json{{"rows", part.rows()}, {"files", part.files.size()}, {"bytes", part.bytes()}};
  add_facts(json, dataset.format->describe_part(dataset, part));
  if (part.truth) {
    json["true_auc"] = part.truth->auc;
    json["true_log_loss"] = part.truth->log_loss;
  }
  return json;
}

Json describe_dataset(const data::Dataset& dataset) {
  Json json{{"kind", "dataset"}, {"format", dataset.format->name()}};
  const Json options = detail::write_options(dataset.format->option_table(), dataset.format->options());
  for (const OptionField& field : dataset.format->option_table()) {
    // Lists of columns are in the description for the library, not for people.
    if (field.type->kind == OptionKind::List && field.type->list.element->kind == OptionKind::Struct) continue;
    json[std::string(field.name)] = options.at(std::string(field.name));
  }
  json.update({{"labels", dataset.schema.label_dim},
               {"dense_dim", dataset.schema.dense_dim},
               {"slots", dataset.schema.slot_num()},
               {"keys", dataset.schema.num_keys()},
               {"slot_size_array", dataset.schema.slot_size_array()}});
  for (const auto& [name, part] : dataset.parts())
    if (!part.files.empty()) json[std::string(to_string(name))] = describe_part(dataset, part);
  if (dataset.conversion) {
    json["made_by"] = dataset.conversion->tool + ", tercel " + dataset.conversion->tercel_version;
    for (const auto& setting : dataset.conversion->settings) json["settings"][setting.name] = setting.value;
  }
  return json;
}

/** A file of a format that says enough of itself; null for any other path. */
Json describe_file(const std::string& path) {
  if (!is_url(path) && is_directory(path)) return nullptr;
  const data::FormatEntry* const entry = data::format_of_file(path);
  if (!entry || !entry->describe_file) return nullptr;
  Json json{{"kind", "file"}, {"format", entry->name}};
  add_facts(json, entry->describe_file(path));
  return json;
}

Json describe_checkpoint(const recsys::Checkpoint& checkpoint) {
  Json json{{"folder", checkpoint.folder()}, {"step", checkpoint.info().step}};
  if (checkpoint.evaluation())
    for (const recsys::Evaluation::Metric& metric : checkpoint.evaluation()->metrics) json[metric.name] = metric.value;
  json["fingerprint"] = checkpoint.info().fingerprint;
  json["instruction_set"] = checkpoint.identity().instruction_set;
  json["tercel_version"] = checkpoint.identity().tercel_version;
  return json;
}

/** A line for each head: "loss1: logits logit1, label label1, weight 1". */
Json describe_heads(const recsys::Graph& graph) {
  Json heads = Json::array();
  for (const recsys::Head& head : graph.heads)
    heads.push_back(str_cat({head.name, ": logits ", graph.tensors[head.logits].name, ", label ",
                             graph.tensors[head.label].name, ", weight ", dump_json_line(head.weight)}));
  return heads;
}

Json describe_model(const std::string& path, const CommonOptions& common) {
  // Tables may be larger than memory: contents are not read, and nothing is allocated.
  std::vector<std::string> warnings;
  const recsys::Checkpoint checkpoint = recsys::open_model(path, recsys::Verify::Sizes, warnings);
  for (const std::string& warning : warnings) print_warning(common, warning);
  const recsys::RunIdentity& identity = checkpoint.identity();
  const recsys::Model model(identity.config, identity.data.schema);
  Json json{{"kind", recsys::is_checkpoint_folder(path) ? "checkpoint" : "run"},
            {"model", identity.config.model_name},
            {"checkpoint", describe_checkpoint(checkpoint)}};
  if (!recsys::is_checkpoint_folder(path)) {
    Json all = Json::array();
    for (const std::string& folder : recsys::list_checkpoints(join_path(path, "checkpoints")))
      all.push_back(file_name(folder));
    json["checkpoints"] = std::move(all);
  }
  Json layers = Json::array();
  const std::string summary = model.summary();
  for (size_t at = 0; at < summary.size();) {
    const size_t end = summary.find('\n', at);
    layers.push_back(summary.substr(at, end - at));
    at = end + 1;
  }
  json["layers"] = std::move(layers);
  const std::vector<recsys::Head>& heads = model.graph().heads;
  if (heads.size() > 1 || heads[0].weight != 1) json["heads"] = describe_heads(model.graph());
  return json;
}

/** Escapes line feeds; print_text() escapes other control characters. */
std::string one_line(std::string text) {
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.replace(at, 1, "\\n");
  return text;
}

/** "name: value" lines; objects and lists of strings are indented, lists of numbers stay on their line. */
std::string lines_of(const Json& json, size_t indent) {
  std::string text;
  for (const auto& [name, value] : json.items()) {
    text += std::string(indent, ' ') + one_line(name) + ":";
    if (value.is_object()) {
      text += "\n" + lines_of(value, indent + 2);
    } else if (value.is_array() && !value.empty() && value[0].is_string()) {
      text += "\n";
      for (const Json& entry : value) text += std::string(indent + 2, ' ') + one_line(entry.get<std::string>()) + "\n";
    } else {
      text += " " +
              (value.is_string()           ? one_line(value.get<std::string>())
               : value.is_number_integer() ? format_count(value.get<int64_t>())
                                           : dump_json_line(value)) +
              "\n";
    }
  }
  return text;
}

}  // namespace

int run_info(CommandLine& line) {
  std::string path;
  CommonOptions common;
  line.argument("PATH", "folder of a dataset, a run or a checkpoint, or a Parquet file", path);
  line.options(common);
  line.example("tercel info runs/first");
  if (!line.parse()) return 0;
  TERCEL_CHECK(is_url(path) || exists(path), IoError, printable(path), ": no such file or folder");
  Json json = describe_file(path);
  if (json.is_null())
    json = recsys::is_model_folder(path) ? describe_model(path, common) : describe_dataset(data::load_dataset(path));
  print_text(common, lines_of(json, 0));
  if (common.json) print_line(dump_json_line(json));
  return 0;
}

}  // namespace tercel::cli
