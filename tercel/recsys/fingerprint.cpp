#include "tercel/recsys/fingerprint_impl.h"
#include "tercel/util/checksum.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

std::string fingerprint_of(std::string_view text, ScalarType dtype) {
  const std::string hash = checksum_to_hex(checksum(text.data(), text.size()));
  return dtype == kFloat32 ? hash : str_cat({hash, "-", to_string(dtype)});
}

Fingerprint parts_of_fingerprint(std::string_view fingerprint) {
  const size_t dash = fingerprint.find('-');
  if (dash == std::string_view::npos) return {fingerprint, to_string(kFloat32)};
  return {fingerprint.substr(0, dash), fingerprint.substr(dash + 1)};
}

}  // namespace tercel::recsys
