#include "tercel/data/row_encoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr double kMost = std::numeric_limits<float>::max();

/** ln(1 + max(x, 0)), of integers in f32 as readers of HugeCTR's integer files compute it, so that those can hold it.
 */
float log_of_dense(double value) {
  const bool is_integer = value == std::floor(value) && value <= std::numeric_limits<int32_t>::max();
  return value > 0 && is_integer ? std::log(static_cast<float>(value) + 1.0F) : static_cast<float>(log_of_count(value));
}

}  // namespace

double log_of_count(double value) { return value > 0 ? std::log1p(value) : 0; }  // 0 for NaN, a missing value

int64_t hashed_key(std::string_view field, std::string_view text, int64_t buckets) {
  char buffer[256];
  std::string longer;
  const size_t bytes = field.size() + 1 + text.size();
  char* place = buffer;
  if (bytes > sizeof(buffer)) {
    longer.resize(bytes);
    place = longer.data();
  }
  std::copy(field.begin(), field.end(), place);
  place[field.size()] = '\0';
  std::copy(text.begin(), text.end(), place + field.size() + 1);
  return static_cast<int64_t>(checksum(place, bytes) % static_cast<uint64_t>(buckets));
}

RowEncoder::RowEncoder(DenseEncoding dense, Vocabulary vocabulary, const std::vector<TextField>& fields)
    : dense_(std::move(dense)),
      vocabulary_(std::move(vocabulary)),
      dense_dim_(static_cast<int64_t>(dense_.mean.size())) {
  TERCEL_CHECK(dense_.std.size() == dense_.mean.size(), ValueError,
               "RowEncoder: expected as many deviations as means, found ", dense_.std.size(), " and ",
               dense_.mean.size());
  TERCEL_CHECK(fields.empty() || static_cast<int64_t>(fields.size()) == slot_num(), ValueError,
               "RowEncoder: expected as many fields as in the vocabulary, found ", fields.size(), " and ", slot_num());
  dense_.preparation.resize(dense_.mean.size());
  hash_buckets_.resize(static_cast<size_t>(slot_num()));
  int64_t next = 0;
  for (int64_t slot = 0; slot < slot_num(); ++slot) {
    const auto s = static_cast<size_t>(slot);
    if (!fields.empty()) hash_buckets_[s] = fields[s].hash_buckets;
    if (!fields.empty() && fields[s].keys_of) {
      TERCEL_ASSERT(*fields[s].keys_of < s);
      fields_.push_back(fields_[*fields[s].keys_of]);
      first_key_.push_back(first_key_[*fields[s].keys_of]);
      continue;
    }
    fields_.push_back(slot);
    first_key_.push_back(next);
    TERCEL_CHECK(size(slot) <= std::numeric_limits<int64_t>::max() - next, ConfigError, "field '",
                 printable(vocabulary_.name(slot)), "': ", size(slot), " keys behind ", next, " do not fit in 64 bits");
    next += size(slot);
  }
}

int64_t RowEncoder::size(int64_t slot) const {
  return is_hashed(slot) ? hash_buckets_[static_cast<size_t>(slot)] : vocabulary_.size(field_of(slot));
}

int64_t RowEncoder::key_of(int64_t slot, std::string_view text) const {
  const int64_t field = field_of(slot), buckets = hash_buckets_[static_cast<size_t>(slot)];
  return first_key(slot) +
         (buckets > 0 ? hashed_key(vocabulary_.name(field), text, buckets) : vocabulary_.find(field, text));
}

void RowEncoder::encode_dense(const TextRows& rows, EncodedRows& out) const {
  const auto dim = static_cast<size_t>(dense_dim_);
  // The moments come from a file: the result must fit a float.
  const auto standardised = [&](double value, size_t d) {
    return static_cast<float>(std::clamp((value - dense_.mean[d]) / dense_.std[d], -kMost, kMost));
  };
  out.dense.resize(static_cast<size_t>(rows.rows) * dim);
  for (size_t d = 0; d < dim; ++d) {
    const DensePreparation& prepared = dense_.preparation[d];
    for (size_t r = 0; r < rows.dense[d].size(); ++r) {
      const double value = prepared(rows.dense[d][r]);
      float* const place = &out.dense[r * dim + d];
      switch (dense_.transform) {
        case DenseTransform::Raw: *place = static_cast<float>(value); break;
        case DenseTransform::Log: *place = log_of_dense(value); break;
        case DenseTransform::Standard: *place = standardised(log_of_count(value), d); break;
        case DenseTransform::Zscore: *place = standardised(value, d); break;
      }
    }
  }
}

void RowEncoder::encode(const TextRows& rows, EncodedRows& out) const {
  TERCEL_ASSERT(rows.dense.size() == static_cast<size_t>(dense_dim_) && rows.fields.size() == first_key_.size());
  out.rows = rows.rows;
  out.labels = rows.labels;
  encode_dense(rows, out);
  const size_t slots = first_key_.size(), count = static_cast<size_t>(rows.rows);
  out.nnz.clear();
  out.first_key.clear();
  out.key_weights.clear();
  if (!rows.ragged) {
    // Column by column: the table of a field stays in the cache.
    out.keys.resize(count * slots);
    for (size_t slot = 0; slot < slots; ++slot)
      for (size_t r = 0; r < count; ++r)
        out.keys[r * slots + slot] = key_of(static_cast<int64_t>(slot), rows.fields[slot].values[r]);
    return;
  }
  out.nnz.resize(count * slots);
  out.first_key.resize(count + 1);
  for (size_t slot = 0; slot < slots; ++slot)
    for (size_t row = 0; row < count; ++row) {
      const TextValues& field = rows.fields[slot];
      const int32_t nnz = field.nnz.empty() ? 1 : field.nnz[row];
      out.nnz[row * slots + slot] = nnz;
      out.first_key[row + 1] += nnz;
    }
  for (size_t row = 0; row < count; ++row) out.first_key[row + 1] += out.first_key[row];
  out.keys.resize(static_cast<size_t>(out.first_key[count]));
  if (rows.weighted) out.key_weights.assign(out.keys.size(), 1);
  // Where the next key of each row goes.
  std::vector<int64_t> next(out.first_key.begin(), out.first_key.end() - 1);
  for (size_t slot = 0; slot < slots; ++slot) {
    const TextValues& field = rows.fields[slot];
    size_t value = 0;
    for (size_t row = 0; row < count; ++row)
      for (int32_t k = out.nnz[row * slots + slot]; k > 0; --k, ++value) {
        const auto place = static_cast<size_t>(next[row]++);
        out.keys[place] = key_of(static_cast<int64_t>(slot), field.values[value]);
        if (!field.weights.empty()) out.key_weights[place] = field.weights[value];
      }
  }
}

RowEncoder load_row_encoder(const Schema& schema, const Conversion& conversion, const std::string& vocabulary_path) {
  const TextFormat format = text_format_of(conversion);
  Vocabulary vocabulary = load_vocabulary(vocabulary_path);
  const std::string path = printable(vocabulary_path);
  TERCEL_CHECK(vocabulary.num_fields() == schema.slot_num(), DataError, path, ": expected ", schema.slot_num(),
               " fields as in the dataset, found ", vocabulary.num_fields());
  TERCEL_CHECK(format.fields.size() == schema.slots.size(), DataError, path, ": expected ", schema.slot_num(),
               " slots as in the dataset, found ", format.fields.size(), " in its conversion");
  TERCEL_CHECK(static_cast<int64_t>(format.dense.size()) == schema.dense_dim, DataError, path, ": expected ",
               schema.dense_dim, " dense values as in the dataset, found ", format.dense.size(), " in its conversion");
  DenseEncoding dense{conversion.dense_transform, conversion.dense_mean, conversion.dense_std, format.preparation};
  const auto dim = static_cast<size_t>(schema.dense_dim);
  if (!has_moments(conversion.dense_transform)) {
    dense.mean.assign(dim, 0);
    dense.std.assign(dim, 1);
  }
  TERCEL_CHECK(dense.mean.size() == dim && dense.std.size() == dim, DataError, path, ": expected ", dim,
               " means and deviations in the conversion, found ", dense.mean.size(), " and ", dense.std.size());
  RowEncoder encoder(std::move(dense), std::move(vocabulary), format.fields);
  for (int64_t f = 0; f < encoder.slot_num(); ++f) {
    const Slot& slot = schema.slots[static_cast<size_t>(f)];
    const std::string& name = encoder.vocabulary().name(f);
    const bool is_same = name == slot.name && encoder.size(f) == slot.size && encoder.first_key(f) == slot.first_key;
    TERCEL_CHECK(is_same, DataError, path, ": field ", f, ": expected '", printable(slot.name), "' with ", slot.size,
                 " keys from ", slot.first_key, " on, as in the dataset, found '", printable(name), "' with ",
                 encoder.size(f), " from ", encoder.first_key(f), " on");
  }
  return encoder;
}

EncodedText::EncodedText(const RowEncoder& encoder, const TextFormat& format, std::vector<TextSource> sources,
                         LabelColumn label)
    : encoder_(encoder), table_(format, std::move(sources), label) {}

bool EncodedText::read(int64_t max_rows, EncodedRows& out) {
  out = EncodedRows();
  const bool ragged = table_.format().has_lists() || table_.format().has_weights();
  if (ragged) out.first_key.push_back(0);
  while (out.rows < max_rows) {
    if (next_ == encoded_.rows) {
      if (!table_.next(block_)) break;
      table_.parse(block_, rows_);
      encoder_.encode(rows_, encoded_);
      next_ = 0;
      continue;
    }
    const int64_t count = std::min(max_rows - out.rows, encoded_.rows - next_), end = next_ + count;
    const auto copy = [](const auto& from, auto& to, int64_t begin, int64_t stop) {
      if (!from.empty()) to.insert(to.end(), from.begin() + begin, from.begin() + stop);
    };
    copy(encoded_.labels, out.labels, next_, end);
    copy(encoded_.dense, out.dense, next_ * encoder_.dense_dim(), end * encoder_.dense_dim());
    const int64_t slots = encoder_.slot_num();
    copy(encoded_.nnz, out.nnz, next_ * slots, end * slots);
    const auto key = [&](int64_t row) { return ragged ? encoded_.first_key[static_cast<size_t>(row)] : row * slots; };
    copy(encoded_.keys, out.keys, key(next_), key(end));
    copy(encoded_.key_weights, out.key_weights, key(next_), key(end));
    if (ragged)
      for (int64_t row = next_; row < end; ++row)
        out.first_key.push_back(out.first_key.back() + key(row + 1) - key(row));
    if (!rows_.ids.empty())
      for (int64_t row = next_; row < end; ++row) out.ids.emplace_back(rows_.ids[static_cast<size_t>(row)]);
    out.rows += count;
    next_ = end;
  }
  return out.rows > 0;
}

}  // namespace tercel::data
