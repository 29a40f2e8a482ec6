#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <thread>
#include <tuple>

#include "tercel/data/dataset.h"
#include "tercel/util/file.h"
#include "tercel/util/json_impl.h"
#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::Outcome;
using test::Program;
using test::ProgramOptions;
using test::run;
using test::TemporaryFolder;

std::vector<std::string> small(const std::string& out, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"generate", out, "--preset", "small", "--rows", "1000"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Waits until something is written beside the new dataset.
/** Files and folders below; does not read them, for they may grow faster than they are read. */
int64_t entries_below(const TemporaryFolder& folder) {
  int64_t count = 0;
  std::error_code error;  // an entry may go meanwhile
  for (std::filesystem::recursive_directory_iterator at(folder.path(), error), end; !error && at != end;
       at.increment(error))
    ++count;
  return count;
}

void wait_for_work(const TemporaryFolder& folder, Program& program) {
  while (program.is_running() && entries_below(folder) < 3) std::this_thread::yield();
  ASSERT_TRUE(program.is_running());
}

/** More rows than are written before a signal arrives, but within the disk space. */
std::vector<std::string> many_rows(const TemporaryFolder& folder) {
  constexpr int64_t kRowBytes = 100;
  const int64_t rows = std::min<int64_t>(1'000'000'000, free_bytes(folder.path()) / 4 / kRowBytes);
  return {"generate", folder / "data", "--preset", "small", "--rows", std::to_string(rows)};
}

TEST(GenerateCommand, WritesADatasetAndSaysSo) {
  const TemporaryFolder folder;
  const Outcome outcome = run(small(folder / "data", {"--test-fraction", "0.25"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* text : {"1,000 rows", "seed 1", "train: 750 rows in 1 file", "test: 250 rows", "true AUC 0."})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << outcome.out;
  const data::Dataset dataset = data::load_dataset(folder / "data");
  EXPECT_EQ(dataset.train.rows(), 750);
  EXPECT_EQ(dataset.test.rows(), 250);
}

TEST(GenerateCommand, PrintsOneLineOfJsonWhenAsked) {
  const TemporaryFolder folder;
  for (const bool quiet : {false, true}) {
    const Outcome outcome = run(small(folder / "data", {"--json", "--force", quiet ? "--quiet" : "--seed=1"}));
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out.find('\n'), outcome.out.size() - 1);
    const Json json = parse_json(outcome.out, "stdout", JsonErrors::Data);
    EXPECT_EQ(json["train"]["rows"], 900);
    EXPECT_EQ(json["test"]["true_auc"].get<double>(), data::load_dataset(folder / "data").test.truth->auc);
    EXPECT_EQ(outcome.err.empty(), quiet);
  }
  const Outcome outcome = run(small(folder / "data", {"--quiet", "--force"}));
  EXPECT_EQ(outcome.out + outcome.err, "");
}

TEST(GenerateCommand, SameSeedSameBytes) {
  const TemporaryFolder folder;
  run(small(folder / "a", {"--seed", "7", "--threads", "1"}));
  run(small(folder / "b", {"--seed", "7", "--threads", "2"}));
  EXPECT_EQ(folder.get("a/dataset.json"), folder.get("b/dataset.json"));
  EXPECT_EQ(folder.get("a/train/part-0.data"), folder.get("b/train/part-0.data"));
}

TEST(GenerateCommand, LeavesWhatIsThereAlone) {
  const TemporaryFolder folder;
  EXPECT_EQ(run(small(folder / "data")).code, 0);
  expect_error(run(small(folder / "data")), 4, {"data: expected a new folder", "--force"});
  EXPECT_EQ(run(small(folder / "data", {"--force"})).code, 0);
  folder.put("mine/thesis.txt", "x");
  expect_error(run(small(folder / "mine", {"--force"})), 4, {"mine", "dataset.json"});
  folder.put("file", "x");
  expect_error(run(small(folder / "file", {"--force"})), 4, {"file"});
  EXPECT_EQ(folder.get("mine/thesis.txt") + folder.get("file"), "xx");
  expect_error(run(small("/proc/tercel/data")), 4, {"/proc/tercel"});
}

TEST(GenerateCommand, FullDiskLeavesNothing) {
  const TemporaryFolder folder;
  ProgramOptions options;
  options.max_file_bytes = 20000;
  expect_error(run(small(folder / "data"), options), 4, {"File too large"});
  EXPECT_TRUE(folder.tree().empty());
}

TEST(GenerateCommand, SignalsStopIt) {
  const TemporaryFolder folder;
  const std::tuple<int, int, std::string> cases[] = {
      {SIGINT, 130, "INT"}, {SIGTERM, 143, "TERM"}, {SIGHUP, 129, "HUP"}};
  for (const auto& [number, code, name] : cases) {
    Program program(many_rows(folder));
    wait_for_work(folder, program);
    program.signal(number);
    expect_error(program.wait(), code, {"stopped by SIG" + name});
    EXPECT_TRUE(folder.tree().empty());
  }
}

TEST(GenerateCommand, TidiesUpAfterARunThatWasKilled) {
  const TemporaryFolder folder;
  {
    Program program(many_rows(folder));
    wait_for_work(folder, program);
    program.signal(SIGKILL);
    EXPECT_EQ(program.wait().code, 1000 + SIGKILL);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "data"));
  EXPECT_GT(entries_below(folder), 0);
  EXPECT_EQ(run(small(folder / "data")).code, 0);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_EQ(entry.path().filename(), "data");
}

}  // namespace
}  // namespace tercel::cli
