// Options of the conversion of text to datasets.
//
// An option "by column" is a list of "N", for all columns, and "column=N", for one: "4" or "2,ip=10".
// criteo_recipe() has the settings of known preprocessing scripts.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/formats/norm_format.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/options.h"

namespace tercel::data {

constexpr int64_t kDefaultTestEvery = 10;
/** The default of min_count: of fewer train rows than kManyRows, and of others. */
constexpr int64_t kDefaultMinCount = 2, kDefaultMinCountOfMany = 4, kManyRows = 1'000'000;

/** Which rows are in which part, and which are left out. Sources are the files that are not `valid` or `test`; rows
 * count from 0 over them. */
struct SplitOptions {
  std::vector<std::string> test, valid;  // files
  int64_t test_every = -1;
  int64_t valid_every = -1;
  std::string test_from, valid_from;  // a row, or a value of the time column
  double negative_rate = 1;
  uint64_t seed = 0;

  static constexpr auto fields() {
    return option_list(
        option_field<&SplitOptions::test>("test", "files of the test part"),
        option_field<&SplitOptions::valid>("valid", "files of the validation part"),
        option_field<&SplitOptions::test_every>(
            "test_every",
            "row r is a test row where r % K == K - 1; 0: none; -1: 10, or none where another option chooses test or "
            "validation rows by place, time or file",
            at_least(-1)),
        option_field<&SplitOptions::valid_every>(
            "valid_every",
            "of the rows that are no test rows, every K-th is a validation row; 0: none; -1: the last tenth of them by "
            "time where rows are divided by time and no other option chooses validation rows, else none",
            at_least(-1)),
        option_field<&SplitOptions::test_from>(
            "test_from",
            "rows from this one on, counted from 0, are the test part; with a time column, rows from this time on"),
        option_field<&SplitOptions::valid_from>(
            "valid_from", "rows from this one on, or from this time on, that are no test rows are the validation part"),
        option_field<&SplitOptions::negative_rate>(
            "negative_rate",
            "train rows of label 0 are kept with this probability, others of the part always; predictions of models "
            "are corrected for it",
            above(0), at_most(1)),
        option_field<&SplitOptions::seed>("seed", "of the choice that negative_rate makes"));
  }
};

/** How values are converted and rows are split, independent of the text format. */
struct ConvertOptions : SplitOptions {
  std::vector<std::string> min_count;
  std::vector<std::string> hash_buckets;
  DenseTransform dense_transform = DenseTransform::Standard;
  int64_t rows_per_file = 4 << 20;
  /** Of the files. */
  std::shared_ptr<const DatasetFormat> format = norm_format();
  /** Where relative paths of sources, `test` and `valid` start; descriptions and errors have the paths as they are
   * given. Empty: the working folder. */
  std::string source_folder;

  // dense_transform is listed by those who inherit, under their name for it; options of the format are its own.
  static constexpr auto fields() {
    return option_list(
        option_field<&ConvertOptions::min_count>(
            "min_count",
            "a category that occurs fewer times than this in train rows is taken "
            "as missing (key 0 of its field); N, or by column: 2,ip=10; default 2, "
            "of a million train rows and more 4"),
        option_field<&ConvertOptions::hash_buckets>(
            "hash_buckets",
            "keys are hash(field, text) mod N, without a vocabulary; N for all fields, or by column: ip=100000"),
        SplitOptions::fields(),
        option_field<&ConvertOptions::rows_per_file>("rows_per_file", "rows of each data file", at_least(1)));
  }
};

constexpr std::string_view kDenseTransformHelp =
    "standard: ln(1 + max(x, 0)) with mean 0 and variance 1 over the train rows; log: without the latter; zscore: "
    "without the logarithm; raw: as it is";
constexpr std::string_view kPositiveHelp =
    "labels that mean 1: texts, or comparisons with a number, such as '>=4'; all others mean 0; without it, labels are "
    "the numbers 0 and 1";
constexpr std::string_view kNegativeHelp =
    "labels that mean 0, where any third one is an error; texts or comparisons with a number";
constexpr std::string_view kMaxHotnessHelp =
    "values of a list beyond this many are left out; 0: none; N, or by column: tags=8";

/** How the columns of a table become values, besides what all texts have. */
struct TableOptions : ConvertOptions {
  std::vector<std::string> fill_missing;
  std::vector<std::string> clip_min;
  std::vector<std::string> clip_max;
  std::vector<std::string> cross;
  std::vector<std::string> shared_keys;
  std::vector<std::string> hex_modulo;

  static constexpr auto fields() {
    return option_list(
        option_field<&TableOptions::fill_missing>(
            "fill_missing", "what a missing number counts as, 0 by default; X, or by column: 0,I3=-1"),
        option_field<&TableOptions::clip_min>(
            "clip_min", "smaller numbers count as this one, before the transform; X, or by column"),
        option_field<&TableOptions::clip_max>("clip_max", "larger numbers count as this one; X, or by column"),
        option_field<&TableOptions::cross>(
            "cross",
            "combinations of categorical columns as further ones, before the others: C1+C2,C3+C4; missing "
            "where one of them is"),
        option_field<&TableOptions::shared_keys>(
            "shared_keys",
            "categorical columns in which the same text means the same and gets the same key: history+item,home+work"),
        option_field<&TableOptions::hex_modulo>(
            "hex_modulo",
            "categories are hexadecimal numbers, of which those count as the same that are equal mod N; "
            "N, or by column"),
        ConvertOptions::fields());
  }
};

/** Preprocessing scripts whose settings are known. */
enum class CriteoRecipe : uint8_t { None, Nvtabular, Dlrm };

constexpr auto enum_names(CriteoRecipe) {
  return std::to_array<EnumName<CriteoRecipe>>(
      {{CriteoRecipe::None, "none"}, {CriteoRecipe::Nvtabular, "nvtabular"}, {CriteoRecipe::Dlrm, "dlrm"}});
}

/** Criteo's text: label, 13 integers, 26 categories, separated by tabs, no header. */
struct CriteoOptions : TableOptions {
  CriteoRecipe recipe = CriteoRecipe::None;

  static constexpr auto fields() {
    return option_list(option_field<&CriteoOptions::recipe>(
                           "recipe",
                           "defaults of the options below as those of a known script: nvtabular, HugeCTR's "
                           "preprocess_nvt.py; dlrm, its dlrm_raw"),
                       TableOptions::fields(),
                       option_field<&CriteoOptions::dense_transform>("dense", kDenseTransformHelp));
  }
};

/**
 * The options of a recipe; the defaults for None. `is_given` tells which options will be set beside it: the recipe sets
 * none that those exclude.
 */
TERCEL_API CriteoOptions criteo_recipe(CriteoRecipe recipe, FunctionRef<bool(std::string_view option)> is_given);

enum class TimeUnit : uint8_t { Seconds, Milliseconds, Microseconds, Nanoseconds };

constexpr auto enum_names(TimeUnit) {
  return std::to_array<EnumName<TimeUnit>>({{TimeUnit::Seconds, "s"},
                                            {TimeUnit::Milliseconds, "ms"},
                                            {TimeUnit::Microseconds, "us"},
                                            {TimeUnit::Nanoseconds, "ns"}});
}

/** Any other table. */
struct CsvOptions : TableOptions {
  std::string label;
  std::vector<std::string> dense;
  std::vector<std::string> categorical;
  bool dense_as_categories = false;
  std::vector<std::string> positive;
  std::vector<std::string> negative;
  std::vector<std::string> missing;
  std::vector<std::string> lists;
  std::string list_separator;
  std::vector<std::string> max_hotness;
  std::vector<std::string> weighted;
  std::string weight_column;
  std::string time_column;
  std::vector<std::string> time_parts;
  TimeUnit time_unit = TimeUnit::Seconds;
  std::string delimiter = ",";
  bool no_header = false;
  int64_t columns = 0;
  int64_t skip_lines = 0;
  std::string comment;
  bool trim = false;

  static constexpr auto fields() {
    return option_list(
        option_field<&CsvOptions::label>(
            "label", "column of the label: its name, or its number, from 1, without a header", required()),
        option_field<&CsvOptions::dense>("dense", "columns of numbers"),
        option_field<&CsvOptions::categorical>("categorical", "columns of categories"),
        option_field<&CsvOptions::dense_as_categories>("dense_as_categories",
                                                       "the columns of 'dense' are columns of categories too, after "
                                                       "those of 'categorical': models learn more from numbers that "
                                                       "take few values, or a few special ones"),
        option_field<&CsvOptions::positive>("positive", kPositiveHelp),
        option_field<&CsvOptions::negative>("negative", kNegativeHelp),
        option_field<&CsvOptions::missing>("missing", "texts that mean a missing value, in addition to the empty one"),
        option_field<&CsvOptions::list_separator>(
            "list_separator", "categorical columns hold any number of values with this text between them"),
        option_field<&CsvOptions::lists>("lists",
                                         "the columns to which list_separator applies; default: all categorical"),
        option_field<&CsvOptions::max_hotness>("max_hotness", kMaxHotnessHelp),
        option_field<&CsvOptions::weighted>(
            "weighted",
            "categorical columns whose values have a weight each, value:weight; needs a format that holds weights"),
        option_field<&CsvOptions::weight_column>(
            "weight_column",
            "column with the weight of each row, a number that is not negative, kept as a further column of the "
            "dataset; needs a format that holds those"),
        option_field<&CsvOptions::time_column>(
            "time_column",
            "column of numbers or ISO timestamps to which test_from and valid_from refer; without valid_from the last "
            "tenth by time of the rows that are no test rows is the validation part"),
        option_field<&CsvOptions::time_parts>(
            "time_parts",
            "parts of timestamps as further categorical fields: ts=hour,weekday; of year, month, day, weekday (1: "
            "Monday), hour, minute"),
        option_field<&CsvOptions::time_unit>("time_unit", "of timestamps that are numbers, counted from 1970, UTC"),
        option_field<&CsvOptions::delimiter>("delimiter", "one character, or 'tab'"),
        option_field<&CsvOptions::no_header>("no_header", "the first line is a row already"),
        option_field<&CsvOptions::columns>("columns", "columns of a row, without a header; 0: as the first row has",
                                           at_least(0)),
        option_field<&CsvOptions::skip_lines>("skip_lines", "lines to leave out at the start of each file",
                                              at_least(0)),
        option_field<&CsvOptions::comment>("comment", "lines that start with this text are left out"),
        option_field<&CsvOptions::trim>("trim", "drop blanks around columns"),
        option_field<&CsvOptions::dense_transform>("dense_transform", kDenseTransformHelp), TableOptions::fields());
  }
};

/** What the values of features mean in libsvm's and libffm's text. */
enum class FeatureValues : uint8_t { Auto, Weights, Ignore };

constexpr auto enum_names(FeatureValues) {
  return std::to_array<EnumName<FeatureValues>>(
      {{FeatureValues::Auto, "auto"}, {FeatureValues::Weights, "weights"}, {FeatureValues::Ignore, "ignore"}});
}

/** libsvm's text: a label, then index:value of each feature, separated by blanks. */
struct LibsvmOptions : ConvertOptions {
  std::vector<std::string> positive;
  std::vector<std::string> negative;
  FeatureValues values = FeatureValues::Auto;
  std::vector<std::string> max_hotness;

  static constexpr auto fields() {
    return option_list(
        option_field<&LibsvmOptions::positive>(
            "positive",
            "labels that mean 1: texts, or comparisons with a number, such as '>=4'; without it, 1 and +1 "
            "do, and 0 and -1 mean 0"),
        option_field<&LibsvmOptions::negative>("negative", kNegativeHelp),
        option_field<&LibsvmOptions::values>(
            "values",
            "auto: if all values are 1, keys have none, else they are weights; weights: always, which "
            "needs a format that holds weights; ignore: they are left out"),
        option_field<&LibsvmOptions::max_hotness>("max_hotness",
                                                  "features beyond this many are left out; 0: none; N, or by field"),
        ConvertOptions::fields());
  }
};

/** libffm's text: a label, then field:index:value of each feature. */
struct LibffmOptions : LibsvmOptions {
  std::vector<std::string> field_numbers;

  static constexpr auto fields() {
    return option_list(
        option_field<&LibffmOptions::field_numbers>(
            "field_numbers", "the fields, in the order of the slots; default: those of the files, ascending"),
        LibsvmOptions::fields());
  }
};

}  // namespace tercel::data
