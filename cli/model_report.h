// What a command says about the model that it loads. Private.
#pragma once

#include "cli/command.h"
#include "tercel/recsys/prediction.h"

namespace tercel::cli {

/** Prints the model's warnings, and a line if its checkpoint is older than the run's last one. */
void report_model(const CommonOptions& common, const recsys::LoadedModel& model);

}  // namespace tercel::cli
