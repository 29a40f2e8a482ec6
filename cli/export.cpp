#include <string>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/model_format.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::cli {

CommandFunction run_export;

namespace {

struct ExportFlags {
  std::string format;

  static constexpr auto fields() {
    return option_list(option_field<&ExportFlags::format>(
        "format",
        "hugectr: a folder with the graph, dense weights, tables and states of optimizers; safetensors or "
        "state_dict (a .pt file): weights, running statistics and tables by name; default by the ending of OUT"));
  }
};

}  // namespace

int run_export(CommandLine& line) {
  std::string run, out;
  ExportFlags flags;
  CommonOptions common;
  line.argument("RUN", "folder of a run (its best checkpoint is taken) or of a checkpoint in it", run);
  line.argument("OUT", "new folder of HugeCTR's files, or new file", out);
  line.options(flags);
  line.options(common);
  line.example("tercel export runs/first model.safetensors");
  if (!line.parse()) return 0;
  const recsys::ModelFormat format = model_format(flags.format, out);
  const recsys::ExportedModel exported = recsys::export_model(run, out, format);
  for (const std::string& warning : exported.warnings) print_warning(common, warning);
  print_text(common, str_cat({"wrote ", printable(exported.checkpoint), " as ", to_string(format), " to ",
                              printable(out), ": ", format_count(exported.parameters), " dense weights and ",
                              format_count(exported.rows), " rows of tables\n"}));
  if (common.json)
    print_line(dump_json_line({{"out", out},
                               {"format", to_string(format)},
                               {"checkpoint", exported.checkpoint},
                               {"step", exported.step},
                               {"parameters", exported.parameters},
                               {"rows", exported.rows}}));
  return 0;
}

}  // namespace tercel::cli
