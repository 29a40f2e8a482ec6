#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "tercel/recsys/report/run_report.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::cli {

CommandFunction run_report;

namespace {

struct ReportFlags {
  std::string out = "report.html";

  static constexpr auto fields() {
    return option_list(option_field<&ReportFlags::out>("out", "file to write; an existing one is replaced"));
  }
};

}  // namespace

int run_report(CommandLine& line) {
  std::vector<std::string> folders;
  ReportFlags flags;
  CommonOptions common;
  line.arguments("RUN", "folders of runs, which are compared", folders);
  line.options(flags);
  line.options(common);
  line.example("tercel report runs/first runs/second --out report.html");
  if (!line.parse()) return 0;
  TERCEL_CHECK(!flags.out.empty(), ConfigError, "report: --out: expected the name of a file, found none");
  std::vector<recsys::RunContent> runs;
  for (const std::string& folder : folders) {
    runs.push_back(recsys::read_run(folder));
    for (const std::string& text : runs.back().warnings) print_warning(common, text);
  }
  write_file_atomically(flags.out, recsys::report_html(runs));
  print_text(common, str_cat({"wrote ", printable(flags.out), "\n"}));
  if (common.json) print_line(dump_json_line({{"out", flags.out}, {"runs", runs.size()}}));
  return 0;
}

}  // namespace tercel::cli
