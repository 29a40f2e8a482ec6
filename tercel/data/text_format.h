// Format of rows in a text file: the dialect, and the meaning of the columns.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/formats/norm_format.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/options.h"

namespace tercel::data {

/** Complete description of a delimited text with one row per record. */
struct TextFormat {
  char delimiter = '\t';
  bool quotes = false;      // columns may be quoted as in RFC 4180
  bool trim = false;        // blanks around columns are dropped
  bool skip_blank = false;  // blank lines are skipped
  bool header = false;      // the first line names the columns; else their names are their numbers, from 1
  int64_t skip_lines = 0;   // lines before the header or the first row, in each file
  int64_t num_columns = 0;  // without a header: columns of every row; 0: as many as the first one has

  std::string label;                     // name of the column
  std::vector<std::string> positive;     // texts that are label 1; none: labels are the numbers 0 and 1
  std::vector<std::string> negative;     // texts that are label 0; none: all that are not positive
  std::vector<std::string> missing;      // texts that count as missing, in addition to the empty one
  std::vector<std::string> dense;        // names of the columns
  std::vector<std::string> categorical;  // names of the columns

  // Names in the dataset: the columns' own unless given.
  std::string label_name;
  std::vector<std::string> dense_names;
  std::vector<std::string> categorical_names;
};

/** How values are converted and rows are split, independent of the text format. */
struct ConvertOptions {
  int64_t min_count = 4;
  int64_t test_every = 10;
  int64_t test_from = -1;
  DenseTransform dense_transform = DenseTransform::Standard;
  int64_t rows_per_file = 4 << 20;
  /** Of the files. */
  std::shared_ptr<const DatasetFormat> format = norm_format();

  // dense_transform is listed by those who inherit, under their name for it; options of the format are its own.
  static constexpr auto fields() {
    return std::tuple(
        Field{"min_count", &ConvertOptions::min_count,
              "a category with fewer train rows than this is taken as missing (key 0 of its field)", at_least(1)},
        Field{"test_every", &ConvertOptions::test_every, "row r is a test row where r % K == K - 1; 0: no test part",
              at_least(0)},
        Field{"test_from", &ConvertOptions::test_from,
              "rows from this one on, counted from 0, are the test part, instead of test_every; -1: off", at_least(-1)},
        Field{"rows_per_file", &ConvertOptions::rows_per_file, "rows of each data file", at_least(1)});
  }
};

constexpr std::string_view kDenseTransformHelp =
    "standard: ln(1 + max(x, 0)) with mean 0 and variance 1 over the train rows; log: without the latter; raw: as it "
    "is";

/** Criteo's text: label, 13 integers, 26 categories, separated by tabs, no header. */
struct CriteoOptions : ConvertOptions {
  static constexpr auto fields() {
    return std::tuple_cat(ConvertOptions::fields(),
                          std::tuple(Field{"dense", &CriteoOptions::dense_transform, kDenseTransformHelp}));
  }
};

/** Any other table. */
struct CsvOptions : ConvertOptions {
  std::string label;
  std::vector<std::string> dense;
  std::vector<std::string> categorical;
  std::vector<std::string> positive;
  std::vector<std::string> negative;
  std::vector<std::string> missing;
  std::string delimiter = ",";
  bool no_header = false;
  int64_t columns = 0;
  int64_t skip_lines = 0;
  bool trim = false;

  static constexpr auto fields() {
    return std::tuple_cat(
        std::tuple(
            Field{"label", &CsvOptions::label, "column of the label: its name, or its number, from 1, without a header",
                  required()},
            Field{"dense", &CsvOptions::dense, "columns of numbers"},
            Field{"categorical", &CsvOptions::categorical, "columns of categories"},
            Field{"positive", &CsvOptions::positive,
                  "texts that mean label 1; all others mean 0; without it, labels are the numbers 0 and 1"},
            Field{"negative", &CsvOptions::negative, "texts that mean label 0, where any third one is an error"},
            Field{"missing", &CsvOptions::missing, "texts that mean a missing value, in addition to the empty one"},
            Field{"delimiter", &CsvOptions::delimiter, "one character, or 'tab'"},
            Field{"no_header", &CsvOptions::no_header, "the first line is a row already"},
            Field{"columns", &CsvOptions::columns, "columns of a row, without a header; 0: as the first row has",
                  at_least(0)},
            Field{"skip_lines", &CsvOptions::skip_lines, "lines to leave out at the start of each file", at_least(0)},
            Field{"trim", &CsvOptions::trim, "drop blanks around columns"},
            Field{"dense_transform", &CsvOptions::dense_transform, kDenseTransformHelp}),
        ConvertOptions::fields());
  }
};
/** The columns of Criteo's text. */
TERCEL_API TextFormat criteo_format();

/** ConfigError for options that contradict each other. */
TERCEL_API TextFormat csv_format(const CsvOptions& options);

/** The format of the text that a dataset was converted from; ConfigError if it was not made from text. */
TERCEL_API TextFormat text_format_of(const Conversion& conversion);

}  // namespace tercel::data
