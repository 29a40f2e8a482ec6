// Kills `tercel train` at random times, resumes it, and compares the final result with an undisturbed run.
// TERCEL_KILLS sets the number of kills (default 10).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include "tercel/recsys/checkpoint.h"
#include "tests/cli/program.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::Outcome;
using test::Program;
using test::run;
using test::TemporaryFolder;

int64_t kills_wanted() {
  const char* const text = std::getenv("TERCEL_KILLS");
  return text != nullptr ? std::strtoll(text, nullptr, 10) : 10;
}

std::map<std::string, std::string> checkpoint_files(const TemporaryFolder& root, const std::string& name) {
  std::map<std::string, std::string> files;
  const std::string start = name + "/checkpoints/";
  for (const auto& [path, content] : root.tree())
    if (path.starts_with(start)) files[path.substr(start.size())] = content;
  return files;
}

/** Trains on `root`/data into `root`/name. */
std::vector<std::string> train(const TemporaryFolder& root, const std::string& name) {
  return {"train",
          root / "data",
          "--model",
          "dlrm",
          "--out",
          root / name,
          "--resume",
          "auto",
          "--threads",
          "1",
          "--quiet",
          "--epochs",
          "4",
          "--set",
          "solver.batchsize=64",
          "--set",
          "solver.eval_interval=100",
          "--set",
          "solver.checkpoint_interval=10",
          "--set",
          "data.validation=none",
          "--set",
          "optimizer.type=Adam"};
}

TEST(KillLoop, ResumedRunsEndInTheSameBits) {
  const TemporaryFolder root;
  const Outcome data = run({"generate", root / "data", "--preset", "small", "--rows", "12000", "--quiet"});
  ASSERT_EQ(data.code, 0) << data.err;
  const auto start = std::chrono::steady_clock::now();
  const Outcome peace = run(train(root, "peace"));
  ASSERT_EQ(peace.code, 0) << peace.err;
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
  const std::map<std::string, std::string> expected = checkpoint_files(root, "peace");
  ASSERT_FALSE(expected.empty());

  std::mt19937_64 random(1);
  int64_t kills = 0, finished = 0;
  while (kills < kills_wanted()) {
    // A run may finish before its kill: then the next one starts from the beginning.
    const std::string name = "run-" + std::to_string(finished);
    Program program(train(root, name));
    const auto delay = static_cast<int64_t>(random() % static_cast<uint64_t>(whole.count() / 2 + 1));
    ::usleep(static_cast<useconds_t>(delay));
    program.signal(SIGKILL);
    const Outcome outcome = program.wait();
    if (outcome.code == 1000 + SIGKILL) {
      ++kills;
      continue;
    }
    ASSERT_EQ(outcome.code, 0) << "after " << kills << " kills: " << outcome.err;
    ASSERT_EQ(checkpoint_files(root, name) == expected, true) << "after " << kills << " kills";
    std::filesystem::remove_all(root / name);
    ++finished;
  }
  const std::string name = "run-" + std::to_string(finished);
  const Outcome last = run(train(root, name));
  ASSERT_EQ(last.code, 0) << "after " << kills << " kills: " << last.err;
  const std::map<std::string, std::string> found = checkpoint_files(root, name);
  for (const auto& [file, content] : expected) {
    ASSERT_TRUE(found.contains(file)) << file;
    EXPECT_TRUE(found.at(file) == content) << file << " differs";
  }
  EXPECT_EQ(found.size(), expected.size()) << "no temporaries are left";
}

/** Complete checkpoints, while a program may be writing another one. */
int64_t count_checkpoints(const std::string& folder) {
  std::error_code none;
  int64_t count = 0;
  for (std::filesystem::directory_iterator at(folder, none), end; !none && at != end; at.increment(none))
    count += at->path().filename().string().size() == 17;
  return count;
}

TEST(KillLoop, SignalsStopWithACheckpointAndTheirExitCode) {
  const TemporaryFolder root;
  ASSERT_EQ(run({"generate", root / "data", "--preset", "small", "--rows", "12000", "--quiet"}).code, 0);
  ASSERT_EQ(run(train(root, "peace")).code, 0);
  const std::string last = "step-000000000676/";
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string name = "run-" + std::to_string(signal);
    {
      Program program(train(root, name));
      while (program.is_running() && count_checkpoints(root / (name + "/checkpoints")) < 2) ::usleep(500);
      program.signal(signal);
      if (signal == SIGHUP) program.signal(signal);  // as sent when a terminal is closed
      const Outcome outcome = program.wait();
      ASSERT_EQ(outcome.code, 128 + signal) << outcome.err;
      ASSERT_FALSE(checkpoint_files(root, name).contains(last + "manifest.json")) << "it had not finished yet";
    }
    const Outcome rest = run(train(root, name));
    ASSERT_EQ(rest.code, 0) << rest.err;
    std::map<std::string, std::string> expected = checkpoint_files(root, "peace"), found = checkpoint_files(root, name);
    for (auto* files : {&expected, &found})
      std::erase_if(*files, [&](const auto& file) { return !file.first.starts_with(last); });
    EXPECT_EQ(expected.size(), 5u);
    EXPECT_TRUE(found == expected);
  }
}

/** The same, without an end and without periodic checkpoints. */
std::vector<std::string> train_without_end(const TemporaryFolder& root, const std::string& name) {
  std::vector<std::string> words = train(root, name);
  for (const char* more :
       {"--epochs=100000", "--set", "solver.eval_interval=1000000", "--set", "solver.checkpoint_interval=1000000"})
    words.emplace_back(more);
  words.erase(std::find(words.begin(), words.end(), "--epochs"), std::find(words.begin(), words.end(), "4") + 1);
  return words;
}

TEST(KillLoop, OutputThatNobodyReadsStopsWithACheckpoint) {
  const TemporaryFolder root;
  ASSERT_EQ(run({"generate", root / "data", "--preset", "small", "--rows", "12000", "--quiet"}).code, 0);
  std::vector<std::string> words = train_without_end(root, "run");
  std::erase(words, "--quiet");
  for (const char* more : {"--set", "solver.eval_interval=2", "--set", "data.validation=held_out"})
    words.emplace_back(more);
  const std::string pipe = root / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  test::ProgramOptions options;
  options.out = pipe;
  Program program(words, options);
  // An evaluation has been written, and its checkpoint perhaps: a run that is stopped before its first step saves
  // nothing.
  const auto has_metrics = [&root] {
    std::error_code missing;
    const auto bytes = std::filesystem::file_size(root / "run/metrics.jsonl", missing);
    return !missing && bytes > 0;
  };
  while (program.is_running() && !has_metrics()) ::usleep(500);
  ASSERT_TRUE(program.is_running()) << program.wait().err;
  ::close(reader);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 128 + SIGPIPE);
  EXPECT_EQ(outcome.err, "");
  const std::vector<std::string> saved = recsys::list_checkpoints(root / "run/checkpoints");
  ASSERT_FALSE(saved.empty());
  // That of the step at which it was stopped: no evaluation is later.
  const std::string metrics = root.get("run/metrics.jsonl"), name = std::filesystem::path(saved.back()).filename();
  const int64_t evaluated = std::stoll(metrics.substr(metrics.rfind("\"step\":") + 7)),
                step = std::stoll(name.substr(std::string("step-").size()));
  EXPECT_GE(step, evaluated);
}

TEST(KillLoop, SigusrSavesAndTheRunGoesOn) {
  const TemporaryFolder root;
  ASSERT_EQ(run({"generate", root / "data", "--preset", "small", "--rows", "12000", "--quiet"}).code, 0);
  Program program(train_without_end(root, "run"));
  for (const int64_t saved : {1, 2}) {
    while (program.is_running() && !std::filesystem::exists(root / "run/metrics.jsonl")) ::usleep(500);
    program.signal(SIGUSR1);
    while (program.is_running() && count_checkpoints(root / "run/checkpoints") < saved) ::usleep(500);
    ASSERT_TRUE(program.is_running()) << program.wait().err;
  }
  program.signal(SIGTERM);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 143) << outcome.err;
}

}  // namespace
}  // namespace tercel::cli
