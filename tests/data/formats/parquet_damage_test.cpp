// Damaged Parquet files: any bytes give the rows that were written, or an error; memory has a limit.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tercel/data/arrow_module.h"
#include "tercel/data/batch_reader.h"
#include "tercel/data/formats/parquet_format.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tests/data/norm_data.h"
#include "tests/support/errors.h"

namespace tercel::data::test {
namespace {

class ParquetDamage : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_arrow_module()) GTEST_SKIP() << "built without the Arrow module";
    schema_ = make_schema(1, {1, 3}, 20);
    rows_ = make_rows(schema_, 12, true);
    WriterOptions options;
    options.folder = folder_.path();
    dataset_.folder = folder_.path();
    dataset_.schema = schema_;
    dataset_.format = parquet_format();
    const auto writer = dataset_.format->create_writer(schema_, options);
    writer->write({rows_.count, rows_.labels.data(), rows_.dense.data(), rows_.nnz.data(), rows_.keys.data()});
    dataset_.train = writer->finish();
    path_ = dataset_.path_of(dataset_.train.files[0]);
    content_ = read_file(path_, 1 << 20);
  }

  /** Whether the bytes are read as the rows that were written; false for an error. */
  bool is_read(const std::string& bytes, bool shuffle = false) {
    write_file(path_, bytes);
    Dataset dataset = dataset_;
    dataset.train.files[0].bytes = static_cast<int64_t>(bytes.size());
    ReaderOptions options;
    options.shuffle = shuffle;
    try {
      const Rows found = read_all(dataset, options);
      EXPECT_EQ(found.count, rows_.count);
      if (!shuffle) {
        EXPECT_EQ(found, rows_);
      }
      return true;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("part-0.parquet"), std::string::npos) << error.what();
      return false;
    }
  }

  Schema schema_;
  Rows rows_;
  TemporaryFolder folder_;
  Dataset dataset_;
  std::string path_, content_;
};

TEST_F(ParquetDamage, TheFileItselfIsRead) {
  EXPECT_TRUE(is_read(content_));
  EXPECT_TRUE(is_read(content_, true));
}

TEST_F(ParquetDamage, AFileThatIsCutOffAnywhereIsRefused) {
  for (size_t size = 0; size < content_.size(); ++size) EXPECT_FALSE(is_read(content_.substr(0, size))) << size;
}

TEST_F(ParquetDamage, EveryBitThatIsFlippedChangesNothingOrIsRefused) {
  size_t refused = 0;
  for (size_t bit = 0; bit < 8 * content_.size(); ++bit) {
    SCOPED_TRACE(bit);
    std::string bad = content_;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ 1 << bit % 8);
    refused += is_read(bad, bit % 7 == 0) ? 0 : 1;
  }
  // Statistics and names of the writer do not matter; all else does.
  EXPECT_GT(refused, 4 * content_.size());
}

TEST_F(ParquetDamage, BytesThatAreOverwrittenAreRefused) {
  for (size_t begin = 4; begin + 16 < content_.size(); begin += 16)
    for (const char byte : {'\0', '\xff'}) {
      SCOPED_TRACE(begin);
      std::string bad = content_;
      bad.replace(begin, 16, 16, byte);
      is_read(bad);
    }
}

TEST_F(ParquetDamage, AnotherNumberOfRowsThanDescribedIsRefused) {
  Dataset dataset = dataset_;
  dataset.train.files[0].rows = 11;
  TERCEL_EXPECT_THROW(read_all(dataset), DataError, "expected 11 rows, as the dataset's description says, found 12");
}

}  // namespace
}  // namespace tercel::data::test
