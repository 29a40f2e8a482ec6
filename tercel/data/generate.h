// Synthetic click logs with a known best possible AUC.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/formats/norm_format.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/options.h"

namespace tercel::data {

/** Fields and counts of the rows. */
enum class GeneratePreset : uint8_t {
  Criteo,  // 13 counts and 26 fields with 31,187 keys
  Small,   // 4 counts and 5 fields with 278 keys; for tests
};

constexpr auto enum_names(GeneratePreset) {
  return std::to_array<EnumName<GeneratePreset>>(
      {{GeneratePreset::Criteo, "criteo"}, {GeneratePreset::Small, "small"}});
}

struct GenerateOptions {
  int64_t rows = 1'000'000;
  uint64_t seed = 1;
  GeneratePreset preset = GeneratePreset::Criteo;
  std::vector<int64_t> slot_size_array;
  double test_fraction = 0.1;
  int64_t files = 1;
  double ctr = 0.25;
  double auc = 0.8;
  /** Of the files. */
  std::shared_ptr<const DatasetFormat> format = norm_format();

  static constexpr auto fields() {  // those of the format are its own
    return option_list(
        option_field<&GenerateOptions::rows>("rows", "rows to write, those of the test part included", at_least(1)),
        option_field<&GenerateOptions::seed>("seed",
                                             "another seed is another truth; the same seed gives the same rows"),
        option_field<&GenerateOptions::preset>(
            "preset", "criteo: 13 counts and 26 fields as in Criteo's logs; small: 4 counts and 5 fields, for tests"),
        option_field<&GenerateOptions::slot_size_array>(
            "slot_size_array",
            "keys of each field, of which the first are the most frequent; one number: of every field; empty: the "
            "preset's",
            at_least(2), at_most(1 << 30)),
        option_field<&GenerateOptions::test_fraction>(
            "test_fraction", "share of the rows, the last ones, for the test part", at_least(0), below(1)),
        option_field<&GenerateOptions::files>("files", "files that the train part is cut into, at most", at_least(1)),
        option_field<&GenerateOptions::ctr>("ctr", "click-through rate", at_least(0.001), at_most(0.999)),
        option_field<&GenerateOptions::auc>("auc", "AUC of the probabilities that the clicks are drawn from",
                                            at_least(0.51), at_most(0.99)));
  }
};

/** Result of generate_dataset(). */
struct GenerateResult {
  Dataset dataset;
  int64_t train_clicks = 0;
  int64_t test_clicks = 0;
};

/**
 * Writes a dataset with train and test part into a folder, which appears when it is complete; its truth
 * is that of the generating probabilities on the rows written. Memory is 28 bytes for each key, and does not grow
 * with the rows. Row r depends only on seed, preset, slot sizes, ctr and auc, not on the number of threads, rows or
 * files. IoError, before anything is written, if the disk lacks space for the files. `progress` is called now and then
 * with the rows written so far; its exceptions end the work. With `replace`, the folder may hold a dataset already.
 */
TERCEL_API GenerateResult generate_dataset(const std::string& folder, const GenerateOptions& options, bool replace,
                                           FunctionRef<void(int64_t rows)> progress);

}  // namespace tercel::data
