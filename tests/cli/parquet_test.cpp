// Parquet on the command line: generate, convert, info, and training from it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tercel/data/arrow_module.h"
#include "tercel/util/json_impl.h"
#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::Outcome;
using test::run;
using test::TemporaryFolder;

class ParquetCommands : public testing::Test {
 protected:
  void SetUp() override {
    if (!data::has_arrow_module()) GTEST_SKIP() << "built without the Arrow module";
  }

  static Outcome good(const std::vector<std::string>& words) {
    Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome;
  }
  static Json info(const std::string& path) {
    return parse_json(good({"info", path, "--json"}).out, "stdout", JsonErrors::Data);
  }

  TemporaryFolder root_;
};

TEST_F(ParquetCommands, FromNormAndBackTheBytesAreTheSame) {
  good({"generate", root_ / "norm", "--preset", "small", "--rows", "600", "--files", "2", "--key-type", "u32",
        "--check-mode", "none"});
  good({"convert", "dataset", root_ / "norm", root_ / "parquet", "--to", "parquet", "--codec", "zstd"});
  good({"convert", "dataset", root_ / "parquet", root_ / "back", "--to", "norm"});
  for (const char* file : {"train/part-0.data", "train/part-1.data", "test/part-0.data", "train.txt"})
    EXPECT_EQ(root_.get(std::string("back/") + file), root_.get(std::string("norm/") + file)) << file;
}

TEST_F(ParquetCommands, InfoSaysWhatAFileHolds) {
  good({"generate", root_ / "data", "--format", "parquet", "--preset", "small", "--rows", "600", "--codec", "gzip",
        "--row-group-rows", "200"});
  const Json file = info(root_ / "data/train/part-0.parquet");
  EXPECT_EQ(file["rows"], 540);
  EXPECT_EQ(file["row_groups"], 3);
  EXPECT_EQ(file["rows_of_row_groups"], "140 to 200");
  EXPECT_EQ(file["codecs"], "GZIP");
  EXPECT_EQ(file["columns"].size(), 10u);
  EXPECT_EQ(file["columns"][0], "click: float");
  const Json dataset = info(root_ / "data");
  EXPECT_EQ(dataset["train"]["row_groups"], 3);
  EXPECT_EQ(dataset["dictionary"], true);
  EXPECT_EQ(dataset["row_group_rows"], 200);
  EXPECT_EQ(dataset["codec"], "gzip");
  root_.put("data.bin", root_.get("data/train/part-0.parquet"));
  EXPECT_EQ(info(root_ / "data.bin")["rows"], 540);
  expect_error(run({"verify", root_ / "data.bin"}), 3,
               {"found a file of the format parquet; 'tercel convert parquet'"});
  EXPECT_EQ(dataset["train"]["columns"], file["columns"]);
  root_.put("cut.parquet", root_.get("data/train/part-0.parquet").substr(0, 1000));
  expect_error(run({"info", root_ / "cut.parquet"}), 3, {"cut off, or still being written"});
}

TEST_F(ParquetCommands, AKeyTypeThatTheColumnsOfTheSourceContradictIsRefused) {
  good({"generate", root_ / "data", "--format", "parquet", "--preset", "small", "--rows", "600"});
  good({"convert", "parquet", root_ / "data/train", root_ / "described"});
  expect_error(run({"convert", "dataset", root_ / "described", root_ / "out", "--to", "parquet", "--key-type", "u32"}),
               2, {"option 'key_type': expected none beside the columns of the source", "found u32", "of type int64"});
  good({"convert", "dataset", root_ / "described", root_ / "out", "--to", "parquet"});
}

TEST_F(ParquetCommands, FilesAreDescribedByTheirMetadata) {
  good({"generate", root_ / "data", "--format", "parquet", "--preset", "small", "--rows", "600"});
  good({"convert", "parquet", root_ / "data/train", root_ / "described", "--test", root_ / "data/test"});
  EXPECT_EQ(info(root_ / "described")["train"]["rows"], 540);
  expect_error(run({"convert", "parquet", root_ / "data/train", root_ / "again", "--label", "clik"}), 2,
               {"parquet: expected a column 'clik' in "});
  good({"verify", root_ / "described"});
}

}  // namespace
}  // namespace tercel::cli
