#include "tercel/data/convert.h"

#include <chrono>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/convert_dataset.h"
#include "cli/format_flags.h"
#include "cli/part_summary.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::cli {

CommandFunction run_convert;

namespace {

struct ConvertFlags {
  bool force = false;

  static constexpr auto fields() {
    return std::tuple(Field{"force", &ConvertFlags::force, "replace an existing dataset"});
  }
};

using ConvertProgressFunction = FunctionRef<void(const data::ConvertProgress&)>;

/** Runs a conversion with a progress line, and prints a summary. */
template <class Convert>
int report(const std::string& out, const ConvertFlags& flags, const CommonOptions& common, Convert convert) {
  prepare_output_folder(out, flags.force);
  const auto start = std::chrono::steady_clock::now();
  std::optional<Progress> progress(std::in_place, common, "convert");
  const data::ConvertResult result = convert([&](const data::ConvertProgress& now) {
    check_interrupted();
    const double share =
        now.bytes_total > 0 ? static_cast<double>(now.bytes_done) / static_cast<double>(now.bytes_total) : 0;
    progress->update(share, now.rows, now.pass == 1 ? "pass 1 of 2" : "pass 2 of 2");
  });
  progress.reset();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const data::Dataset& dataset = result.dataset;
  const data::Schema& schema = dataset.schema;
  const int64_t rows = dataset.train.rows() + dataset.test.rows();
  const int64_t seen = std::accumulate(result.categories_seen.begin(), result.categories_seen.end(), int64_t{0});
  std::string text =
      str_cat({"wrote ", printable(out), ": ", format_count(rows), rows == 1 ? " row of " : " rows of ",
               schema_text(schema), " (of ", format_count(seen), seen == 1 ? " category" : " categories", ") in ",
               format_duration(seconds), " (", format_short(static_cast<double>(rows) / seconds), " rows/s)\n"});
  text += part_text("train", dataset.train, result.train_clicks);
  text += dataset.test.rows() > 0 ? part_text("test", dataset.test, result.test_clicks) : "  test: none\n";
  print_text(common, text);
  if (common.json) {
    Json json;
    json["dataset"] = out;
    json["seconds"] = seconds;
    json["dense_dim"] = schema.dense_dim;
    json["slots"] = schema.slot_num();
    json["keys"] = schema.num_keys();
    json["categories_seen"] = seen;
    json["train"] = part_json(dataset.train, result.train_clicks);
    if (dataset.test.rows() > 0) json["test"] = part_json(dataset.test, result.test_clicks);
    print_line(dump_json_line(json));
  }
  return 0;
}

constexpr std::string_view kInputHelp =
    "files of text, plain or gzip, in order; '-': the standard input, which is stored beside OUT during conversion";

int run_criteo(CommandLine& line) {
  std::vector<std::string> in;
  std::string out;
  data::CriteoOptions options;
  ConvertFlags flags;
  CommonOptions common;
  line.arguments("IN", kInputHelp, in);
  line.argument("OUT", "folder of the new dataset", out);
  line.options(options);
  FormatFlags format(line);
  line.options(flags);
  line.options(common);
  line.example("tercel convert criteo train.txt.gz data --min-count 4 --test-every 10");
  if (!line.parse()) return 0;
  options.format = format.format();
  return report(out, flags, common, [&](ConvertProgressFunction progress) {
    return data::convert_criteo(in, out, options, flags.force, progress);
  });
}

int run_csv(CommandLine& line) {
  std::vector<std::string> in;
  std::string out;
  data::CsvOptions options;
  ConvertFlags flags;
  CommonOptions common;
  line.arguments("IN", kInputHelp, in);
  line.argument("OUT", "folder of the new dataset", out);
  line.options(options);
  FormatFlags format(line);
  line.options(flags);
  line.options(common);
  line.example(
      "tercel convert csv people.csv data --label income --positive '>50K' --dense age,hours --categorical job,sex");
  if (!line.parse()) return 0;
  options.format = format.format();
  return report(out, flags, common, [&](ConvertProgressFunction progress) {
    return data::convert_csv(in, out, options, flags.force, progress);
  });
}

struct DescribeFlags {
  std::string to = {};

  static constexpr auto fields() {
    return std::tuple(Field{"to", &DescribeFlags::to,
                            "write the rows in this format, with its default options, in place of a description"});
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
  ConvertFlags flags;
  CommonOptions common;
  const std::string_view files = spec->files_option();
  for (const OptionField& field : spec->option_table())
    if (field.name == files)
      line.arguments("TRAIN", field.help, *static_cast<std::vector<std::string>*>(field.locate(spec->options())));
  line.argument("OUT", "folder of the new dataset", out);
  line.options(spec->option_table(), spec->options(), files);
  DescribeFlags target;
  line.options(target);
  line.options(flags);
  line.options(common);
  const std::string example = str_cat({line.name(), " ", entry.example});
  line.example(example);
  if (!line.parse()) return 0;
  prepare_output_folder(out, flags.force);
  if (!target.to.empty()) {
    const data::Dataset source = spec->describe();
    data::ConvertDatasetOptions options;
    options.format = data::make_format_like(source, target.to, line.command());
    write_converted(source, out, options, flags.force, common);
    return 0;
  }
  const data::Dataset dataset = data::describe_files(spec->describe(), out, flags.force);
  print_text(common, str_cat({"wrote ", printable(out), ": ", format_count(dataset.train.rows()), " train rows and ",
                              format_count(dataset.test.rows()), " test rows of ", schema_text(dataset.schema),
                              "; the files stay where they are\n"}));
  if (common.json) {
    Json json;
    json["dataset"] = out;
    json["train"]["rows"] = dataset.train.rows();
    json["test"]["rows"] = dataset.test.rows();
    print_line(dump_json_line(json));
  }
  return 0;
}

constexpr Command kTextFormats[] = {
    {"criteo", "Criteo's click logs: label, 13 integers, 26 categories, separated by tabs", run_criteo},
    {"csv", "any table of text with a label", run_csv},
    {"dataset", "a dataset, to files of another format", run_convert_dataset},
};

}  // namespace

int run_convert(CommandLine& line) {
  std::vector<Command> commands(std::begin(kTextFormats), std::end(kTextFormats));
  for (const data::FormatEntry& entry : data::dataset_formats())
    commands.push_back({entry.name, entry.summary, run_describe});
  return line.dispatch(commands);
}

}  // namespace tercel::cli
