#include <cstdio>

#include "cli/console.h"
#include "cli/part_summary.h"
#include "tercel/data/batch_reader.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::cli {

namespace {

std::string four_digits(double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.4f", value);
  return buffer;
}

std::string counted(int64_t count, std::string_view what) {
  return str_cat({format_count(count), " ", what, count == 1 ? "" : "s"});
}

}  // namespace

std::string schema_text(const data::Schema& schema) {
  std::string text = counted(schema.dense_dim, "dense value") + " and " + counted(schema.slot_num(), "slot");
  if (schema.slot_num() > 0)
    text += schema.num_keys() > 0 ? " with " + counted(schema.num_keys(), "key") : " of any keys";
  return text;
}

std::string part_text(std::string_view name, const data::DataPart& part, int64_t clicks) {
  const int64_t rows = part.rows();
  std::string out =
      str_cat({"  ", name, ": ", counted(rows, "row"), " in ", counted(static_cast<int64_t>(part.files.size()), "file"),
               ", ", format_bytes(part.bytes()), "; click-through rate ",
               four_digits(static_cast<double>(clicks) / static_cast<double>(rows))});
  if (part.truth)
    out += str_cat({"; true AUC ", four_digits(part.truth->auc), ", log loss ", four_digits(part.truth->log_loss)});
  return out + "\n";
}

Json part_json(const data::DataPart& part, int64_t clicks) {
  Json json;
  json["rows"] = part.rows();
  json["files"] = part.files.size();
  json["bytes"] = part.bytes();
  json["clicks"] = clicks;
  if (part.truth) {
    json["true_auc"] = part.truth->auc;
    json["true_log_loss"] = part.truth->log_loss;
  }
  return json;
}

void print_bad_records(const CommonOptions& common, int64_t count, const std::string& first) {
  if (count == 0) return;
  print_warning(common, data::bad_records_text(count, first));
}

}  // namespace tercel::cli
