// `tercel convert movielens`, and rankings of its test part.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/util/json_impl.h"
#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::Outcome;
using test::run;
using test::TemporaryFolder;

/** 60 users of 25 ratings each: half of them of even items, half of odd ones, of 100. */
std::string ratings() {
  std::string text;
  for (int u = 0; u < 60; ++u)
    for (int k = 0; k < 25; ++k)
      text += std::to_string(u + 1) + "\t" + std::to_string((2 * (k * 7 + u * 3) + u % 2) % 100) + "\t" +
              std::to_string(k % 5 + 1) + "\t" + std::to_string(k) + "\n";
  return text;
}

TEST(MovielensCommand, ConvertsTrainsAndRanks) {
  const TemporaryFolder folder;
  const std::string source = folder.put("u.data", ratings());
  const Outcome outcome = run({"convert", "movielens", source, folder / "data", "--test-negatives", "49", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = parse_json(outcome.out, "stdout", JsonErrors::Data);
  EXPECT_EQ(json["users"], 60);
  EXPECT_EQ(json["items"], 100);
  EXPECT_EQ(json["train"]["rows"], 60 * 24 * 5);
  EXPECT_EQ(json["test"]["rows"], 60 * 50);
  EXPECT_NE(outcome.err.find("rows of 60 users and 100 items"), std::string::npos) << outcome.err;
  const data::Dataset dataset = data::load_dataset(folder / "data");
  EXPECT_EQ(dataset.train.files[0].bytes, 64 + 60 * 24 * 5 * 24) << "Norm without sums, keys of 32 bits";
  EXPECT_EQ(run({"verify", folder / "data", "--quiet"}).code, 0);

  ASSERT_EQ(run({"train", folder / "data", "--out", folder / "run", "--model", "deepfm", "--set",
                 "solver.batchsize=200", "--epochs", "4", "--quiet"})
                .code,
            0);
  const Outcome eval = run({"eval", folder / "run", folder / "data", "--top", "10", "--json"});
  const Json metrics = parse_json(eval.out, "stdout", JsonErrors::Data);
  ASSERT_TRUE(metrics["hit_rate@10"].is_number()) << eval.out;
  EXPECT_GT(metrics["hit_rate@10"].get<double>(), 0.35) << "10 of 50 by chance are 0.2";
  EXPECT_LE(metrics["ndcg@10"].get<double>(), metrics["hit_rate@10"].get<double>());
  // Another size of groups: all rows of the part are in one.
  const Outcome one = run({"eval", folder / "run", folder / "data", "--top", "3000", "--group-rows", "3000", "--json"});
  EXPECT_EQ(parse_json(one.out, "stdout", JsonErrors::Data)["hit_rate@3000"], 1);
  expect_error(run({"eval", folder / "run", folder / "data", "--top", "5", "--group-rows", "7"}), 3,
               {"ranking: expected groups of 7 rows, found a last one of 4"});
  expect_error(run({"eval", folder / "run", folder / "data", "--top", "10", "--part", "train"}), 2, {"--group-rows"});
  expect_error(run({"eval", folder / "run", folder / "data", "--top", "51"}), 2, {"expected 1 to 50 best rows"});
  expect_error(run({"eval", folder / "run", folder / "data", "--top", "5", "--on-bad-record", "skip"}), 2,
               {"--top and --on-bad-record skip exclude each other"});
}

TEST(MovielensCommand, OptionsAndFormats) {
  const TemporaryFolder folder;
  const std::string source = folder.put("u.data", ratings());
  EXPECT_EQ(run({"convert", "movielens", source, folder / "raw", "--format", "raw", "--test-negatives", "1",
                 "--negatives-per", "user", "--train-negatives", "100", "--quiet"})
                .code,
            0);
  const data::Dataset raw = data::load_dataset(folder / "raw");
  EXPECT_EQ(raw.train.rows(), 60 * 24 + 6000);
  EXPECT_EQ(raw.train.files[0].bytes, raw.train.rows() * 16);
  EXPECT_EQ(
      run({"convert", "movielens", source, folder / "wide", "--key-type", "i64", "--test-negatives", "1", "--quiet"})
          .code,
      0);
  EXPECT_EQ(data::load_dataset(folder / "wide").train.files[0].bytes, 64 + 60 * 24 * 5 * 32);
  expect_error(run({"convert", "movielens", source, folder / "x"}), 3, {"user '1'", "expected 99 of the 100 items"});
  expect_error(run({"convert", "movielens", folder.put("x.txt", "abc\n"), folder / "x"}), 3, {"x.txt: line 1"});
  expect_error(run({"convert", "movielens", source, folder / "wide"}), 4, {"--force"});
}

}  // namespace
}  // namespace tercel::cli
