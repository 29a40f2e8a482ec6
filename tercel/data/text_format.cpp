#include "tercel/data/text_format.h"

#include <algorithm>

#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

TextFormat criteo_format() {
  constexpr int64_t kDense = 13, kCategorical = 26;
  TextFormat format;
  format.num_columns = 1 + kDense + kCategorical;
  format.label = "1";
  format.label_name = "click";
  for (int64_t i = 0; i < kDense; ++i) {
    format.dense.push_back(str_cat({2 + i}));
    format.dense_names.push_back(str_cat({"I", i + 1}));
  }
  for (int64_t i = 0; i < kCategorical; ++i) {
    format.categorical.push_back(str_cat({2 + kDense + i}));
    format.categorical_names.push_back(str_cat({"C", i + 1}));
  }
  return format;
}

TextFormat csv_format(const CsvOptions& options) {
  check_options(options, "csv");
  TextFormat format;
  const bool tab = options.delimiter == "tab" || options.delimiter == "\\t";
  TERCEL_CHECK(tab || options.delimiter.size() == 1, ConfigError,
               "[csv] option 'delimiter': expected one character or 'tab', found \"", printable(options.delimiter),
               "\"");
  format.delimiter = tab ? '\t' : options.delimiter.front();
  TERCEL_CHECK(format.delimiter != '"' && format.delimiter != '\n' && format.delimiter != '\r', ConfigError,
               "[csv] option 'delimiter': expected no quote and no line end, found \"", printable(options.delimiter),
               "\"");
  TERCEL_CHECK(!options.dense.empty() || !options.categorical.empty(), ConfigError,
               "[csv] expected columns in 'dense' or 'categorical', found none in either");
  TERCEL_CHECK(options.negative.empty() || !options.positive.empty(), ConfigError,
               "[csv] option 'negative': expected 'positive' too, found none");
  for (const std::vector<std::string>* columns : {&options.dense, &options.categorical}) {
    TERCEL_CHECK(std::find(columns->begin(), columns->end(), options.label) == columns->end(), ConfigError,
                 "[csv] expected the label apart from the other columns, found '", printable(options.label), "' in '",
                 columns == &options.dense ? "dense" : "categorical", "' too");
  }
  format.quotes = true;
  format.trim = options.trim;
  format.skip_blank = true;
  format.header = !options.no_header;
  format.skip_lines = options.skip_lines;
  format.num_columns = options.columns;
  format.label = options.label;
  format.positive = options.positive;
  format.negative = options.negative;
  format.missing = options.missing;
  format.dense = options.dense;
  format.categorical = options.categorical;
  format.label_name = options.label;
  format.dense_names = options.dense;
  format.categorical_names = options.categorical;
  return format;
}

TextFormat text_format_of(const Conversion& conversion) {
  if (conversion.tool == "criteo") return criteo_format();
  TERCEL_CHECK(conversion.tool == "csv", ConfigError,
               "expected a dataset that was converted from text, found one that '", printable(conversion.tool),
               "' made");
  CsvOptions options;
  for (const Conversion::Setting& setting : conversion.settings)
    set_option(options, "csv", setting.name, setting.value);
  return csv_format(options);
}

}  // namespace tercel::data
