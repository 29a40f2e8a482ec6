#include "tercel/data/dataset.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tercel/data/formats/norm_format.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/version.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

/** A dataset of three parts with everything that a description can have. */
Dataset make_full(const TemporaryFolder& folder) {
  Dataset dataset;
  dataset.format = norm_format({KeyType::U32, CheckMode::None});
  dataset.schema = make_schema(2, {1, 2});
  dataset.schema.label_names = {"clicked"};
  dataset.schema.dense_names = {"age", "price"};
  const Rows rows = make_rows(dataset.schema, 30, true);
  for (const auto& [name, part] : dataset.parts()) {
    WriterOptions options;
    options.folder = folder.path();
    options.prefix = std::string(to_string(name)) + "/part-";
    options.file_list = std::string(to_string(name)) + ".txt";
    options.rows_per_file = 20;
    const auto writer = dataset.format->create_writer(dataset.schema, options);
    writer->write({rows.count, rows.labels.data(), rows.dense.data(), rows.nnz.data(), rows.keys.data()});
    part = writer->finish();
  }
  dataset.train.truth = PlantedTruth{0.8, 0.45};
  dataset.test.truth = PlantedTruth{0.79, 0.46};
  Conversion conversion;
  conversion.tool = "criteo";
  conversion.tercel_version = "0.1.0";
  conversion.sources = {"day_0.tsv.gz", "-"};
  conversion.settings = {{"min_count", "4"}, {"test_every", "5"}};
  folder.put("vocabulary.bin", "words");
  conversion.vocabulary = FileRecord{"vocabulary.bin", 5, "0123456789abcdef"};
  conversion.dense_transform = DenseTransform::Standard;
  conversion.dense_mean = {0.1, 1e-17};
  conversion.dense_std = {1, 1.0 / 3};
  dataset.conversion = conversion;
  return dataset;
}

void expect_equal(const Dataset& a, const Dataset& b) {
  EXPECT_EQ(dataset_to_json(a), dataset_to_json(b));
  EXPECT_EQ(a.schema, b.schema);
  EXPECT_EQ(a.train, b.train);
  EXPECT_EQ(a.valid, b.valid);
  EXPECT_EQ(a.test, b.test);
  EXPECT_EQ(a.conversion, b.conversion);
}

/** `text` with one piece replaced, which must occur once. */
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(text.find(from, at + 1), std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Dataset, WhatIsSavedIsLoaded) {
  const TemporaryFolder folder;
  const Dataset dataset = make_full(folder);
  save_dataset(dataset, folder.path());
  const Dataset loaded = load_dataset(folder.path());
  expect_equal(loaded, dataset);
  EXPECT_EQ(loaded.folder, folder.path());
  expect_equal(load_dataset(folder / "dataset.json"), dataset);
  EXPECT_EQ(loaded.path_of(loaded.train.files[0]), folder / "train/part-0.data");
  EXPECT_EQ(loaded.rows(), 90);
  EXPECT_EQ(&loaded.part(PartName::Train), &loaded.train);
  EXPECT_EQ(&loaded.part(PartName::Valid), &loaded.valid);
  EXPECT_EQ(&loaded.part(PartName::Test), &loaded.test);
  EXPECT_EQ(loaded.valid.files[0].path, "valid/part-0.data");
  EXPECT_EQ(*loaded.conversion->setting("min_count"), "4");
  EXPECT_EQ(loaded.conversion->setting("none"), nullptr);
  // The same description gives the same bytes.
  EXPECT_EQ(dataset_to_json(loaded), folder.get("dataset.json"));
}

TEST(Dataset, OptionalEntriesMayBeMissing) {
  const TemporaryFolder folder;
  Dataset dataset = make_full(folder);
  dataset.valid = dataset.test = {};
  dataset.conversion.reset();
  dataset.train.truth.reset();
  save_dataset(dataset, folder.path());
  expect_equal(load_dataset(folder.path()), dataset);
}

TEST(Dataset, DescribesWeightsOfKeysAndColumns) {
  const TemporaryFolder folder;
  const Dataset plain = make_full(folder);
  const std::string json = dataset_to_json(plain);
  std::string version_2 = replaced(json, "\"version\": 3", "\"version\": 2");
  for (const char* added : {",\n        \"weighted\": false", ",\n    \"columns\": []"})
    for (size_t at; (at = version_2.find(added)) != std::string::npos;) version_2.erase(at, std::string(added).size());
  EXPECT_LT(version_2.size(), json.size() - 60);
  expect_equal(dataset_from_json(version_2, "x.json"), plain);

  Dataset dataset = plain;
  dataset.schema.slots[1].weighted = true;
  dataset.schema.columns = {{"weight", ColumnType::F32}, {"time", ColumnType::I64}};
  const Schema read = dataset_from_json(dataset_to_json(dataset), "x.json").schema;
  EXPECT_EQ(read, dataset.schema);
  dataset.schema.columns[0].name = "time";
  TERCEL_EXPECT_THROW(dataset.schema.check("x"), ConfigError, "x: columns: the name 'time' occurs twice");
}

TEST(Dataset, SchemaKnowsItsKeys) {
  Schema schema = make_schema(0, {1, 2}, 10);
  EXPECT_EQ(schema.slots[1].first_key, 10);
  EXPECT_EQ(schema.num_keys(), 20);
  EXPECT_EQ(schema.max_nnz(), 3);
  EXPECT_EQ(schema.slot_size_array(), (std::vector<int64_t>{10, 10}));
  schema.slots[0].first_key = 50;  // separate tables may overlap or leave gaps
  EXPECT_EQ(schema.num_keys(), 60);
  schema.check("test");
  schema.slots[1] = {"s1", 0, 0, 2};
  EXPECT_EQ(schema.num_keys(), 0);
  schema.check("test");
  schema.slots[0].size = INT64_MAX;
  schema.slots[1].size = 1;
  TERCEL_EXPECT_THROW(schema.set_consecutive_keys(), ConfigError, "do not fit in 64 bits");
  schema.slots[0].first_key = 1;
  TERCEL_EXPECT_THROW(schema.check("test"), ConfigError, "test: slot 's0'");
}

TEST(Dataset, SchemasThatMakeNoSenseAreRefused) {
  const auto refused = [](const auto& change, const char* text) {
    Schema schema = make_schema(2, {1, 2});
    change(schema);
    TERCEL_EXPECT_THROW(schema.check("owner"), ConfigError, text);
  };
  refused([](Schema& s) { s.label_dim = 0; }, "option 'label_dim': expected at least 1 and at most 1048576, found 0");
  refused([](Schema& s) { s.dense_dim = -1; }, "option 'dense_dim': expected at least 0");
  refused([](Schema& s) { s.dense_dim = kMaxDim + 1; },
          "option 'dense_dim': expected at least 0 and at most 1048576, found 1048577");
  refused([](Schema& s) { s.dense_names = {"a"}; }, "owner: dense_names: expected no names or 2, found 1");
  refused([](Schema& s) { s.label_names = {"a", "b"}; }, "owner: label_names: expected no names or 1, found 2");
  refused([](Schema& s) { s.dense_names = {"a", "a"}; }, "owner: dense_names: the name 'a' occurs twice");
  refused([](Schema& s) { s.slots[1].name = "s0"; }, "owner: slots: the name 's0' occurs twice");
  refused([](Schema& s) { s.slots[1].name = ""; }, "option 'slots[1].name': expected a string that is not empty");
  refused([](Schema& s) { s.slots[1].hotness = 0; }, "option 'slots[1].hotness': expected at least 1");
  refused([](Schema& s) { s.slots[1].size = -1; }, "option 'slots[1].size'");
  refused([](Schema& s) { s.slots[1].size = 0; }, "owner: slot 's1': expected first_key 0 where size is 0, found 100");
}

TEST(Dataset, DamagedDescriptionsSayWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string good = dataset_to_json(make_full(folder));
  const auto refused = [&](const std::string& text, const char* what) {
    TERCEL_EXPECT_THROW(dataset_from_json(text, "x.json"), DataError, what);
  };
  refused("", "x.json: line 1");
  refused("[]", "expected an object");
  refused("{}", "option 'version': expected an integer, found nothing");
  refused(good.substr(0, good.size() / 2), "x.json: line ");
  refused(replaced(good, "\"norm\"", "\"orc\""), "x.json: format: unknown format 'orc'");
  const std::string later = replaced(good, "\"version\": 3", "\"version\": 4, \"compression\": \"zstd\"");
  const std::string versions = "x.json: expected version 2 or 3 of the description, which Tercel " +
                               std::string(version()) + " reads, found 4 of Tercel ";
  refused(replaced(later, "\"tercel_version\": \"0.1.0\"", "\"tercel_version\": \"9.8.7\""),
          (versions + "9.8.7").c_str());
  refused(replaced(later, "\"tercel_version\": \"0.1.0\"", "\"made_by\": 5"), (versions + "unknown").c_str());
  refused(replaced(good, "\"u32\"", "\"u64\""), "option 'key_type': expected one of u32, i64");
  refused(replaced(good, "\"key_type\": \"u32\",", ""),
          "[x.json: format] option 'key_type': expected u32|i64, found nothing");
  refused(replaced(good, "\"label_dim\": 1,", ""),
          "[x.json: schema] option 'label_dim': expected an integer, found nothing");
  refused(replaced(good, "\"dense_dim\": 2", "\"dense_dim\": \"two\""),
          "option 'dense_dim': expected an integer, found \"two\"");
  refused(replaced(good, "\"hotness\": 2", "\"hotness\": -2"),
          "option 'slots[1].hotness': expected at least 1, found -2");
  refused(replaced(good, "\"hotness\": 2", "\"hotnes\": 2"),
          "unknown option 'slots[1].hotnes'; did you mean 'hotness'");
  refused(replaced(good, "\"schema\"", "\"shema\""), "unknown option 'shema'; did you mean 'schema'");
  refused(replaced(good, "\"auc\": 0.8", "\"auc\": 1.8"),
          "[x.json: train: truth] option 'auc': expected at least 0 and at most 1");
  refused(replaced(good, "\"tool\": \"criteo\",", ""), "[x.json: conversion] option 'tool'");
  refused(replaced(good, "0.1,\n", ""),
          "conversion: expected 2 values of dense_mean and dense_std for dense_transform standard, found 1 and 2");
  refused(replaced(good, "\"vocabulary.bin\"", "7"),
          "[x.json: conversion: vocabulary] option 'path': expected a string");
  for (const char* outside : {"/etc/passwd", "../vocabulary.bin", "a/../../vocabulary.bin", ".."})
    refused(replaced(good, "vocabulary.bin", outside),
            (std::string("x.json: conversion: vocabulary: expected a file in the dataset's folder, found ") + outside)
                .c_str());
  dataset_from_json(replaced(good, "vocabulary.bin", "a/../vocabulary.bin"), "x.json");
  refused(replaced(good, "\"train/part-1.data\"", "null"),
          "[x.json: train] option 'files[1].path': expected a string, found null");
}

TEST(Dataset, FilesMustBeAsRecorded) {
  const TemporaryFolder folder;
  const Dataset dataset = make_full(folder);
  save_dataset(dataset, folder.path());
  const std::string content = folder.get("train/part-1.data");
  folder.put("train/part-1.data", content + "x");
  TERCEL_EXPECT_THROW(load_dataset(folder.path()), DataError,
                      "train/part-1.data: expected " + std::to_string(content.size()) +
                          " bytes, as dataset.json says, found " + std::to_string(content.size() + 1));
  remove_file(folder / "train/part-1.data");
  TERCEL_EXPECT_THROW(load_dataset(folder.path()), DataError, "train/part-1.data: expected a file of");
  create_dirs(folder / "train/part-1.data");
  TERCEL_EXPECT_THROW(load_dataset(folder.path()), DataError, "expected a regular file, found a folder");
  remove_tree(folder / "train/part-1.data");
  folder.put("train/part-1.data", content);
  folder.put("vocabulary.bin", "word");
  TERCEL_EXPECT_THROW(load_dataset(folder.path()), DataError,
                      "vocabulary.bin: expected 5 bytes, as dataset.json says, found 4");
  folder.put("vocabulary.bin", "words");
  load_dataset(folder.path());
  // More rows than the files can contain.
  folder.put("dataset.json", replaced(folder.get("dataset.json"), "\"path\": \"test/part-1.data\",",
                                      "\"path\": \"train/part-0.data\","));
  TERCEL_EXPECT_THROW(load_dataset(folder.path()), DataError, "bytes");
}

TEST(Dataset, AVocabularyElsewhereIsRefusedBehindALinkToo) {
  const TemporaryFolder root;
  root.put("secret", "words");
  const TemporaryFolder folder;
  save_dataset(make_full(folder), folder.path());
  const std::string vocabulary = folder / "vocabulary.bin", link = root / "link";
  std::filesystem::create_directory_symlink(folder.path(), link);
  EXPECT_EQ(load_dataset(link).train.rows(), 30) << "the folder itself may be reached through a link";
  std::filesystem::rename(vocabulary, folder / "other.bin");
  std::filesystem::create_symlink("other.bin", vocabulary);
  EXPECT_EQ(load_dataset(folder.path()).train.rows(), 30);
  std::filesystem::remove(vocabulary);
  std::filesystem::create_symlink(root / "secret", vocabulary);
  for (const std::string& path : {folder.path(), link})
    TERCEL_EXPECT_THROW(
        load_dataset(path), DataError,
        path + "/vocabulary.bin: expected a file in the dataset's folder, found a link to " + (root / "secret"));
}

TEST(Dataset, CountsThatDoNotFitTheFilesAreRefused) {
  const TemporaryFolder folder;
  Dataset dataset = make_full(folder);
  for (const int64_t rows : {int64_t{0}, int64_t{2000}, INT64_MAX}) {
    dataset.train.files[0].rows = rows;
    save_dataset(dataset, folder.path());
    TERCEL_EXPECT_THROW(load_dataset(folder.path()), DataError, "for " + std::to_string(rows) + " records, found ");
  }
  // A plausible but wrong number is detected from the header.
  dataset.train.files[0].rows = 19;
  save_dataset(dataset, folder.path());
  TERCEL_EXPECT_THROW(
      BatchReader(load_dataset(folder.path()), PartName::Train, {}), DataError,
      "train/part-0.data: byte 8: expected number_of_records 19, as the dataset's description says, found 20");
}

TEST(Dataset, ChangedContentIsFoundByChecksum) {
  const TemporaryFolder folder;
  Dataset dataset = make_full(folder);
  dataset.folder = folder.path();
  std::string content = folder.get("train/part-0.data");
  verify_file(dataset, dataset.train.files[0]);
  content[70] = static_cast<char>(content[70] ^ 1);  // the last mantissa bits of a dense value
  folder.put("train/part-0.data", content);
  TERCEL_EXPECT_THROW(verify_file(dataset, dataset.train.files[0]), DataError,
                      "train/part-0.data: expected the XXH3 checksum " + dataset.train.files[0].checksum + ", found ");
  ReaderOptions options;
  BatchReader unsuspecting(dataset, PartName::Train, options);
  options.verify_checksums = true;
  TERCEL_EXPECT_THROW(BatchReader(dataset, PartName::Train, options), DataError, "the content has changed");
  dataset.train.files[0].checksum.clear();
  verify_file(dataset, dataset.train.files[0]);
}

TEST(Dataset, WhatIsNoDataset) {
  const TemporaryFolder folder;
  TERCEL_EXPECT_THROW(load_dataset(folder.path()), DataError, "expected a folder with dataset.json, found none in it");
  TERCEL_EXPECT_THROW(load_dataset(folder / "nowhere"), IoError, "nowhere: expected a dataset's folder, found nothing");
  folder.put("some.tsv", "1\t2\t3\n");
  TERCEL_EXPECT_THROW(load_dataset(folder / "some.tsv"), DataError,
                      "some.tsv: expected a dataset's folder, found a file");
}

TEST(Dataset, SpecsOfBareFilesAreChecked) {
  NormSpec spec;
  TERCEL_EXPECT_THROW(dataset_from_norm_files(spec), ConfigError, "[norm] option 'train_list'");
  spec.train_list = "x";
  spec.nnz_per_slot = {1, 1};
  spec.slot_size_array = {5};
  TERCEL_EXPECT_THROW(dataset_from_norm_files(spec), ConfigError,
                      "option 'slot_size_array': expected none or 2 sizes, one for each slot, found 1");
  spec.slot_size_array = {};
  spec.nnz_per_slot = {1, 0};
  TERCEL_EXPECT_THROW(dataset_from_norm_files(spec), ConfigError, "option 'nnz_per_slot[1]': expected at least 1");
}

TEST(Schema, SlotSizeArrayGivesTheSlotsTheirKeys) {
  const auto sizes_of = [](std::vector<Slot> slots) {
    Schema schema;
    schema.slots = std::move(slots);
    return schema.slot_size_array();
  };
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(sizes_of({{"a", 10, 0}, {"b", 20, 10}, {"c", 5, 30}}), (Sizes{10, 20, 5}));
  // Slots that share their keys.
  EXPECT_EQ(sizes_of({{"a", 10, 0}, {"b", 20, 10}, {"c", 20, 10}}), (Sizes{10, 0, 20}));
  EXPECT_EQ(sizes_of({{"a", 7, 0}, {"b", 7, 0}, {"c", 7, 0}, {"d", 3, 7}}), (Sizes{0, 0, 7, 3}));
  // Slots behind the end of the array.
  EXPECT_EQ(sizes_of({{"a", 10, 0}, {"b", 0, 0}}), (Sizes{10}));
  // No array gives these.
  EXPECT_EQ(sizes_of({{"a", 10, 0}, {"b", 20, 0}}), (Sizes{10, 20}));
  EXPECT_EQ(sizes_of({{"a", 10, 5}, {"b", 20, 15}}), (Sizes{10, 20}));
  EXPECT_EQ(sizes_of({{"a", 0, 0}, {"b", 20, 0}}), (Sizes{0, 20}));
  EXPECT_EQ(sizes_of({{"a", 0, 0}, {"b", 0, 0}}), (Sizes{0, 0}));
}

}  // namespace
}  // namespace tercel::data::test
