// Records from JSON. Private.
#pragma once

#include <optional>

#include "tercel/recsys/report/metrics_record.h"
#include "tercel/util/json_impl.h"

namespace tercel::recsys {

/** A record of an object with kind and step; entries that are neither numbers nor null are left out. None without. */
std::optional<MetricsRecord> record_of(const Json& line);

}  // namespace tercel::recsys
