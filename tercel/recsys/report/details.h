// details.json of a run's folder: reliability diagrams and slices of the last evaluation of each part.
#pragma once

#include <cstdint>
#include <string>
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

/** Writes a file, atomically. IoError. */
TERCEL_API void write_details(const std::string& path, const std::vector<EvaluationDetails>& all);
/** Reads it; none if it does not exist. DataError for a file that write_details() does not write. */
TERCEL_API std::vector<EvaluationDetails> read_details(const std::string& path);

}  // namespace tercel::recsys
