// Selection among several checkpoints, also while a trainer removes them.
#include <gtest/gtest.h>

#include <filesystem>

#include "tercel/util/error.h"
#include "tercel/util/file_hook.h"
#include "tests/recsys/checkpoint_data.h"
#include "tests/support/errors.h"

namespace tercel::recsys::test {
namespace {

TEST(OpenCheckpoint, TheLastWholeOneIsOpened) {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 4);
  Names warnings;
  const auto open = [&](Verify verify = Verify::Contents) {
    warnings.clear();
    return open_checkpoint(root / "c", Which::Last, verify, warnings);
  };
  EXPECT_FALSE(open());
  for (int64_t step = 1; step <= 3; ++step) save(store, step);
  const auto step = [&](int64_t s) { return root / ("c/" + name_of(s)); };
  EXPECT_EQ(open()->info().step, 3);
  EXPECT_EQ(warnings, Names());
  std::string table = root.get("c/" + name_of(3) + "/table-0.safetensors");
  table.back() = static_cast<char>(table.back() ^ 1);
  root.put("c/" + name_of(3) + "/table-0.safetensors", table);
  EXPECT_EQ(open()->info().step, 2);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].find("skipped a damaged checkpoint: " + step(3) + "/table-0.safetensors: expected "), 0u)
      << warnings[0];
  EXPECT_NE(warnings[0].find(name_of(2) + " is used instead"), std::string::npos) << warnings[0];
  EXPECT_EQ(open(Verify::Sizes)->info().step, 3) << "its contents are not read";
  std::filesystem::resize_file(step(3) + "/table-0.safetensors", 9);
  EXPECT_EQ(open(Verify::Sizes)->info().step, 2);
  std::filesystem::remove(step(2) + "/manifest.json");
  EXPECT_EQ(open()->info().step, 1);
  EXPECT_EQ(warnings.size(), 2u);
  const std::string manifest = root.get("c/" + name_of(1) + "/manifest.json");
  root.put("c/" + name_of(1) + "/manifest.json", "{");
  TERCEL_EXPECT_THROW(open(), DataError, "all checkpoints are damaged: ");
  root.put("c/" + name_of(1) + "/manifest.json", manifest);

  store.set_aside_after(1);
  EXPECT_EQ(names_in(root / "c"), (Names{name_of(1), name_of(2) + ".damaged", name_of(3) + ".damaged"}));
  save(store, 3);
  std::filesystem::remove(step(3) + "/manifest.json");
  store.set_aside_after(2);  // a second time
  EXPECT_EQ(names_in(root / "c"), (Names{name_of(1), name_of(2) + ".damaged", name_of(3) + ".damaged"}));
}

TEST(OpenCheckpoint, ADamagedManifestOfTheBestIsNamed) {
  for (const bool evaluated : {true, false})
    for (const char* content : {"{}", "{", ""}) {
      const TemporaryFolder root;
      CheckpointStore store(root / "c", 4);
      save(store, 1, evaluated ? 0.5 : -1);
      save(store, 2, evaluated ? 0.9 : -1);
      const std::string manifest = "c/" + name_of(2) + "/manifest.json";
      std::filesystem::remove(root / manifest);
      if (*content != '\0') root.put(manifest, content);
      Names warnings;
      const auto checkpoint = open_checkpoint(root / "c", Which::Best, Verify::Sizes, warnings);
      ASSERT_TRUE(checkpoint);
      EXPECT_EQ(checkpoint->info().step, 1);
      ASSERT_EQ(warnings.size(), 1u) << content;
      EXPECT_NE(warnings[0].find("manifest"), std::string::npos) << warnings[0];
      EXPECT_NE(warnings[0].find(name_of(2)), std::string::npos) << warnings[0];
      EXPECT_NE(warnings[0].find(name_of(1) + " is used instead"), std::string::npos) << warnings[0];
    }
}

TEST(OpenCheckpoint, OneThatCannotBeReadIsPassedOver) {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 4);
  for (int64_t step = 1; step <= 2; ++step) save(store, step);
  Names warnings;
  const auto open = [&] { return open_checkpoint(root / "c", Which::Last, Verify::Contents, warnings)->info().step; };
  const std::string table = root / ("c/" + name_of(2) + "/table-0.safetensors");
  std::filesystem::remove(table);
  std::filesystem::create_directory(table);
  EXPECT_EQ(open(), 1);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find(table + ": open: expected a regular file, found a directory"), std::string::npos)
      << warnings[0];
  const ScopedFault fault({.op = FileOp::Read, .persistent = true});
  TERCEL_EXPECT_THROW(open(), IoError, "no checkpoint can be read: ");
}

TEST(OpenCheckpoint, StaysReadableWhenItIsRemoved) {
  const TemporaryFolder root;
  CheckpointStore store(root / "c", 1);
  save(store, 5);
  const Checkpoint checkpoint(*store.latest());
  std::filesystem::remove_all(*store.latest());
  const Tensor table = checkpoint.map("table-0", "t", kFloat32, {2, 2});
  EXPECT_EQ(values_of(table), (std::vector<double>{5, 5, 5, 5}));
  const std::vector<CheckpointFile> found = files_of(0);
  for (const CheckpointFile& file : found) checkpoint.read(file);
  EXPECT_EQ(values_of(found[1].tensors[0].tensor), (std::vector<double>{5, 5, 5, 5}));
  TERCEL_EXPECT_THROW(checkpoint.map("table-0", "u", kFloat32, {2, 2}), DataError, "no tensor 'u'");
  TERCEL_EXPECT_THROW(checkpoint.map("table-0", "t", kFloat32, {2, 3}), DataError, "expected [2, 3] float32");
  TERCEL_EXPECT_THROW(checkpoint.map("table-1", "t", kFloat32, {2, 2}), DataError, "no such file");
}

/** A trainer that writes two steps and removes the two before, at the n-th file system call of another thread.
 */
class TrainerMeanwhile : public FileHook {
 public:
  TrainerMeanwhile(std::string run, int64_t at) : run_(std::move(run)), at_(at), scope_(*this) {}
  int before(const FileCall&, size_t&) override {
    if (++calls_ == at_) {
      for (const std::string& name : names_in(run_)) {
        const int64_t step = std::stoll(name.substr(5));
        std::filesystem::rename(run_ + "/" + name, run_ + "/" + name_of(step) + ".tmp-01234567");
        std::filesystem::copy(run_ + "/../later/" + name_of(step + 2), run_ + "/" + name_of(step + 2),
                              std::filesystem::copy_options::recursive);
        std::filesystem::remove_all(run_ + "/" + name_of(step) + ".tmp-01234567");
      }
    }
    return 0;
  }
  bool fired() const { return calls_ >= at_; }

 private:
  std::string run_;
  int64_t at_, calls_ = 0;
  ScopedFileHook scope_;
};

TEST(OpenCheckpoint, ReadersBesideATrainerMeetNoneThatIsRemoved) {
  for (const Which which : {Which::Last, Which::Best})
    for (int64_t n = 1;; ++n) {
      const TemporaryFolder root;
      CheckpointStore store(root / "c", 2), later(root / "later", 9);
      for (int64_t step = 1; step <= 2; ++step) save(store, step, 0.5);
      for (int64_t step = 3; step <= 4; ++step) save(later, step, 0.5);
      Names warnings;
      std::optional<Checkpoint> checkpoint;
      bool fired = false;
      {
        const TrainerMeanwhile trainer(root / "c", n);
        ASSERT_NO_THROW({ checkpoint = open_checkpoint(root / "c", which, Verify::Contents, warnings); })
            << "call " << n;
        ASSERT_TRUE(checkpoint) << "call " << n;
        ASSERT_NO_THROW({
          const Tensor table = checkpoint->map("table-0", "t", kFloat32, {2, 2});
          EXPECT_EQ(values_of(table)[0], static_cast<double>(checkpoint->info().step));
          checkpoint->read_some({"dense", {{"a", make({2}, kFloat32, {0, 0})}}});
        }) << "call "
           << n;
        fired = trainer.fired();
      }
      ASSERT_EQ(warnings, Names()) << "call " << n;
      if (!fired) break;
      ASSERT_LT(n, 1000);
    }
}

}  // namespace
}  // namespace tercel::recsys::test
