// Any bytes are a vocabulary, which is written as the same bytes again, or a DataError. If the first byte of the input
// is odd, the rest gets a correct checksum, which mutation would not find.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/vocabulary.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tercel::data::Vocabulary;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 2 == 1) {
    const uint64_t sum = tercel::checksum(bytes.data(), bytes.size());
    bytes.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  }
  Vocabulary vocabulary;
  try {
    vocabulary = tercel::data::vocabulary_from_bytes(bytes, "fuzz");
  } catch (const tercel::DataError&) {
    return 0;
  }
  if (tercel::data::vocabulary_to_bytes(vocabulary) != bytes) std::abort();
  for (int64_t field = 0; field < vocabulary.num_fields(); ++field) {
    const std::vector<std::string_view> categories = vocabulary.categories(field);
    if (static_cast<int64_t>(categories.size()) + 1 != vocabulary.size(field)) std::abort();
    for (size_t i = 0; i < categories.size(); ++i)
      if (vocabulary.find(field, categories[i]) != static_cast<int64_t>(i) + 1) std::abort();
    if (vocabulary.find(field, "") != 0) std::abort();
  }
  return 0;
}
