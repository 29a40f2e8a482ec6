// `tercel plan`.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tercel/util/json_impl.h"
#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::Outcome;
using test::run;
using test::TemporaryFolder;

class Plan : public testing::Test {
 protected:
  void SetUp() override {
    const Outcome data = run({"generate", root_ / "data", "--preset", "small", "--rows", "4000", "--quiet"});
    ASSERT_EQ(data.code, 0) << data.err;
  }
  Outcome plan(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"plan", root_ / "data"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  Json result(std::vector<std::string> more) const {
    more.insert(more.end(), {"--json", "--quiet"});
    const Outcome outcome = plan(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return parse_json(outcome.out, "result", JsonErrors::Data);
  }

  TemporaryFolder root_;
};

TEST_F(Plan, EstimatesAStepFromTheRowsAndTheRates) {
  const std::vector<std::string> rates = {"--row-time", "10", "--network", "1", "--latency", "50", "--memory", "4"};
  std::vector<std::string> words = {"--ranks", "4", "--set", "solver.batchsize=400"};
  words.insert(words.end(), rates.begin(), rates.end());
  const Json found = result(words);
  EXPECT_EQ(found["ranks"], 4);
  EXPECT_EQ(found["batch_rows"], 400);
  EXPECT_NEAR(found["compute_seconds"].get<double>(), 100 * 10e-6, 1e-9);
  EXPECT_NEAR(found["seconds"].get<double>(),
              found["compute_seconds"].get<double>() + found["dense_seconds"].get<double>() +
                  found["table_seconds"].get<double>(),
              1e-12);
  EXPECT_EQ(found["network_bytes_per_second"], 1e9);
  ASSERT_EQ(found["tables"].size(), 1u);
  EXPECT_GT(found["tables"][0]["replicated"]["bytes_sent"].get<double>(), 0);
  EXPECT_LT(found["tables"][0]["distributed"]["memory_bytes"].get<int64_t>(),
            found["tables"][0]["replicated"]["memory_bytes"].get<int64_t>());

  words.insert(words.end(), {"--set", "solver.placement=distributed", "--simulate", "--most-ranks", "16"});
  const Json simulated = result(words);
  EXPECT_EQ(simulated["tables"][0]["placement"], "distributed");
  ASSERT_EQ(simulated["simulation"].size(), 5u) << "1, 2, 4, 8, 16";
  EXPECT_EQ(simulated["simulation"][0]["efficiency"], 1.0);
  EXPECT_EQ(simulated["simulation"][2]["seconds"], simulated["seconds"]);
  EXPECT_LT(simulated["simulation"][4]["efficiency"].get<double>(), 1.0);
  std::vector<std::string> given = words;
  given.insert(given.end(),
               {"--set", R"(solver.table_placements=[{"table": "embedding", "placement": "replicated"}])"});
  EXPECT_EQ(result(given)["tables"][0]["placement"], "replicated");
  given.back() = R"(solver.table_placements=[{"table": "embedding", "placement": "distributed", "ranks": [2, 0]}])";
  EXPECT_EQ(result(given)["tables"][0]["ranks"], Json({2, 0}));
  EXPECT_NE(plan(given).out.find(", distributed over ranks 2, 0\n"), std::string::npos);
  words.push_back("--rows-per-rank");
  EXPECT_EQ(result(words)["simulation"][4]["batch_rows"], 16 * 400);
}

TEST_F(Plan, GivesTheMemoryOfARowOfATableThatGrows) {
  const std::vector<std::string> words = {"--row-time", "10", "--set",
                                          "layers.embedding.sparse_embedding_hparam.table_type=hashed"};
  const Outcome text = plan(words);
  EXPECT_NE(text.out.find("table embedding: grows, rows of 16, "), std::string::npos) << text.out << text.err;
  EXPECT_NE(text.out.find(" of memory a row\n"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(" of tables besides those that grow\n"), std::string::npos) << text.out;
}

TEST_F(Plan, MeasuresWhatIsNotGiven) {
  const Json found = result({"--model", "wdl", "--threads", "1", "--sample-rows", "500", "--ranks", "1"});
  EXPECT_GT(found["compute_seconds"].get<double>(), 0);
  EXPECT_GT(found["memory_bytes_per_second"].get<double>(), 1e7);
  EXPECT_EQ(found["dense_bytes"], 0);
  EXPECT_EQ(found["table_seconds"], 0);
  const Outcome text = plan({"--row-time", "10"});
  EXPECT_NE(text.out.find("a step of 256 rows on 2 ranks: "), std::string::npos) << text.out;
}

TEST_F(Plan, RefusesWhatItCannotEstimate) {
  expect_error(plan({"--ranks", "-1"}), 2, {"ranks"});
  for (const std::string rate : {"--network", "--latency", "--memory", "--row-time"})
    for (const std::string number : {"1e-320", "1e300"})
      expect_error(plan({rate, number}), 2, {rate + ": expected 0 or a number from 1e-06 to 1e+09"});
  expect_error(plan({"--model", "dlmr"}), 2, {"dlmr"});
  expect_error(plan({"--set", "solver.placement=everywhere"}), 2, {"everywhere"});
  expect_error(plan({"--set", R"(solver.table_placements=[{"table": "embeding", "placement": "replicated"}])"}), 2,
               {"embeding", "embedding"});
  expect_error(run({"plan", root_ / "nothing"}), 4, {"nothing"});
  expect_error(run({"plan"}), 2, {"DATA"});
}

}  // namespace
}  // namespace tercel::cli
