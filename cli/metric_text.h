// Printing of metrics. Private.
#pragma once

#include <string>

#include "tercel/recsys/evaluate.h"
#include "tercel/util/json_impl.h"

namespace tercel::cli {

/** "auc 0.7871  log_loss 0.4338  accuracy 0.7955  calibration 1.0021". */
std::string metric_text(const recsys::MetricValues& values);

/** Adds them to an object; NaN becomes null. */
void add_metrics(Json& json, const recsys::MetricValues& values);

}  // namespace tercel::cli
