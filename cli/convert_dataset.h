// `tercel convert dataset`: rows of a dataset in another format. Private.
#pragma once

#include <string>

#include "cli/command.h"
#include "tercel/data/convert_dataset.h"

namespace tercel::cli {

CommandFunction run_convert_dataset;

/** Converts with a progress line, and prints a summary. */
void write_converted(const data::Dataset& source, const std::string& out, const data::ConvertDatasetOptions& options,
                     bool force, const CommonOptions& common);

}  // namespace tercel::cli
