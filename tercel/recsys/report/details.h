// details.json of a run's folder: reliability diagrams and slices of the last evaluation of each part.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/recsys/metrics/head_metrics.h"
#include "tercel/util/export.h"

namespace tercel::recsys {

/** Details of an evaluation. */
struct EvaluationDetails {
  std::string part;  ///< whose rows: "valid", "test"
  int64_t step = 0;
  std::string slice_by;  ///< slot of the slices, or empty
  std::vector<HeadDetails> heads;
};

/** The content of the file. */
TERCEL_API std::string details_text(const std::vector<EvaluationDetails>& all);
/** Reads it; `name` is that of the file, for messages. DataError for a text that details_text() does not write. */
TERCEL_API std::vector<EvaluationDetails> parse_details(std::string_view text, std::string_view name);
/** Writes a file, atomically. IoError. */
TERCEL_API void write_details(const std::string& path, const std::vector<EvaluationDetails>& all);
/** Reads it; none if it does not exist. DataError as parse_details(). */
TERCEL_API std::vector<EvaluationDetails> read_details(const std::string& path);

}  // namespace tercel::recsys
