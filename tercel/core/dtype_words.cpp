#include "tercel/core/dtype_words.h"

namespace tercel {

void refuse_dtype(std::string_view op, ScalarType t) {
  throw_error<NotImplementedError>({"\"", op, "\" not implemented for '", scalar_type_word(t), "'"});
}

}  // namespace tercel
