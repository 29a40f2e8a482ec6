#include "tercel/recsys/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <random>

#include "tercel/util/atomic_file.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/file_hook.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/version.h"
#include "tests/recsys/checkpoint_data.h"
#include "tests/support/errors.h"
#include "tests/util/lost_writes.h"

namespace tercel::recsys::test {
namespace {

TEST(Checkpoint, RoundTrip) {
  const TemporaryFolder root;
  CheckpointStore store(root / "not/there/yet", 2);
  EXPECT_FALSE(store.latest());
  save(store, 7, 0.75);
  ASSERT_EQ(store.latest(), root / ("not/there/yet/" + name_of(7)));
  EXPECT_EQ(verify(*store.latest()), 7);
  const Checkpoint checkpoint(*store.latest());
  EXPECT_EQ(checkpoint.info().fingerprint, kFingerprint);
  EXPECT_EQ(to_json(checkpoint.identity().config), to_json(identity().config));
  EXPECT_EQ(checkpoint.identity().data.schema, identity().data.schema);
  EXPECT_EQ(data::digest_of(checkpoint.identity().data, data::PartName::Train),
            data::digest_of(identity().data, data::PartName::Train));
  EXPECT_EQ(checkpoint.identity().instruction_set, "avx2");
  EXPECT_EQ(checkpoint.identity().tercel_version, "0.0.9");
  ASSERT_TRUE(checkpoint.evaluation());
  EXPECT_EQ(checkpoint.evaluation()->rows, "0011223344556677");
  ASSERT_EQ(checkpoint.evaluation()->metrics.size(), 2u);
  EXPECT_EQ(checkpoint.evaluation()->metrics[0].name, "auc");
  EXPECT_EQ(checkpoint.evaluation()->metrics[0].value, 0.75);
  EXPECT_TRUE(is_checkpoint_folder(*store.latest()));
  EXPECT_FALSE(is_checkpoint_folder(root / "not/there/yet"));
  EXPECT_EQ(names_in(*store.latest()),
            (Names{"dense.safetensors", "evaluation.json", "manifest.json", "table-0.safetensors"}));
}

TEST(Checkpoint, TheSameContentIsTheSameBytes) {
  const TemporaryFolder root;
  CheckpointStore a(root / "a", 1), b(root / "b", 1);
  save(a, 3, 0.1);
  save(b, 3, 0.1);
  for (const std::string& name : names_in(*a.latest()))
    EXPECT_EQ(root.get("a/" + name_of(3) + "/" + name), root.get("b/" + name_of(3) + "/" + name)) << name;
}

TEST(Checkpoint, AnEvaluationLeavesTheOtherFilesAlone) {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 2);
  save(store, 3);
  EXPECT_FALSE(Checkpoint(*store.latest()).evaluation());
  std::map<std::string, uint64_t> before;
  for (const std::string& name : names_in(*store.latest()))
    before[name] = file_info(*store.latest() + "/" + name).inode;
  root.put("c/" + name_of(3) + "/evaluation.json.tmp-0123abcd", "of a killed writer");
  store.note_evaluation(3, evaluation_of(0.5));
  store.note_evaluation(3, evaluation_of(0.6));
  EXPECT_EQ(Checkpoint(*store.latest()).evaluation()->metrics[0].value, 0.6);
  EXPECT_EQ(names_in(*store.latest()).size(), before.size() + 1);
  for (const auto& [name, inode] : before) EXPECT_EQ(file_info(*store.latest() + "/" + name).inode, inode) << name;
  TERCEL_EXPECT_THROW(save(store, 3), IoError, "it exists already");
}

TEST(Checkpoint, ADamagedEvaluationIsNone) {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 3);
  save(store, 1, 0.9);
  save(store, 2, 0.5);
  const std::string note = "c/" + name_of(1) + "/evaluation.json", content = root.get(note);
  EXPECT_EQ(best(root / "c"), root / ("c/" + name_of(1)));
  for (const std::string& damaged :
       {std::string(), std::string("{}"), content.substr(0, content.size() / 2), content + "x"}) {
    root.put(note, damaged);
    EXPECT_FALSE(Checkpoint(root / ("c/" + name_of(1))).evaluation());
    EXPECT_EQ(verify(root / ("c/" + name_of(1))), 1);
    EXPECT_EQ(best(root / "c"), root / ("c/" + name_of(2)));
  }
}

TEST(Checkpoint, EvaluationsOnOtherRowsAreNotCompared) {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 4);
  for (int64_t step = 1; step <= 4; ++step) save(store, step);
  store.note_evaluation(1, evaluation_of(0.9, "of other rows"));
  store.note_evaluation(2, evaluation_of(0.6));
  store.note_evaluation(3, evaluation_of(0.5));
  const auto step = [&](int64_t s) { return root / ("c/" + name_of(s)); };
  EXPECT_EQ(rank_checkpoints(root / "c"), (Names{step(2), step(3), step(4), step(1)}));
}

TEST(Checkpoint, ModelsAreComparedByLogLossOrAuc) {
  const auto score = [](std::vector<Evaluation::Metric> metrics) {
    Evaluation evaluation;
    evaluation.metrics = std::move(metrics);
    return evaluation.score();
  };
  EXPECT_EQ(score({{"log_loss", 0.5}, {"auc", 0.75}}), -0.5);
  EXPECT_EQ(score({{"auc", 0.75}, {"accuracy", 0.9}}), 0.75);
  EXPECT_EQ(score({{"accuracy", 0.9}, {"log_loss", 0.5}}), -0.5);
  EXPECT_EQ(score({{"log_loss/click", 0.5}, {"auc/click", 0.9}, {"log_loss/buy", 0.25}}), -0.375)
      << "of several heads the mean";
  EXPECT_EQ(score({{"log_loss/a", 0.5}, {"log_loss/b", 0.25}, {"log_loss/b/0", 0.1}, {"log_loss/b/1", 0.4}}), -0.375);
  EXPECT_EQ(score({{"log_loss", 0.25}, {"log_loss/loss/0", 0.1}, {"log_loss/loss/1", 0.7}}), -0.25)
      << "those of labels are not of heads";
  EXPECT_EQ(score({{"auc/click", 0.9}, {"log_loss_other", 1}}), std::nullopt);
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
  TERCEL_EXPECT_THROW(checkpoint.read({"dense", {{"a", a}}}), DataError, "a tensor 'b' that is not in the model");
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
  EXPECT_EQ(best(root / "c"), root / ("c/" + name_of(2)));
  save(store, 8, 0.8);
  EXPECT_EQ(names_in(root / "c"), (Names{name_of(7), name_of(8)}));
  EXPECT_EQ(list_checkpoints(root / "c"), (Names{root / ("c/" + name_of(7)), root / ("c/" + name_of(8))}));
  TERCEL_EXPECT_THROW(CheckpointStore(root / "c", 0), ValueError, "at least 1");
}

TEST(Checkpoint, WithoutMetricsTheBestIsTheLast) {
  const TemporaryFolder root;
  EXPECT_TRUE(rank_checkpoints(root / "c").empty());
  CheckpointStore store(root / "c", 2);
  for (int64_t step = 1; step <= 3; ++step) save(store, step);
  EXPECT_EQ(best(root / "c"), root / ("c/" + name_of(3)));
}

TEST(Checkpoint, TheBestThatIsKeptIsNoDamagedOne) {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 3);
  save(store, 1, 0.5);
  save(store, 2, 0.9);
  save(store, 3, 0.4);
  root.put("c/" + name_of(2) + "/manifest.json", "{}");
  for (int64_t step = 4; step <= 6; ++step) save(store, step, 0.3);
  EXPECT_EQ(names_in(root / "c"), (Names{name_of(1), name_of(4), name_of(5), name_of(6)}));
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
    if (name == "evaluation.json") continue;  // see ADamagedEvaluationIsNone
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

bool same_json(const std::string& a, const std::string& b) {
  return Json::parse(a, nullptr, /*allow_exceptions=*/false) == Json::parse(b);
}

TEST(Checkpoint, EveryFlippedBitIsSeen) {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 1);
  save(store, 7, 0.75);
  const std::string folder = *store.latest();
  for (const std::string& name : names_in(folder)) {
    if (name == "evaluation.json") continue;  // see ADamagedEvaluationIsNone
    const std::string file = "c/" + name_of(7) + "/" + name, content = root.get(file);
    for (size_t bit = 0; bit < 8 * content.size(); ++bit) {
      std::string damaged = content;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      root.put(file, damaged);
      if (name == "manifest.json" && same_json(damaged, content)) continue;  // 1e-07 is 1E-07
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
std::string manifest_of(Json content, int format = 3, int inner = 0) {
  Json json = {{"format", format}};
  if (content.is_object()) content.erase("format");
  if (content.is_object() && (inner > 0 || format > 2)) content["format"] = inner > 0 ? inner : format;
  const std::string text = dump_json_line(content);
  json["checksum"] = checksum_to_hex(checksum(text.data(), text.size()));
  json["content"] = content;
  return dump_json(json);
}

/** The content of a manifest that save() wrote. */
Json saved_content() {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 1);
  save(store, 3);
  return parse_json(root.get("c/" + name_of(3) + "/manifest.json"), "manifest", JsonErrors::Data).at("content");
}

TEST(Checkpoint, ManifestsMustMakeSense) {
  const TemporaryFolder root;
  const auto opened = [&](const std::string& manifest, const char* text) {
    root.put("c/manifest.json", manifest);
    TERCEL_EXPECT_THROW(Checkpoint(root / "c"), DataError, text);
  };
  root.put("secret", "");
  Json good = saved_content();
  good["tercel_version"] = version();
  good["files"] = Json::array({{{"name", "x"}, {"bytes", 1}, {"checksum", checksum_to_hex(checksum("x", 1))}}});
  root.put("c/x", "x");
  root.put("c/manifest.json", manifest_of(good));
  EXPECT_EQ(Checkpoint(root / "c").info().step, 3);
  root.put("c/manifest.json", manifest_of(good, 2));
  EXPECT_EQ(Checkpoint(root / "c").info().step, 3) << "the format before";
  for (const auto& [outer, inner] : {std::pair{2, 3}, {3, 2}, {4, 3}}) {  // a changed digit
    root.put("c/manifest.json", manifest_of(good, outer, inner));
    TERCEL_EXPECT_THROW(Checkpoint(root / "c"), DataError, "format: expected that of the content");
  }
  const auto with = [&](const char* path, Json value) {
    Json json = good;
    json[Json::json_pointer(path)] = std::move(value);
    return json;
  };
  const auto without = [&](const char* key) {
    Json json = good;
    json.erase(key);
    return json;
  };
  const Json file = {{"name", "../secret"}, {"bytes", 0}, {"checksum", "2d06800538d394c2"}};
  opened(manifest_of(with("/files", Json::array({file}))), "a file is called '../secret'");
  opened(manifest_of(with("/info/step", -1)), "step");
  opened(manifest_of(with("/info/step", "3")), "step");
  opened(manifest_of(with("/info/fingerprint", 5)), "fingerprint");
  opened(manifest_of(with("/info/stpe", 3)), "did you mean 'step'");
  opened(manifest_of(with("/files", "none")), "files");
  opened(manifest_of(with("/files", Json::array())), "files");  // without a file it is no checkpoint
  opened(manifest_of(with("/files", Json::array({{{"name", "x"}}}))), "bytes");
  for (const char* key : {"config", "data", "info", "files", "tercel_version", "instruction_set"})
    opened(manifest_of(without(key)), key);
  opened(manifest_of(with("/config/solver/lr", "high")), "lr");
  opened(manifest_of(with("/config/solver/rl", 3)), "unknown option 'rl'");
  opened(manifest_of(with("/config/layers", Json())), "layers");
  opened(manifest_of(with("/data/schema/label_dim", 0)), "label_dim");
  opened(manifest_of(with("/data/schema/slots/0/first_key", -1)), "first_key");
  opened(manifest_of(with("/data/parts/0/part", "tset")), "did you mean 'test'");
  opened(manifest_of(with("/data/parts/0/files/0/rows", -1)), "rows");
  opened(manifest_of(Json::array()), "manifest.json");
  opened(manifest_of(Json()), "manifest.json");
  opened("[]", "format");
  opened(R"({"format": 3, "content": {}, "checksum": 5})", "checksum");
}

TEST(Checkpoint, AnotherVersionIsNamed) {
  const TemporaryFolder root;
  Json content = saved_content();
  const auto expect_version = [&](const std::string& manifest, const char* text) {
    root.put("c/" + name_of(5) + "/manifest.json", manifest);
    TERCEL_EXPECT_THROW(Checkpoint(root / ("c/" + name_of(5))), CheckpointVersionError, text);
    // This is not damage, so no other checkpoint is used instead.
    CheckpointStore store(root / "c", 9);
    if (list_checkpoints(root / "c").size() == 1) save(store, 4);
    Names warnings;
    TERCEL_EXPECT_THROW(open_checkpoint(root / "c", Which::Last, Verify::Contents, warnings), CheckpointVersionError,
                        text);
  };
  const std::string now(version());
  expect_version(manifest_of({{"tercel_version", "0.0.1"}, {"info", {{"step", 3}}}}, 1),
                 ("expected format 2 to 4, which Tercel " + now + " reads, but found 1 of Tercel \"0.0.1\"").c_str());
  expect_version(manifest_of(content, 5), ("but found 5 of Tercel \"0.0.9\""));
  content["config"]["solver"]["invented_later"] = 1;
  expect_version(manifest_of(content), ("written by Tercel 0.0.9, this is Tercel " + now).c_str());
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
      save(store, 4, 0.8);  // the next one works, and cleans up
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
        tercel::test::LostWrites disk(scratch.path(), n);
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
  // The best one was evaluated before the first kill; one killed between its files and its evaluation has none.
  {
    CheckpointStore store(root / "c", 2);
    save(store, 1, 1);
  }
  int64_t last = 1;
  for (int round = 0; round < 40 || (last <= 10 && round < 4000); ++round) {  // more on a busy machine
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
}  // namespace tercel::recsys::test
