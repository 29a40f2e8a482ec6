// `tercel convert movielens`.
#include "cli/convert_movielens.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/format_flags.h"
#include "cli/part_summary.h"
#include "tercel/data/movielens.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::cli {

namespace {

struct MovielensFlags {
  bool force = false;

  static constexpr auto fields() {
    return option_list(option_field<&MovielensFlags::force>("force", "replace an existing dataset"));
  }
};

}  // namespace

int run_convert_movielens(CommandLine& line) {
  std::vector<std::string> in;
  std::string out;
  data::MovielensOptions options;
  MovielensFlags flags;
  CommonOptions common;
  line.arguments("IN", "ratings.csv, u.data or ratings.dat, plain or gzip", in);
  line.argument("OUT", "folder of the new dataset", out);
  line.options(options);
  FormatFlags format(line, options.format);
  line.options(flags);
  line.options(common);
  line.example("tercel convert movielens ml-20m/ratings.csv ml-20m-ncf --seed 1");
  if (!line.parse()) return 0;
  options.format = format.format();
  prepare_output_folder(out, flags.force);
  const auto start = std::chrono::steady_clock::now();
  std::optional<Progress> progress(std::in_place, common, "convert");
  const data::MovielensResult result =
      data::convert_movielens(in, out, options, flags.force, [&](double share, int64_t rows) {
        check_interrupted();
        progress->update(share, rows);
      });
  progress.reset();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const data::Dataset& dataset = result.dataset;
  std::string text =
      str_cat({"wrote ", printable(out), ": ", format_count(dataset.rows()), " rows of ", format_count(result.users),
               " users and ", format_count(result.items), " items in ", format_duration(seconds), "\n"});
  text += part_text("train", dataset.train, result.train_positives);
  if (!dataset.test.files.empty()) text += part_text("test", dataset.test, result.test_positives);
  print_text(common, text);
  if (common.json) {
    Json json;
    json["dataset"] = out;
    json["seconds"] = seconds;
    json["users"] = result.users;
    json["items"] = result.items;
    json["train"] = part_json(dataset.train, result.train_positives);
    if (!dataset.test.files.empty()) json["test"] = part_json(dataset.test, result.test_positives);
    print_line(dump_json_line(json));
  }
  return 0;
}

}  // namespace tercel::cli
