// Converts raw rows of text to datasets in two passes over the text, with memory for the vocabulary and a few blocks of
// text only. Results do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/data/convert_options.h"
#include "tercel/data/dataset.h"
#include "tercel/util/export.h"
#include "tercel/util/function_ref.h"

namespace tercel::data {

/** Progress of a conversion. */
struct ConvertProgress {
  int pass = 1;            // of `passes`
  int passes = 2;          // 3 where fields or values of features have to be found first
  int64_t rows = 0;        // of this pass
  int64_t bytes_done = 0;  // of all passes, as bytes_total; compressed where files are
  int64_t bytes_total = 0;
};

using ConvertProgressFunction = FunctionRef<void(const ConvertProgress&)>;

/** What became of the values of a categorical field, or of several that share their keys, in the train rows. */
struct FieldSummary {
  std::string name;                // "item", "history+item"
  bool is_list = false;            // rows may have several values
  int64_t categories = 0;          // different ones, without the missing one; 0 in hashed fields
  int64_t dropped_categories = 0;  // those with fewer rows than min_count
  int64_t values = 0;              // that are not missing
  int64_t dropped_values = 0;      // those of the dropped categories
};

struct ConvertResult {
  Dataset dataset;
  int64_t train_clicks = 0;
  int64_t valid_clicks = 0;
  int64_t test_clicks = 0;
  std::vector<FieldSummary> fields;  // none where a vocabulary was given
  int64_t cut_values = 0;            // of all rows: values of lists beyond max_hotness
  int64_t left_out_negatives = 0;    // train rows that negative_rate left out

  int64_t clicks(PartName part) const;
  /** Different categories of all fields. */
  int64_t categories() const;
};

/** Options of convert_like(): all others are those of the dataset. */
struct LikeOptions : SplitOptions {
  int64_t rows_per_file = 4 << 20;
  /** Of the files; null: that of the dataset. */
  std::shared_ptr<const DatasetFormat> format;

  static constexpr auto fields() {
    return option_list(SplitOptions::fields(), option_field<&LikeOptions::rows_per_file>(
                                                   "rows_per_file", "rows of each data file", at_least(1)));
  }
};

/**
 * Converts Criteo's text to a dataset in a folder, which appears when it is complete. Sources are files,
 * gzip or plain, or "-" for the standard input, which is saved beside the folder meanwhile. The first pass counts
 * categories and computes moments, of train rows only; the second one writes. Categories get ids from 1 on by
 * descending count, then by their bytes. With `replace`, the folder may hold a dataset already. Exceptions from
 * `progress` end the conversion. ConfigError for options that contradict each other; DataError that names file, line
 * and column for invalid text, and if files change meanwhile, if there are no train rows, no rows for a part that
 * options ask for, or no rows with a label that `positive` lists.
 */
TERCEL_API ConvertResult convert_criteo(const std::vector<std::string>& sources, const std::string& folder,
                                        const CriteoOptions& options, bool replace, ConvertProgressFunction progress);

/** The same for any table of text. */
TERCEL_API ConvertResult convert_csv(const std::vector<std::string>& sources, const std::string& folder,
                                     const CsvOptions& options, bool replace, ConvertProgressFunction progress);

/** The same for libsvm's text: one slot, "features". */
TERCEL_API ConvertResult convert_libsvm(const std::vector<std::string>& sources, const std::string& folder,
                                        const LibsvmOptions& options, bool replace, ConvertProgressFunction progress);

/** The same for libffm's text: a slot "field<number>" for each field. */
TERCEL_API ConvertResult convert_libffm(const std::vector<std::string>& sources, const std::string& folder,
                                        const LibffmOptions& options, bool replace, ConvertProgressFunction progress);

/**
 * Converts further text as that of `like` was, a dataset converted by one of these functions: with its vocabulary, hash
 * settings, transforms and options of the text. All rows are train rows unless options say otherwise.
 */
TERCEL_API ConvertResult convert_like(const Dataset& like, const std::vector<std::string>& sources,
                                      const std::string& folder, const LikeOptions& options, bool replace,
                                      ConvertProgressFunction progress);

}  // namespace tercel::data
