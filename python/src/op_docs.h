// Descriptions of operations.
#pragma once

#include <string>
#include <string_view>

namespace tercel::python {

/** Description of an operation without its entries'; empty if none. `argument` is the name of its first argument. */
std::string op_doc(std::string_view name, std::string_view argument);

}  // namespace tercel::python
