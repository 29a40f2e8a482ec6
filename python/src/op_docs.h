// Descriptions of operations.
#pragma once

#include <string>
#include <string_view>

namespace tercel::python {

/** Description of an operation whose entries have no text; may be empty. `argument`: name of its first argument. */
std::string op_doc(std::string_view name, std::string_view argument);

}  // namespace tercel::python
