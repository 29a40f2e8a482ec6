// `tercel train` by several processes, which mpirun starts.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "tercel/recsys/checkpoint.h"
#include "tercel/util/file.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/signals.h"
#include "tercel/util/version.h"
#include "tests/cli/program.h"
#include "tests/cli/rank_processes.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::Outcome;
using test::Program;
using test::run;
using test::TemporaryFolder;

class TrainRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::can_start_ranks()) GTEST_SKIP() << "needs a build with MPI, and mpirun; scripts/test installs both";
    const Outcome data = run({"generate", root_ / "data", "--preset", "small", "--rows", "8000", "--quiet"});
    ASSERT_EQ(data.code, 0) << data.err;
  }

  void TearDown() override { ::unsetenv("OMPI_MCA_odls_base_sigkill_timeout"); }

  /** From now on mpirun does not wait for the other ranks when one has ended with an error. */
  static void end_at_once() { ::setenv("OMPI_MCA_odls_base_sigkill_timeout", "0", 1); }

  std::vector<std::string> train(const std::string& name, const std::vector<std::string>& more, int epochs = 2) const {
    std::vector<std::string> words = {"train", root_ / "data",         "--model",      "wdl",
                                      "--out", root_ / name,           "--batch-size", "64",
                                      "--set", "data.validation=none", "--set",        "solver.checkpoint_interval=10"};
    words.insert(words.end(), {"--epochs", std::to_string(epochs)});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  /** Names of what is in the folder of a run's checkpoints. */
  std::vector<std::string> checkpoints(const std::string& name) const {
    const std::string folder = root_ / name + "/checkpoints";
    return exists(folder) ? list_dir(folder) : std::vector<std::string>();
  }

  /** Waits until a run has a complete checkpoint. */
  void wait_for_checkpoint(const std::string& name) const {
    const std::string folder = root_ / name + "/checkpoints";
    for (int i = 0; i < 3000 && recsys::list_checkpoints(folder).empty(); ++i) ::usleep(10'000);
    ASSERT_FALSE(recsys::list_checkpoints(folder).empty());
  }

  pid_t process_of(const std::string& name, int rank) const { return test::process_of_rank(root_ / name, rank); }

  TemporaryFolder root_;
};

Json result_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return parse_json(outcome.out, "result", JsonErrors::Data);
}

TEST_F(TrainRanks, TrainWhatOneProcessDoesAndGoOnWithOtherNumbers) {
  const Json one = result_of(run(train("one", {"--json", "--threads", "1"})));
  const Json two = result_of(run(train("two", {"--json", "--ranks", "2"})));
  EXPECT_EQ(two["step"], one["step"]);
  EXPECT_EQ(two["rows"], one["rows"]);
  EXPECT_NEAR(two["test"]["auc"].get<double>(), one["test"]["auc"].get<double>(), 1e-3);
  const Outcome again = run(train("again", {"--json", "--ranks=2"}));
  EXPECT_EQ(result_of(again)["test"], two["test"]) << "the same bits";

  const int64_t steps = one["step"].get<int64_t>();
  for (const auto& [ranks, epochs] : {std::pair(3, 3), std::pair(1, 4)}) {
    const std::vector<std::string> words = {"--json", "--resume", "auto", "--ranks", std::to_string(ranks)};
    const Json more = result_of(run(train("two", words, epochs)));
    EXPECT_EQ(more["step"].get<int64_t>(), steps / 2 * epochs);
  }
}

TEST_F(TrainRanks, RefitOnAllRows) {
  std::vector<std::string> words = train("run", {"--json", "--ranks", "2", "--refit"});
  std::replace(words.begin(), words.end(), std::string("data.validation=none"),
               std::string("data.validation=held_out"));
  const Json result = result_of(run(words));
  EXPECT_EQ(result["rows"].get<int64_t>() % 7200, 0) << "all train rows";
  EXPECT_EQ(result["selection"]["rows"].get<int64_t>(), 2 * 6480) << "two epochs without a tenth of them";
}

/** Of a job that has lost a rank by SIGKILL: mpirun may have died of it, too, of SIGPIPE. */
bool is_code_of_killed_rank(int code) { return code == 137 || code == 7; }

TEST_F(TrainRanks, ALostRankEndsTheJobWithAWholeCheckpoint) {
  Program program(train("run", {"--ranks", "2", "--set", "solver.placement=replicated"}, 100'000));
  wait_for_checkpoint("run");
  const pid_t rank = process_of("run", 1);
  ASSERT_GT(rank, 0);
  const auto start = std::chrono::steady_clock::now();
  ::kill(rank, SIGKILL);
  const Outcome outcome = program.wait();
  EXPECT_TRUE(is_code_of_killed_rank(outcome.code)) << outcome.code << ": " << outcome.err;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_NE(outcome.err.find("rank 0 of 2: rank 1 has given no sign of life for 10 s"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("is saved in " + root_ / "run/checkpoints"), std::string::npos) << outcome.err;
  EXPECT_EQ(process_of("run", 0), -1);
  const Json more =
      result_of(run(train("run", {"--json", "--resume", "auto", "--threads", "1", "--set", "solver.max_iter=1"})));
  EXPECT_GE(more["step"].get<int64_t>(), 10) << "it goes on from there";
}

/** With --restarts. */
class TrainRanksAgain : public TrainRanks {
 protected:
  void SetUp() override {
    TrainRanks::SetUp();
    end_at_once();
  }

  /** Kills a rank of a run when the run's folder has such a file, and waits until a new process is the rank. */
  void kill_at(const std::string& name, int rank, const std::string& file) const {
    for (int i = 0; i < 3000 && !exists(root_ / name + file); ++i) ::usleep(10'000);
    ASSERT_TRUE(exists(root_ / name + file));
    kill_rank(name, rank);
  }

  /** The same when the run in `folder` has a complete checkpoint. */
  void kill_at_checkpoint(const std::string& name, int rank, const std::string& folder) const {
    wait_for_checkpoint(folder);
    kill_rank(name, rank);
  }

 private:
  void kill_rank(const std::string& name, int rank) const {
    const pid_t killed = process_of(name, rank);
    ASSERT_GT(killed, 0);
    ::kill(killed, SIGKILL);
    for (int i = 0; i < 3000 && (process_of(name, rank) == killed || process_of(name, rank) < 0); ++i) ::usleep(10'000);
    ASSERT_GT(process_of(name, rank), 0);
  }
};

TEST_F(TrainRanksAgain, GoesOnFromTheLastCheckpoint) {
  const Json peace = result_of(run(train("peace", {"--json", "--ranks", "2"}, 20)));
  // Before there is a checkpoint, of which the first one comes late, it begins again. The given --resume and --threads
  // are replaced.
  Program program(train("run",
                        {"--json", "--ranks", "2", "--restarts=3", "--resume", "never", "--threads=0", "--set",
                         "solver.checkpoint_interval=800"},
                        20));
  kill_at("run", 0, "/lock");
  kill_at_checkpoint("run", 1, "run");
  const Outcome outcome = program.wait();
  const Json result = result_of(outcome);
  EXPECT_EQ(result["test"], peace["test"]) << "the same bits";
  EXPECT_EQ(result["step"], peace["step"]);
  const std::string killed = "tercel: warning: a rank was ended by signal 9 (Killed); restart ";
  EXPECT_NE(outcome.err.find(killed + "1 of 3, from the beginning, as there is no checkpoint yet\n"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find(killed + "2 of 3, from step "), std::string::npos) << outcome.err;
}

TEST_F(TrainRanksAgain, RefitsAfterARestart) {
  std::vector<std::string> words = train("peace", {"--json", "--ranks", "2", "--refit"}, 8);
  std::replace(words.begin(), words.end(), std::string("data.validation=none"),
               std::string("data.validation=held_out"));
  const Json peace = result_of(run(words));
  std::replace(words.begin(), words.end(), root_ / "peace", root_ / "run");
  words.insert(words.end(), {"--restarts", "2"});
  Program program(words);
  kill_at_checkpoint("run", 1, "run-selection");
  kill_at_checkpoint("run", 0, "run");
  const Outcome outcome = program.wait();
  const Json result = result_of(outcome);
  EXPECT_EQ(result["test"], peace["test"]) << "the same bits";
  EXPECT_EQ(result["selection"]["valid"], peace["selection"]["valid"]);
  EXPECT_NE(outcome.err.find(" of " + root_ / "run-selection\n"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(" of " + root_ / "run\n"), std::string::npos) << outcome.err;
}

TEST_F(TrainRanksAgain, AsOftenAsAllowed) {
  Program program(train("run", {"--ranks", "2", "--restarts", "1"}, 100'000));
  kill_at_checkpoint("run", 1, "run");
  wait_for_checkpoint("run");
  ::kill(process_of("run", 0), SIGKILL);
  const Outcome outcome = program.wait();
  EXPECT_TRUE(is_code_of_killed_rank(outcome.code)) << outcome.code << ": " << outcome.err;
  EXPECT_NE(outcome.err.find("; the job was restarted 1 time, as often as --restarts allows\n"), std::string::npos)
      << outcome.err;
}

TEST_F(TrainRanksAgain, ChoosesTheFolderOnce) {
  std::vector<std::string> words = train("run", {"--json", "--ranks", "2", "--restarts", "1"}, 20);
  words.erase(std::find(words.begin(), words.end(), "--out"), std::find(words.begin(), words.end(), root_ / "run") + 1);
  words.erase(std::find(words.begin(), words.end(), "--model"), std::find(words.begin(), words.end(), "wdl") + 1);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(root_.path());
  {
    Program program(words);
    std::filesystem::current_path(before);
    kill_at_checkpoint("data", 0, "runs/dlrm-1");
    EXPECT_EQ(result_of(program.wait())["run"], "runs/dlrm-1");
  }
  EXPECT_EQ(list_dir(root_ / "runs"), std::vector<std::string>{"dlrm-1"});
}

TEST_F(TrainRanksAgain, NotAfterASignalThatAsksForTheEnd) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::string name = "run-" + std::to_string(signal);
    Program program(train(name, {"--ranks", "2", "--restarts", "5"}, 100'000));
    wait_for_checkpoint(name);
    program.signal(SIGUSR1);
    ::usleep(100'000);
    ASSERT_TRUE(program.is_running()) << program.wait().err;
    program.signal(signal);
    const Outcome outcome = program.wait();
    EXPECT_NE(outcome.code, 0);
    EXPECT_EQ(outcome.err.find("restart"), std::string::npos) << outcome.err;
    EXPECT_EQ(process_of(name, 0), -1);
  }
}

TEST_F(TrainRanks, ASignalThatAsksForTheEndSavesAtOnce) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::string name = "run-" + std::to_string(signal);
    Program program(train(name, {"--ranks", "2"}, 100'000));
    wait_for_checkpoint(name);
    const auto start = std::chrono::steady_clock::now();
    program.signal(signal);
    const Outcome outcome = program.wait();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8)) << "mpirun's time-out";
    EXPECT_EQ(outcome.code, 128 + signal) << outcome.err;
    EXPECT_NE(outcome.err.find("stopped by " + std::string(signal_name(signal))), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.out.find("stopped after step "), std::string::npos) << outcome.out;
  }
}

TEST_F(TrainRanks, ASecondSignalEndsTheJobAtOnce) {
  Program program(train("run", {"--ranks", "2"}, 100'000));
  wait_for_checkpoint("run");
  const pid_t rank = process_of("run", 1);
  ASSERT_EQ(::kill(rank, SIGSTOP), 0) << "nothing is saved soon";
  program.signal(SIGINT);
  ::usleep(200'000);
  const auto start = std::chrono::steady_clock::now();
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait().code, 128 + SIGTERM);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(process_of("run", 0), -1);
  EXPECT_EQ(process_of("run", 1), -1);
}

TEST_F(TrainRanks, ASignalBeforeThereAreRanksEndsTheJob) {
  for (const int milliseconds : {20, 40, 80}) {
    Program program(train("run", {"--ranks", "2"}, 100'000));
    ::usleep(static_cast<useconds_t>(milliseconds) * 1000);
    program.signal(SIGTERM);
    const Outcome outcome = program.wait();
    // Or at the signal itself, if the program is so late.
    EXPECT_TRUE(outcome.code == 128 + SIGTERM || outcome.code == 1000 + SIGTERM) << outcome.code << outcome.err;
  }
}

TEST_F(TrainRanks, AnErrorOfOneRankIsThatOfTheJob) {
  // A damaged row at the end of the only batch, which is in the part of rank 1.
  std::string file;
  for (const std::string& name : list_dir(root_ / "data/train")) file = root_ / "data/train/" + name;
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(-3, std::ios::end);
  bytes.put('\x7f');
  bytes.close();
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome =
      run({"train", root_ / "data", "--model", "wdl", "--out", root_ / "run", "--batch-size", "7200", "--epochs", "1",
           "--validation", "none", "--set", "data.shuffle=false", "--ranks", "2", "--restarts", "2"});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << "nobody waits for a silent rank";
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_EQ(outcome.err.find("restart"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("error: rank 1 of 2: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("error: rank 0 of 2: rank 1 has ended the job"), std::string::npos) << outcome.err;
}

TEST_F(TrainRanks, AnErrorOfRankZeroSavesTheStepsBefore) {
  // A damaged row in the part of rank 0 of a later batch.
  std::string file;
  for (const std::string& name : list_dir(root_ / "data/train")) file = root_ / "data/train/" + name;
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(file));
  std::fstream content(file, std::ios::in | std::ios::out | std::ios::binary);
  const int64_t record = bytes / 7200, row = 30 * 64 + 5;  // of batch 31
  content.seekp(bytes - (7200 - row) * record - 3);
  content.put('\x7f');
  content.close();
  const Outcome outcome =
      run(train("run", {"--ranks", "2", "--set", "data.shuffle=false", "--set", "solver.placement=replicated", "--set",
                        "solver.checkpoint_interval=1000"}));
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_NE(outcome.err.find("error: rank 0 of 2: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("; the state after step 30 is saved in "), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("has ended the job"), std::string::npos) << "the others say nothing: " << outcome.err;
  EXPECT_EQ(recsys::list_checkpoints(root_ / "run/checkpoints").size(), 1u);
}

TEST_F(TrainRanks, RefuseAFolderForRefit) {
  end_at_once();
  ASSERT_EQ(run(train("run", {"--threads", "1"}, 1)).code, 0);
  std::vector<std::string> words = train("run", {"--ranks", "2", "--refit", "--restarts", "1"});
  std::replace(words.begin(), words.end(), std::string("data.validation=none"),
               std::string("data.validation=held_out"));
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.err, "tercel: error: train: --out " + root_ / "run" +
                             ": already exists; continue it with --resume auto, or choose another folder\n");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_FALSE(exists(root_ / "run-selection"));
}

TEST_F(TrainRanks, AStoppedRankEndsTheJobWithAWholeCheckpoint) {
  std::vector<std::unique_ptr<Program>> programs;
  for (const char* name : {"run-0", "run-1"})
    programs.push_back(std::make_unique<Program>(train(name, {"--ranks", "2"}, 100'000)));
  for (const int rank : {0, 1}) {
    const std::string name = "run-" + std::to_string(rank);
    wait_for_checkpoint(name);
    ASSERT_GT(process_of(name, rank), 0);
    ::kill(process_of(name, rank), SIGSTOP);
  }
  const auto start = std::chrono::steady_clock::now();
  for (const int rank : {0, 1}) {
    const Outcome outcome = programs[static_cast<size_t>(rank)]->wait();
    EXPECT_EQ(outcome.code, 7) << outcome.err;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
    const std::string name = "run-" + std::to_string(rank);
    EXPECT_NE(outcome.err.find("rank " + std::to_string(rank) + " has given no sign of life for 10 s"),
              std::string::npos)
        << outcome.err;
    EXPECT_EQ(process_of(name, rank), -1);
    for (const std::string& checkpoint : checkpoints(name))
      if (checkpoint.find(".tmp-") == std::string::npos)
        recsys::Checkpoint(root_ / name + "/checkpoints/" + checkpoint, recsys::Verify::Contents);
    result_of(run(train(name, {"--json", "--resume", "auto", "--threads", "1", "--set", "solver.max_iter=1"})));
    for (const std::string& checkpoint : checkpoints(name))
      EXPECT_EQ(checkpoint.size(), 17u) << checkpoint << " is no checkpoint";
  }
}

TEST_F(TrainRanks, AFullDiskIsAnErrorWithoutARestart) {
  end_at_once();
  Program program(train("run", {"--ranks", "2", "--restarts", "3"}, 100'000));
  wait_for_checkpoint("run");
  const pid_t saves = process_of("run", 0);
  ASSERT_GT(saves, 0);
  const struct rlimit most = {16384, 16384};
  ASSERT_EQ(::prlimit(saves, RLIMIT_FSIZE, &most, nullptr), 0);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  const size_t error = outcome.err.find("tercel: error: ");
  ASSERT_NE(error, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("tercel: error: ", error + 1), std::string::npos) << "said once: " << outcome.err;
  EXPECT_NE(outcome.err.find("File too large", error), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("could not be saved; the last checkpoint is ", error), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("restart"), std::string::npos) << outcome.err;
  const Json more =
      result_of(run(train("run", {"--json", "--resume", "auto", "--threads", "1", "--set", "solver.max_iter=1"})));
  EXPECT_GE(more["step"].get<int64_t>(), 10) << "the last checkpoint is whole";
}

TEST_F(TrainRanks, AnotherVersionOrConfigurationIsRefused) {
  end_at_once();
  // The program as one of another version: with the same number of characters.
  std::ifstream in(test::program_path(), std::ios::binary);
  std::string program(std::istreambuf_iterator<char>(in), {});
  const std::string now(version());
  std::string other = now;
  other.back() = other.back() == '9' ? '8' : '9';
  size_t places = 0;
  for (size_t at = 0; (at = program.find(now, at)) != std::string::npos; ++places)
    program.replace(at, now.size(), other);
  ASSERT_GT(places, 0u);
  root_.put("tercel-other", program);
  ASSERT_EQ(::chmod((root_ / "tercel-other").c_str(), 0755), 0);
  const std::string module = std::filesystem::path(test::program_path()).parent_path().parent_path() / "lib";
  ::setenv("LD_LIBRARY_PATH", module.c_str(), 1);
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}) ::setenv(name, "1", 1);
  for (const auto& [what, words] : {std::pair("version of Tercel", root_ / "tercel-other" + " train"),
                                    std::pair("configuration", test::program_path() + " train --lr 0.5")}) {
    const std::string rest = " " + root_ / "data" + " --model wdl --quiet --threads 1 --out " + root_ / "run";
    const std::string command = "mpirun --oversubscribe -n 1 " + test::program_path() + " train" + rest + " : -n 1 " +
                                words + rest + " > " + root_ / "output 2>&1";
    const int status = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 2) << root_.get("output");
    EXPECT_NE(root_.get("output").find(std::string("session: expected the same ") + what +
                                       " on all ranks, but rank 1 has another than rank 0"),
              std::string::npos)
        << root_.get("output");
    EXPECT_FALSE(exists(root_ / "run"));
  }
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "LD_LIBRARY_PATH"})
    ::unsetenv(name);
}

TEST_F(TrainRanks, ThePlanOfAJobMeasuresItsSteps) {
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}) ::setenv(name, "1", 1);
  const auto plan = [&](const std::string& more) {
    const std::string command = "mpirun --oversubscribe -n 2 " + test::program_path() + " plan " + root_ / "data" +
                                " --model wdl --threads 1" + more + " > " + root_ / "output 2>&1";
    const int status = std::system(command.c_str());
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(plan(""), 0) << root_.get("output");
  EXPECT_NE(root_.get("output").find("a step of 256 rows on 2 ranks: "), std::string::npos) << root_.get("output");
  EXPECT_NE(root_.get("output").find("\nmeasured: "), std::string::npos) << root_.get("output");
  EXPECT_EQ(plan(" --row-time 10"), 0) << "nothing is trained";
  EXPECT_EQ(root_.get("output").find("measured: "), std::string::npos) << root_.get("output");
  EXPECT_EQ(plan(" --ranks 3"), 2);
  EXPECT_NE(root_.get("output").find("--ranks 3: expected as many processes, found that 2 were started"),
            std::string::npos)
      << root_.get("output");
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}) ::unsetenv(name);
}

TEST_F(TrainRanks, BeginWithTheWeightsOfAnotherRun) {
  end_at_once();
  ASSERT_EQ(run(train("first", {"--quiet"}, 1)).code, 0);
  const std::vector<std::string> words = {"--init-from", root_ / "first", "--json", "--ranks"};
  const auto with = [&words](const char* ranks) {
    std::vector<std::string> all = words;
    all.emplace_back(ranks);
    return all;
  };
  const Outcome one = run(train("one", with("1"), 1)), two = run(train("two", with("2"), 1));
  EXPECT_NEAR(result_of(two)["test"]["auc"].get<double>(), result_of(one)["test"]["auc"].get<double>(), 1e-3);
  const auto begin = [](const Outcome& outcome) {
    const size_t at = outcome.err.find("begins with ");
    return at == std::string::npos ? outcome.err : outcome.err.substr(at, outcome.err.find('\n', at) - at);
  };
  EXPECT_TRUE(begin(two).starts_with("begins with ")) << two.err;
  EXPECT_EQ(begin(two), begin(one));
  const Outcome none = run(train("none", {"--ranks", "2", "--init-from", root_ / "nothing"}));
  EXPECT_EQ(none.code, 3) << none.err;
  EXPECT_NE(none.err.find("tercel: error: " + root_ / "nothing"), std::string::npos) << none.err;
  EXPECT_EQ(none.err.find("rank "), std::string::npos) << "said once, as of one process: " << none.err;
  EXPECT_FALSE(exists(root_ / "none"));
}

TEST_F(TrainRanks, CountTheBadRecordsOfAll) {
  std::string file;
  for (const std::string& name : list_dir(root_ / "data/train")) file = root_ / "data/train/" + name;
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(-3, std::ios::end);
  bytes.put('\x7f');
  bytes.close();
  std::vector<int64_t> rows;
  for (const char* ranks : {"1", "2"}) {
    const Outcome outcome =
        run(train(std::string("run-") + ranks, {"--json", "--on-bad-record", "skip", "--ranks", ranks}));
    const Json result = result_of(outcome);
    EXPECT_EQ(result["bad_records"], 2) << "in each epoch one";
    rows.push_back(result["rows"].get<int64_t>());
    EXPECT_NE(outcome.err.find("2 bad records were left out, the first: "), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(rows[0], 2 * 7199);
  EXPECT_EQ(rows[1], rows[0]);
}

TEST_F(TrainRanks, TasksOfSrunThatAreNotConnectedAreWarnedOf) {
  ::setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  const Outcome outcome = run(train("run", {"--threads", "1"}, 1));
  ::unsetenv("SLURM_STEP_NUM_TASKS");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("warning: srun started 4 tasks, which are not connected"), std::string::npos)
      << outcome.err;
}

TEST_F(TrainRanks, AnErrorOfAllRanksIsSaidOnce) {
  end_at_once();
  const Outcome outcome = run(train("run", {"--ranks", "2", "--lr", "1e30", "--optimizer", "SGD"}));
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  const size_t first = outcome.err.find("error: step ");
  ASSERT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("error: ", first + 1), std::string::npos) << outcome.err;
}

TEST_F(TrainRanks, Mistakes) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--ranks", "1"}}) {
    std::vector<std::string> words = train("run", {"--restarts", "2"});
    words.insert(words.end(), more.begin(), more.end());
    expect_error(run(words), 2, {"--restarts: expected --ranks", "Slurm's --requeue", "restartPolicy of an MPIJob"});
  }
  expect_error(run({"train", root_ / "nothing", "--ranks", "2"}), 4, {"nothing: expected a dataset's folder"});
  const char* const path = std::getenv("PATH");
  const std::string before = path == nullptr ? "" : path;
  ::setenv("PATH", "/nowhere", 1);
  const Outcome outcome = run(train("run", {"--ranks", "2"})),
                again = run(train("run", {"--ranks", "2", "--restarts", "2"}));
  ::setenv("PATH", before.c_str(), 1);
  for (const Outcome& one : {outcome, again})
    expect_error(one, 7, {"--ranks 2: expected the program mpirun, found: No such file", "openmpi-bin"});
}

}  // namespace
}  // namespace tercel::cli
