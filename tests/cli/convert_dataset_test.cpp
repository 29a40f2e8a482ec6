// tercel convert dataset, convert raw and rawasync, verify.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/sanitizers_impl.h"
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

/** Norm files with these options, of 600 rows of 4 dense values and 5 slots. */
void generate(const TemporaryFolder& root, const std::string& name, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"generate", root / name, "--preset", "small", "--rows", "600"};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = run(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
}

/** Content of the data files and lists in a folder. */
std::vector<std::string> contents(const TemporaryFolder& root, const std::string& name) {
  std::vector<std::string> all;
  for (const auto& [path, content] : root.tree())
    if (path.starts_with(name + "/") && !path.ends_with(".json")) all.push_back(content);
  return all;
}

TEST(ConvertDatasetCommand, KeepsOptionsOfTheSource) {
  const TemporaryFolder root;
  generate(root, "norm", {"--files", "2", "--key-type", "u32", "--check-mode", "none"});
  const Outcome outcome = run({"convert", "dataset", root / "norm", root / "raw", "--to", "raw", "--slot-offsets=add"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"600 rows of 4 dense values and 5 slots", " as raw in ", "train: 540 rows in 2 files",
                           "test: 60 rows in 1 file"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << outcome.out;
  const Json json = parse_json(
      run({"convert", "dataset", root / "raw", root / "async", "--to", "rawasync", "--key-type", "u32", "--json"}).out,
      "stdout", JsonErrors::Data);
  EXPECT_EQ(json["format"], "rawasync");
  EXPECT_EQ(json["train"]["files"], 2);
  // Without options of Norm, those of the source; given ones count.
  ASSERT_EQ(run({"convert", "dataset", "--to", "norm", root / "async", root / "back"}).code, 0);
  EXPECT_EQ(contents(root, "back"), contents(root, "norm"));
  ASSERT_EQ(run({"convert", "dataset", root / "async", root / "sum", "--to", "norm", "--check-mode", "sum"}).code, 0);
  EXPECT_EQ(root.get("sum/train/part-0.data").substr(0, 4), std::string("\x40\0\0\0", 4));
  EXPECT_EQ(root.get("sum/train/part-0.data").size(), root.get("norm/train/part-0.data").size() + 5 * (270 + 1));
  const std::string one =
      run({"convert", "dataset", root / "raw", root / "one", "--to", "raw", "--rows-per-file=1000"}).out;
  EXPECT_NE(one.find("train: 540 rows in 1 file"), std::string::npos) << one;
  EXPECT_EQ(root.get("one/train/part-0.bin"), root.get("raw/train/part-0.bin") + root.get("raw/train/part-1.bin"));
}

TEST(ConvertDatasetCommand, GenerateWritesEveryFormat) {
  const TemporaryFolder root;
  generate(root, "norm");
  generate(root, "raw", {"--format", "raw", "--slot-offsets", "add"});
  generate(root, "async", {"--format", "rawasync", "--key-type", "u32"});
  for (const std::string name : {"raw", "async"}) {
    EXPECT_EQ(run({"verify", root / name}).code, 0);
    // Defaults of Norm, as no rows were in that format before.
    ASSERT_EQ(run({"convert", "dataset", root / name, root / (name + "-norm"), "--to", "norm"}).code, 0);
    EXPECT_EQ(contents(root, name + "-norm"), contents(root, "norm"));
  }
}

TEST(ConvertDatasetCommand, MistakesAreOneLineAndLeaveNothing) {
  const TemporaryFolder root;
  generate(root, "norm");
  const auto before = root.tree();
  const auto refused = [&](std::vector<std::string> words, int code, const std::vector<std::string>& texts) {
    words.insert(words.begin(), {"convert", "dataset", root / "norm"});
    expect_error(run(words), code, texts);
    EXPECT_TRUE(root.tree() == before);
  };
  refused({root / "out"}, 2, {"option --to is missing"});
  refused({root / "out", "--to", "rwa"}, 2, {"unknown format 'rwa'; did you mean 'raw'"});
  refused({root / "out", "--to", "raw", "--check-mode", "sum"}, 2, {"unknown option '--check-mode'"});
  refused({root / "out", "--to", "raw", "--no-float-label-dense"}, 3,
          {"norm/train/part-0.data: row 0: the format raw cannot hold it: expected dense value "});
  refused({root / "norm", "--to", "raw", "--force"}, 2, {"lies in", "would be deleted"});
  refused({root / "norm", "--to", "raw"}, 4, {"expected a new folder"});
  expect_error(run({"convert", "dataset", root / "nowhere", root / "out", "--to", "raw"}), 4, {"nowhere: expected a"});
  const std::string nothing = root.put("empty.bin", "");
  expect_error(run({"convert", "raw", nothing, root / "out", "--nnz-per-slot", "1"}), 3,
               {"expected train rows, found none"});
}

TEST(ConvertDatasetCommand, DescribesAndConvertsRawFiles) {
  const TemporaryFolder root;
  generate(root, "norm");
  ASSERT_EQ(run({"convert", "dataset", root / "norm", root / "raw", "--to", "raw", "--slot-offsets", "add"}).code, 0);
  const Json made = parse_json(root.get("raw/dataset.json"), "raw", JsonErrors::Data);
  std::string sizes;
  for (const Json& slot : made["schema"]["slots"])
    sizes += (sizes.empty() ? "" : ",") + std::to_string(slot["size"].get<int64_t>());
  const auto words = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"convert",
                                    "raw",
                                    root / "raw/train/part-0.bin",
                                    root / out,
                                    "--test",
                                    root / "raw/test/part-0.bin",
                                    "--nnz-per-slot",
                                    "1,1,1,1,1",
                                    "--slot-size-array",
                                    sizes,
                                    "--slot-offsets",
                                    "add",
                                    "--float-label-dense"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  expect_error(
      run(words("out", {"--dense-dim", "5"})), 3,
      {"part-0.bin: expected a multiple of 44 bytes, the size of a row of 1 labels, 5 dense values and 5 keys"});
  const Outcome described = run(words("described", {"--dense-dim", "4"}));
  EXPECT_EQ(described.code, 0) << described.err;
  EXPECT_NE(described.out.find("540 train rows and 60 test rows of 4 dense values and 5 slots"), std::string::npos)
      << described.out;
  const Outcome converted = run(words("converted", {"--dense-dim", "4", "--to", "norm"}));
  EXPECT_EQ(converted.code, 0) << converted.err;
  EXPECT_EQ(contents(root, "converted"), contents(root, "norm"));
  for (const char* data : {"raw", "described"}) EXPECT_EQ(run({"verify", root / data}).code, 0);
  // The same rows train the same model.
  for (const char* data : {"norm", "described"}) {
    const Outcome trained =
        run(test::one_pass({"train", root / data, "--out", root / (std::string("run-") + data), "--threads", "1"}));
    EXPECT_EQ(trained.code, 0) << trained.err;
  }
  const auto weights = [&root](const std::string& name) {
    return root.get("run-" + name + "/checkpoints/step-000000000003/dense.safetensors");
  };
  EXPECT_FALSE(weights("norm").empty());
  EXPECT_TRUE(weights("norm") == weights("described"));
}

TEST(VerifyCommand, NamesTheFirstFaultOrAll) {
  const TemporaryFolder root;
  generate(root, "data");
  const Outcome good = run({"verify", root / "data"});
  EXPECT_EQ(good.code, 0);
  EXPECT_EQ(good.err, "");
  EXPECT_NE(good.out.find("600 rows of 4 dense values and 5 slots"), std::string::npos) << good.out;
  EXPECT_NE(good.out.find(": all follow the rules"), std::string::npos) << good.out;

  std::string bytes = root.get("data/train/part-0.data");
  const size_t record = (bytes.size() - 69) / 540;
  for (const size_t row : {3u, 100u}) bytes[69 + row * record + 9] ^= 1;
  root.put("data/train/part-0.data", bytes);
  expect_error(run({"verify", root / "data"}), 3, {"part-0.data: record 3: byte "});
  const Outcome all = run({"verify", root / "data", "--all", "--json"});
  EXPECT_EQ(all.code, 3);
  const Json json = parse_json(all.out, "stdout", JsonErrors::Data);
  ASSERT_EQ(json["faults"].size(), 3u);
  EXPECT_NE(json["faults"][1].get<std::string>().find("record 100: "), std::string::npos);
  EXPECT_NE(json["faults"][2].get<std::string>().find("expected the XXH3 checksum"), std::string::npos);
  EXPECT_EQ(json["rows"], 598);
  EXPECT_EQ(parse_json(run({"verify", root / "data", "--all", "--max-faults", "2", "--json"}).out, "stdout",
                       JsonErrors::Data)["faults"]
                .size(),
            2u);
  root.put("data/test/part-0.data", "short");
  expect_error(run({"verify", root / "data"}), 3,
               {"test/part-0.data: expected ", " bytes, as dataset.json says, found 5"});
}

TEST(VerifyCommand, SignalsStopItAndConversion) {
  const TemporaryFolder root;
  ASSERT_EQ(run({"generate", root / "data", "--rows", "400000"}).code, 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"verify", root / "data"},
        std::vector<std::string>{"convert", "dataset", root / "data", root / "out", "--to", "raw", "--force"}}) {
    // The signal may come before the program handles signals, or when it is done: then it comes at another time.
    bool stopped = false;
    for (int delay_ms = 4; !stopped && delay_ms < 4000; delay_ms += 1 + delay_ms / 2) {
      Program program(words);
      std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
      program.signal(SIGINT);
      const Outcome outcome = program.wait();
      stopped = outcome.code == 130;
      if (stopped) expect_error(outcome, 130, {"stopped by SIGINT"});
    }
    EXPECT_TRUE(stopped) << words[0];
    std::filesystem::remove_all(root / "out");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root.path()), std::filesystem::directory_iterator()), 1)
        << "nothing but the dataset";
  }
}

// The memory of a conversion does not depend on the number of rows.
TEST(ConvertDatasetCommand, MemoryStaysFlat) {
#if TERCEL_ADDRESS_SANITIZER || TERCEL_THREAD_SANITIZER
  GTEST_SKIP() << "sanitizers keep freed memory";
#endif
  const TemporaryFolder root;
  const auto peak_of = [&](const std::string& rows) {
    EXPECT_EQ(run({"generate", root / ("data" + rows), "--rows", rows, "--preset", "small"}).code, 0);
    return run({"convert", "dataset", root / ("data" + rows), root / ("raw" + rows), "--to", "raw"}).peak_bytes;
  };
  const int64_t small = peak_of("100000"), large = peak_of("600000");
  EXPECT_GT(small, 0);
  EXPECT_LT(large, small + (int64_t{16} << 20));
}

}  // namespace
}  // namespace tercel::cli
