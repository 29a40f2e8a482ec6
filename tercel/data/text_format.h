// Format of rows in a text file: the dialect, and the meaning of the columns.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/convert_options.h"
#include "tercel/data/dataset.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"

namespace tercel::data {

/** What a line is: columns of a table, or a label and features. */
enum class TextKind : uint8_t { Table, Libsvm, Libffm };

/** Parts of a timestamp, in UTC unless it says another offset. */
enum class TimePart : uint8_t { None, Year, Month, Day, Weekday, Hour, Minute };

constexpr auto enum_names(TimePart) {
  return std::to_array<EnumName<TimePart>>({{TimePart::Year, "year"},
                                            {TimePart::Month, "month"},
                                            {TimePart::Day, "day"},
                                            {TimePart::Weekday, "weekday"},
                                            {TimePart::Hour, "hour"},
                                            {TimePart::Minute, "minute"}});
}

/** A categorical field: where its values are in a row, and how they become keys. */
struct TextField {
  std::string column;  // name of the column; libffm: the field's number
  std::string name;    // in the dataset
  bool is_list = false;
  std::string separator;  // of a list in a column
  bool weighted = false;
  int64_t max_hotness = 0;  // values of a list beyond it are left out; 0: none
  TimePart part = TimePart::None;
  int64_t min_count = 0;          // 0: by the number of train rows
  int64_t hash_buckets = 0;       // 0: keys are a vocabulary's
  int64_t hex_modulo = 0;         // values are hexadecimal numbers mod this; 0: texts
  std::vector<size_t> parents;    // the fields that this one is a combination of; none: it has a column
  std::optional<size_t> keys_of;  // an earlier field whose keys it has; none: it has its own
};

/** What is done with a number before its transform. */
struct DensePreparation {
  double fill = 0;  // in place of a missing one
  double min = -std::numeric_limits<double>::infinity(), max = std::numeric_limits<double>::infinity();

  /** NaN means missing. */
  double operator()(double value) const { return std::clamp(std::isnan(value) ? fill : value, min, max); }
};

/** Complete description of a text with one row per record. */
struct TextFormat {
  TextKind kind = TextKind::Table;
  char delimiter = '\t';
  bool quotes = false;      // columns may be quoted as in RFC 4180
  bool trim = false;        // blanks around columns are dropped
  bool skip_blank = false;  // blank lines are skipped
  bool header = false;      // the first line names the columns; else their names are their numbers, from 1
  int64_t skip_lines = 0;   // lines before the header or the first row, in each file
  int64_t num_columns = 0;  // without a header: columns of every row; 0: as many as the first one has
  std::string comment;      // lines that start with it are skipped; empty: none

  std::string label;                  // name of the column
  std::vector<std::string> positive;  // labels that are 1, texts or comparisons; none: labels are the numbers 0 and 1
  std::vector<std::string> negative;  // labels that are 0; none: all that are not positive
  std::vector<std::string> missing;   // texts that count as missing, in addition to the empty one
  std::vector<std::string> dense;     // names of the columns
  std::vector<DensePreparation> preparation;  // of each dense column
  std::vector<TextField> fields;              // combinations come first
  bool find_fields = false;                   // libffm: the fields are those that the files have
  FeatureValues values = FeatureValues::Auto;
  std::string weight_column;  // of the rows; empty: none
  std::string time_column;    // empty: none
  std::string id_column;  // a column whose texts are kept beside the rows, of any meaning but the label's; empty: none
  TimeUnit time_unit = TimeUnit::Seconds;

  // Names in the dataset: the columns' own unless given.
  std::string label_name;
  std::vector<std::string> dense_names;

  bool has_lists() const;
  bool has_weights() const;
};

/** The columns of Criteo's text. */
TERCEL_API TextFormat criteo_format(const CriteoOptions& options = {});

/** ConfigError for options that contradict each other. */
TERCEL_API TextFormat csv_format(const CsvOptions& options);
TERCEL_API TextFormat libsvm_format(const LibsvmOptions& options);
TERCEL_API TextFormat libffm_format(const LibffmOptions& options);

/** Sets hash buckets, smallest counts and longest lists of the fields; ConfigError with `owner` for unknown fields. */
TERCEL_API void set_field_options(TextFormat& format, const ConvertOptions& options,
                                  const std::vector<std::string>& max_hotness, std::string_view owner);

/** The format of the text that a dataset was converted from; ConfigError if it was not made from text. */
TERCEL_API TextFormat text_format_of(const Conversion& conversion);

}  // namespace tercel::data
