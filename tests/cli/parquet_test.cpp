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

TEST_F(ParquetCommands, RowsOfTextHaveWeights) {
  std::string text = "y,c,w\n";
  for (int row = 0; row < 400; ++row)
    text += std::to_string(row % 3 == 0) + ",k" + std::to_string(row % 7) + "," + std::to_string(row % 4) + "\n";
  root_.put("t.csv", text);
  const std::vector<std::string> convert = {
      "convert", "csv", root_ / "t.csv", root_ / "data", "--label", "y", "--categorical", "c", "--weight-column", "w"};
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_error(run(convert), 2, {"norm", "'w'"});
  good(with(convert, {"--format", "parquet"}));
  const std::vector<std::string> train = {"train",        root_ / "data", "--model",  "lr",
                                          "--batch-size", "50",           "--epochs", "1"};
  good(with(train, {"--out", root_ / "run", "--weight", "w"}));
  good(with(train, {"--out", root_ / "plain"}));
  expect_error(run(with(train, {"--out", root_ / "no", "--weight", "v"})), 2, {"no further column 'v'"});
  const auto log_loss = [&](const std::string& model, const std::vector<std::string>& more) {
    const Outcome outcome = good(with({"eval", root_ / model, root_ / "data", "--json"}, more));
    return parse_json(outcome.out, "stdout", JsonErrors::Data)["log_loss"].get<double>();
  };
  const double weighted = log_loss("run", {});
  EXPECT_NE(weighted, log_loss("run", {"--unweighted"}));
  EXPECT_EQ(weighted, log_loss("run", {"--weight", "w"}));
  EXPECT_NE(log_loss("run", {"--unweighted"}), log_loss("plain", {}));
  std::vector<std::string> unweighted = convert;
  unweighted[3] = root_ / "other";
  unweighted.resize(8);
  good(unweighted);
  expect_error(run({"eval", root_ / "run", root_ / "other"}), 2, {"no further column 'w'", "--unweighted takes"});
  expect_error(run({"eval", root_ / "run", root_ / "data", "--weight", "w", "--unweighted"}), 2,
               {"exclude each other"});
  root_.put("more.csv", "c\nk1\nk2\n");  // predictions need no weights
  good({"predict", root_ / "run", root_ / "more.csv", "--out", root_ / "p.csv"});
  good({"predict", root_ / "run", root_ / "data", "--out", root_ / "q.csv"});
  root_.put("bad.csv", "y,c,w\n1,a,0.5\n0,b,-1\n");
  std::vector<std::string> bad = with(convert, {"--format", "parquet"});
  bad[2] = root_ / "bad.csv";
  bad[3] = root_ / "bad";
  expect_error(run(bad), 3, {"bad.csv: line 3: column 3 (w)", "not negative, found '-1'"});
}

}  // namespace
}  // namespace tercel::cli
