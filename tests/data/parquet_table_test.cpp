// Tables as Parquet files. python/tests/test_predictions.py reads them with pyarrow.
#include "tercel/data/parquet_table.h"

#include <gtest/gtest.h>

#include "tercel/data/arrow_module.h"
#include "tercel/data/formats/parquet_footer.h"
#include "tercel/data/random_access_file.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/util/temporary_folder.h"

namespace tercel::data {
namespace {

using test::TemporaryFolder;

class ParquetTable : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_arrow_module()) GTEST_SKIP() << "built without the Arrow module";
  }

  TemporaryFolder root_;
};

TEST_F(ParquetTable, RowsAreWrittenInGroups) {
  const std::vector<TableColumn> columns = {{"id", ValueType::Text}, {"n", ValueType::I64}, {"p", ValueType::F32}};
  ParquetTableWriter writer(root_ / "x.parquet", columns);
  constexpr size_t kRows = 1000;
  const std::vector<std::string> texts(kRows, "text");
  const std::vector<int64_t> integers(kRows, 5);
  const std::vector<float> floats(kRows, 0.5f);
  std::vector<TableValues> values(3);
  values[0].texts = texts;
  values[1].integers = integers;
  values[2].floats = floats;
  for (int i = 0; i < 70; ++i) writer.write(values);
  EXPECT_EQ(root_.get("x.parquet"), "") << "the file does not exist before it is complete";
  writer.commit();
  const std::string file = root_.get("x.parquet");
  ASSERT_TRUE(file.starts_with("PAR1") && file.ends_with("PAR1"));
  const ParquetFooter footer = read_parquet_footer(*open_data_file(root_ / "x.parquet"));
  EXPECT_EQ(footer.rows, 70'000);
  EXPECT_EQ(footer.row_groups.size(), 2u) << "65,536 rows, and the others";
  ASSERT_EQ(footer.columns.size(), 3u);
  EXPECT_EQ(footer.columns[0].name, "id");
  EXPECT_EQ(footer.columns[2].name, "p");
}

TEST_F(ParquetTable, MistakesAreNamed) {
  TERCEL_EXPECT_THROW(ParquetTableWriter(root_ / "x", {{"a"}, {"a"}}), ConfigError,
                      "x: expected different names of columns, found 'a' twice");
  ParquetTableWriter writer(root_ / "x", {{"a", ValueType::I64}, {"b", ValueType::F32}});
  const std::vector<int64_t> two = {1, 2};
  const std::vector<float> one = {1};
  std::vector<TableValues> values(2);
  values[0].integers = two;
  values[1].floats = one;
  TERCEL_EXPECT_THROW(writer.write(values), ValueError, "column 'b': expected 2 values, found 1");
  values.pop_back();
  TERCEL_EXPECT_THROW(writer.write(values), ValueError, "expected 2 columns, found 1");
}

}  // namespace
}  // namespace tercel::data
