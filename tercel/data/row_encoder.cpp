#include "tercel/data/row_encoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr double kMost = std::numeric_limits<float>::max();

}  // namespace

double log_of_count(double value) { return value > 0 ? std::log1p(value) : 0; }  // 0 for NaN, a missing value

RowEncoder::RowEncoder(DenseEncoding dense, Vocabulary vocabulary)
    : dense_(std::move(dense)),
      vocabulary_(std::move(vocabulary)),
      dense_dim_(static_cast<int64_t>(dense_.mean.size())) {
  TERCEL_CHECK(dense_.std.size() == dense_.mean.size(), ValueError,
               "RowEncoder: expected as many deviations as means, found ", dense_.std.size(), " and ",
               dense_.mean.size());
  int64_t first = 0;
  for (int64_t slot = 0; slot < vocabulary_.num_fields(); ++slot) {
    first_key_.push_back(first);
    first += vocabulary_.size(slot);
  }
}

void RowEncoder::encode(const TextRow& row, float* dense, int64_t* keys) const {
  TERCEL_ASSERT(static_cast<int64_t>(row.dense.size()) == dense_dim_ && row.categories.size() == first_key_.size());
  for (size_t i = 0; i < row.dense.size(); ++i) {
    const double value = row.dense[i];
    switch (dense_.transform) {
      case DenseTransform::Raw: dense[i] = std::isnan(value) ? 0.0F : static_cast<float>(value); break;
      case DenseTransform::Log: dense[i] = static_cast<float>(log_of_count(value)); break;
      case DenseTransform::Standard:
        // The moments come from a file: the result must fit a float.
        dense[i] =
            static_cast<float>(std::clamp((log_of_count(value) - dense_.mean[i]) / dense_.std[i], -kMost, kMost));
        break;
    }
  }
  for (size_t slot = 0; slot < first_key_.size(); ++slot)
    keys[slot] = first_key_[slot] + vocabulary_.find(static_cast<int64_t>(slot), row.categories[slot]);
}

RowEncoder load_row_encoder(const Schema& schema, const Conversion& conversion, const std::string& vocabulary_path) {
  const TextFormat format = text_format_of(conversion);
  Vocabulary vocabulary = load_vocabulary(vocabulary_path);
  const std::string path = printable(vocabulary_path);
  TERCEL_CHECK(vocabulary.num_fields() == schema.slot_num(), DataError, path, ": expected ", schema.slot_num(),
               " fields as in the dataset, found ", vocabulary.num_fields());
  for (int64_t f = 0; f < vocabulary.num_fields(); ++f) {
    const Slot& slot = schema.slots[static_cast<size_t>(f)];
    TERCEL_CHECK(vocabulary.name(f) == slot.name && vocabulary.size(f) == slot.size, DataError, path, ": field ", f,
                 ": expected '", printable(slot.name), "' with ", slot.size, " keys as in the dataset, found '",
                 printable(vocabulary.name(f)), "' with ", vocabulary.size(f));
  }
  TERCEL_CHECK(static_cast<int64_t>(format.dense.size()) == schema.dense_dim, DataError, path, ": expected ",
               schema.dense_dim, " dense values as in the dataset, found ", format.dense.size(), " in its conversion");
  DenseEncoding dense{conversion.dense_transform, conversion.dense_mean, conversion.dense_std};
  const auto dim = static_cast<size_t>(schema.dense_dim);
  if (conversion.dense_transform != DenseTransform::Standard) {
    dense.mean.assign(dim, 0);
    dense.std.assign(dim, 1);
  }
  TERCEL_CHECK(dense.mean.size() == dim && dense.std.size() == dim, DataError, path, ": expected ", dim,
               " means and deviations in the conversion, found ", dense.mean.size(), " and ", dense.std.size());
  return {std::move(dense), std::move(vocabulary)};
}

EncodedText::EncodedText(const RowEncoder& encoder, const TextFormat& format, std::vector<TextSource> sources,
                         LabelColumn label)
    : encoder_(encoder), table_(format, std::move(sources), label) {}

int64_t EncodedText::read(int64_t max_rows, float* labels, float* dense, int64_t* keys) {
  int64_t rows = 0;
  for (; rows < max_rows && table_.next(row_); ++rows) {
    labels[rows] = row_.label;
    encoder_.encode(row_, dense + rows * encoder_.dense_dim(), keys + rows * encoder_.slot_num());
  }
  return rows;
}

}  // namespace tercel::data
