#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/convert_dataset.h"
#include "cli/convert_movielens.h"
#include "cli/convert_text.h"
#include "cli/part_summary.h"
#include "tercel/data/convert_dataset.h"
#include "tercel/data/dataset.h"
#include "tercel/data/dataset_format.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::cli {

CommandFunction run_convert;

namespace {

struct DescribeFlags {
  std::string to = {};
  bool force = false;

  static constexpr auto fields() {
    return option_list(option_field<&DescribeFlags::to>(
                           "to", "write the rows in this format, with its default options, in place of a description"),
                       option_field<&DescribeFlags::force>("force", "replace an existing dataset"));
  }
};

/** Describes files of other tools, or converts them. */
int run_describe(CommandLine& line) {
  // The last word of the command's name.
  const std::string& name = line.name();
  const data::FormatEntry& entry =
      data::find_format(std::string_view(name).substr(name.rfind(' ') + 1), line.command());
  const std::unique_ptr<data::FilesSpec> spec = entry.make_spec();
  std::string out;
  DescribeFlags flags;
  CommonOptions common;
  const std::string_view files = spec->files_option();
  for (const OptionField& field : spec->option_table())
    if (field.name == files)
      line.arguments("TRAIN", field.help, *static_cast<std::vector<std::string>*>(field.locate(spec->options())));
  line.argument("OUT", "folder of the new dataset", out);
  line.options(spec->option_table(), spec->options(), files);
  line.options(flags);
  line.options(common);
  const std::string example = str_cat({line.name(), " ", entry.example});
  line.example(example);
  if (!line.parse()) return 0;
  prepare_output_folder(out, flags.force);
  const data::Dataset source = flags.force ? spec->describe_for(out) : spec->describe();
  TERCEL_CHECK(source.train.rows() > 0, DataError, line.command(), ": expected train rows, found none in ",
               source.train.files.size(), " files");
  if (!flags.to.empty()) {
    data::ConvertDatasetOptions options;
    options.format = data::make_format_like(source, flags.to, line.command());
    write_converted(source, out, options, flags.force, common);
    return 0;
  }
  const data::Dataset dataset = data::describe_files(source, out, flags.force);
  std::string parts;
  for (const auto& [part_name, part] : dataset.parts())
    if (part_name != data::PartName::Valid || part.rows() > 0)
      parts += str_cat({parts.empty() ? "" : " and ", format_count(part.rows()), " ", to_string(part_name), " rows"});
  print_text(common, str_cat({"wrote ", printable(out), ": ", parts, " of ", schema_text(dataset.schema),
                              "; the files stay where they are\n"}));
  if (common.json) {
    Json json;
    json["dataset"] = out;
    for (const auto& [part_name, part] : dataset.parts()) json[std::string(to_string(part_name))]["rows"] = part.rows();
    print_line(dump_json_line(json));
  }
  return 0;
}

}  // namespace

int run_convert(CommandLine& line) {
  std::vector<Command> commands(text_commands().begin(), text_commands().end());
  commands.push_back(
      {"movielens", "MovieLens' ratings, to items that users have rated and others", run_convert_movielens});
  commands.push_back({"dataset", "a dataset, to files of another format", run_convert_dataset});
  for (const data::FormatEntry& entry : data::dataset_formats())
    commands.push_back({entry.name, entry.summary, run_describe});
  return line.dispatch(commands);
}

}  // namespace tercel::cli
