// `tercel convert dataset`.
#include "cli/convert_dataset.h"

#include <chrono>
#include <optional>
#include <string>

#include "cli/console.h"
#include "cli/format_flags.h"
#include "cli/part_summary.h"
#include "tercel/data/convert_dataset.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::cli {

namespace {

struct DatasetFlags {
  bool force = false;
  int64_t threads = 0;

  static constexpr auto fields() {
    return option_list(
        option_field<&DatasetFlags::force>("force", "replace an existing dataset"),
        option_field<&DatasetFlags::threads>("threads", "threads that decode; 0: one for each CPU that may be used",
                                             at_least(0), at_most(1024)));
  }
};

struct Request {
  std::string in, out;
  data::ConvertDatasetOptions options;
  DatasetFlags flags;
  CommonOptions common;
};

/** False if help was printed. Options of the format that are not given are as in the source, if that is known. */
bool parse(CommandLine line, const data::Dataset* source, Request& request) {
  line.argument("IN", "folder of a dataset", request.in);
  line.argument("OUT", "folder of the new dataset", request.out);
  line.options(request.options);
  const FormatFlags format(line, source);
  line.options(request.flags);
  line.options(request.common);
  line.example("tercel convert dataset data raw --to raw --slot-offsets add");
  if (!line.parse()) return false;
  request.options.format = format.format();
  return true;
}

std::string part_line(std::string_view name, const data::DataPart& part) {
  return str_cat({"  ", name, ": ", format_count(part.rows()), part.rows() == 1 ? " row in " : " rows in ",
                  format_count(static_cast<int64_t>(part.files.size())),
                  part.files.size() == 1 ? " file, " : " files, ", format_bytes(part.bytes()), "\n"});
}

Json part_numbers(const data::DataPart& part) {
  return {{"rows", part.rows()}, {"files", part.files.size()}, {"bytes", part.bytes()}};
}

}  // namespace

void write_converted(const data::Dataset& source, const std::string& out, const data::ConvertDatasetOptions& options,
                     bool force, const CommonOptions& common) {
  const int64_t rows = source.rows();
  const auto start = std::chrono::steady_clock::now();
  std::optional<Progress> progress(std::in_place, common, "convert");
  const data::ConvertDatasetResult result = data::convert_dataset(source, out, options, force, [&](int64_t done) {
    check_interrupted();
    progress->update(static_cast<double>(done) / static_cast<double>(rows), done);
  });
  progress.reset();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const data::Dataset& dataset = result.dataset;
  std::string text = str_cat({"wrote ", printable(out), ": ", format_count(rows - result.bad_records),
                              rows - result.bad_records == 1 ? " row of " : " rows of ", schema_text(dataset.schema),
                              " as ", dataset.format->name(), " in ", format_duration(seconds), " (",
                              format_short(static_cast<double>(rows) / seconds), " rows/s)\n"});
  for (const auto& [name, part] : dataset.parts())
    if (!part.files.empty()) text += part_line(to_string(name), part);
  print_text(common, text);
  print_bad_records(common, result.bad_records, result.first_bad_record);
  if (common.json) {
    Json json;
    json["dataset"] = out;
    json["format"] = dataset.format->name();
    json["seconds"] = seconds;
    json["bad_records"] = result.bad_records;
    for (const auto& [name, part] : dataset.parts())
      if (!part.files.empty()) json[std::string(to_string(name))] = part_numbers(part);
    print_line(dump_json_line(json));
  }
}

int run_convert_dataset(CommandLine& line) {
  Request request;
  if (!parse(line, nullptr, request)) return 0;
  const data::Dataset source = data::load_dataset(request.in);
  request = Request();
  if (!parse(line, &source, request)) return 0;
  prepare_output_folder(request.out, request.flags.force);
  use_threads(request.flags.threads, request.common);
  write_converted(source, request.out, request.options, request.flags.force, request.common);
  return 0;
}

}  // namespace tercel::cli
