#include "tests/cli/program.h"

#include <gtest/gtest.h>

#include "tercel/util/cpu_info.h"
#include "tercel/util/version.h"
#include "tests/util/temporary_folder.h"

namespace tercel::cli {
namespace {

using test::expect_error;
using test::Outcome;
using test::run;
using test::TemporaryFolder;

TEST(Program, SaysItsVersion) {
  const Outcome outcome = run({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out.rfind("tercel " + std::string(version()), 0), 0u) << outcome.out;
  EXPECT_EQ(outcome.err, "");
}

TEST(Program, ListsItsCommands) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--help"}, {"-h"}, {"help"}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    for (const char* command : {"generate", "convert"})
      EXPECT_NE(outcome.out.find("\n  " + std::string(command) + " "), std::string::npos) << outcome.out;
  }
}

TEST(Program, CommandsExplainThemselvesWithAnExample) {
  const std::vector<std::string> commands[] = {{"generate"}, {"convert", "criteo"}, {"convert", "csv"}};
  for (const std::vector<std::string>& command : commands) {
    std::vector<std::string> asked = command, helped = command;
    asked.emplace_back("--help");
    helped.insert(helped.begin(), "help");
    const Outcome outcome = run(asked);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, run(helped).out);
    std::string name = "tercel";
    for (const std::string& word : command) name += " " + word;
    EXPECT_NE(outcome.out.find("usage: " + name), std::string::npos);
    EXPECT_NE(outcome.out.find("example:\n  " + name), std::string::npos);
  }
}

TEST(Program, RefusesWhatItDoesNotKnow) {
  expect_error(run({}), 2, {"expected a command"});
  expect_error(run({"generat"}), 2, {"unknown command 'generat'", "did you mean 'generate'?"});
  expect_error(run({"--versoin"}), 2, {"unknown option '--versoin'"});
  expect_error(run({"convert"}), 2, {"convert: expected a command"});
  expect_error(run({"convert", "critoe", "a", "b"}), 2, {"unknown command 'critoe'", "'criteo'"});
  expect_error(run({"generate"}), 2, {"generate: argument OUT is missing"});
  expect_error(run({"generate", "a", "b"}), 2, {"unexpected argument 'b'"});
  expect_error(run({"generate", "a", "--row", "5"}), 2, {"unknown option '--row'", "'--rows'"});
  expect_error(run({"generate", "a", "--rows"}), 2, {"--rows", "expected a value"});
  expect_error(run({"generate", "a", "--rows", "many"}), 2, {"'rows': expected an integer, found \"many\""});
  expect_error(run({"generate", "a", "--preset", "critoe"}), 2, {"'preset'", "criteo"});
  expect_error(run({"generate", "two\nlines", "--rows=0"}), 2, {"'rows'"});
}

TEST(Program, MoreThreadsThanCpusAreAWarning) {
  const TemporaryFolder folder;
  const auto generate = [&](int64_t threads, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"generate", folder / "data", "--preset",
                                      "small",    "--rows",        "100",
                                      "--force",  "--threads",     std::to_string(threads)};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  const int64_t cpus = usable_cpus();
  if (cpus >= 1024) GTEST_SKIP() << "a machine of " << cpus << " CPUs";
  EXPECT_EQ(generate(cpus).err, "");
  const Outcome outcome = generate(cpus + 1);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.err.starts_with("tercel: warning: expected at most " + std::to_string(cpus) + " thread"))
      << outcome.err;
  EXPECT_NE(outcome.err.find("but got " + std::to_string(cpus + 1) + ": more threads are slower\n"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(generate(cpus + 1, {"--quiet"}).err, "");
}

TEST(Program, FullOutputIsAnErrorToo) {
  test::ProgramOptions options;
  options.out = "/dev/full";
  expect_error(run({"--version"}, options), 4, {"standard output", "No space left"});
  expect_error(run({"generate", "--help"}, options), 4, {"standard output"});
}

}  // namespace
}  // namespace tercel::cli
