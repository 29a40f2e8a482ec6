// Fingerprints of models. Private.
//
// Note [Fingerprints]
// A fingerprint is a hash of the names and shapes of a model's parameters and, unless they are float32, their dtype:
// "ff46ed5e355e9cfd", "ff46ed5e355e9cfd-float64".
#pragma once

#include <string>
#include <string_view>

#include "tercel/core/scalar_type.h"

namespace tercel::recsys {

/** The fingerprint of parameters of that dtype, from a text of their names and shapes. */
std::string fingerprint_of(std::string_view text, ScalarType dtype);

struct Fingerprint {
  std::string_view hash;
  std::string_view dtype;  ///< its name
};
/** The parts of a fingerprint; of any text, since it may come from a damaged file. */
Fingerprint parts_of_fingerprint(std::string_view fingerprint);

}  // namespace tercel::recsys
