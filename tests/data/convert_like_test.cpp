// Conversion of further text like that of a dataset.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tercel/util/error.h"
#include "tests/data/convert_table.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

using Keys = std::vector<int64_t>;

class ConvertLike : public testing::Test {
 protected:
  ConvertResult like(const Dataset& dataset, const std::string& text, const LikeOptions& options = {}) {
    return convert_like(dataset, {folder_.put("later.csv", text)}, folder_ / "later", options, /*replace=*/true,
                        ignore_progress);
  }

  TableConversion first_;
  TemporaryFolder folder_;
};

TEST_F(ConvertLike, TakesVocabularyMomentsAndOptions) {
  CsvOptions options = table_options();
  options.dense = {"n"};
  options.categorical = {"c", "h", "tags"};
  options.positive = {"yes"};
  options.hash_buckets = {"h=100"};
  options.list_separator = "|";
  options.lists = {"tags"};
  options.format = norm_format({KeyType::U32, CheckMode::None});
  const std::string rows = "yes,1,a,x,p|q\nno,5,b,y,p\nno,9,a,z,\n";
  const Dataset before = first_.run("y,n,c,h,tags\n" + rows, options).dataset;
  // The same rows, others that are new, columns in another order, and no label that means 1 is needed.
  const Dataset same = like(before, "y,n,c,h,tags\n" + rows).dataset;
  EXPECT_EQ(same.schema, before.schema);
  EXPECT_EQ(same.train.files[0].checksum, before.train.files[0].checksum);
  EXPECT_EQ(same.conversion->vocabulary->checksum, before.conversion->vocabulary->checksum);
  EXPECT_EQ(same.conversion->dense_mean, before.conversion->dense_mean);
  EXPECT_EQ(same.format->name(), before.format->name());
  EXPECT_TRUE(same.test.files.empty()) << "all rows are train rows";
  const Dataset more = like(before, "tags,h,c,n,y\nnew|q|p,x,new,5,no\n").dataset;
  EXPECT_EQ(more.schema.slots[2].hotness, 3);
  EXPECT_EQ(more.schema.slot_size_array(), before.schema.slot_size_array());
  const Rows later = first_.rows(more, PartName::Train), old = first_.rows(before, PartName::Train);
  EXPECT_EQ(later.dense[0], old.dense[1]);
  EXPECT_EQ(later.keys[0], 0) << "the new category is unknown";
  EXPECT_EQ(later.keys[1], old.keys[1]) << "the hash of x";
  EXPECT_EQ((Keys{later.keys[2], later.keys[3], later.keys[4]}), (Keys{103, 105, 104}));

  // As often as wanted: the result describes the same conversion.
  const std::string again = folder_ / "again";
  std::filesystem::rename(folder_ / "later", again);
  EXPECT_EQ(like(load_dataset(again), "y,n,c,h,tags\n" + rows).dataset.train.files[0].checksum,
            before.train.files[0].checksum);
}

TEST_F(ConvertLike, DividesRowsByItsOwnOptions) {
  CsvOptions options = table_options();
  options.dense = {"n"};
  options.test_every = -1;
  options.time_column = "n";
  options.test_from = "5";
  const std::string text = "y,n,c\n1,1,a\n0,3,a\n1,7,b\n";
  const Dataset before = first_.run(text, options).dataset;
  EXPECT_EQ(before.test.rows(), 1);
  EXPECT_EQ(like(before, text).dataset.train.rows(), 3);
  LikeOptions own;
  own.valid_from = "2";
  const Dataset valid = like(before, text, own).dataset;
  EXPECT_EQ(valid.valid.rows(), 2) << "of the time column";
  EXPECT_EQ(*valid.conversion->setting("valid_from"), "2");
  EXPECT_EQ(*valid.conversion->setting("test_from"), "");
  EXPECT_EQ(*valid.conversion->setting("label"), "y");
  own = {};
  own.test_every = 3;
  EXPECT_EQ(like(before, text, own).dataset.test.rows(), 1);
  own.test = {"x"};
  TERCEL_EXPECT_THROW(like(before, text, own), ConfigError, "exclude each other");
}

TEST_F(ConvertLike, ReplacesNoDatasetThatItReads) {
  const Dataset before = first_.run("y,c\n1,a\n", table_options()).dataset;
  const std::string text = folder_.put("later.csv", "y,c\n1,a\n");
  TERCEL_EXPECT_THROW(convert_like(before, {text}, before.folder, {}, /*replace=*/true, ignore_progress), ConfigError,
                      "vocabulary.bin: lies in ");
  EXPECT_EQ(first_.rows(before, PartName::Train).count, 1);
}

TEST_F(ConvertLike, NeedsADatasetThatWasConverted) {
  Dataset dataset = first_.run("y,c\n1,a\n", table_options()).dataset;
  TERCEL_EXPECT_THROW(like(dataset, "y,d\n1,a\n"), DataError, "later.csv: line 1: expected a column 'c'");
  dataset.conversion->tool = "generate";
  TERCEL_EXPECT_THROW(like(dataset, "y,c\n1,a\n"), ConfigError, "one that 'generate' made");
  dataset.conversion->vocabulary.reset();
  TERCEL_EXPECT_THROW(like(dataset, "y,c\n1,a\n"), ConfigError, "expected a dataset that was converted from text");
}

}  // namespace
}  // namespace tercel::data::test
