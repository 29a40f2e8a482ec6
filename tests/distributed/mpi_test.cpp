// Ranks that are processes, started by mpirun: this program runs itself, once for each rank, with the name of what the
// ranks do. Without MPI there is nothing to test but that this is said.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/distributed/error.h"
#include "tercel/distributed/mpi_transport.h"
#include "tests/support/errors.h"

namespace tercel::distributed {
namespace {

using std::chrono::steady_clock;

constexpr const char* kScene = "TERCEL_TEST_SCENE";

Tensor filled(int64_t count, int64_t value) {
  Tensor x = empty({count}, kInt64);
  std::fill_n(x.data<int64_t>(), count, value);
  return x;
}

const ReduceFunction& add() {
  static const ReduceFunction function([](void* out, Span<const void*> parts, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      int64_t sum = 0;
      for (const void* part : parts) sum += static_cast<const int64_t*>(part)[i];
      static_cast<int64_t*>(out)[i] = sum;
    }
  });
  return function;
}

void check_collectives(ProcessGroup& group) {
  const int64_t size = group.size(), me = group.rank();
  EXPECT_EQ(group.backend(), "mpi");
  EXPECT_EQ(size, std::atoll(std::getenv("OMPI_COMM_WORLD_SIZE")));
  for (const int64_t count : {1, 1000, 3'000'001}) {
    const Tensor x = filled(count, me + 1);
    group.all_reduce(x, add()).wait();
    EXPECT_EQ(x.data<int64_t>()[count - 1], size * (size + 1) / 2);
    const Tensor in = filled(count * size, me), out = filled(count * size, -1);
    const Work exchanged = group.all_to_all(out, in);
    const Tensor all = filled(count * size, -1), mine = filled(count, me * me);
    group.all_gather(all, mine).wait();
    EXPECT_TRUE(exchanged.is_done());
    for (int64_t r = 0; r < size; ++r) {
      EXPECT_EQ(out.data<int64_t>()[r * count], r);
      EXPECT_EQ(all.data<int64_t>()[(r + 1) * count - 1], r * r);
    }
    const Tensor root = filled(count, me);
    group.broadcast(root, size - 1).wait();
    EXPECT_EQ(root.data<int64_t>()[count - 1], size - 1);
  }
  group.barrier().wait();
  group.close();
}

void wait_for_ever(ProcessGroup& group) { group.barrier().wait(); }

/** What ranks do. */
const std::map<std::string, void (*)(ProcessGroup&)>& scenes() {
  static const std::map<std::string, void (*)(ProcessGroup&)> all = {
      {"collectives", check_collectives},
      {"kill",
       [](ProcessGroup& group) {
         if (group.rank() == 1) raise(SIGKILL);
         wait_for_ever(group);
       }},
      {"stop",
       [](ProcessGroup& group) {
         if (group.rank() == 1) raise(SIGSTOP);
         std::this_thread::sleep_for(std::chrono::seconds(60));  // ranks that compute are ended, too
       }},
      {"late",
       [](ProcessGroup& group) {
         if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(60));
         wait_for_ever(group);
       }},
      {"abort",
       [](ProcessGroup& group) {
         if (group.rank() == 1) group.abort(3);
         wait_for_ever(group);
       }},
      {"leave",
       [](ProcessGroup& group) {
         if (group.rank() != 1) wait_for_ever(group);
       }},
      {"calls",
       [](ProcessGroup& group) {
         if (group.rank() == 1) group.close();
         const Tensor x = filled(10, 1);
         group.all_reduce(x, add()).wait();
       }},
      {"sizes",
       [](ProcessGroup& group) {
         const Tensor x = filled(group.rank() == 1 ? 11 : 10, 0), out = filled(x.numel() * group.size(), 0);
         EXPECT_NE(tercel::test::message_of<DistributedError>([&] {
                     group.all_gather(out, x).wait();
                   }).find("do all ranks the same"),
                   std::string::npos);
         group.abort(7);
       }},
  };
  return all;
}

// Only the processes that play() starts run it.
TEST(MpiRank, DISABLED_Plays) {
  const char* const scene = std::getenv(kScene);
  ASSERT_TRUE(scene);
  GroupOptions options;
  if (std::string_view(scene) == "stop") options.silence_seconds = 3;  // machines of tests may be busy for longer
  options.timeout_seconds = std::string_view(scene) == "late" ? 1 : 100;
  const std::unique_ptr<ProcessGroup> group = mpi_group(options);
  scenes().at(scene)(*group);
}

struct Outcome {
  int code = -1;  // exit code of mpirun
  double seconds = 0;
  std::string text;
};

Outcome play(const std::string& scene, int ranks) {
  std::string self(4096, '\0');
  self.resize(static_cast<size_t>(std::max<ssize_t>(0, readlink("/proc/self/exe", self.data(), self.size()))));
  // Shared machines have fewer processors, and tests in containers run as root.
  const std::string command = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0 " +
                              std::string(kScene) + "=" + scene +
                              " timeout --kill-after 1 50 mpirun --oversubscribe -n " + std::to_string(ranks) + " '" +
                              self + "' --gtest_also_run_disabled_tests --gtest_filter=MpiRank.DISABLED_Plays 2>&1";
  Outcome outcome;
  const steady_clock::time_point begin = steady_clock::now();
  FILE* const pipe = popen(command.c_str(), "r");
  if (!pipe) return outcome;
  char buffer[4096];
  for (size_t count = 0; (count = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) outcome.text.append(buffer, count);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  outcome.seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
  return outcome;
}

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_mpi_module()) GTEST_SKIP() << "built without MPI";
    if (std::system("command -v mpirun > /dev/null") != 0) GTEST_SKIP() << "no mpirun";
  }
};

TEST_F(Mpi, CollectivesOfAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 4}) {
    const Outcome outcome = play("collectives", ranks);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
  }
}

TEST_F(Mpi, AKilledRankEndsTheJob) {
  const Outcome outcome = play("kill", 3);
  EXPECT_EQ(outcome.code, 137) << outcome.text;
  EXPECT_LT(outcome.seconds, 30);
}

TEST_F(Mpi, AStoppedRankIsNamedAndEndsTheJob) {
  const Outcome outcome = play("stop", 3);
  EXPECT_EQ(outcome.code, 7) << outcome.text;
  EXPECT_LT(outcome.seconds, 30);
  EXPECT_NE(outcome.text.find("tercel: error: rank 2: rank 1 has given no sign of life for 3 s"), std::string::npos)
      << outcome.text;
}

TEST_F(Mpi, ARankThatDoesNotComeIsNamedAndEndsTheJob) {
  const Outcome outcome = play("late", 2);
  EXPECT_EQ(outcome.code, 7) << outcome.text;
  EXPECT_LT(outcome.seconds, 30);
  EXPECT_NE(outcome.text.find("rank 0: barrier: expected all ranks within 1 s, but ranks [1] have not answered"),
            std::string::npos)
      << outcome.text;
}

TEST_F(Mpi, ARankEndsTheJobWithItsExitCode) {
  const Outcome outcome = play("abort", 3);
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_LT(outcome.seconds, 30);
}

TEST_F(Mpi, ARankThatLeavesEndsTheJob) {
  const Outcome outcome = play("leave", 3);
  EXPECT_EQ(outcome.code, 7) << outcome.text;
  EXPECT_NE(outcome.text.find("tercel: error: rank 1: it leaves the group without close()"), std::string::npos)
      << outcome.text;
}

TEST_F(Mpi, OtherCallsOfAnotherRankAreErrors) {
  const Outcome outcome = play("calls", 3);
  EXPECT_EQ(outcome.code, 7) << outcome.text;
  EXPECT_LT(outcome.seconds, 30);
  // Of what has come first: a message of other bytes, or a sign of life.
  EXPECT_NE(outcome.text.find("all ranks"), std::string::npos) << outcome.text;
}

TEST_F(Mpi, OtherSizesOnAnotherRankAreErrors) {
  const Outcome outcome = play("sizes", 2);
  EXPECT_EQ(outcome.code, 7) << outcome.text;
  EXPECT_EQ(outcome.text.find("FAILED"), std::string::npos) << outcome.text;
}

TEST(MpiModule, AMissingModuleIsOneLine) {
  if (!has_mpi_module()) {
    EXPECT_EQ(
        tercel::test::message_of<DistributedError>([] { static_cast<void>(mpi_group()); }),
        "mpi: expected the module libtercel_mpi.so, found that this Tercel was built without it; build it where MPI "
        "is (apt-get install libopenmpi-dev openmpi-bin)");
    return;
  }
  setenv("TERCEL_MPI_MODULE", "/nowhere/libtercel_mpi.so", 1);
  const std::string message = tercel::test::message_of<DistributedError>([] { static_cast<void>(mpi_group()); });
  unsetenv("TERCEL_MPI_MODULE");
  EXPECT_TRUE(message.starts_with("mpi: expected the module libtercel_mpi.so, found that the loader says: /nowhere") ||
              message.starts_with("mpi: expected the MPI library"))
      << message;
}

}  // namespace
}  // namespace tercel::distributed
