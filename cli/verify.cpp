#include <algorithm>
#include <chrono>
#include <optional>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/part_summary.h"
#include "tercel/data/verify_dataset.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::cli {

CommandFunction run_verify;

namespace {

struct VerifyFlags {
  bool all = false;
  int64_t max_faults = 100;
  bool binary_labels = true;
  int64_t threads = 0;

  static constexpr auto fields() {
    return option_list(
        option_field<&VerifyFlags::all>("all", "go on after the first fault"),
        option_field<&VerifyFlags::max_faults>("max_faults", "with --all: faults after which to stop", at_least(1),
                                               at_most(1 << 20)),
        option_field<&VerifyFlags::binary_labels>("binary_labels", "refuse labels other than 0 and 1"),
        option_field<&VerifyFlags::threads>("threads", "threads that decode; 0: one for each CPU that may be used",
                                            at_least(0), at_most(1024)));
  }
};

}  // namespace

int run_verify(CommandLine& line) {
  std::string path;
  VerifyFlags flags;
  CommonOptions common;
  line.argument("DATA", "folder of a dataset", path);
  line.options(flags);
  line.options(common);
  line.example("tercel verify data --all");
  if (!line.parse()) return 0;
  use_threads(flags.threads, common);
  const data::Dataset dataset = data::load_dataset(path);

  const auto start = std::chrono::steady_clock::now();
  std::optional<Progress> progress(std::in_place, common, "verify");
  const data::VerifyOptions options{flags.all ? flags.max_faults : 1, flags.binary_labels};
  const data::VerifyResult result = data::verify_dataset(dataset, options, [&](const data::VerifyProgress& now) {
    check_interrupted();
    const double total = static_cast<double>(std::max<int64_t>(1, now.bytes_total));
    progress->update(static_cast<double>(now.bytes_done) / total, now.rows);
  });
  progress.reset();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  for (const std::string& fault : result.faults) print_error(fault);
  if (result.faults.empty()) {
    std::string text =
        str_cat({printable(path), ": ", format_count(result.rows), " rows of ", schema_text(dataset.schema), " in ",
                 format_count(result.files), " files, ", format_bytes(result.bytes), ": all follow the rules"});
    if (result.unsummed > 0) text += str_cat({"; ", format_count(result.unsummed), " files have no recorded checksum"});
    print_text(common, str_cat({text, " (", format_duration(seconds), ")\n"}));
  }
  if (common.json) {
    Json json;
    json["dataset"] = path;
    json["files"] = result.files;
    json["rows"] = result.rows;
    json["bytes"] = result.bytes;
    json["files_without_checksum"] = result.unsummed;
    json["seconds"] = seconds;
    json["faults"] = result.faults;
    print_line(dump_json_line(json));
  }
  return static_cast<int>(result.faults.empty() ? ExitCode::Ok : ExitCode::Data);
}

}  // namespace tercel::cli
