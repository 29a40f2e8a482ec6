#include "tercel/recsys/run_identity.h"

#include <algorithm>

#include "tercel/core/dispatch.h"
#include "tercel/recsys/model/config_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/version.h"

namespace tercel::recsys {

namespace {

/** The owner of an entry of a configuration. An optimizer may belong to the configuration or to a layer. */
enum class EntryKind : uint8_t { Other, Layer, Optimizer };

/** An entry in which two configurations differ. */
struct Difference {
  EntryKind kind;
  std::string path;  // "solver.lr"
  std::string text;  // "solver.lr: the checkpoint has 0.01, this run has 0.02"
};
using Differences = std::vector<Difference>;

std::string value_text(const Json* value) { return value == nullptr ? "nothing" : printable(dump_json_line(*value)); }

void add_difference(EntryKind kind, const std::string& path, const Json* before, const Json* now, Differences& out) {
  out.push_back(
      {kind, path, str_cat({path, ": the checkpoint has ", value_text(before), ", this run has ", value_text(now)})});
}

/** Lists every entry, also in nested objects, that differs or that only one has. */
void compare_objects(EntryKind kind, const Json& before, const Json& now, const std::string& path, Differences& out) {
  const auto entry = [](const Json& object, const std::string& key) {
    return object.contains(key) ? &object.at(key) : nullptr;
  };
  const auto inside = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  const auto kind_of = [kind](const std::string& key) { return key == "optimizer" ? EntryKind::Optimizer : kind; };
  for (const auto& [key, value] : before.items()) {
    const Json* const other = entry(now, key);
    if (other != nullptr && value.is_object() && other->is_object())
      compare_objects(kind_of(key), value, *other, inside(key), out);
    else if (other == nullptr || value != *other)
      add_difference(kind_of(key), inside(key), &value, other, out);
  }
  for (const auto& [key, value] : now.items())
    if (!before.contains(key)) add_difference(kind_of(key), inside(key), nullptr, &value, out);
}

/** "MLP top"; Data has no name. */
std::string title_of(const Json& layer) {
  const auto type = layer.at("type").get<std::string>();
  const std::string name = layer_name(layer);
  return name.empty() ? type : type + " " + name;
}

void compare_layers(const Json& before, const Json& now, Differences& out) {
  for (size_t i = 0; i < std::max(before.size(), now.size()); ++i) {
    const Json a = i < before.size() ? Json(title_of(before[i])) : Json(),
               b = i < now.size() ? Json(title_of(now[i])) : Json();
    if (a != b) {  // later entries would be compared with the wrong ones
      add_difference(EntryKind::Layer, "layers[" + std::to_string(i) + "]", a.is_null() ? nullptr : &a,
                     b.is_null() ? nullptr : &b, out);
      return;
    }
    const std::string name = layer_name(before[i]);
    compare_objects(EntryKind::Layer, before[i], now[i], "layers." + (name.empty() ? a.get<std::string>() : name), out);
  }
}

/**
 * The checkpoint's layers with the options that its version did not have yet. Their defaults mean what happened without
 * them.
 */
ModelConfig resolved_config(const RunIdentity& checkpoint) {
  ModelConfig config = checkpoint.config;
  try {
    config.layers = Model(config, checkpoint.data.schema).layers();
  } catch (const ConfigError&) {
    // Layers that this version refuses differ from those of any run of it.
  }
  return config;
}

/** Everything except the end of the run, whose options end_text() compares. */
Differences compare_configs(const ModelConfig& before, const ModelConfig& now) {
  Json a = config_to_json(before), b = config_to_json(now);
  Differences out;
  compare_layers(a.at("layers"), b.at("layers"), out);
  for (Json* config : {&a, &b}) {
    config->erase("layers");
    config->at("solver").erase("epochs");
    config->at("solver").erase("max_iter");
    config->at("solver").erase("early_stop");
    config->at("solver").erase("placement");  // a matter of speed, as the next
    config->at("solver").erase("table_placements");
  }
  compare_objects(EntryKind::Other, a, b, "", out);
  return out;
}

/** Differences that check_same_meaning() allows: names, and the hotness of slots. */
void add_schema_differences(const data::Schema& before, const data::Schema& now, std::vector<std::string>& out) {
  const auto add = [&out](const std::string& what, const std::string& a, const std::string& b) {
    if (a != b) out.push_back(str_cat({"data: ", what, ": the checkpoint has ", a, ", this run has ", b}));
  };
  const auto list = [](const std::vector<std::string>& names) { return printable(dump_json_line(Json(names))); };
  add("label_names", list(before.label_names), list(now.label_names));
  add("dense_names", list(before.dense_names), list(now.dense_names));
  for (size_t s = 0; s < before.slots.size(); ++s) {
    const std::string slot = str_cat({"slot ", s + 1});
    add(slot + ": name", printable(before.slots[s].name), printable(now.slots[s].name));
    add(slot + ": hotness", std::to_string(before.slots[s].hotness), std::to_string(now.slots[s].hotness));
  }
}

/** "3 epochs", "500 steps", "3 epochs or 4 validations without a better one". */
std::string end_text(const SolverOptions& solver) {
  const auto counted = [](int64_t n, std::string_view unit) { return str_cat({n, " ", unit, n == 1 ? "" : "s"}); };
  const int64_t epochs = solver.epochs_to_read();
  std::string text = epochs > 0 ? counted(epochs, "epoch") : "";
  if (solver.early_stop > 0)
    text += (text.empty() ? "" : " or ") + counted(solver.early_stop, "validation") + " without a better one";
  if (solver.max_iter > 0) text += (text.empty() ? "" : " or ") + counted(solver.max_iter, "step");
  return text;
}

}  // namespace

RunIdentity identity_of_run(const ModelConfig& config, const Model& model, const data::Dataset& dataset) {
  RunIdentity identity;
  identity.config = config;
  identity.config.layers = model.layers();
  identity.data = data::identity_of(dataset);
  identity.instruction_set = to_string(cpu_isa());
  identity.tercel_version = version();
  return identity;
}

ResumeCheck check_resume(const RunIdentity& checkpoint, const RunIdentity& run, NewData new_data,
                         const std::string& folder, const std::string& dataset_name) {
  ResumeCheck check;
  data::check_same_meaning(checkpoint.data, run.data, dataset_name);
  bool by_size = false;
  const bool has_valid = run.config.data.validation == Validation::Part;
  for (const data::PartName part : {data::PartName::Train, data::PartName::Valid, data::PartName::Test}) {
    if (part == data::PartName::Valid && !has_valid) continue;
    const data::PartComparison rows = data::compare_part(checkpoint.data, run.data, part);
    by_size |= rows.by_size;
    if (rows.difference.empty()) continue;
    TERCEL_CHECK(new_data == NewData::Accept, DataError, printable(dataset_name),
                 ": other rows than those of the checkpoint ", printable(folder), ": ", rows.difference,
                 "; --new-data continues training on the new rows");
    const bool is_train = part == data::PartName::Train;
    check.new_train_rows |= is_train;
    check.warnings.push_back(str_cat(
        {"new data: ", rows.difference,
         is_train ? "; its rows are read from the first on" : "; its evaluations are not compared with those before"}));
  }

  for (const Difference& d : compare_configs(resolved_config(checkpoint), run.config)) {
    TERCEL_CHECK(d.kind != EntryKind::Layer, ConfigError, printable(folder),
                 ": a checkpoint of another model: ", d.text);
    TERCEL_CHECK(d.kind != EntryKind::Optimizer || !d.path.ends_with(".type"), ConfigError, printable(folder),
                 ": a checkpoint with the state of another optimizer: ", d.text);
    // Without LazyGlobal an update type has no state of its own.
    const bool is_lazy = d.path.starts_with("layers.") && d.path.ends_with(".update_type") &&
                         d.text.find("\"LazyGlobal\"") != std::string::npos;
    TERCEL_CHECK(!is_lazy, ConfigError, printable(folder),
                 ": a checkpoint with the state of another update type: ", d.text);
    TERCEL_CHECK(check.new_train_rows || d.path != "solver.batchsize", ConfigError, printable(folder),
                 ": a checkpoint of a run with batches of another size: ", d.text);
    const bool is_held_out =
        (d.path == "data.validation" && (run.config.data.validation == Validation::HeldOut ||
                                         checkpoint.config.data.validation == Validation::HeldOut)) ||
        (d.path == "data.hold_out" && run.config.data.validation == Validation::HeldOut);
    TERCEL_CHECK(check.new_train_rows || !is_held_out, ConfigError, printable(folder),
                 ": a checkpoint of a run that was trained on other rows of the train part: ", d.text);
    const bool is_order = d.path == "data.shuffle" || d.path == "data.drop_last" ||
                          (run.config.data.shuffle && (d.path == "data.shuffle_unit" ||
                                                       d.path == "data.shuffle_window" || d.path == "solver.seed"));
    TERCEL_CHECK(check.new_train_rows || !is_order, ConfigError, printable(folder),
                 ": a checkpoint of a run that reads the rows in another order: ", d.text);
    check.warnings.push_back(d.text);
  }
  if (by_size)
    check.warnings.emplace_back(
        "data: files without checksums: only their sizes and numbers of rows were compared with the checkpoint's");
  if (const std::string moments = data::compare_moments(checkpoint.data, run.data); !moments.empty())
    check.warnings.push_back("data: " + moments);
  add_schema_differences(checkpoint.data.schema, run.data.schema, check.warnings);
  const auto warn = [&](std::string_view what, const std::string& before, const std::string& now) {
    if (before != now)
      check.warnings.push_back(str_cat({what, ": the checkpoint has ", printable(before), ", this run has ", now}));
  };
  warn("end of the run", end_text(checkpoint.config.solver), end_text(run.config.solver));
  warn("instruction set", checkpoint.instruction_set, run.instruction_set);
  warn("Tercel's version", checkpoint.tercel_version, run.tercel_version);
  return check;
}

}  // namespace tercel::recsys
