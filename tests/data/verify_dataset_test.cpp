#include "tercel/data/verify_dataset.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tercel/data/convert.h"
#include "tercel/data/formats/norm_format.h"
#include "tercel/data/formats/raw_format.h"
#include "tercel/util/error.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

VerifyResult verify(const Dataset& dataset, int64_t max_faults = 100) {
  VerifyOptions options;
  options.max_faults = max_faults;
  VerifyProgress last;
  VerifyResult result = verify_dataset(dataset, options, [&](const VerifyProgress& now) {
    EXPECT_GE(now.bytes_done, last.bytes_done);
    EXPECT_LE(now.bytes_done, now.bytes_total);
    last = now;
  });
  if (result.faults.empty()) {
    EXPECT_EQ(last.bytes_done, last.bytes_total);
  }
  return result;
}

/** Rows in two files of the format. */
Dataset make_dataset(const TemporaryFolder& folder, const std::shared_ptr<const DatasetFormat>& format,
                     const Schema& schema, const Rows& rows) {
  Dataset dataset;
  dataset.folder = folder.path();
  dataset.format = format;
  dataset.schema = schema;
  WriterOptions options;
  options.folder = folder.path();
  options.file_list = "train.txt";
  options.rows_per_file = (rows.count + 1) / 2;
  const auto writer = format->create_writer(schema, options);
  writer->write({rows.count, rows.labels.data(), rows.dense.data(), rows.nnz.data(), rows.keys.data()});
  dataset.train = writer->finish();
  return dataset;
}

void flip(const TemporaryFolder& folder, const std::string& name, size_t byte) {
  std::string bytes = folder.get(name);
  bytes[byte] = static_cast<char>(bytes[byte] ^ 0x40);
  folder.put(name, bytes);
}

TEST(VerifyDataset, GoodDatasetsHaveNoFaults) {
  for (const bool ragged : {false, true}) {
    const Schema schema = make_schema(2, {1, 2});
    const TemporaryFolder folder;
    const Dataset dataset = make_dataset(folder, norm_format(), schema, make_rows(schema, 9001, ragged));
    const VerifyResult result = verify(dataset);
    EXPECT_EQ(result.faults, std::vector<std::string>());
    EXPECT_EQ(result.rows, 9001);
    EXPECT_EQ(result.files, 2);
    EXPECT_EQ(result.bytes, dataset.train.bytes());
    EXPECT_EQ(result.unsummed, 0);
  }
}

TEST(VerifyDataset, EveryBadRowIsNamedWhereRowsCanBeFound) {
  const Schema schema = make_schema(2, {1, 2});
  const TemporaryFolder folder;
  const Dataset dataset =
      make_dataset(folder, norm_format({KeyType::I64, CheckMode::Sum}), schema, make_rows(schema, 12000, false));
  const size_t record = 5 + 4 * 5 + 8 * 3;
  for (const size_t row : {0u, 1u, 4095u, 4096u, 5999u}) flip(folder, "train/part-0.data", 69 + row * record + 10);
  flip(folder, "train/part-1.data", 69 + 17 * record + 10);
  const VerifyResult all = verify(dataset);
  ASSERT_EQ(all.faults.size(), 8u);
  const char* expected[] = {
      "part-0.data: record 0: ",    "part-0.data: record 1: ",       "part-0.data: record 4095: ",
      "part-0.data: record 4096: ", "part-0.data: record 5999: ",    "part-0.data: expected the XXH3",
      "part-1.data: record 17: ",   "part-1.data: expected the XXH3"};
  for (size_t i = 0; i < all.faults.size(); ++i)
    EXPECT_NE(all.faults[i].find(expected[i]), std::string::npos) << all.faults[i];
  EXPECT_EQ(all.rows, 12000 - 6);
  const VerifyResult first = verify(dataset, 1);
  EXPECT_EQ(first.faults, std::vector<std::string>({all.faults[0]}));
  EXPECT_EQ(verify(dataset, 3).faults.size(), 3u);
}

TEST(VerifyDataset, RowsBehindAFaultThatHidesThemAreNotReported) {
  const Schema schema = make_schema(2, {1, 2});
  const TemporaryFolder folder;
  const Dataset dataset =
      make_dataset(folder, norm_format({KeyType::I64, CheckMode::None}), schema, make_rows(schema, 6000, true));
  // The count of keys of the first slot of the first row.
  flip(folder, "train/part-0.data", 64 + 12);
  const VerifyResult result = verify(dataset);
  ASSERT_EQ(result.faults.size(), 2u);
  EXPECT_NE(result.faults[0].find("part-0.data: record 0: byte 76: expected 0 to 1 keys"), std::string::npos);
  EXPECT_NE(result.faults[1].find("part-0.data: expected the XXH3"), std::string::npos);
  EXPECT_EQ(result.rows, 3000);
}

TEST(VerifyDataset, ChangesThatNoRuleForbidsAreFoundByChecksum) {
  const Schema schema = make_schema(2, {1, 2});
  const TemporaryFolder folder;
  const Dataset dataset = make_dataset(folder, raw_format(), schema, make_rows(schema, 100, false));
  flip(folder, "train/part-1.bin", 5);
  const VerifyResult result = verify(dataset);
  ASSERT_EQ(result.faults.size(), 1u);
  EXPECT_NE(result.faults[0].find("part-1.bin: expected the XXH3"), std::string::npos);
  EXPECT_EQ(result.rows, 100);
}

TEST(VerifyDataset, FileListsAndVocabulariesBelongToTheDataset) {
  const Schema schema = make_schema(2, {1, 2});
  const TemporaryFolder folder;
  const Dataset dataset = make_dataset(folder, norm_format(), schema, make_rows(schema, 10, false));
  folder.put("train.txt", "2\ntrain/part-1.data\ntrain/part-0.data\n");
  EXPECT_NE(verify(dataset).faults.at(0).find("train.txt: line 2: expected "), std::string::npos);
  folder.put("train.txt", "1\ntrain/part-0.data\n");
  EXPECT_NE(verify(dataset).faults.at(0).find("train.txt: line 1: expected 2 files"), std::string::npos);
  EXPECT_EQ(verify(dataset, 1).faults.size(), 1u);

  std::string text;
  for (int row = 0; row < 20; ++row) text += std::to_string(row % 2) + ",a" + std::to_string(row % 3) + "\n";
  const auto converted = [&](const std::string& name, std::vector<std::string> hash_buckets = {}) {
    CsvOptions options;
    options.hash_buckets = std::move(hash_buckets);
    options.no_header = true;
    options.label = "1";
    options.categorical = {"2"};
    options.format = norm_format();
    return convert_csv({folder.put("in.csv", text)}, folder / name, options, false, [](const ConvertProgress&) {})
        .dataset;
  };
  Dataset words = converted("words");
  EXPECT_EQ(verify(words).faults, std::vector<std::string>());
  EXPECT_EQ(verify(words).files, 3);
  EXPECT_EQ(verify(converted("hashed", {"100"})).faults, std::vector<std::string>());
  Dataset unknown = words;
  unknown.conversion->tool = "other";
  EXPECT_EQ(verify(unknown).faults.size(), 1u);
  Dataset other = words;
  other.schema.slots[0].size += 1;
  EXPECT_NE(verify(other).faults.at(0).find("vocabulary.bin: field 0: expected '2' with 5 keys"), std::string::npos)
      << verify(other).faults.at(0);
  flip(folder, "words/vocabulary.bin", 20);
  EXPECT_NE(verify(words).faults.at(0).find("vocabulary.bin: expected the XXH3"), std::string::npos);
}

}  // namespace
}  // namespace tercel::data::test
