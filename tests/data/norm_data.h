// Rows for tests, and Norm files of them that are encoded here, without the library under test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/data/dataset.h"
#include "tercel/data/formats/norm_format.h"
#include "tercel/util/philox.h"
#include "tests/util/temporary_folder.h"

namespace tercel::data::test {

using tercel::test::TemporaryFolder;

/** Rows as plain arrays; keys of all slots of all rows in one array. */
struct Rows {
  int64_t count = 0;
  std::vector<float> labels, dense;
  std::vector<int32_t> nnz;
  std::vector<int64_t> keys;

  friend bool operator==(const Rows&, const Rows&) = default;
};

inline Schema make_schema(int64_t dense_dim, const std::vector<int64_t>& hotness, int64_t slot_size = 100) {
  Schema schema;
  schema.dense_dim = dense_dim;
  for (size_t s = 0; s < hotness.size(); ++s)
    schema.slots.push_back({"s" + std::to_string(s), slot_size, 0, hotness[s]});
  schema.set_consecutive_keys();
  return schema;
}

/** Every row is different. `ragged`: 0 to hotness keys, else hotness. */
inline Rows make_rows(const Schema& schema, int64_t count, bool ragged, uint64_t seed = 1) {
  Rows rows;
  rows.count = count;
  const Philox random{seed, 0};
  uint64_t index = 0;
  const auto draw = [&](uint64_t below) {
    const PhiloxBlock block = random(index++);
    return uniform_int(random_u64(block.word[0], block.word[1]), below);
  };
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t i = 0; i < schema.label_dim; ++i) rows.labels.push_back(static_cast<float>(draw(2)));
    for (int64_t i = 0; i < schema.dense_dim; ++i)
      rows.dense.push_back(i == 0 ? static_cast<float>(row) : static_cast<float>(draw(1000)) / 8);
    for (const Slot& slot : schema.slots) {
      const auto nnz = ragged ? static_cast<int64_t>(draw(static_cast<uint64_t>(slot.hotness) + 1)) : slot.hotness;
      rows.nnz.push_back(static_cast<int32_t>(nnz));
      for (int64_t k = 0; k < nnz; ++k)
        rows.keys.push_back(slot.first_key + static_cast<int64_t>(draw(static_cast<uint64_t>(slot.size))));
    }
  }
  return rows;
}

template <class T>
void append(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

inline std::string framed(const std::string& payload, CheckMode mode) {
  if (mode == CheckMode::None) return payload;
  std::string out;
  append(out, static_cast<int32_t>(payload.size()));
  out += payload;
  uint8_t sum = 0;
  for (const char c : payload) sum = static_cast<uint8_t>(sum + static_cast<uint8_t>(c));
  append(out, sum);
  return out;
}

inline std::string encode_header(const Schema& schema, CheckMode mode, int64_t records) {
  std::string payload;
  append<int64_t>(payload, mode == CheckMode::Sum ? 1 : 0);
  append<int64_t>(payload, records);
  append<int64_t>(payload, schema.label_dim);
  append<int64_t>(payload, schema.dense_dim);
  append<int64_t>(payload, schema.slot_num());
  for (int i = 0; i < 3; ++i) append<int64_t>(payload, 0);
  return framed(payload, mode);
}

/** The framed records of rows [begin, end), each on its own. */
inline std::vector<std::string> encode_records(const Schema& schema, const Rows& rows, KeyType key_type, CheckMode mode,
                                               int64_t begin, int64_t end) {
  std::vector<std::string> records;
  size_t key = 0;
  for (int64_t row = 0; row < end; ++row) {
    std::string payload;
    for (int64_t i = 0; i < schema.label_dim; ++i)
      append(payload, rows.labels[static_cast<size_t>(row * schema.label_dim + i)]);
    for (int64_t i = 0; i < schema.dense_dim; ++i)
      append(payload, rows.dense[static_cast<size_t>(row * schema.dense_dim + i)]);
    for (int64_t s = 0; s < schema.slot_num(); ++s) {
      const int32_t nnz = rows.nnz[static_cast<size_t>(row * schema.slot_num() + s)];
      append(payload, nnz);
      for (int32_t k = 0; k < nnz; ++k, ++key) {
        if (key_type == KeyType::I64)
          append(payload, rows.keys[key]);
        else
          append(payload, static_cast<uint32_t>(rows.keys[key]));
      }
    }
    if (row >= begin) records.push_back(framed(payload, mode));
  }
  return records;
}

inline std::string encode_file(const Schema& schema, const Rows& rows, KeyType key_type, CheckMode mode, int64_t begin,
                               int64_t end) {
  std::string out = encode_header(schema, mode, end - begin);
  for (const std::string& record : encode_records(schema, rows, key_type, mode, begin, end)) out += record;
  return out;
}

/** Writes rows as the train part: files of the given numbers of rows. */
inline Dataset put_dataset(const TemporaryFolder& folder, const Schema& schema, const Rows& rows, KeyType key_type,
                           CheckMode mode, const std::vector<int64_t>& file_rows) {
  Dataset dataset;
  dataset.folder = folder.path();
  dataset.format = norm_format({key_type, mode});
  dataset.schema = schema;
  int64_t begin = 0;
  for (const int64_t count : file_rows) {
    const std::string content = encode_file(schema, rows, key_type, mode, begin, begin + count);
    DataFile file;
    file.path = std::to_string(dataset.train.files.size()) + ".data";
    file.bytes = static_cast<int64_t>(content.size());
    file.rows = count;
    folder.put(file.path, content);
    dataset.train.files.push_back(file);
    begin += count;
  }
  return dataset;
}

/** Appends a batch, which must be well-formed, to rows; keys go back from inputs to slots. */
inline void append_batch(Rows& rows, const Batch& batch, const Schema& schema) {
  ASSERT_EQ(batch.labels.sizes(), IntSpan({batch.rows, schema.label_dim}));
  ASSERT_EQ(batch.dense.sizes(), IntSpan({batch.rows, schema.dense_dim}));
  rows.count += batch.rows;
  const auto add = [](auto& to, const auto* from, int64_t count) {
    if (count > 0) to.insert(to.end(), from, from + count);
  };
  add(rows.labels, static_cast<const float*>(batch.labels.data_ptr()), batch.labels.numel());
  add(rows.dense, static_cast<const float*>(batch.dense.data_ptr()), batch.dense.numel());
  for (const SparseBatch& sparse : batch.sparse) {
    const int64_t bags = batch.rows * sparse.slot_num;
    ASSERT_EQ(sparse.row_offsets.sizes(), IntSpan({bags + 1}));
    const int64_t* offsets = sparse.row_offsets.data<int64_t>();
    ASSERT_EQ(offsets[0], 0);
    ASSERT_EQ(offsets[bags], sparse.keys.numel());
    ASSERT_EQ(sparse.keys.dim(), 1);
    ASSERT_EQ(sparse.keys.dtype(), kInt64);
    for (int64_t bag = 0; bag < bags && sparse.hotness > 0; ++bag)
      ASSERT_EQ(offsets[bag + 1] - offsets[bag], sparse.hotness);
  }
  for (int64_t row = 0; row < batch.rows; ++row) {
    for (const SparseBatch& sparse : batch.sparse) {
      const int64_t* offsets = sparse.row_offsets.data<int64_t>() + row * sparse.slot_num;
      const auto* keys = static_cast<const int64_t*>(sparse.keys.data_ptr());
      for (int64_t s = 0; s < sparse.slot_num; ++s) {
        ASSERT_LE(offsets[s], offsets[s + 1]);
        rows.nnz.push_back(static_cast<int32_t>(offsets[s + 1] - offsets[s]));
        add(rows.keys, keys + offsets[s], offsets[s + 1] - offsets[s]);
      }
    }
  }
}

/** All remaining rows. */
inline Rows read_rest(BatchReader& reader, std::vector<int64_t>* batch_rows = nullptr) {
  Rows rows;
  Batch batch;
  while (reader.next(batch)) {
    append_batch(rows, batch, reader.schema());
    if (batch_rows) batch_rows->push_back(batch.rows);
  }
  return rows;
}

inline Rows read_all(const Dataset& dataset, const ReaderOptions& options = {}) {
  BatchReader reader(dataset, PartName::Train, options);
  return read_rest(reader);
}

/** The rows in another order. */
inline Rows permuted(const Rows& rows, const Schema& schema, const std::vector<int64_t>& order) {
  std::vector<size_t> first_key(static_cast<size_t>(rows.count) + 1, 0);
  const auto slots = static_cast<size_t>(schema.slot_num());
  for (size_t row = 0; row < static_cast<size_t>(rows.count); ++row) {
    first_key[row + 1] = first_key[row];
    for (size_t s = 0; s < slots; ++s) first_key[row + 1] += static_cast<size_t>(rows.nnz[row * slots + s]);
  }
  Rows result;
  const auto add = [](auto& to, const auto& from, size_t begin, size_t end) {
    to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(begin),
              from.begin() + static_cast<std::ptrdiff_t>(end));
  };
  for (const int64_t index : order) {
    const auto row = static_cast<size_t>(index);
    const auto labels = static_cast<size_t>(schema.label_dim), dense = static_cast<size_t>(schema.dense_dim);
    ++result.count;
    add(result.labels, rows.labels, row * labels, (row + 1) * labels);
    add(result.dense, rows.dense, row * dense, (row + 1) * dense);
    add(result.nnz, rows.nnz, row * slots, (row + 1) * slots);
    add(result.keys, rows.keys, first_key[row], first_key[row + 1]);
  }
  return result;
}

}  // namespace tercel::data::test
