// Kills ranks of `tercel train --ranks 2 --restarts` at random times and compares the result with an undisturbed run.
// TERCEL_KILLS sets the number of kills (default 20), half of them with each placement, TERCEL_KILL_SEED the seed of
// their times.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include "tercel/recsys/checkpoint.h"
#include "tercel/util/file.h"
#include "tests/cli/program.h"
#include "tests/cli/rank_processes.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::Outcome;
using test::process_of_rank;
using test::Program;
using test::run;
using test::TemporaryFolder;
using Clock = std::chrono::steady_clock;

int64_t number_from(const char* variable, int64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoll(text, nullptr, 10) : otherwise;
}

/** Names of all files of a run, and the contents of those of its checkpoints. */
std::map<std::string, std::string> result_files(const TemporaryFolder& root, const std::string& name) {
  std::map<std::string, std::string> files;
  for (const auto& [path, content] : root.tree()) {
    if (!path.starts_with(name + "/")) continue;
    const std::string file = path.substr(name.size() + 1);
    files[file] = file.starts_with("checkpoints/") ? content : std::string();
  }
  return files;
}

/** The names of files that one of them has and the other has not, or with other content. */
std::string differences(const std::map<std::string, std::string>& a, const std::map<std::string, std::string>& b) {
  std::string names;
  for (const auto* files : {&a, &b})
    for (const auto& [file, content] : *files)
      if (!a.contains(file) || !b.contains(file) || a.at(file) != b.at(file)) names += file + " ";
  return names;
}

/** With each placement of tables: one with all of them on each rank, one with a part. */
class RankKillLoop : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!test::can_start_ranks()) GTEST_SKIP() << "needs a build with MPI, and mpirun; scripts/test installs both";
    // mpirun ends a job at once when a rank is killed: it does not wait for the others.
    ::setenv("OMPI_MCA_odls_base_sigkill_timeout", "0", 1);
    const Outcome data = run({"generate", root_ / "data", "--preset", "small", "--rows", "12000", "--quiet"});
    ASSERT_EQ(data.code, 0) << data.err;
  }
  void TearDown() override { ::unsetenv("OMPI_MCA_odls_base_sigkill_timeout"); }

  std::vector<std::string> train(const std::string& name, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {
        "train", root_ / "data", "--model", "dlrm",    "--out",       root_ / name, "--ranks",      "2", "--threads",
        "1",     "--epochs",     "4",       "--quiet", "--optimizer", "Adam",       "--batch-size", "64"};
    for (const std::string& option :
         {std::string("solver.eval_interval=100"), std::string("data.validation=none"),
          std::string("solver.checkpoint_interval=10"), std::string("solver.placement=") + GetParam()})
      words.insert(words.end(), {"--set", option});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  /** Waits until a new process is the rank; -1 if the program ends before. */
  pid_t next_process(Program& program, const std::string& name, int rank, pid_t before) const {
    while (program.is_running()) {
      const pid_t pid = process_of_rank(root_ / name, rank);
      if (pid > 0 && pid != before) return pid;
      ::usleep(2000);
    }
    return -1;
  }

  /** Waits until a checkpoint is being written, for at most so long. */
  void wait_for_save(Program& program, const std::string& name, std::chrono::microseconds most) const {
    const Clock::time_point end = Clock::now() + most;
    while (program.is_running() && Clock::now() < end) {
      std::error_code none;
      for (std::filesystem::directory_iterator at(root_ / (name + "/checkpoints"), none), last; !none && at != last;
           at.increment(none))
        if (at->path().filename().string().find(".tmp-") != std::string::npos) return;
      ::usleep(100);
    }
  }

  TemporaryFolder root_;
};

TEST_P(RankKillLoop, RestartedJobsEndInTheSameBits) {
  const int64_t wanted = (number_from("TERCEL_KILLS", 20) + 1) / 2, seed = number_from("TERCEL_KILL_SEED", 1);
  std::printf("TERCEL_KILL_SEED=%lld\n", static_cast<long long>(seed));
  const Outcome peace = run(train("peace"));
  ASSERT_EQ(peace.code, 0) << peace.err;
  const std::map<std::string, std::string> expected = result_files(root_, "peace");
  ASSERT_GT(expected.size(), 5u);

  std::mt19937_64 random(static_cast<uint64_t>(seed));
  int64_t kills = 0, finished = 0;
  const auto check = [&](Program& program, const std::string& name) {
    const Outcome outcome = program.wait();
    ASSERT_EQ(outcome.code, 0) << "after " << kills << " kills: " << outcome.err;
    ASSERT_EQ(differences(expected, result_files(root_, name)), "") << "after " << kills << " kills";
    for (const std::string& checkpoint : list_dir(root_ / (name + "/checkpoints")))
      recsys::Checkpoint(join_path(root_ / (name + "/checkpoints"), checkpoint), recsys::Verify::Contents);
  };
  while (kills < wanted) {
    // A run may end before its kill: then the next one begins from the start.
    const std::string name = "run-" + std::to_string(finished++);
    Program program(train(name, {"--restarts", std::to_string(wanted)}));
    pid_t processes[2] = {-1, -1};
    while (kills < wanted) {
      for (const int rank : {0, 1}) processes[rank] = next_process(program, name, rank, processes[rank]);
      if (processes[0] < 0 || processes[1] < 0) break;
      const auto delay = std::chrono::microseconds(random() % 1'000'000);
      const int rank = static_cast<int>(random() % 2);
      ::usleep(static_cast<useconds_t>(delay.count()));
      if (random() % 2 == 0) wait_for_save(program, name, std::chrono::seconds(1));
      // Of a job that has ended, its pid may be that of no rank any more.
      if (process_of_rank(root_ / name, rank) != processes[rank]) continue;
      ::kill(processes[rank], SIGKILL);
      ++kills;
    }
    check(program, name);
    if (HasFatalFailure()) return;
    std::filesystem::remove_all(root_ / name);
  }
  EXPECT_EQ(kills, wanted);
}

INSTANTIATE_TEST_SUITE_P(Placements, RankKillLoop, testing::Values("replicated", "distributed"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace tercel::cli
