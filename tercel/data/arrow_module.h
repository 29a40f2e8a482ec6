// The module that reads and writes Parquet, libtercel_arrow.so: where it is looked for.
//
// It is loaded when the first Parquet file is opened; programs that open none never need it, nor Arrow. It is looked
// for where the environment variable TERCEL_ARROW_MODULE says; beside the library or program, and in lib, ../lib and
// ../lib64 of there; and where the system's loader looks. The Arrow that it was built for, libarrow.so and
// libparquet.so of one major version, is looked for in the folder of TERCEL_ARROW_LIBRARIES; that of
// set_arrow_folder(), which the Python package sets to that of pyarrow; where it was when the module was built; and
// where the system's loader looks.
#pragma once

#include <string>

#include "tercel/util/export.h"

namespace tercel::data {

/** Where Arrow's libraries are, if the module is not loaded yet; empty: not known. */
TERCEL_API void set_arrow_folder(const std::string& folder);

/** The version of Arrow, "26.0.1"; loads the module. RuntimeError that says what to install if it is not there. */
TERCEL_API std::string arrow_version();

/** Whether the library was built together with the module. */
TERCEL_API bool has_arrow_module();

}  // namespace tercel::data
