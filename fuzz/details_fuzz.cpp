// Any text is the details of evaluations or a DataError, and details survive a round trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tercel/recsys/report/details.h"
#include "tercel/util/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tercel;
  std::string printed;
  try {
    printed = recsys::details_text(
        recsys::parse_details(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz"));
  } catch (const DataError&) {
    return 0;
  }
  if (recsys::details_text(recsys::parse_details(printed, "again")) != printed) std::abort();
  return 0;
}
