// HugeCTR's file list: a text file whose first line is the number of files, then one path per line.
#pragma once

#include <string>
#include <vector>

#include "tercel/util/export.h"

namespace tercel::data {

/**
 * Paths of the files in a list. A relative path is resolved against the working directory, as in HugeCTR, and if it
 * does not exist there, against the list's folder. DataError if the count is not a positive number or too few lines
 * follow; further lines are ignored, as HugeCTR's generator writes each name twice.
 */
TERCEL_API std::vector<std::string> read_file_list(const std::string& path);

/** Writes a list, atomically. */
TERCEL_API void write_file_list(const std::string& path, const std::vector<std::string>& files);

}  // namespace tercel::data
