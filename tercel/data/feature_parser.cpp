#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tercel/data/feature_parser_impl.h"
#include "tercel/data/text_number_impl.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr double kMostFloat = std::numeric_limits<float>::max();

/** Drops zeros in front of a whole number; false for other texts. */
bool trim_number(std::string_view& text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) return false;
  while (text.size() > 1 && text.front() == '0') text.remove_prefix(1);
  return true;
}

bool is_feature(std::string_view text) { return text.find(':') != std::string_view::npos; }

/** Rows of a label and features. */
class FeatureParser final : public RowParser {
 public:
  FeatureParser(const TextFormat& format, LabelColumn label) : RowParser(format, label) {}

  void bind(const RecordReader& first) override {
    has_label_ = label_column_ == LabelColumn::Required || !is_feature(first.columns()[0]);
  }
  bool has_label() const override { return has_label_; }
  int64_t num_columns() const override { return 0; }
  std::unique_ptr<RowParser> clone() const override { return std::make_unique<FeatureParser>(*this); }

  void parse(const RecordReader& record, TextRows& rows) override {
    const Span<std::string_view> columns = record.columns();
    if (has_label_) {
      if (is_feature(columns[0])) record.fail(0, format_.label_name, "a label", quoted_text(columns[0]));
      read_label(record, 0, columns[0], rows);
    } else {
      add_label(0, {}, rows);
    }
    for (TextValues& field : rows.fields) field.nnz.push_back(0);
    size_t field = 0;
    for (size_t i = has_label_ ? 1 : 0; i < columns.size(); ++i) {
      Feature feature;
      if (!split_feature(record, i, format_, feature)) continue;
      check_value(record, i, feature);
      field = field_of(record, i, feature, field);
      add(format_.fields[field], feature, rows.fields[field], rows.cut);
    }
    ++rows.rows;
  }

 private:
  void check_value(const RecordReader& record, size_t column, const Feature& feature) const {
    if (format_.values != FeatureValues::Auto || feature.value == 1 || feature.value == 0) return;
    record.fail(column, {}, "the value 1, as in the text that was converted", quoted_text(record.columns()[column]));
  }

  /** The slot of a feature; it is likely that of the one before, or the next. */
  size_t field_of(const RecordReader& record, size_t column, const Feature& feature, size_t likely) const {
    if (format_.kind == TextKind::Libsvm) return 0;
    const std::vector<TextField>& fields = format_.fields;
    for (size_t f = likely; f < std::min(likely + 2, fields.size()); ++f)
      if (fields[f].column == feature.field) return f;
    const auto found = std::find_if(fields.begin(), fields.end(),
                                    [&](const TextField& field) { return field.column == feature.field; });
    if (found == fields.end())
      record.fail(column, {}, "one of the " + str_cat({fields.size()}) + " fields of the dataset",
                  "field " + quoted_text(feature.field));
    return static_cast<size_t>(found - fields.begin());
  }

  static void add(const TextField& field, const Feature& feature, TextValues& values, int64_t& cut) {
    if (!field.weighted && feature.value == 0) return;
    if (field.max_hotness > 0 && values.nnz.back() == field.max_hotness) {
      ++cut;
      return;
    }
    values.values.push_back(feature.index);
    if (field.weighted) values.weights.push_back(static_cast<float>(feature.value));
    ++values.nnz.back();
  }

  bool has_label_ = true;
};

}  // namespace

bool split_feature(const RecordReader& record, size_t column, const TextFormat& format, Feature& out) {
  const std::string_view whole = record.columns()[column];
  std::string_view text = whole;
  const bool has_field = format.kind == TextKind::Libffm;
  if (!has_field && text.starts_with("qid:")) return false;
  const auto fail = [&](std::string_view expected) { record.fail(column, {}, expected, quoted_text(whole)); };
  const auto take = [&](std::string_view& part) {
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos) fail(has_field ? "field:index:value" : "index:value");
    part = text.substr(0, colon);
    text.remove_prefix(colon + 1);
  };
  if (has_field) {
    take(out.field);
    if (!trim_number(out.field)) fail("the number of a field, from 0 on");
  }
  take(out.index);
  if (!trim_number(out.index)) fail("the index of a feature, a whole number from 0 on");
  if (!parse_number(text, out.value) || !(std::abs(out.value) <= kMostFloat)) fail("a finite number as the value");
  return true;
}

std::unique_ptr<RowParser> make_feature_parser(const TextFormat& format, LabelColumn label) {
  return std::make_unique<FeatureParser>(format, label);
}

}  // namespace tercel::data
