// PyTorch's names of element types in error messages.
#pragma once

#include <string_view>

#include "tercel/core/scalar_type.h"

namespace tercel {

/** As in the names of PyTorch's old tensor types: "Float", "Long", "ComplexDouble". */
TERCEL_API std::string_view scalar_type_word(ScalarType t);
/** As in C++: "float", "long int", "c10::Half". */
TERCEL_API std::string_view cpp_type_name(ScalarType t);
/** By its alias in C++: "float", "int64_t", "at::Half". */
TERCEL_API std::string_view cpp_type_alias(ScalarType t);
/** NotImplementedError: "op" not implemented for 'Float'. */
[[noreturn]] TERCEL_API void refuse_dtype(std::string_view op, ScalarType t);

}  // namespace tercel
