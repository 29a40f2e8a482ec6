// The package name in type names and representations.
#pragma once

#include <string>

namespace tercel::python {

/** "tercel", or "torch" in a process where Tercel is imported under that name. */
const std::string& package_name();

}  // namespace tercel::python
