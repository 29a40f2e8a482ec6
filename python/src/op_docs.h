// What operations do, in words.
#pragma once

#include <string>
#include <string_view>

namespace tercel::python {

/** What is said of an operation outside of its entries; empty for nothing. `argument` is its first argument's name. */
std::string op_doc(std::string_view name, std::string_view argument);

}  // namespace tercel::python
