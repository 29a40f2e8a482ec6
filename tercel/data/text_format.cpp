#include "tercel/data/text_format.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "tercel/data/by_column_impl.h"
#include "tercel/data/text_number_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/suggest.h"

namespace tercel::data {

namespace {

using Names = std::vector<std::string_view>;

bool contains(const std::vector<std::string>& texts, std::string_view text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

char delimiter_of(const std::string& text) {
  const bool tab = text == "tab" || text == "\\t";
  TERCEL_CHECK(tab || text.size() == 1, ConfigError,
               "[csv] option 'delimiter': expected one character or 'tab', found \"", printable(text), "\"");
  const char delimiter = tab ? '\t' : text.front();
  TERCEL_CHECK(delimiter != '"' && delimiter != '\n' && delimiter != '\r', ConfigError,
               "[csv] option 'delimiter': expected no quote and no line end, found \"", printable(text), "\"");
  return delimiter;
}

void check_once(const std::vector<std::string>& columns, std::string_view option) {
  for (size_t i = 0; i < columns.size(); ++i)
    TERCEL_CHECK(std::find(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(i), columns[i]) ==
                     columns.begin() + static_cast<std::ptrdiff_t>(i),
                 ConfigError, "[csv] option '", option, "': expected each column once, found '", printable(columns[i]),
                 "' twice");
}

void check_labels(const std::vector<std::string>& positive, const std::vector<std::string>& negative,
                  std::string_view owner) {
  TERCEL_CHECK(negative.empty() || !positive.empty(), ConfigError, "[", owner,
               "] option 'negative': expected 'positive' too, found none");
  for (const std::string& text : negative)
    TERCEL_CHECK(!contains(positive, text), ConfigError, "[", owner, "] expected '", printable(text),
                 "' in one of the options 'positive' and 'negative', found it in both");
}

void check_columns(const CsvOptions& options) {
  TERCEL_CHECK(!options.dense.empty() || !options.categorical.empty() || !options.time_parts.empty(), ConfigError,
               "[csv] expected columns in 'dense' or 'categorical', found none in either");
  TERCEL_CHECK(!options.dense_as_categories || !options.dense.empty(), ConfigError,
               "[csv] option 'dense_as_categories': expected columns in 'dense' too, found none");
  check_once(options.dense, "dense");
  check_once(options.categorical, "categorical");
  check_once(options.lists, "lists");
  check_once(options.weighted, "weighted");
  for (const std::vector<std::string>* columns : {&options.dense, &options.categorical}) {
    TERCEL_CHECK(!contains(*columns, options.label), ConfigError,
                 "[csv] expected the label apart from the other columns, found '", printable(options.label), "' in '",
                 columns == &options.dense ? "dense" : "categorical", "' too");
  }
  const std::string& weight = options.weight_column;
  TERCEL_CHECK(weight.empty() || (weight != options.label && !contains(options.dense, weight) &&
                                  !contains(options.categorical, weight)),
               ConfigError,
               "[csv] option 'weight_column': expected a column apart from label, dense and categorical "
               "ones, found '",
               printable(weight), "'");
  check_labels(options.positive, options.negative, "csv");
  TERCEL_CHECK(options.no_header || options.columns == 0, ConfigError,
               "[csv] options 'columns' and 'no_header': expected both or neither: a header has as many columns as it "
               "names");
}

void check_lists(const CsvOptions& options) {
  const Names names(options.categorical.begin(), options.categorical.end());
  for (const auto& [columns, option] : {std::pair{&options.lists, std::string_view("lists")},
                                        std::pair{&options.weighted, std::string_view("weighted")}})
    for (const std::string& name : *columns)
      if (!contains(options.categorical, name)) fail_column("csv", option, name, names);
  const bool has_lists = !options.list_separator.empty();
  TERCEL_CHECK(has_lists || options.lists.empty(), ConfigError,
               "[csv] option 'lists': expected 'list_separator' too, found none");
  TERCEL_CHECK(has_lists || options.max_hotness.empty(), ConfigError,
               "[csv] option 'max_hotness': expected 'list_separator' too, found none");
  TERCEL_CHECK(options.list_separator.find_first_of("\n\r") == std::string::npos, ConfigError,
               "[csv] option 'list_separator': expected no line end, found \"", printable(options.list_separator),
               "\"");
  TERCEL_CHECK(!has_lists || options.list_separator != std::string(1, delimiter_of(options.delimiter)), ConfigError,
               "[csv] options 'list_separator' and 'delimiter': expected two texts, found \"",
               printable(options.list_separator), "\" for both");
}

/** Fields of parts of timestamps: "ts=hour,weekday", in which a text without a column continues the one before. */
std::vector<TextField> part_fields(const std::vector<std::string>& texts) {
  std::vector<TextField> fields;
  std::string column;
  Names known;
  for (const auto& entry : enum_names(TimePart{})) known.push_back(entry.name);
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals != std::string::npos) column = text.substr(0, equals);
    const std::string part = equals == std::string::npos ? text : text.substr(equals + 1);
    TERCEL_CHECK(!column.empty(), ConfigError, "[csv] option 'time_parts': expected column=part,part, found '",
                 printable(text), "'");
    TextField field;
    field.column = column;
    field.name = column + "_" + part;
    TERCEL_CHECK(parse_enum(part, field.part), ConfigError,
                 "[csv] option 'time_parts': expected a part of a time for column '", printable(column), "', found '",
                 printable(part), "'", known_names(part, known));
    fields.push_back(std::move(field));
  }
  return fields;
}

/**
 * The columns of "C1+C2", by their places among `names`; ConfigError unless they are known, different and more than
 * one.
 */
std::vector<size_t> joined_columns(const std::string& text, const Names& names, std::string_view owner,
                                   std::string_view option) {
  std::vector<size_t> columns;
  for (size_t start = 0; start <= text.size();) {
    // Names of columns may have a '+': the longest one counts.
    size_t length = 0, column = 0;
    for (size_t f = 0; f < names.size(); ++f) {
      const std::string_view rest = std::string_view(text).substr(start);
      const bool fits = rest.starts_with(names[f]) && (rest.size() == names[f].size() || rest[names[f].size()] == '+');
      if (fits && names[f].size() >= length) length = names[f].size(), column = f;
    }
    if (length == 0) fail_column(owner, option, text.substr(start, text.find('+', start) - start), names);
    TERCEL_CHECK(std::find(columns.begin(), columns.end(), column) == columns.end(), ConfigError, "[", owner,
                 "] option '", option, "': expected different columns, found '", printable(text), "'");
    columns.push_back(column);
    start += length + 1;
  }
  TERCEL_CHECK(columns.size() > 1, ConfigError, "[", owner, "] option '", option,
               "': expected columns with '+' between them, found '", printable(text), "'");
  return columns;
}

Names field_names(const TextFormat& format) {
  Names names;
  for (const TextField& field : format.fields) names.push_back(field.name);
  return names;
}

/** ConfigError unless the texts are combinations of plain fields; adds them before the others. */
void add_crosses(TextFormat& format, const std::vector<std::string>& crosses, std::string_view owner) {
  const Names names = field_names(format);
  std::vector<TextField> combined;
  for (const std::string& text : crosses) {
    TextField cross;
    for (const size_t parent : joined_columns(text, names, owner, "cross")) {
      TERCEL_CHECK(!format.fields[parent].is_list && !format.fields[parent].weighted, ConfigError, "[", owner,
                   "] option 'cross': expected columns of one value a row, found '", printable(names[parent]), "'");
      cross.name += (cross.name.empty() ? "" : "_") + std::string(names[parent]);
      cross.parents.push_back(parent + crosses.size());
    }
    cross.column = cross.name;
    const auto is_same = [&](const TextField& other) { return other.name == cross.name; };
    TERCEL_CHECK(std::none_of(format.fields.begin(), format.fields.end(), is_same) &&
                     std::none_of(combined.begin(), combined.end(), is_same),
                 ConfigError, "[", owner, "] option 'cross': expected fields of different names, found two named '",
                 printable(cross.name), "'");
    combined.push_back(std::move(cross));
  }
  format.fields.insert(format.fields.begin(), std::make_move_iterator(combined.begin()),
                       std::make_move_iterator(combined.end()));
}

/** Gives the fields of each text the keys of the first one; ConfigError where their texts become keys in other ways. */
void share_keys(TextFormat& format, const std::vector<std::string>& groups, std::string_view owner) {
  const Names names = field_names(format);
  std::vector<bool> seen(names.size());
  for (const std::string& text : groups) {
    std::vector<size_t> columns = joined_columns(text, names, owner, "shared_keys");
    std::sort(columns.begin(), columns.end());
    const TextField& first = format.fields[columns.front()];
    for (const size_t column : columns) {
      TextField& field = format.fields[column];
      TERCEL_CHECK(!seen[column], ConfigError, "[", owner, "] option 'shared_keys': expected each column once, found '",
                   printable(field.name), "' twice");
      seen[column] = true;
      const auto check_same = [&](std::string_view option, int64_t expected, int64_t found) {
        TERCEL_CHECK(found == expected, ConfigError, "[", owner, "] option '", option, "': expected the same for '",
                     printable(first.name), "' and '", printable(field.name),
                     "', which option 'shared_keys' joins, found ", expected, " and ", found);
      };
      check_same("min_count", first.min_count, field.min_count);
      check_same("hash_buckets", first.hash_buckets, field.hash_buckets);
      check_same("hex_modulo", first.hex_modulo, field.hex_modulo);
      if (&field != &first) field.keys_of = columns.front();
    }
  }
}

void prepare_dense(TextFormat& format, const TableOptions& options, std::string_view owner) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Names names(format.dense_names.begin(), format.dense_names.end());
  const std::vector<double> fill = values_by_column(options.fill_missing, names, 0, owner, "fill_missing"),
                            least = values_by_column(options.clip_min, names, -kInfinity, owner, "clip_min"),
                            most = values_by_column(options.clip_max, names, kInfinity, owner, "clip_max");
  for (size_t d = 0; d < names.size(); ++d) {
    TERCEL_CHECK(least[d] <= most[d], ConfigError, "[", owner,
                 "] options 'clip_min' and 'clip_max': expected a smaller and a larger number for column '",
                 printable(names[d]), "', found ", least[d], " and ", most[d]);
    format.preparation.push_back({fill[d], least[d], most[d]});
  }
}

/** What the options of tables say about dense columns and fields. */
void set_table_options(TextFormat& format, const TableOptions& options, const std::vector<std::string>& max_hotness,
                       std::string_view owner) {
  prepare_dense(format, options, owner);
  const Names names = field_names(format);
  const std::vector<int64_t> modulo = numbers_by_column(options.hex_modulo, names, 0, 1, owner, "hex_modulo");
  for (size_t f = 0; f < names.size(); ++f) format.fields[f].hex_modulo = modulo[f];
  add_crosses(format, options.cross, owner);
  set_field_options(format, options, max_hotness, owner);
  share_keys(format, options.shared_keys, owner);
}

void check_sparse(const LibsvmOptions& options, std::string_view owner) {
  check_options(options, owner);
  check_labels(options.positive, options.negative, owner);
}

/** What libsvm's and libffm's text have in common. */
TextFormat sparse_format(const LibsvmOptions& options, TextKind kind) {
  TextFormat format;
  format.kind = kind;
  format.delimiter = ' ';
  format.skip_blank = true;
  format.label = format.label_name = "label";
  format.positive = options.positive;
  format.negative = options.negative;
  format.values = options.values;
  return format;
}

TextField sparse_field(std::string name, const LibsvmOptions& options) {
  TextField field;
  field.column = name;
  field.name = std::move(name);
  field.is_list = true;
  field.weighted = options.values == FeatureValues::Weights;
  return field;
}

template <class Options>
Options options_of(const Conversion& conversion) {
  Options options;
  for (const Conversion::Setting& setting : conversion.settings)
    set_option(options, conversion.tool, setting.name, setting.value);
  return options;
}

}  // namespace

bool TextFormat::has_lists() const {
  return std::any_of(fields.begin(), fields.end(), [](const TextField& field) { return field.is_list; });
}

bool TextFormat::has_weights() const {
  return std::any_of(fields.begin(), fields.end(), [](const TextField& field) { return field.weighted; });
}

void set_field_options(TextFormat& format, const ConvertOptions& options, const std::vector<std::string>& max_hotness,
                       std::string_view owner) {
  Names names, lists;
  for (const TextField& field : format.fields) {
    names.push_back(field.name);
    if (field.is_list) lists.push_back(field.name);
  }
  const std::vector<int64_t> counts = numbers_by_column(options.min_count, names, 0, 1, owner, "min_count"),
                             buckets = numbers_by_column(options.hash_buckets, names, 0, 0, owner, "hash_buckets"),
                             longest = numbers_by_column(max_hotness, lists, 0, 0, owner, "max_hotness");
  size_t list = 0;
  for (size_t f = 0; f < format.fields.size(); ++f) {
    TextField& field = format.fields[f];
    field.min_count = counts[f];
    field.hash_buckets = buckets[f];
    if (field.is_list) field.max_hotness = longest[list++];
    TERCEL_CHECK(field.hash_buckets == 0 || !names_column(options.min_count, field.name), ConfigError, "[", owner,
                 "] options 'min_count' and 'hash_buckets' exclude each other for a column, found both for '",
                 printable(field.name), "'");
  }
}

CriteoOptions criteo_recipe(CriteoRecipe recipe, FunctionRef<bool(std::string_view)> is_given) {
  CriteoOptions options;
  options.recipe = recipe;
  switch (recipe) {
    case CriteoRecipe::None: break;
    case CriteoRecipe::Nvtabular:
      options.min_count = {"6"};
      options.fill_missing = {"0"};
      options.clip_min = {"0"};
      options.dense_transform = DenseTransform::Zscore;
      options.cross = {"C1+C2", "C3+C4"};
      // Every tenth row is a test row, unless another option chooses them.
      if (!is_given("valid") && !is_given("valid_from")) options.valid_every = 9;
      break;
    case CriteoRecipe::Dlrm:
      options.min_count = {"1"};
      options.hex_modulo = {"10000000"};
      options.dense_transform = DenseTransform::Log;
      break;
  }
  return options;
}

TextFormat criteo_format(const CriteoOptions& options) {
  check_options(options, "criteo");
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
    TextField field;
    field.column = str_cat({2 + kDense + i});
    field.name = str_cat({"C", i + 1});
    format.fields.push_back(std::move(field));
  }
  set_table_options(format, options, {}, "criteo");
  return format;
}

TextFormat csv_format(const CsvOptions& options) {
  check_options(options, "csv");
  TextFormat format;
  format.delimiter = delimiter_of(options.delimiter);
  check_columns(options);
  check_lists(options);
  format.quotes = true;
  format.trim = options.trim;
  format.skip_blank = true;
  format.header = !options.no_header;
  format.skip_lines = options.skip_lines;
  format.num_columns = options.columns;
  format.comment = options.comment;
  format.label = options.label;
  format.positive = options.positive;
  format.negative = options.negative;
  format.missing = options.missing;
  format.dense = options.dense;
  format.weight_column = options.weight_column;
  format.time_column = options.time_column;
  format.time_unit = options.time_unit;
  format.label_name = options.label;
  format.dense_names = options.dense;
  for (const std::string& name : options.categorical) {
    TextField field;
    field.column = field.name = name;
    field.is_list = !options.list_separator.empty() && (options.lists.empty() || contains(options.lists, name));
    if (field.is_list) field.separator = options.list_separator;
    field.weighted = contains(options.weighted, name);
    format.fields.push_back(std::move(field));
  }
  if (options.dense_as_categories) {
    for (const std::string& name : options.dense) {
      if (contains(options.categorical, name)) continue;
      TextField field;
      field.column = field.name = name;
      format.fields.push_back(std::move(field));
    }
  }
  for (TextField& field : part_fields(options.time_parts)) {
    const bool twice = std::any_of(format.fields.begin(), format.fields.end(),
                                   [&](const TextField& other) { return other.name == field.name; });
    TERCEL_CHECK(!twice, ConfigError,
                 "[csv] option 'time_parts': expected fields of different names, found two named '",
                 printable(field.name), "'");
    format.fields.push_back(std::move(field));
  }
  set_table_options(format, options, options.max_hotness, "csv");
  return format;
}

TextFormat libsvm_format(const LibsvmOptions& options) {
  check_sparse(options, "libsvm");
  TextFormat format = sparse_format(options, TextKind::Libsvm);
  format.fields.push_back(sparse_field("features", options));
  set_field_options(format, options, options.max_hotness, "libsvm");
  return format;
}

TextFormat libffm_format(const LibffmOptions& options) {
  check_sparse(options, "libffm");
  check_options(options, "libffm");
  TextFormat format = sparse_format(options, TextKind::Libffm);
  format.find_fields = options.field_numbers.empty();
  for (const std::string& number : options.field_numbers) {
    int64_t value = 0;
    TERCEL_CHECK(parse_integer(number, value) && value >= 0, ConfigError,
                 "[libffm] option 'field_numbers': expected numbers from 0 on, found '", printable(number), "'");
    TextField field = sparse_field("field" + str_cat({value}), options);
    field.column = str_cat({value});
    TERCEL_CHECK(std::none_of(format.fields.begin(), format.fields.end(),
                              [&](const TextField& other) { return other.column == field.column; }),
                 ConfigError, "[libffm] option 'field_numbers': expected each number once, found ", value, " twice");
    format.fields.push_back(std::move(field));
  }
  if (!format.find_fields) set_field_options(format, options, options.max_hotness, "libffm");
  return format;
}

TextFormat text_format_of(const Conversion& conversion) {
  if (conversion.tool == "criteo") return criteo_format(options_of<CriteoOptions>(conversion));
  if (conversion.tool == "csv") return csv_format(options_of<CsvOptions>(conversion));
  if (conversion.tool == "libsvm") return libsvm_format(options_of<LibsvmOptions>(conversion));
  if (conversion.tool == "libffm") return libffm_format(options_of<LibffmOptions>(conversion));
  throw_error<ConfigError>(
      {"expected a dataset that was converted from text, found one that '", printable(conversion.tool), "' made"});
}

}  // namespace tercel::data
