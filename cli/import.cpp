#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/model_config.h"
#include "cli/model_format.h"
#include "tercel/data/dataset.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/warning.h"

namespace tercel::cli {

CommandFunction run_import;

namespace {

struct ImportFlags {
  std::string data;
  std::string model;
  std::string format;
  int64_t threads = 0;

  static constexpr auto fields() {
    return option_list(
        option_field<&ImportFlags::data>("data", "folder of the dataset whose rows the model reads; needed"),
        option_field<&ImportFlags::model>(
            "model",
            "a shipped model, or a configuration file in JSON, as a run's config.json or the graph.json of an export; "
            "needed"),
        option_field<&ImportFlags::format>(
            "format", "hugectr, safetensors or state_dict (a .pt file); default by the ending of FILES"),
        option_field<&ImportFlags::threads>("threads", "threads; 0: one for each CPU that may be used", at_least(0),
                                            at_most(1024)));
  }
};

}  // namespace

int run_import(CommandLine& line) {
  std::string files, out;
  ImportFlags flags;
  CommonOptions common;
  std::vector<std::string> assignments;
  line.argument("FILES", "file of a model; of HugeCTR's PREFIX_dense_N.model, which the others are beside, or a folder",
                files);
  line.argument("RUN", "folder of the new run, which eval, predict, train --resume auto and --init-from read", out);
  line.options(flags);
  line.repeated("--set", "SECTION.OPTION=VALUE of the configuration; may be given several times", assignments);
  line.options(common);
  line.example("tercel import out/model_dense_1000.model runs/second --data data --model out/graph.json");
  if (!line.parse()) return 0;
  TERCEL_CHECK(!flags.data.empty(), ConfigError,
               "import: expected --data, the folder of a dataset whose rows the model reads, found none");
  TERCEL_CHECK(!flags.model.empty(), ConfigError,
               "import: expected --model, a shipped model or a configuration file, found none");
  use_threads(flags.threads, common);
  set_warning_handler([common](const std::string& text) { print_warning(common, text); });
  const recsys::ModelFormat format = model_format(flags.format, files);
  recsys::ModelConfig config = named_config(flags.model);
  if (config.model_name.empty()) config.model_name = "model";
  for (const std::string& assignment : assignments) recsys::set_config(config, assignment);
  const data::Dataset dataset = data::load_dataset(flags.data);
  const recsys::ImportedModel imported = recsys::import_model(config, dataset, files, format, out);
  std::string text = str_cat({"made ", printable(imported.checkpoint), " of ", to_string(format),
                              " files: ", format_count(imported.rows), " rows of tables"});
  if (imported.initial_rows > 0)
    text +=
        str_cat({", and ", format_count(imported.initial_rows), " with initial values, whose keys they do not have"});
  text += imported.has_states ? "; training goes on with the states of the optimizers\n"
                              : "; without states of optimizers: training begins with new ones\n";
  print_text(common, text);
  if (common.json)
    print_line(dump_json_line({{"run", out},
                               {"format", to_string(format)},
                               {"checkpoint", imported.checkpoint},
                               {"step", imported.step},
                               {"rows", imported.rows},
                               {"initial_rows", imported.initial_rows},
                               {"has_states", imported.has_states}}));
  return 0;
}

}  // namespace tercel::cli
