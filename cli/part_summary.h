// Summaries of a dataset's parts, for commands that make one. Private.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "tercel/data/dataset.h"
#include "tercel/util/json_impl.h"

namespace tercel::cli {

/** "13 dense values and 26 slots with 31,187 keys". */
std::string schema_text(const data::Schema& schema);

/** "  train: 900,000 rows in 1 file, 320.1 MiB; click-through rate 0.2507; true AUC 0.7995, log loss 0.4462". */
std::string part_text(std::string_view name, const data::DataPart& part, int64_t clicks);

/** The same as JSON. */
Json part_json(const data::DataPart& part, int64_t clicks);

/** A warning with the number of bad records that were left out and the first of them; nothing if there are none. */
void print_bad_records(const CommonOptions& common, int64_t count, const std::string& first);

}  // namespace tercel::cli
