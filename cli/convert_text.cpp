#include "cli/convert_text.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cli/console.h"
#include "cli/format_flags.h"
#include "cli/part_summary.h"
#include "tercel/data/convert.h"
#include "tercel/recsys/prediction.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::cli {

namespace {

struct ConvertFlags {
  std::string like;
  bool force = false;
  int64_t threads = 0;

  static constexpr auto fields() {
    return option_list(
        option_field<&ConvertFlags::like>(
            "like", "folder of a dataset, a run or a checkpoint, whose vocabulary, transforms and options are taken"),
        option_field<&ConvertFlags::force>("force", "replace an existing dataset"),
        option_field<&ConvertFlags::threads>(
            "threads", "threads; 0: one for each CPU that may be used; the rows do not depend on it", at_least(0),
            at_most(1024)));
  }
};

constexpr std::string_view kInputHelp =
    "files of text, plain or gzip, in order; '-': the standard input, which is stored beside OUT during conversion";

std::string percent(int64_t part, int64_t whole) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.3g %%", 100 * static_cast<double>(part) / static_cast<double>(whole));
  return buffer;
}

/** "  ip: 1,460 of 2,014 values dropped, in 3.1 % of the train rows". */
std::string dropped_text(const data::ConvertResult& result) {
  std::string text;
  for (const data::FieldSummary& field : result.fields) {
    if (field.dropped_categories == 0) continue;
    text += str_cat({"  ", printable(field.name), ": ", format_count(field.dropped_categories), " of ",
                     format_count(field.categories), " values dropped, in ",
                     percent(field.dropped_values, field.is_list ? field.values : result.dataset.train.rows()),
                     " of the ", field.is_list ? "values in train rows" : "train rows", "\n"});
  }
  if (result.cut_values > 0)
    text += str_cat({"  ", format_count(result.cut_values), " values beyond the longest list allowed left out\n"});
  if (result.left_out_negatives > 0)
    text += str_cat({"  ", format_count(result.left_out_negatives),
                     " train rows of label 0 left out; predictions of models will be corrected for it\n"});
  return text;
}

Json result_json(const std::string& out, double seconds, const data::ConvertResult& result) {
  const data::Dataset& dataset = result.dataset;
  Json json;
  json["dataset"] = out;
  json["seconds"] = seconds;
  json["dense_dim"] = dataset.schema.dense_dim;
  json["slots"] = dataset.schema.slot_num();
  json["keys"] = dataset.schema.num_keys();
  json["categories_seen"] = result.categories();
  for (const data::FieldSummary& field : result.fields)
    json["fields"].push_back({{"name", field.name},
                              {"categories", field.categories},
                              {"dropped_categories", field.dropped_categories},
                              {"values", field.values},
                              {"dropped_values", field.dropped_values}});
  json["cut_values"] = result.cut_values;
  json["left_out_negatives"] = result.left_out_negatives;
  for (const auto& [name, part] : dataset.parts())
    if (!part.files.empty()) json[std::string(to_string(name))] = part_json(part, result.clicks(name));
  return json;
}

/** Runs a conversion with a progress line, and prints a summary. */
template <class Convert>
int report(const std::string& out, const ConvertFlags& flags, const CommonOptions& common, Convert convert) {
  use_threads(flags.threads, common);
  prepare_output_folder(out, flags.force);
  const auto start = std::chrono::steady_clock::now();
  std::optional<Progress> progress(std::in_place, common, "convert");
  const data::ConvertResult result = convert([&](const data::ConvertProgress& now) {
    check_interrupted();
    const double share =
        now.bytes_total > 0 ? static_cast<double>(now.bytes_done) / static_cast<double>(now.bytes_total) : 0;
    progress->update(share, now.rows, str_cat({"pass ", now.pass, " of ", now.passes}));
  });
  progress.reset();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const data::Dataset& dataset = result.dataset;
  const int64_t rows = dataset.rows(), seen = result.categories();
  std::string text = str_cat({"wrote ", printable(out), ": ", format_count(rows), rows == 1 ? " row of " : " rows of ",
                              schema_text(dataset.schema)});
  if (!result.fields.empty()) text += str_cat({" (of ", format_count(seen), seen == 1 ? " category)" : " categories)"});
  text += str_cat(
      {" in ", format_duration(seconds), " (", format_short(static_cast<double>(rows) / seconds), " rows/s)\n"});
  for (const auto& [name, part] : dataset.parts())
    if (!part.files.empty()) text += part_text(to_string(name), part, result.clicks(name));
  if (dataset.test.files.empty()) text += "  test: none\n";
  text += dropped_text(result);
  print_text(common, text);
  if (common.json) print_line(dump_json_line(result_json(out, seconds, result)));
  return 0;
}

std::string_view name_of(std::string_view word) { return word.substr(0, word.find('=')); }

/** Whether the words have a flag, with "-" or "_" between its words. */
bool has_flag(const std::vector<std::string>& words, std::string_view field) {
  return std::any_of(words.begin(), std::find(words.begin(), words.end(), "--"), [&](const std::string& word) {
    if (!word.starts_with("--")) return false;
    std::string name(name_of(std::string_view(word).substr(2)));
    std::replace(name.begin(), name.end(), '-', '_');
    return name == field;
  });
}

/** Options of a tool that --like sets too. */
template <class Options>
void check_like(const CommandLine& line) {
  for (const OptionField& field : option_table<Options>()) {
    const OptionTable own = option_table<data::LikeOptions>();
    const bool allowed =
        std::any_of(own.begin(), own.end(), [&](const OptionField& other) { return other.name == field.name; });
    std::string flag(field.name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    TERCEL_CHECK(allowed || !has_flag(line.words(), field.name), ConfigError, line.command(), ": options --like and --",
                 flag, " exclude each other: --", flag, " is that of the dataset or run");
  }
}

/** The dataset of --like; ConfigError unless the command's tool made it. */
data::Dataset load_like(const CommandLine& line, const std::string& path) {
  data::Dataset like = recsys::is_model_folder(path) ? recsys::text_description(path) : data::load_dataset(path);
  const std::string_view tool = std::string_view(line.name()).substr(line.name().rfind(' ') + 1);
  TERCEL_CHECK(like.conversion && like.conversion->tool == tool, ConfigError, line.command(),
               ": option --like: expected ", "a dataset that 'tercel convert ", tool, "' made, found one of ",
               like.conversion ? "'" + printable(like.conversion->tool) + "'" : std::string("another tool"));
  return like;
}

/** `tercel convert TOOL --like DATA`. */
int run_like(CommandLine& line) {
  std::vector<std::string> in;
  std::string out;
  data::Dataset like;
  data::LikeOptions options;
  ConvertFlags flags;
  CommonOptions common;
  // Which further flags there are depends on the format of the dataset. --like without a value is refused by parse().
  const std::string path = flag_value(line, "--like", "");
  if (!path.empty() && !path.starts_with("--") && !line.asks_for_help()) like = load_like(line, path);
  line.arguments("IN", kInputHelp, in);
  line.argument("OUT", "folder of the new dataset", out);
  line.options(options);
  const FormatFlags format(line, like.format);
  line.options(flags);
  line.options(common);
  if (!line.parse()) return 0;
  TERCEL_CHECK(!path.empty(), ConfigError, line.command(),
               ": option --like: expected the folder of a dataset, a run or a checkpoint, found none");
  options.format = format.format();
  return report(out, flags, common, [&](data::ConvertProgressFunction progress) {
    return data::convert_like(like, in, out, options, flags.force, progress);
  });
}

template <class Options>
using ConvertFunction = data::ConvertResult(const std::vector<std::string>&, const std::string&, const Options&, bool,
                                            data::ConvertProgressFunction);

/** The options before the command's flags are parsed: those of its recipe, if it has one. */
template <class Options>
Options initial_options(const CommandLine& line) {
  if constexpr (std::is_same_v<Options, data::CriteoOptions>) {
    data::CriteoRecipe recipe = data::CriteoRecipe::None;
    // A name that is none is refused when the flag is parsed.
    static_cast<void>(parse_enum(flag_value(line, "--recipe", "none"), recipe));
    return data::criteo_recipe(recipe, [&](std::string_view option) { return has_flag(line.words(), option); });
  }
  return {};
}

template <class Options>
int run_text(CommandLine& line, ConvertFunction<Options>& convert, std::string_view example) {
  if (has_flag(line.words(), "like")) {
    check_like<Options>(line);
    return run_like(line);
  }
  std::vector<std::string> in;
  std::string out;
  auto options = initial_options<Options>(line);
  ConvertFlags flags;
  CommonOptions common;
  line.arguments("IN", kInputHelp, in);
  line.argument("OUT", "folder of the new dataset", out);
  line.options(options);
  FormatFlags format(line);
  line.options(flags);
  line.options(common);
  line.example(example);
  if (!line.parse()) return 0;
  options.format = format.format();
  return report(out, flags, common, [&](data::ConvertProgressFunction progress) {
    return convert(in, out, options, flags.force, progress);
  });
}

int run_criteo(CommandLine& line) {
  return run_text<data::CriteoOptions>(line, data::convert_criteo,
                                       "tercel convert criteo train.txt.gz data --min-count 4 --test-every 10");
}

int run_csv(CommandLine& line) {
  return run_text<data::CsvOptions>(
      line, data::convert_csv,
      "tercel convert csv people.csv data --label income --positive '>50K' --dense age,hours --categorical job,sex");
}

int run_libsvm(CommandLine& line) {
  return run_text<data::LibsvmOptions>(line, data::convert_libsvm,
                                       "tercel convert libsvm a9a data --test a9a.t --min-count 2");
}

int run_libffm(CommandLine& line) {
  return run_text<data::LibffmOptions>(line, data::convert_libffm,
                                       "tercel convert libffm train.ffm data --hash-buckets 100000");
}

constexpr Command kTextFormats[] = {
    {"criteo", "Criteo's click logs: label, 13 integers, 26 categories, separated by tabs", run_criteo},
    {"csv", "any table of text with a label", run_csv},
    {"libsvm", "text of a label and features, index:value", run_libsvm},
    {"libffm", "text of a label and features with fields, field:index:value", run_libffm},
};

}  // namespace

Span<Command> text_commands() { return kTextFormats; }

}  // namespace tercel::cli
