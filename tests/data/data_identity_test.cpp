#include "tercel/data/data_identity.h"

#include <gtest/gtest.h>

#include "tercel/util/error.h"
#include "tercel/util/options_impl.h"
#include "tests/support/errors.h"

namespace tercel::data {
namespace {

Dataset small() {
  Dataset dataset;
  dataset.folder = "somewhere";
  dataset.schema.slots = {{"a", 3, 0, 1}, {"b", 4, 3, 2}};
  dataset.train.files = {{{"train/0", 100, "00000000000000aa"}, 10}, {{"train/1", 50, "00000000000000bb"}, 5}};
  dataset.test.files = {{{"test/0", 50, "00000000000000cc"}, 5}};
  dataset.conversion.emplace().vocabulary = FileRecord{"vocabulary", 9, "00000000000000dd"};
  return dataset;
}

TEST(DataIdentity, HasWhatTheDescriptionHas) {
  const DataIdentity identity = identity_of(small());
  EXPECT_EQ(
      dump_json_line(write_options(identity)),
      R"({"schema":{"label_dim":1,"label_names":[],"dense_dim":0,"dense_names":[],"slots":[)"
      R"({"name":"a","size":3,"first_key":0,"hotness":1,"weighted":false},)"
      R"({"name":"b","size":4,"first_key":3,"hotness":2,"weighted":false}],"columns":[]},)"
      R"("vocabulary":"00000000000000dd","dense_transform":"","dense_mean":[],"dense_std":[],"negative_rate":1.0,"parts":[{"part":"train","files":[)"
      R"({"path":"train/0","bytes":100,"rows":10,"checksum":"00000000000000aa"},)"
      R"({"path":"train/1","bytes":50,"rows":5,"checksum":"00000000000000bb"}]},{"part":"test","files":[)"
      R"({"path":"test/0","bytes":50,"rows":5,"checksum":"00000000000000cc"}]}]})");
  Dataset bare = small();
  bare.test = {};
  bare.conversion.reset();
  EXPECT_EQ(identity_of(bare).parts.size(), 1u);
  EXPECT_EQ(identity_of(bare).vocabulary, "");
  EXPECT_EQ(digest_of(identity_of(bare), PartName::Test), "");
}

/** Compares the train parts in both directions, and their digests; returns the result. */
std::string difference(const Dataset& a, const Dataset& b, bool by_size = false) {
  const DataIdentity x = identity_of(a), y = identity_of(b);
  const PartComparison found = compare_part(x, y, PartName::Train), back = compare_part(y, x, PartName::Train);
  EXPECT_EQ(found.difference.empty(), back.difference.empty());
  EXPECT_EQ(found.by_size, by_size);
  EXPECT_EQ(back.by_size, by_size);
  EXPECT_EQ(digest_of(x, PartName::Train) == digest_of(y, PartName::Train), found.difference.empty() && !by_size);
  return found.difference;
}

TEST(DataIdentity, PartsAreComparedByContent) {
  const Dataset a = small();
  Dataset b = small();
  EXPECT_EQ(difference(a, b), "");
  b.folder = "elsewhere";
  b.train.files[0].path = "/moved/0";
  EXPECT_EQ(difference(a, b), "");
  b.train.files[1].checksum = "00000000000000be";
  EXPECT_EQ(difference(a, b),
            "train: file 2 of 2, train/1: expected checksum 00000000000000bb, found 00000000000000be");
  b.train.files[1].rows = 6;
  EXPECT_EQ(difference(a, b), "train: file 2 of 2, train/1: expected 50 bytes and 5 rows, found 50 bytes and 6 rows");
  b = small();
  b.train.files.pop_back();
  EXPECT_EQ(difference(a, b), "train: expected 2 files, found 1");
  EXPECT_EQ(difference(b, a), "train: expected 1 file, found 2");
  b = small();
  std::swap(b.train.files[0], b.train.files[1]);
  EXPECT_EQ(difference(a, b), "train: file 1 of 2, train/1: expected 100 bytes and 10 rows, found 50 bytes and 5 rows");
  b = small();
  b.train = {};
  EXPECT_EQ(difference(a, b), "train: expected 2 files, found 0");
  b = small();
  b.train.files[0].checksum.clear();
  EXPECT_EQ(difference(a, b, /*by_size=*/true), "");
  b.train.files[0].bytes = 101;
  EXPECT_EQ(difference(a, b, /*by_size=*/true),
            "train: file 1 of 2, train/0: expected 100 bytes and 10 rows, found 101 bytes and 10 rows");
}

TEST(DataIdentity, RowsMustMeanTheSame) {
  const DataIdentity a = identity_of(small());
  DataIdentity b = a;
  EXPECT_NO_THROW(check_same_meaning(a, b, "x"));
  b.schema.slots[0].name = "renamed";
  b.schema.slots[1].hotness = 7;
  b.vocabulary.clear();
  EXPECT_NO_THROW(check_same_meaning(a, b, "x"));
  EXPECT_NO_THROW(check_same_meaning(b, a, "x"));
  b.vocabulary = "00000000000000de";
  TERCEL_EXPECT_THROW(check_same_meaning(a, b, "x"), DataError,
                      "x: made with another vocabulary than the model's: expected checksum 00000000000000dd, found "
                      "00000000000000de");
  b = a;
  b.schema.slots[1].size = 5;
  TERCEL_EXPECT_THROW(check_same_meaning(a, b, "x"), DataError,
                      "slot 'b': expected 4 keys from 3 on, found 5 keys from 3 on");
  b = a;
  b.schema.dense_dim = 1;
  TERCEL_EXPECT_THROW(check_same_meaning(a, b, "x"), DataError,
                      "of 1 labels, 0 dense values and 2 slots, found 1, 1 and 2");
}

TEST(DataIdentity, DenseValuesMustBeMadeAlike) {
  Dataset dataset = small();
  dataset.schema.dense_dim = 2;
  dataset.schema.dense_names = {"age", "hours"};
  dataset.conversion->dense_transform = DenseTransform::Standard;
  dataset.conversion->dense_mean = {1.5, 2};
  dataset.conversion->dense_std = {1, 0.1};
  const DataIdentity a = identity_of(dataset);
  EXPECT_EQ(a.dense_transform, "standard");
  EXPECT_NO_THROW(check_same_meaning(a, a, "x"));
  Dataset other = dataset;
  std::swap(other.schema.dense_names[0], other.schema.dense_names[1]);
  TERCEL_EXPECT_THROW(check_same_meaning(a, identity_of(other), "x"), DataError,
                      "x: other dense columns than the model's: column 1: expected 'age', found 'hours'");
  other = dataset;
  other.conversion->dense_std[1] = 0.2;
  EXPECT_NO_THROW(check_same_meaning(a, identity_of(other), "x"));
  EXPECT_EQ(compare_moments(a, identity_of(other)),
            "dense column 2: standardised by the standard deviation 0.2, the model's data by 0.1");
  EXPECT_EQ(compare_moments(a, a), "");
  other.conversion->dense_transform = DenseTransform::Log;
  other.conversion->dense_mean = other.conversion->dense_std = {};
  TERCEL_EXPECT_THROW(
      check_same_meaning(a, identity_of(other), "x"), DataError,
      "x: dense values made in another way than the model's: expected the transform standard, found log");
  other.conversion.reset();  // bare files: not known
  other.schema.dense_names.clear();
  EXPECT_NO_THROW(check_same_meaning(a, identity_of(other), "x"));
  EXPECT_NO_THROW(check_same_meaning(identity_of(other), a, "x"));
}

}  // namespace
}  // namespace tercel::data
