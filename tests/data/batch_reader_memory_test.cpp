// A warmed-up reader allocates no memory, and stays within its documented limit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "tercel/core/allocator.h"
#include "tercel/data/batch_reader.h"
#include "tests/data/norm_data.h"
#include "tests/support/counting_new.h"

namespace tercel::data::test {
namespace {

TEST(BatchReaderMemory, NoAllocationAfterTheFirstBatches) {
  for (const bool ragged : {false, true}) {
    for (const bool shuffle : {false, true}) {
      const Schema schema = make_schema(3, {1, 2, 1});
      const Rows rows = make_rows(schema, 4000, ragged);
      const TemporaryFolder folder;
      const Dataset dataset = put_dataset(folder, schema, rows, KeyType::I64, CheckMode::Sum, {4000});
      ReaderOptions options;
      options.batch_size = 100;
      options.epochs = 0;
      options.shuffle = shuffle;
      options.shuffle_window = 400;
      options.shuffle_block = 20;
      BatchReader reader(dataset, PartName::Train, options);
      Batch batch;
      for (int i = 0; i < 200; ++i) ASSERT_TRUE(reader.next(batch));
      const AllocatorStats stats = cpu_allocator_stats();
      const int64_t before = tercel::test::new_counts.news.load();
      for (int i = 0; i < 400; ++i) ASSERT_TRUE(reader.next(batch));
      EXPECT_EQ(tercel::test::new_counts.news.load(), before) << ragged << shuffle;
      EXPECT_EQ(cpu_allocator_stats().allocated_bytes, stats.allocated_bytes);
      EXPECT_EQ(cpu_allocator_stats().misses, stats.misses);
    }
  }
}

// 57 MB of rows in windows of 2 MiB: tensors and raw bytes together stay at a few.
TEST(BatchReaderMemory, IsBoundedWhateverTheFilesHold) {
  const Tensor probe = empty({1});
  if (cpu_allocator_stats().allocated_bytes == 0) GTEST_SKIP() << "the allocator counts nothing under AddressSanitizer";
  const Schema schema = make_schema(1, {8}, 1000);
  const Rows one = make_rows(schema, 1, false);
  const std::string record = encode_records(schema, one, KeyType::I64, CheckMode::Sum, 0, 1)[0];
  const int64_t count = 700'000;
  const TemporaryFolder folder;
  std::string content = encode_header(schema, CheckMode::Sum, count);
  for (int64_t i = 0; i < count; ++i) content += record;
  folder.put("0.data", content);
  Dataset dataset;
  dataset.folder = folder.path();
  dataset.format = norm_format();
  dataset.schema = schema;
  DataFile file;
  file.path = "0.data";
  file.rows = count;
  file.bytes = static_cast<int64_t>(content.size());
  dataset.train.files.push_back(file);
  ASSERT_GT(content.size(), 50u << 20);
  const int64_t before = cpu_allocator_stats().allocated_bytes;
  ReaderOptions options;
  options.batch_size = 1000;
  BatchReader reader(dataset, PartName::Train, options);
  Batch batch;
  int64_t most = 0;
  while (reader.next(batch)) most = std::max(most, cpu_allocator_stats().allocated_bytes - before);
  EXPECT_GT(most, 1 << 20);
  EXPECT_LT(most, 8 << 20);
}

}  // namespace
}  // namespace tercel::data::test
