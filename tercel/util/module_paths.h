// Where modules of the library may be, which are loaded when they are needed.
#pragma once

#include <string>
#include <vector>

#include "tercel/util/export.h"

namespace tercel {

/**
 * Paths of a module for dlopen(), in the order in which they are tried: only that in the environment variable, if it is
 * set; else the files that exist beside the library or program, and in lib, ../lib and ../lib64 of there; last the bare
 * name, for the system's loader.
 */
TERCEL_API std::vector<std::string> module_paths(const std::string& file, const char* variable);

}  // namespace tercel
