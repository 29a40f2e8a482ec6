// Rows of more values than a register holds, and of fewer, with every instruction set: each value is read, and each one
// that breaks a rule is found.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tercel/core/dispatch.h"
#include "tercel/data/batch_reader.h"
#include "tercel/data/formats/raw_format.h"
#include "tercel/data/formats/rawasync_format.h"
#include "tercel/util/error.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

constexpr int64_t kRows = 11;

/** Calls function(schema), once per instruction set and number of values. */
template <class Function>
void for_widths(Function function) {
  const CpuIsa before = cpu_isa();
  for (int isa = 0; isa <= static_cast<int>(best_cpu_isa()); ++isa) {
    set_cpu_isa(static_cast<CpuIsa>(isa));
    for (const int64_t width : {3, 4, 9, 26}) {
      SCOPED_TRACE(testing::Message() << to_string(cpu_isa()) << ", " << width << " values");
      function(make_schema(width, std::vector<int64_t>(static_cast<size_t>(width), 1)));
    }
  }
  set_cpu_isa(before);
}

/** The message of reading the dataset, or "". */
std::string outcome(const Dataset& dataset, Rows& rows) {
  ReaderOptions options;
  options.batch_size = kRows;
  try {
    rows = read_all(dataset, options);
  } catch (const DataError& error) {
    return error.what();
  }
  return {};
}

void expect_named(const Dataset& dataset, const std::string& what) {
  Rows rows;
  const std::string message = outcome(dataset, rows);
  ASSERT_NE(message.find(what), std::string::npos) << what << ": '" << message << "'";
}

template <class T>
std::string with(const std::string& content, size_t at, T value) {
  std::string changed = content;
  std::memcpy(changed.data() + at, &value, sizeof(T));
  return changed;
}

/** Puts each bad value into the row before the last one, whose bytes begin at `row`. */
void expect_bad_values(const Dataset& dataset, const TemporaryFolder& folder, const Schema& schema, size_t row,
                       size_t slot_bytes, KeyType key_type) {
  const std::string path = dataset.train.files[0].path;
  const std::string content = folder.get(path);
  const auto width = static_cast<size_t>(schema.dense_dim);
  const size_t key_bytes = key_type == KeyType::I64 ? 8 : 4;
  for (size_t i = 0; i < width; ++i) {
    folder.put(path, with(content, row + 4 + 4 * i, std::numeric_limits<float>::infinity()));
    expect_named(dataset, "dense value " + std::to_string(i));
  }
  for (size_t s = 0; s < width; ++s) {
    const size_t slot = row + 4 + 4 * width + slot_bytes * s, key = slot + slot_bytes - key_bytes;
    const std::string name = "slot " + std::to_string(s) + " ";
    const int64_t end = schema.slots[s].first_key + schema.slots[s].size;
    folder.put(path,
               key_type == KeyType::I64 ? with(content, key, end) : with(content, key, static_cast<int32_t>(end)));
    expect_named(dataset, name);
    if (key_type == KeyType::I64) {
      folder.put(path, with(content, key + 4, int32_t{1}));  // in the upper half only
      expect_named(dataset, name);
    }
    if (slot_bytes == key_bytes) continue;
    folder.put(path, with(content, slot, int32_t{2}));
    expect_named(dataset, name);
  }
  folder.put(path, content);
}

TEST(WideRows, OfNorm) {
  for_widths([](const Schema& schema) {
    const Rows rows = make_rows(schema, kRows, false);
    for (const KeyType key_type : {KeyType::U32, KeyType::I64})
      for (const CheckMode mode : {CheckMode::None, CheckMode::Sum}) {
        const TemporaryFolder folder;
        const Dataset dataset = put_dataset(folder, schema, rows, key_type, mode, {kRows});
        Rows found;
        ASSERT_EQ(outcome(dataset, found), "");
        ASSERT_EQ(found, rows);
        const std::string content = folder.get("0.data");
        const auto header = static_cast<size_t>(norm_header_bytes(mode));
        const size_t record = (content.size() - header) / kRows, row = header + record * (kRows - 2);
        if (mode == CheckMode::None) {
          expect_bad_values(dataset, folder, schema, row, key_type == KeyType::I64 ? 12 : 8, key_type);
        } else {
          for (size_t at = row + 4; at < row + record; ++at) {
            folder.put("0.data", with(content, at, static_cast<char>(content[at] ^ 16)));
            expect_named(dataset, "sum of the record");
          }
        }
      }
  });
}

TEST(WideRows, OfRaw) {
  for_widths([](const Schema& schema) {
    const Rows rows = make_rows(schema, kRows, false);
    for (const auto& [format, key_type] :
         {std::pair(raw_format({true, SlotOffsets::None}), KeyType::U32),
          std::pair(rawasync_format({true, KeyType::I64, SlotOffsets::None}), KeyType::I64)}) {
      const TemporaryFolder folder;
      Dataset dataset;
      dataset.folder = folder.path();
      dataset.format = format;
      dataset.schema = schema;
      WriterOptions options;
      options.folder = folder.path();
      const auto writer = format->create_writer(schema, options);
      writer->write({rows.count, rows.labels.data(), rows.dense.data(), rows.nnz.data(), rows.keys.data()});
      dataset.train = writer->finish();
      Rows found;
      ASSERT_EQ(outcome(dataset, found), "");
      ASSERT_EQ(found, rows);
      const size_t row_bytes = static_cast<size_t>(dataset.train.files[0].bytes) / kRows;
      expect_bad_values(dataset, folder, schema, row_bytes * (kRows - 2), key_type == KeyType::I64 ? 8 : 4, key_type);
    }
  });
}

}  // namespace
}  // namespace tercel::data::test
