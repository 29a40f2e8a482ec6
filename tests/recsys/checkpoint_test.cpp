#include "tercel/recsys/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <random>

#include "tercel/util/atomic_file.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/file_hook.h"
#include "tercel/util/json_impl.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include "tests/util/lost_writes.h"
#include "tests/util/temporary_folder.h"

namespace tercel::recsys {
namespace {

using test::make;
using test::TemporaryFolder;
using test::values_of;
using Names = std::vector<std::string>;

constexpr const char* kFingerprint = "0123456789abcdef";

/** The content of a checkpoint: every element is the step. */
std::vector<CheckpointFile> files_of(int64_t step) {
  const auto value = static_cast<double>(step);
  return {{"dense", {{"a", make({2}, kFloat32, {value, value})}, {"b", make({1, 3}, kFloat32, {value, value, value})}}},
          {"table-0", {{"t", make({2, 2}, kFloat32, {value, value, value, value})}}}};
}

void save(CheckpointStore& store, int64_t step, double metric = -1) {
  CheckpointInfo info;
  info.step = step;
  info.fingerprint = kFingerprint;
  info.has_metric = metric >= 0;
  if (info.has_metric) info.metric = metric;
  store.save(info, "{\"step\":" + std::to_string(step) + "}", files_of(step));
}

/** Opens a checkpoint and expects in it what was saved for its step; returns the step. */
int64_t verify(const std::string& folder) {
  const Checkpoint checkpoint(folder);
  const int64_t step = checkpoint.info().step;
  EXPECT_EQ(checkpoint.state(), "{\"step\":" + std::to_string(step) + "}");
  checkpoint.check_fingerprint(kFingerprint);
  const std::vector<CheckpointFile> found = files_of(0), expected = files_of(step);
  for (size_t f = 0; f < found.size(); ++f) {
    checkpoint.read(found[f]);
    for (size_t t = 0; t < found[f].tensors.size(); ++t)
      EXPECT_EQ(values_of(found[f].tensors[t].tensor), values_of(expected[f].tensors[t].tensor));
  }
  return step;
}

Names names_in(const std::string& folder) {
  Names names;
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::string name_of(int64_t step) {
  const std::string digits = std::to_string(step);
  return "step-" + std::string(12 - digits.size(), '0') + digits;
}

TEST(Checkpoint, RoundTrip) {
  const TemporaryFolder root;
  CheckpointStore store(root / "not/there/yet", 2);
  EXPECT_FALSE(store.latest());
  save(store, 7, 0.75);
  ASSERT_EQ(store.latest(), root / ("not/there/yet/" + name_of(7)));
  EXPECT_EQ(verify(*store.latest()), 7);
  const Checkpoint checkpoint(*store.latest());
  EXPECT_EQ(checkpoint.info().fingerprint, kFingerprint);
  EXPECT_TRUE(checkpoint.info().has_metric);
  EXPECT_EQ(checkpoint.info().metric, 0.75);
  EXPECT_TRUE(is_checkpoint_folder(*store.latest()));
  EXPECT_FALSE(is_checkpoint_folder(root / "not/there/yet"));
  EXPECT_EQ(names_in(*store.latest()), (Names{"dense.safetensors", "manifest.json", "table-0.safetensors"}));
}

TEST(Checkpoint, TheSameContentIsTheSameBytes) {
  const TemporaryFolder root;
  CheckpointStore a(root / "a", 1), b(root / "b", 1);
  save(a, 3, 0.1);
  save(b, 3, 0.1);
  for (const std::string& name : names_in(*a.latest()))
    EXPECT_EQ(root.get("a/" + name_of(3) + "/" + name), root.get("b/" + name_of(3) + "/" + name)) << name;
}

TEST(Checkpoint, SavingAStepAgainReplacesIt) {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 2);
  save(store, 3);
  save(store, 3, 0.5);
  EXPECT_TRUE(Checkpoint(*store.latest()).info().has_metric);
  EXPECT_EQ(names_in(root / "c"), Names{name_of(3)});
}

TEST(Checkpoint, ReadsOnlyWhatFits) {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 1);
  save(store, 3);
  const Checkpoint checkpoint(*store.latest());
  TERCEL_EXPECT_THROW(checkpoint.check_fingerprint("fedcba9876543210"), DataError,
                      "expected parameters of fingerprint fedcba9876543210, found 0123456789abcdef");
  const Tensor a = make({2}, kFloat32, {-1, -1});
  TERCEL_EXPECT_THROW(checkpoint.read({"other", {{"a", a}}}), DataError, "other.safetensors");
  TERCEL_EXPECT_THROW(checkpoint.read({"dense", {{"a", a}}}), DataError, "a tensor 'b' that is not expected");
  TERCEL_EXPECT_THROW(checkpoint.read({"dense", {{"a", a}, {"c", a}}}), DataError, "'c'");
  TERCEL_EXPECT_THROW(checkpoint.read({"dense", {{"a", a}, {"b", a}}}), DataError, "'b'");
  TERCEL_EXPECT_THROW(checkpoint.read({"dense", {{"a", make({2}, kFloat64, {-1, -1})}}}), DataError, "'a'");
  EXPECT_EQ(values_of(a), (std::vector<double>{-1, -1})) << "nothing is read before all is checked";
  checkpoint.read_some({"dense", {{"a", a}}});
  EXPECT_EQ(values_of(a), (std::vector<double>{3, 3}));
}

TEST(Checkpoint, KeepsTheLastAndTheBest) {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 2);
  const double metrics[] = {0.5, 0.7, 0.6, 0.7, -1, 0.65, 0.1};
  for (int64_t step = 1; step <= 7; ++step) save(store, step, metrics[step - 1]);
  EXPECT_EQ(names_in(root / "c"), (Names{name_of(2), name_of(6), name_of(7)})) << "the earliest of equals";
  EXPECT_EQ(best_checkpoint(root / "c"), root / ("c/" + name_of(2)));
  save(store, 8, 0.8);
  EXPECT_EQ(names_in(root / "c"), (Names{name_of(7), name_of(8)}));
  EXPECT_EQ(list_checkpoints(root / "c"), (Names{root / ("c/" + name_of(7)), root / ("c/" + name_of(8))}));
  TERCEL_EXPECT_THROW(CheckpointStore(root / "c", 0), ValueError, "at least 1");
}

TEST(Checkpoint, WithoutMetricsTheBestIsTheLast) {
  const TemporaryFolder root;
  EXPECT_FALSE(best_checkpoint(root / "c"));
  CheckpointStore store(root / "c", 2);
  for (int64_t step = 1; step <= 3; ++step) save(store, step);
  EXPECT_EQ(best_checkpoint(root / "c"), root / ("c/" + name_of(3)));
}

TEST(Checkpoint, TheBestIsNoDamagedOne) {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 4);
  save(store, 1, 0.5);
  save(store, 2, 0.9);
  save(store, 3, 0.4);
  root.put("c/" + name_of(2) + "/manifest.json", "{}");
  EXPECT_EQ(best_checkpoint(root / "c"), root / ("c/" + name_of(1)));
  root.put("c/" + name_of(1) + "/manifest.json", "");
  root.put("c/" + name_of(3) + "/manifest.json", "{");
  EXPECT_FALSE(best_checkpoint(root / "c")) << "there is no whole one";
  CheckpointStore others(root / "d", 4);
  save(others, 1);
  save(others, 2);
  root.put("d/" + name_of(2) + "/manifest.json", "{");
  EXPECT_EQ(best_checkpoint(root / "d"), root / ("d/" + name_of(1)));
}

TEST(Checkpoint, OtherNamesAreLeftAlone) {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 1);
  root.put("c/step-1/manifest.json", "{}");
  root.put("c/step-00000000001x/manifest.json", "{}");
  root.put("c/notes.txt", "mine");
  save(store, 1);
  save(store, 2);
  EXPECT_EQ(names_in(root / "c"), (Names{"notes.txt", name_of(2), "step-00000000001x", "step-1"}));
}

/** Expects DataError, whatever is damaged. */
void expect_damaged(const std::string& folder, const std::string& what) {
  try {
    verify(folder);
    ADD_FAILURE() << "accepted: " << what;
  } catch (const DataError& e) {
    EXPECT_NE(std::string(e.what()).find(folder), std::string::npos) << e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << what << ": not a DataError: " << e.what();
  }
}

TEST(Checkpoint, EveryCutIsSeen) {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 1);
  save(store, 7, 0.75);
  const std::string folder = *store.latest();
  for (const std::string& name : names_in(folder)) {
    const std::string file = "c/" + name_of(7) + "/" + name, content = root.get(file);
    for (size_t bytes = 0; bytes < content.size(); ++bytes) {
      root.put(file, content.substr(0, bytes));
      if (name == "manifest.json" && bytes + 1 == content.size() && content.back() == '\n')
        EXPECT_EQ(verify(folder), 7) << "only the last line's end is gone";
      else
        expect_damaged(folder, name + " cut to " + std::to_string(bytes) + " bytes");
    }
    root.put(file, content + "x");
    expect_damaged(folder, name + " with a byte more");
    root.put(file, content);
    EXPECT_EQ(verify(folder), 7);
  }
}

TEST(Checkpoint, EveryFlippedBitIsSeen) {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 1);
  save(store, 7, 0.75);
  const std::string folder = *store.latest();
  for (const std::string& name : names_in(folder)) {
    const std::string file = "c/" + name_of(7) + "/" + name, content = root.get(file);
    for (size_t bit = 0; bit < 8 * content.size(); ++bit) {
      std::string damaged = content;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      root.put(file, damaged);
      expect_damaged(folder, name + " with bit " + std::to_string(bit) + " flipped");
    }
    root.put(file, content);
  }
}

TEST(Checkpoint, MissingFilesAreNamed) {
  const TemporaryFolder root;
  TERCEL_EXPECT_THROW(Checkpoint(root / "nowhere"), DataError, "nowhere: no checkpoint: there is no manifest.json");
  for (const char* name : {"dense.safetensors", "table-0.safetensors", "manifest.json"}) {
    CheckpointStore store(root / "c", 1);
    save(store, 7);
    std::filesystem::remove(*store.latest() + "/" + name);
    TERCEL_EXPECT_THROW(Checkpoint(*store.latest()), DataError, name);
    std::filesystem::remove_all(*store.latest());
  }
}

/** A manifest with a right checksum, whatever its content. */
std::string manifest_of(const Json& content, int format = 1) {
  Json json = {{"format", format}};
  const std::string text = dump_json_line(content);
  json["checksum"] = checksum_to_hex(checksum(text.data(), text.size()));
  json["content"] = content;
  return dump_json(json);
}

TEST(Checkpoint, ManifestsMustMakeSense) {
  const TemporaryFolder root;
  const auto opened = [&](const std::string& manifest, const char* text) {
    root.put("c/manifest.json", manifest);
    TERCEL_EXPECT_THROW(Checkpoint(root / "c"), DataError, text);
  };
  root.put("secret", "");
  Json good = {{"info", {{"step", 3}}}, {"files", Json::array()}};
  const auto with = [&](const char* path, Json value) {
    Json json = good;
    json[Json::json_pointer(path)] = std::move(value);
    return json;
  };
  opened(manifest_of(good), "files");  // without a file it is no checkpoint
  const Json file = {{"name", "../secret"}, {"bytes", 0}, {"checksum", "2d06800538d394c2"}};
  opened(manifest_of(with("/files", Json::array({file}))), "a file is called '../secret'");
  opened(manifest_of(with("/info/step", -1)), "step");
  opened(manifest_of(with("/info/step", "3")), "step");
  opened(manifest_of(with("/info/metric", "high")), "metric");
  opened(manifest_of(with("/info/stpe", 3)), "did you mean 'step'");
  opened(manifest_of(with("/files", "none")), "files");
  opened(manifest_of(with("/files/0/name", "x")), "bytes");
  opened(manifest_of(Json::array()), "manifest.json");
  opened(manifest_of(Json()), "manifest.json");
  opened(manifest_of(good, 2), "format: expected 1 but found 2");
  opened("[]", "format");
  opened("{\"format\": 1, \"content\": {}, \"checksum\": 5}", "checksum");
}

TEST(Checkpoint, EveryFailingCallLeavesTheOldOneWhole) {
  for (const int64_t keep : {1, 3}) {
    int64_t failures = 0;
    for (int64_t n = 1;; ++n) {
      const TemporaryFolder root;
      CheckpointStore store(root / "c", keep);
      save(store, 1, 0.5);
      save(store, 2, 0.6);
      bool threw = false, fired = false;
      {
        const ScopedFault fault({.nth = n, .error = 28});  // no space left on device
        try {
          save(store, 3, 0.7);
        } catch (const IoError&) {
          threw = true;
          ++failures;
        }
        fired = fault.fired();
      }
      int64_t last = 0;
      for (const std::string& folder : list_checkpoints(root / "c")) last = verify(folder);
      ASSERT_TRUE(last == 3 || (threw && last == 2)) << "call " << n;
      save(store, 4, 0.8);  // the next one works, and tidies up
      const Names left = names_in(root / "c");
      ASSERT_EQ(left.size(), static_cast<size_t>(keep)) << "call " << n << ::testing::PrintToString(left);
      ASSERT_EQ(verify(*store.latest()), 4);
      if (!fired) break;
    }
    EXPECT_GT(failures, 20);
  }
}

TEST(Checkpoint, EveryCrashLeavesTheOldOneWhole) {
  for (int64_t n = 1;; ++n) {
    const TemporaryFolder root;
    CheckpointStore store(root / "c", 1);
    save(store, 1, 0.5);
    bool crashed = false;
    {
      const ScopedFault fault({.nth = n, .kind = FaultKind::Crash});
      try {
        save(store, 2, 0.6);
      } catch (const SimulatedCrash&) {
        crashed = true;
      }
    }
    int64_t last = 0;
    for (const std::string& folder : list_checkpoints(root / "c")) last = verify(folder);
    ASSERT_TRUE(last == 2 || (crashed && last == 1)) << "call " << n;
    save(store, 3, 0.7);
    ASSERT_EQ(names_in(root / "c"), Names{name_of(3)}) << "call " << n;
    if (!crashed) break;
  }
}

TEST(Checkpoint, EveryPowerCutLeavesTheOldOneWhole) {
  enum class Loss { Everything, Content, Entries };
  for (const Loss loss : {Loss::Everything, Loss::Content, Loss::Entries}) {
    for (int64_t n = 1;; ++n) {
      const TemporaryFolder root, scratch;
      CheckpointStore store(root / "c", 1);
      save(store, 1, 0.5);
      bool crashed = false;
      {
        test::LostWrites disk(scratch.path(), n);
        try {
          save(store, 2, 0.6);
        } catch (const SimulatedCrash&) {
          crashed = true;
        }
        if (loss != Loss::Entries) disk.lose_bytes();
        if (loss != Loss::Content) disk.lose_names();
      }
      int64_t last = 0;
      for (const std::string& folder : list_checkpoints(root / "c")) last = verify(folder);
      ASSERT_TRUE(last == 2 || (crashed && last == 1)) << "call " << n;
      if (!crashed) break;
    }
  }
}

TEST(Checkpoint, KillAtAnyMomentLeavesWholeOnes) {
  const TemporaryFolder root;
  std::mt19937_64 random(1);
  int64_t last = 0;
  for (int round = 0; round < 40; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        CheckpointStore store(root / "c", 2);
        for (int64_t step = last + 1;; ++step) save(store, step, 1 / static_cast<double>(step));
      } catch (...) {
        ::_exit(1);
      }
    }
    ::usleep(static_cast<useconds_t>(500 + random() % 15000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child failed";
    int64_t found = 0;
    for (const std::string& folder : list_checkpoints(root / "c")) found = verify(folder);
    ASSERT_GE(found, last);
    last = found;
  }
  EXPECT_GT(last, 10);
  CheckpointStore store(root / "c", 2);
  save(store, last + 1, 0);
  EXPECT_EQ(names_in(root / "c"), (Names{name_of(1), name_of(last), name_of(last + 1)})) << "the best and the last two";
}

}  // namespace
}  // namespace tercel::recsys
