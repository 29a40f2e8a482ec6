#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/help_text.h"
#include "tercel/recsys/layers/layers_impl.h"
#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/graph_options_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/suggest.h"

namespace tercel::cli {

CommandFunction run_config;

namespace {

/** A section of a configuration or a type of layers, with its options, or a shipped model with what it is. */
struct Topic {
  std::string name;
  std::string title;
  std::string options;
};

std::vector<Topic> sections() {
  return {{"solver", "solver", help_of<recsys::SolverOptions>()},
          {"optimizer", "optimizer, and the object `optimizer` of a table", help_of<optim::OptimizerOptions>()},
          {"data", "data", help_of<recsys::DataOptions>()}};
}

std::vector<Topic> layers() {
  std::vector<Topic> topics = {{"Data", "layer Data",
                                "label:\n" + help_of<recsys::LabelOptions>() + "dense:\n" +
                                    help_of<recsys::DenseOptions>() + "sparse, a list:\n" +
                                    help_of<recsys::SparseOptions>()}};
  const std::string table = "sparse_embedding_hparam:\n" + help_of<recsys::EmbeddingParameters>();
  for (const std::string_view type : recsys::kEmbeddingTypes)
    topics.push_back({std::string(type), str_cat({"layer ", type}), table});
  topics.push_back({"EmbeddingLookup", "layer EmbeddingLookup", help_of<recsys::LookupOptions>() + table});
  for (const recsys::LayerEntry& layer : recsys::layer_entries())
    layer.show_options([&](OptionTable options, const void* defaults) {
      topics.push_back({std::string(layer.type), str_cat({"layer ", layer.type}),
                        options.count == 0 ? "  no options\n" : help_of(options, defaults)});
    });
  return topics;
}

std::vector<Topic> models() {
  std::vector<Topic> topics;
  for (const std::string_view name : recsys::preset_names()) {
    std::string text;
    const Json config = parse_json(recsys::preset(name), name, JsonErrors::Config);
    for (const auto& [key, value] : config.at("about").items())
      text += str_cat({"  ", key, ": ", value.get<std::string>(), "\n"});
    topics.push_back({std::string(name), str_cat({"model ", name}), text});
  }
  return topics;
}

std::string text_of(const std::vector<Topic>& topics) {
  std::string text;
  for (const Topic& topic : topics) text += (text.empty() ? "" : "\n") + topic.title + "\n" + topic.options;
  return text;
}

/** The names in lines of at most 100 columns. */
std::string list_of(const std::vector<Topic>& topics) {
  std::string text, line;
  for (const Topic& topic : topics) {
    if (line.size() + topic.name.size() > 96) {
      text += line + "\n";
      line.clear();
    }
    line += "  " + topic.name;
  }
  return text + line + "\n";
}

std::string overview() {
  return text_of(sections()) +
         "\nlayers; `tercel config TYPE` shows the options of one, `tercel config layers` of all\n" +
         list_of(layers()) + "\nmodels; `tercel config MODEL` shows the paper of one, `tercel config models` of all\n" +
         list_of(models());
}

std::string text_of_topic(const std::string& name) {
  if (name == "layers") return text_of(layers());
  if (name == "models") return text_of(models());
  std::vector<Topic> all = sections();
  for (Topic& layer : layers()) all.push_back(std::move(layer));
  for (Topic& model : models()) all.push_back(std::move(model));
  std::vector<std::string_view> known = {"layers", "models"};
  for (const Topic& topic : all) {
    if (topic.name == name) return text_of({topic});
    known.push_back(topic.name);
  }
  throw_error<ConfigError>(
      {"config: unknown section, type of layers or model '", printable(name), "'", known_names(name, known)});
}

}  // namespace

int run_config(CommandLine& line) {
  std::string topic;
  line.optional_argument("TOPIC",
                         "solver, optimizer, data, layers, models, a type of layers as InnerProduct, or a shipped "
                         "model as dlrm; default: all",
                         topic);
  line.example("tercel config solver");
  if (!line.parse()) {
    print_text({}, "\n" + overview());  // "tercel help config"
    return 0;
  }
  print_text({}, topic.empty() ? overview() : text_of_topic(topic));
  return 0;
}

}  // namespace tercel::cli
