#include "tercel/recsys/model/config.h"

#include <algorithm>

#include "tercel/recsys/model/config_impl.h"
#include "tercel/recsys/model/hugectr_config_impl.h"
#include "tercel/util/options_impl.h"
#include "tercel/util/suggest.h"

namespace tercel::recsys {

namespace {

constexpr std::string_view kSections[] = {"model_name", "about", "solver", "optimizer", "data", "layers"};

constexpr std::string_view kSettable[] = {"solver", "optimizer", "data", "layers"};

// HugeCTR's optimizer section has a separate object for the parameters of each rule.
constexpr std::string_view kHparams[] = {"adam_hparam",     "adamw_hparam",   "adagrad_hparam", "momentum_sgd_hparam",
                                         "nesterov_hparam", "rmsprop_hparam", "ftrl_hparam",    "sgd_hparam"};

}  // namespace

optim::OptimizerOptions read_optimizer(const Json& json, const optim::OptimizerOptions& defaults,
                                       std::string_view owner) {
  optim::OptimizerOptions options = defaults;
  read_options(json, options, owner, kHparams);
  for (const std::string_view key : kHparams) {
    if (!json.contains(key)) continue;
    Json hparam = json.at(std::string(key));
    if (key == "sgd_hparam" && hparam.is_object()) hparam.erase("atomic_update");  // rows are always added up in order
    if (key == "rmsprop_hparam" && hparam.is_object() && hparam.contains("beta") && !hparam.contains("alpha")) {
      hparam["alpha"] = hparam.at("beta");  // HugeCTR's name, which Ftrl has for something else
      hparam.erase("beta");
    }
    read_options(hparam, options, str_cat({owner, " ", key}));
  }
  return options;
}

ModelConfig parse_config(std::string_view text, std::string_view name) {
  const Json json = parse_json(text, name, JsonErrors::Config);
  ModelConfig config = config_from_json(is_hugectr_config(json) ? translate_hugectr_config(json, name) : json, name);
  const std::string& model = config.model_name;  // names a folder in runs/
  TERCEL_CHECK(model.find('/') == std::string::npos && model != "." && model != "..", ConfigError, name,
               ": model_name: expected the name of a folder, without '/', found '", model, "'");
  return config;
}

ModelConfig config_from_json(const Json& json, std::string_view name) {
  TERCEL_CHECK(json.is_object(), ConfigError, name, ": expected an object but found ", describe_json(json));
  for (const auto& [key, value] : json.items()) {
    bool known = false;
    for (const std::string_view section : kSections) known |= section == key;
    TERCEL_CHECK(known, ConfigError, name, ": unknown section '", key, "'", known_names(key, kSections));
  }
  TERCEL_CHECK(json.contains("layers") && json.at("layers").is_array(), ConfigError, name,
               ": expected a list 'layers'");
  ModelConfig config;
  if (json.contains("model_name")) {
    TERCEL_CHECK(json.at("model_name").is_string(), ConfigError, name, ": model_name: expected a string but found ",
                 describe_json(json.at("model_name")));
    config.model_name = json.at("model_name").get<std::string>();
  }
  if (json.contains("about")) {
    const Json& about = json.at("about");
    const bool is_text = about.is_object() &&
                         std::all_of(about.begin(), about.end(), [](const Json& entry) { return entry.is_string(); });
    TERCEL_CHECK(is_text, ConfigError, name, ": about: expected an object of strings but found ", describe_json(about));
  }
  if (json.contains("solver")) read_options(json.at("solver"), config.solver, str_cat({name, ": solver"}));
  if (json.contains("optimizer"))
    config.optimizer = read_optimizer(json.at("optimizer"), {}, str_cat({name, ": optimizer"}));
  if (json.contains("data")) read_options(json.at("data"), config.data, str_cat({name, ": data"}));
  config.layers = dump_json(json.at("layers"));
  return config;
}

Json config_to_json(const ModelConfig& config) {
  Json json;
  json["model_name"] = config.model_name;
  json["solver"] = write_options(config.solver);
  json["optimizer"] = write_options(config.optimizer);
  json["data"] = write_options(config.data);
  json["layers"] = parse_json(config.layers, "layers", JsonErrors::Config);
  return json;
}

std::string to_json(const ModelConfig& config) { return dump_json(config_to_json(config)); }

std::string layer_name(const Json& layer) {
  if (!layer.is_object() || !layer.contains("top")) return {};
  const Json* top = &layer.at("top");
  if (top->is_array() && !top->empty()) top = &top->at(0);
  return top->is_string() ? top->get<std::string>() : std::string();
}

namespace {

/** A number, list or flag as in JSON; "256,128" is a list, and anything else a string. */
Json json_of(std::string_view value) {
  try {
    return parse_json(value, "value", JsonErrors::Config);
  } catch (const ConfigError&) {
  }
  if (value.find(',') == std::string_view::npos) return std::string(value);
  Json list = Json::array();
  for (size_t start = 0; start <= value.size();) {
    const size_t end = std::min(value.find(',', start), value.size());
    list.push_back(json_of(value.substr(start, end - start)));
    start = end + 1;
  }
  return list;
}

/** Sets an entry inside a layer: NAME.path.to.option. */
void set_layer(ModelConfig& config, std::string_view path, std::string_view value, std::string_view assignment,
               std::string_view flag) {
  const size_t dot = path.find('.');
  TERCEL_CHECK(dot != std::string_view::npos, ConfigError, flag, " ", assignment,
               ": expected layers.NAME.OPTION=VALUE");
  const std::string_view name = path.substr(0, dot);
  Json layers = parse_json(config.layers, "layers", JsonErrors::Config);
  Json* entry = nullptr;
  std::vector<std::string> names;
  for (Json& layer : layers) {
    names.push_back(layer_name(layer));
    if (names.back() == name) entry = &layer;
    if (names.back().empty()) names.pop_back();
  }
  TERCEL_CHECK(entry, ConfigError, flag, " ", assignment, ": unknown layer '", name, "'",
               known_names(name, std::vector<std::string_view>(names.begin(), names.end())));
  std::string_view above = name;
  for (size_t start = dot + 1; start <= path.size();) {
    TERCEL_CHECK(entry->is_object() || entry->is_null(), ConfigError, flag, " ", assignment, ": '", above,
                 "' has no entries");
    above = path.substr(start, path.find('.', start) - start);
    TERCEL_CHECK(!above.empty(), ConfigError, flag, " ", assignment, ": expected layers.NAME.OPTION=VALUE");
    entry = &(*entry)[std::string(above)];
    start += above.size() + 1;
  }
  *entry = json_of(value);
  config.layers = dump_json(layers);
}

}  // namespace

void set_config(ModelConfig& config, std::string_view assignment, std::string_view flag) {
  const size_t equals = assignment.find('='), dot = assignment.find('.');
  TERCEL_CHECK(equals != std::string_view::npos && dot < equals, ConfigError, flag, " ", assignment,
               ": expected SECTION.OPTION=VALUE, as in solver.lr=0.01");
  const std::string_view section = assignment.substr(0, dot);
  const std::string_view name = assignment.substr(dot + 1, equals - dot - 1);
  const std::string_view value = assignment.substr(equals + 1);
  const std::string owner = str_cat({flag, " ", section});
  if (section == "solver")
    set_option(config.solver, owner, name, value);
  else if (section == "optimizer")
    set_option(config.optimizer, owner, name, value);
  else if (section == "data")
    set_option(config.data, owner, name, value);
  else if (section == "layers")
    set_layer(config, name, value, assignment, flag);
  else
    throw_error<ConfigError>(
        {flag, " ", assignment, ": unknown section '", section, "'", known_names(section, kSettable)});
}

}  // namespace tercel::recsys
