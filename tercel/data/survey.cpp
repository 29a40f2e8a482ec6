#include <algorithm>
#include <cmath>
#include <limits>

#include "tercel/data/row_encoder.h"
#include "tercel/data/survey_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/parallel.h"
#include "tercel/util/suggest.h"

namespace tercel::data {

namespace {

constexpr size_t kShownLabels = 10;

}  // namespace

double RunningMoments::std(bool of_sample) const {
  const int64_t divisor = of_sample ? count - 1 : count;
  // A constant becomes 0, also if rounding errors give it a tiny variance.
  const double std = divisor > 0 ? std::sqrt(squares / static_cast<double>(divisor)) : 0;
  return std > 1e-9 ? std : 1;
}

LabelSurvey::LabelSurvey(const TextFormat& format)
    : rule_(format.positive, format.negative),
      column_(format.label_name),
      found_(format.positive.size()),
      missing_(format.positive.size()) {}

void LabelSurvey::add(std::string_view label) {
  if (missing_ == 0) return;
  for (size_t i = 0; i < found_.size(); ++i) {
    if (found_[i] || !rule_.holds(i, label)) continue;
    found_[i] = true;
    --missing_;
  }
  if (labels_.size() < kShownLabels && std::find(labels_.begin(), labels_.end(), label) == labels_.end())
    labels_.emplace_back(label);
}

void LabelSurvey::merge(const LabelSurvey& other) {
  for (size_t i = 0; i < found_.size(); ++i) {
    if (found_[i] || !other.found_[i]) continue;
    found_[i] = true;
    --missing_;
  }
  for (const std::string& label : other.labels_) add(label);
}

void LabelSurvey::check_each(const std::string& name) const {
  if (missing_ > 0) fail(name, static_cast<size_t>(std::find(found_.begin(), found_.end(), false) - found_.begin()));
}

void LabelSurvey::check_some(const std::string& name) const {
  if (missing_ > 0 && missing_ == found_.size()) fail(name, 0);
}

void LabelSurvey::fail(const std::string& name, size_t condition) const {
  std::string shown;
  for (const std::string& label : labels_) shown += (shown.empty() ? "'" : ", '") + printable(label) + "'";
  const std::vector<std::string_view> known(labels_.begin(), labels_.end());
  const std::string_view nearest = nearest_name(rule_.positive()[condition], known);
  throw_error<DataError>({name, ": expected a label '", printable(rule_.positive()[condition]),
                          "', as option 'positive' says, in column '", printable(column_), "', found ", shown,
                          labels_.size() == kShownLabels ? " ..." : "",
                          nearest.empty() ? "" : str_cat({"; did you mean '", printable(nearest), "'?"})});
}

Survey::Survey(const TextFormat& format, DenseTransform transform, bool statistics)
    : format_(format),
      transform_(transform),
      statistics_(statistics),
      fields_(format.fields.size()),
      moments_(format.dense.size()),
      labels_(kFileGroups, LabelSurvey(format)) {
  // Fields cost more than numbers, and each thread takes neighbours.
  constexpr size_t kStride = 8;
  const size_t columns = fields_.size() + (statistics ? moments_.size() : 0);
  for (size_t first = 0; first < kStride; ++first)
    for (size_t column = first; column < columns; column += kStride) order_.push_back(column);
}

void Survey::add_field(size_t f, const SurveyBlock& block) {
  FieldCounts& counts = fields_[f];
  const TextValues& field = block.rows->fields[f];
  for (const int32_t nnz : field.nnz) counts.hotness = std::max(counts.hotness, nnz);
  if (!statistics_ || format_.fields[f].hash_buckets > 0) return;
  size_t value = 0;
  for (size_t row = 0; row < block.is_train->size(); ++row) {
    const size_t nnz = field.nnz.empty() ? 1 : static_cast<size_t>(field.nnz[row]);
    if ((*block.is_train)[row] != 0) {
      for (size_t i = value; i < value + nnz; ++i) {
        if (field.values[i].empty()) continue;
        ++counts.values;
        TERCEL_ASSERT(counts.table.add(field.values[i], 1));
      }
    }
    value += nnz;
  }
}

void Survey::add_dense(size_t d, const SurveyBlock& block) {
  const DensePreparation& prepared = format_.preparation[d];
  for (size_t row = 0; row < block.is_train->size(); ++row) {
    if ((*block.is_train)[row] == 0) continue;
    const double value = prepared(block.rows->dense[d][row]);
    moments_[d].add(transform_ == DenseTransform::Standard ? log_of_count(value) : value);
  }
}

void Survey::add(Span<SurveyBlock> blocks) {
  for (const SurveyBlock& block : blocks)
    for (const std::string_view label : block.rows->label_texts) labels_[block.group].add(label);
  parallel_for(0, static_cast<int64_t>(order_.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const size_t column = order_[static_cast<size_t>(i)];
      for (const SurveyBlock& block : blocks) {
        if (column < fields_.size())
          add_field(column, block);
        else
          add_dense(column - fields_.size(), block);
      }
    }
  });
}

}  // namespace tercel::data
