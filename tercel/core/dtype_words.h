// What PyTorch calls element types in its sentences, and the sentences that name nothing else.
#pragma once

#include <string_view>

#include "tercel/core/scalar_type.h"

namespace tercel {

/** As its old tensor types have it: "Float", "Long", "ComplexDouble". */
TERCEL_API std::string_view scalar_type_word(ScalarType t);
/** As C++ has it: "float", "long int", "c10::Half". */
TERCEL_API std::string_view cpp_type_name(ScalarType t);
/** NotImplementedError: "op" not implemented for 'Float'. */
[[noreturn]] TERCEL_API void refuse_dtype(std::string_view op, ScalarType t);

}  // namespace tercel
