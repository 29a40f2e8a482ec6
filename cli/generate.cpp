#include "tercel/data/generate.h"

#include <chrono>
#include <optional>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/format_flags.h"
#include "cli/part_summary.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::cli {

CommandFunction run_generate;

namespace {

struct GenerateFlags {
  bool force = false;
  int64_t threads = 0;

  static constexpr auto fields() {
    return option_list(option_field<&GenerateFlags::force>("force", "replace an existing dataset"),
                       option_field<&GenerateFlags::threads>(
                           "threads", "threads; 0: one for each CPU that may be used; the rows do not depend on it",
                           at_least(0), at_most(1024)));
  }
};

}  // namespace

int run_generate(CommandLine& line) {
  std::string out;
  data::GenerateOptions options;
  GenerateFlags flags;
  CommonOptions common;
  line.argument("OUT", "folder of the new dataset", out);
  line.options(options);
  FormatFlags format(line);
  line.options(flags);
  line.options(common);
  line.example("tercel generate data --preset criteo --rows 1000000 --seed 1");
  if (!line.parse()) return 0;
  options.format = format.format();
  prepare_output_folder(out, flags.force);
  use_threads(flags.threads, common);

  const auto start = std::chrono::steady_clock::now();
  std::optional<Progress> progress(std::in_place, common, "generate");
  const data::GenerateResult result = data::generate_dataset(out, options, flags.force, [&](int64_t rows) {
    check_interrupted();
    progress->update(static_cast<double>(rows) / static_cast<double>(options.rows), rows);
  });
  progress.reset();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const data::Dataset& dataset = result.dataset;
  std::string text =
      str_cat({"wrote ", printable(out), ": ", format_count(options.rows), options.rows == 1 ? " row of " : " rows of ",
               schema_text(dataset.schema), ", seed ", options.seed, ", in ", format_duration(seconds), " (",
               format_short(static_cast<double>(options.rows) / seconds), " rows/s)\n"});
  text += part_text("train", dataset.train, result.train_clicks);
  if (dataset.test.rows() > 0) text += part_text("test", dataset.test, result.test_clicks);
  print_text(common, text);
  if (common.json) {
    Json json;
    json["dataset"] = out;
    json["preset"] = to_string(options.preset);
    json["seed"] = options.seed;
    json["seconds"] = seconds;
    json["dense_dim"] = dataset.schema.dense_dim;
    json["slots"] = dataset.schema.slot_num();
    json["keys"] = dataset.schema.num_keys();
    json["train"] = part_json(dataset.train, result.train_clicks);
    if (dataset.test.rows() > 0) json["test"] = part_json(dataset.test, result.test_clicks);
    print_line(dump_json_line(json));
  }
  return 0;
}

}  // namespace tercel::cli
