// Any text describes a dataset or is a DataError; a valid description survives a round trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tercel/data/dataset.h"
#include "tercel/util/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tercel::data::Dataset;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Dataset dataset;
  try {
    dataset = tercel::data::dataset_from_json(text, "fuzz");
  } catch (const tercel::DataError&) {
    return 0;
  }
  const std::string written = tercel::data::dataset_to_json(dataset);
  const Dataset again = tercel::data::dataset_from_json(written, "again");
  if (again.schema != dataset.schema || again.train != dataset.train || again.test != dataset.test ||
      again.valid != dataset.valid)
    std::abort();
  if (again.conversion != dataset.conversion) std::abort();
  if (tercel::data::dataset_to_json(again) != written) std::abort();
  return 0;
}
