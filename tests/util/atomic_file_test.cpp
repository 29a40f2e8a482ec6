#include "tercel/util/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <thread>

#include "tercel/util/error.h"
#include "tercel/util/file_hook.h"
#include "tests/support/errors.h"
#include "tests/util/lost_writes.h"
#include "tests/util/lower_layer.h"
#include "tests/util/temporary_folder.h"

namespace tercel {
namespace {

using test::LostWrites;
using test::TemporaryFolder;
using Tree = std::map<std::string, std::string>;

const std::string kOld = "the old content";
const std::string kNew = std::string(5000, 'n') + "the new content";

void write_new_file(const std::string& path) {
  // A small buffer makes several writes.
  AtomicFile file(path, {.buffer_bytes = 2048});
  file.write(kNew);
  file.commit();
}

constexpr const char* kMarker = "dataset.json";
const Tree kOldFolder = {{"out/", ""}, {"out/dataset.json", kOld}, {"out/old", kOld}};
const Tree kNewFolder = {
    {"out/", ""}, {"out/dataset.json", kNew}, {"out/part/", ""}, {"out/part/0", kNew}, {"out/part/1", kNew}};

void write_new_folder(const std::string& path) {
  AtomicDir folder(path, kMarker);
  write_file(folder.temporary_path() + "/" + kMarker, kNew);
  create_dirs(folder.temporary_path() + "/part");
  write_file(folder.temporary_path() + "/part/0", kNew);
  write_file(folder.temporary_path() + "/part/1", kNew);
  folder.commit();
}

void put_old_folder(const TemporaryFolder& folder) {
  folder.put("out/dataset.json", kOld);
  folder.put("out/old", kOld);
}

TEST(AtomicFile, AppearsOnCommitAlone) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder / "data");
    file.write("abc");
    EXPECT_FALSE(exists(folder / "data"));
  }
  EXPECT_EQ(folder.tree(), Tree{}) << "without commit nothing remains";
  AtomicFile file(folder / "data", {.checksum = true});
  file.write("abc");
  EXPECT_EQ(file.writer().checksum(), checksum("abc", 3));
  file.commit();
  EXPECT_EQ(folder.tree(), (Tree{{"data", "abc"}}));
  EXPECT_THROW(file.commit(), InternalError);
  write_file_atomically(folder / "data", "def");
  EXPECT_EQ(folder.tree(), (Tree{{"data", "def"}}));
}

TEST(AtomicFile, TargetIsChecked) {
  const TemporaryFolder folder;
  TERCEL_EXPECT_THROW(AtomicFile(folder.path()), IoError, "expected a regular file or nothing, found a directory");
  TERCEL_EXPECT_THROW(AtomicFile("/dev/null"), IoError, "expected a regular file or nothing, found a special file");
  TERCEL_EXPECT_THROW(AtomicFile(folder / "x/"), IoError, "expected the name of a file");
  TERCEL_EXPECT_THROW(AtomicFile(folder / "none/x"), IoError, "create: No such file or directory");
  TERCEL_EXPECT_THROW(AtomicFile(""), IoError, "expected the name of a file");
  EXPECT_EQ(folder.tree(), Tree{});
}

TEST(AtomicFile, LinkStaysALink) {
  const TemporaryFolder folder;
  folder.put("real/data", kOld);
  ASSERT_EQ(::symlink("real/data", (folder / "link").c_str()), 0);
  write_new_file(folder / "link");
  EXPECT_EQ(folder.get("real/data"), kNew);
  struct stat status;
  ASSERT_EQ(::lstat((folder / "link").c_str(), &status), 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode));
  EXPECT_EQ(list_dir(folder / "real"), std::vector<std::string>{"data"});
}

// Every call fails once, with each kind of error: the target has the old or the new content, never a mixture, and no
// temporary remains.
TEST(AtomicFile, EveryFailingCall) {
  for (const int error : {EIO, ENOSPC, EACCES, EINTR}) {
    int failures = 0;
    for (int64_t n = 1;; ++n) {
      const TemporaryFolder folder;
      folder.put("data", kOld);
      const ScopedFault fault({.nth = n, .error = error});
      bool threw = false;
      try {
        write_new_file(folder / "data");
      } catch (const IoError&) {
        threw = true;
        ++failures;
      }
      const Tree tree = folder.tree();
      ASSERT_EQ(tree.size(), 1u) << "call " << n;
      const std::string& content = tree.at("data");
      // Only a failure of the last sync comes too late to keep the old content.
      ASSERT_TRUE(content == kNew || (threw && content == kOld)) << "call " << n;
      if (!fault.fired()) break;
    }
    EXPECT_EQ(failures > 8, error != EINTR);
  }
}

TEST(AtomicFile, ShortWritesDoNoHarm) {
  const TemporaryFolder folder;
  const ScopedFault fault({.op = FileOp::Write, .kind = FaultKind::Short, .persistent = true});
  write_new_file(folder / "data");
  EXPECT_GT(fault.calls(), 10);
  EXPECT_EQ(folder.tree(), (Tree{{"data", kNew}}));
}

// The process dies at every call. Temporaries that it leaves are removed later.
TEST(AtomicFile, EveryCrash) {
  for (int64_t n = 1;; ++n) {
    const TemporaryFolder folder;
    folder.put("data", kOld);
    bool crashed = false;
    {
      const ScopedFault fault({.nth = n, .kind = FaultKind::Crash});
      try {
        write_new_file(folder / "data");
      } catch (const SimulatedCrash&) {
        crashed = true;
      }
    }
    ASSERT_TRUE(folder.get("data") == kNew || (crashed && folder.get("data") == kOld)) << "call " << n;
    remove_stale_temporaries(folder.path());
    ASSERT_EQ(folder.tree().size(), 1u) << "call " << n;
    if (!crashed) break;
  }
}

// Unsynced changes that a disk may lose: it writes names and bytes in any order.
enum class Loss { Everything, Bytes, Names };
constexpr Loss kLosses[] = {Loss::Everything, Loss::Bytes, Loss::Names};

void lose(LostWrites& disk, Loss loss) {
  if (loss != Loss::Names) disk.lose_bytes();
  if (loss != Loss::Bytes) disk.lose_names();
}

TEST(AtomicFile, EveryPowerCut) {
  for (const Loss loss : kLosses) {
    for (int64_t n = 1;; ++n) {
      const TemporaryFolder folder, scratch;
      folder.put("data", kOld);
      bool crashed = true;
      {
        LostWrites disk(scratch.path(), n);
        try {
          write_new_file(folder / "data");
          crashed = false;
        } catch (const SimulatedCrash&) {
        }
        lose(disk, loss);
      }
      const std::string content = folder.get("data");
      ASSERT_TRUE(content == kNew || (crashed && content == kOld)) << "call " << n << ": " << content.substr(0, 20);
      remove_stale_temporaries(folder.path());
      ASSERT_EQ(folder.tree().size(), 1u) << "call " << n;
      if (!crashed) break;
    }
  }
}

// The simulated disk must lose something, otherwise the tests above are meaningless.
TEST(AtomicFile, PowerCutTestsNoticeAMissingSync) {
  const TemporaryFolder folder, scratch;
  folder.put("a", kOld);
  folder.put("b", kOld);
  folder.put("gone", kOld);
  {
    LostWrites disk(scratch.path(), 0);
    write_file(folder / "a.tmp", kNew);
    rename_path(folder / "a.tmp", folder / "a");  // neither content nor names synced
    File file = File::create_new(folder / "b.tmp");
    file.write_all(kNew.data(), kNew.size());
    rename_path(folder / "b.tmp", folder / "b");
    disk.lose();
  }
  EXPECT_EQ(folder.tree(), (Tree{{"a", kOld}, {"b", kOld}, {"gone", kOld}})) << "the renames are lost";
  {
    LostWrites disk(scratch.path(), 0);
    write_file(folder / "a.tmp", kNew);
    rename_path(folder / "a.tmp", folder / "a");
    remove_file(folder / "gone");
    sync_dir(folder.path());
    remove_file(folder / "b");
    disk.lose();
  }
  EXPECT_EQ(folder.tree(), (Tree{{"a", ""}, {"b", kOld}})) << "the names are kept, the bytes are lost";
}

TEST(AtomicDir, AppearsOnCommitAlone) {
  const TemporaryFolder folder;
  {
    const AtomicDir out(folder / "out");
    write_file(out.temporary_path() + "/x", "1");
    EXPECT_FALSE(exists(folder / "out"));
  }
  EXPECT_EQ(folder.tree(), Tree{});
  write_new_folder(folder / "out/");
  EXPECT_EQ(folder.tree(), kNewFolder);
  write_new_folder(folder / "deep/er/out");
  EXPECT_EQ(folder.get("deep/er/out/part/1"), kNew) << "folders above are created";
}

TEST(AtomicDir, ReplacesOnlyWhatIsOurs) {
  const TemporaryFolder folder;
  folder.put("out/thesis.tex", "years of work");
  TERCEL_EXPECT_THROW(
      write_new_folder(folder / "out"), IoError,
      "out: create directory: it already exists and contains no dataset.json, so it will not be replaced");
  TERCEL_EXPECT_THROW(AtomicDir(folder / "out"), IoError, "out: create directory: it exists already and is not empty");
  EXPECT_EQ(folder.tree(), (Tree{{"out/", ""}, {"out/thesis.tex", "years of work"}}));
  folder.put("file", "x");
  TERCEL_EXPECT_THROW(AtomicDir(folder / "file"), IoError, "expected a directory or nothing, found a file");
  ASSERT_EQ(::symlink("out", (folder / "link").c_str()), 0);
  TERCEL_EXPECT_THROW(AtomicDir(folder / "link"), IoError, "found a symbolic link");
  TERCEL_EXPECT_THROW(AtomicDir("."), IoError, "expected the name of a new directory");
  TERCEL_EXPECT_THROW(AtomicDir("/"), IoError, "expected the name of a new directory");
  TERCEL_EXPECT_THROW(AtomicDir(folder / ".."), IoError, "expected the name of a new directory");
}

TEST(AtomicDir, TargetThatAppearsMeanwhileStays) {
  const TemporaryFolder folder;
  AtomicDir out(folder / "out");
  write_file(out.temporary_path() + "/x", "1");
  folder.put("out/y", "2");
  EXPECT_THROW(out.commit(), IoError);
  EXPECT_EQ(folder.get("out/y"), "2");
}

class AtomicDirFaults : public testing::TestWithParam<const char*> {
 protected:
  // The folder before the write; the tree that a failed write must leave.
  Tree prepare(const TemporaryFolder& folder) const {
    const std::string before = GetParam();
    if (before == "replaceable") {
      put_old_folder(folder);
      return kOldFolder;
    }
    if (before == "empty") {
      create_dirs(folder / "out");
      return {{"out/", ""}};
    }
    return {};
  }
};
INSTANTIATE_TEST_SUITE_P(Before, AtomicDirFaults, testing::Values("nothing", "empty", "replaceable"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(AtomicDirFaults, EveryFailingCall) {
  for (const int error : {EIO, ENOSPC}) {
    int failures = 0;
    for (int64_t n = 1;; ++n) {
      const TemporaryFolder folder;
      const Tree old = prepare(folder);
      const ScopedFault fault({.nth = n, .error = error});
      bool threw = false;
      try {
        write_new_folder(folder / "out");
      } catch (const IoError&) {
        threw = true;
        ++failures;
      }
      Tree tree = folder.tree();
      // Leftovers of the old folder may stay only where the fault hit its very removal, after the new one was in place.
      if (!threw && tree.size() > kNewFolder.size()) {
        const int64_t removed = remove_stale_temporaries(folder.path());
        EXPECT_EQ(removed, 1) << "call " << n;
        tree = folder.tree();
      }
      ASSERT_TRUE(tree == kNewFolder || (threw && tree == old)) << "call " << n << testing::PrintToString(tree);
      if (!fault.fired()) break;
    }
    EXPECT_GT(failures, 25);
  }
}

TEST_P(AtomicDirFaults, EveryCrash) {
  for (int64_t n = 1;; ++n) {
    const TemporaryFolder folder;
    const Tree old = prepare(folder);
    bool crashed = false;
    {
      const ScopedFault fault({.nth = n, .kind = FaultKind::Crash});
      try {
        write_new_folder(folder / "out");
      } catch (const SimulatedCrash&) {
        crashed = true;
      }
    }
    remove_stale_temporaries(folder.path(), "out");
    const Tree tree = folder.tree();
    ASSERT_TRUE(tree == kNewFolder || (crashed && tree == old)) << "call " << n << testing::PrintToString(tree);
    if (!crashed) break;
  }
}

TEST_P(AtomicDirFaults, EveryPowerCut) {
  for (const Loss loss : kLosses) {
    for (int64_t n = 1;; ++n) {
      const TemporaryFolder folder, scratch;
      const Tree old = prepare(folder);
      bool crashed = true;
      {
        LostWrites disk(scratch.path(), n);
        try {
          write_new_folder(folder / "out");
          crashed = false;
        } catch (const SimulatedCrash&) {
        }
        lose(disk, loss);
      }
      remove_stale_temporaries(folder.path());
      const Tree tree = folder.tree();
      ASSERT_TRUE(tree == kNewFolder || (crashed && tree == old)) << "call " << n << testing::PrintToString(tree);
      if (!crashed) break;
    }
  }
}

// The sync after the exchange fails, the writer cleans up, and then the power cut restores the old name.
TEST(AtomicDir, OldFolderSurvivesAFailedSyncAndAPowerCut) {
  struct FailingSync : LostWrites {
    using LostWrites::LostWrites;
    bool exchanged = false;
    int before(const FileCall& call, size_t& bytes) override {
      if (call.op == FileOp::Sync && exchanged) return EIO;
      return LostWrites::before(call, bytes);
    }
    void after(const FileCall& call) override {
      exchanged |= call.op == FileOp::Rename;
      LostWrites::after(call);
    }
  };
  const TemporaryFolder folder, scratch;
  put_old_folder(folder);
  {
    FailingSync disk(scratch.path(), 0);
    TERCEL_EXPECT_THROW(write_new_folder(folder / "out"), IoError, "sync: Input/output error");
    disk.lose_names(folder.path());
  }
  EXPECT_EQ(folder.tree()["out/old"], kOld);
  EXPECT_EQ(folder.tree()["out/dataset.json"], kOld);
}

/** A file system that cannot exchange folders (NFS, FUSE), where the n-th other call fails. */
class NoExchange : public ScopedFault {
 public:
  explicit NoExchange(int64_t nth = 0, FaultKind kind = FaultKind::Error)
      : ScopedFault({.nth = nth, .kind = kind, .error = ENOSPC}) {}
  int before(const FileCall& call, size_t& bytes) override {
    return call.op == FileOp::Rename && call.flags != 0 ? EINVAL : ScopedFault::before(call, bytes);
  }
};

TEST(AtomicDir, FoldersAreReplacedWithoutExchange) {
  const TemporaryFolder folder;
  put_old_folder(folder);
  const NoExchange file_system;
  write_new_folder(folder / "out");
  EXPECT_EQ(folder.tree(), kNewFolder);
}

TEST(AtomicDir, EveryFailingCallWithoutExchange) {
  int failures = 0;
  for (int64_t n = 1;; ++n) {
    const TemporaryFolder folder;
    put_old_folder(folder);
    bool threw = false, fired = false;
    {
      const NoExchange fault(n);
      try {
        write_new_folder(folder / "out");
      } catch (const IoError&) {
        threw = true;
        ++failures;
      }
      fired = fault.fired();
    }
    remove_stale_temporaries(folder.path());
    const Tree tree = folder.tree();
    ASSERT_TRUE(tree == kNewFolder || (threw && tree == kOldFolder)) << "call " << n << testing::PrintToString(tree);
    if (!fired) break;
  }
  EXPECT_GT(failures, 25);
}

TEST(AtomicDir, EveryCrashWithoutExchange) {
  int64_t missing = 0;
  for (int64_t n = 1;; ++n) {
    const TemporaryFolder folder;
    put_old_folder(folder);
    bool crashed = false;
    {
      const NoExchange fault(n, FaultKind::Crash);
      try {
        write_new_folder(folder / "out");
      } catch (const SimulatedCrash&) {
        crashed = true;
      }
    }
    missing += !exists(folder / "out");
    remove_stale_temporaries(folder.path(), "out");
    const Tree tree = folder.tree();
    ASSERT_TRUE(tree == kNewFolder || (crashed && tree == kOldFolder)) << "call " << n << testing::PrintToString(tree);
    if (!crashed) break;
  }
  EXPECT_EQ(missing, 1) << "only between the two renames";
}

TEST(AtomicDir, FoldersOfALowerLayerAreReplaced) {
  for (const bool exchange : {true, false}) {
    const TemporaryFolder folder;
    put_old_folder(folder);
    const test::LowerLayer file_system(folder.path(), exchange);
    write_new_folder(folder / "out");
    EXPECT_EQ(folder.tree(), kNewFolder);
  }
}

TEST(AtomicDir, EveryCrashOnALowerLayerLeavesNothingThatLooksWhole) {
  for (int64_t n = 1;; ++n) {
    const TemporaryFolder folder;
    put_old_folder(folder);
    bool crashed = false;
    {
      const test::LowerLayer fault(folder.path(), /*exchange=*/true, n);
      try {
        write_new_folder(folder / "out");
      } catch (const SimulatedCrash&) {
        crashed = true;
      }
    }
    remove_stale_temporaries(folder.path(), "out");
    const Tree tree = folder.tree();
    ASSERT_TRUE(tree == kNewFolder || (crashed && (tree == kOldFolder || !tree.contains("out/dataset.json"))))
        << "call " << n << testing::PrintToString(tree);
    if (!crashed) break;
  }
}

// Until the exchange is on the disk, a power cut may restore the old folder, so it must not be emptied before.
TEST(AtomicDir, OldFolderIsSafeFromCleanersUntilTheExchangeIsDurable) {
  struct CleanBeforeSync : FileHook {
    std::string folder;
    bool exchanged = false;
    int64_t removed = -1;
    int before(const FileCall& call, size_t&) override {
      if (call.op == FileOp::Sync && exchanged && removed < 0) {
        removed = 0;
        removed = remove_stale_temporaries(folder);
      }
      return 0;
    }
    void after(const FileCall& call) override { exchanged |= call.op == FileOp::Rename; }
  };
  const TemporaryFolder folder;
  put_old_folder(folder);
  CleanBeforeSync hook;
  hook.folder = folder.path();
  const ScopedFileHook scope(hook);
  write_new_folder(folder / "out");
  EXPECT_EQ(hook.removed, 0);
  EXPECT_EQ(folder.tree(), kNewFolder);
}

TEST(RemoveDirAtomically, FolderGoesWithEverythingInIt) {
  const TemporaryFolder folder;
  put_old_folder(folder);
  folder.put("out/deep/er/file", kOld);
  folder.put("other", "stays");
  remove_dir_atomically(folder / "out/");
  EXPECT_EQ(folder.tree(), (Tree{{"other", "stays"}}));
  remove_dir_atomically(folder / "out");
  folder.put("file", "x");
  TERCEL_EXPECT_THROW(remove_dir_atomically(folder / "file"), IoError, "file: open: Not a directory");
  EXPECT_EQ(folder.get("file"), "x");
}

TEST(RemoveDirAtomically, EveryFailingCallLeavesAllOrNothing) {
  for (int64_t n = 1;; ++n) {
    const TemporaryFolder folder;
    put_old_folder(folder);
    const ScopedFault fault({.nth = n});
    bool threw = false;
    try {
      remove_dir_atomically(folder / "out");
    } catch (const IoError&) {
      threw = true;
    }
    const bool is_there = ::access((folder / "out").c_str(), F_OK) == 0;
    ASSERT_TRUE(threw || !is_there) << "call " << n;
    ASSERT_TRUE(!is_there || folder.tree() == kOldFolder) << "call " << n;
    if (!fault.fired()) {
      EXPECT_GT(n, 8);
      EXPECT_EQ(folder.tree(), Tree{});
      break;
    }
  }
}

TEST(RemoveDirAtomically, EveryCrashAndPowerCutLeavesAllOrNothing) {
  for (const bool power_cut : {false, true}) {
    for (int64_t n = 1;; ++n) {
      const TemporaryFolder folder, scratch;
      put_old_folder(folder);
      bool crashed = true;
      {
        LostWrites disk(scratch.path(), n);
        try {
          remove_dir_atomically(folder / "out");
          crashed = false;
        } catch (const SimulatedCrash&) {
        }
        // Names are removed one by one: those in the folder may be lost while the folder's own name is not.
        if (power_cut) disk.lose_names(folder.path());
      }
      remove_stale_temporaries(folder.path());
      const Tree tree = folder.tree();
      ASSERT_TRUE(tree == Tree{} || (crashed && tree == kOldFolder)) << "call " << n << testing::PrintToString(tree);
      if (!crashed) break;
    }
  }
}

TEST(RemoveDirAtomically, AFolderOfALowerLayerGoesMarkerFirst) {
  for (int64_t n = 1;; ++n) {
    const TemporaryFolder folder;
    put_old_folder(folder);
    folder.put("out/deep/er/file", kOld);
    const Tree before = folder.tree();
    bool crashed = false;
    {
      const test::LowerLayer file_system(folder.path(), /*exchange=*/true, n);
      try {
        remove_dir_atomically(folder / "out", kMarker);
      } catch (const SimulatedCrash&) {
        crashed = true;
      }
    }
    const Tree tree = folder.tree();
    ASSERT_TRUE(tree == Tree{} || (crashed && (tree == before || !tree.contains("out/dataset.json")))) << "call " << n;
    if (!crashed) break;
  }
}

TEST(MoveDir, OfALowerLayerGoesFileByFile) {
  const TemporaryFolder folder;
  put_old_folder(folder);
  folder.put("out/deep/er/file", kOld);
  const test::LowerLayer file_system(folder.path(), /*exchange=*/true);
  move_dir(folder / "out", folder / "aside");
  EXPECT_EQ(folder.tree(), (Tree{{"aside/", ""},
                                 {"aside/dataset.json", kOld},
                                 {"aside/deep/", ""},
                                 {"aside/deep/er/", ""},
                                 {"aside/deep/er/file", kOld},
                                 {"aside/old", kOld}}));
  folder.put("taken/file", "x");
  const test::LowerLayer again(folder.path(), /*exchange=*/true);
  TERCEL_EXPECT_THROW(move_dir(folder / "aside", folder / "taken"), IoError, "taken: rename: ");
}

// A real full disk if mounting is allowed; elsewhere only /dev/full in file_test.cpp is tested.
TEST(AtomicDir, FullDiskLeavesTheOldFolderAndNoTemporary) {
  const TemporaryFolder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "may not mount";
  put_old_folder(folder);
  folder.put("data", kOld);
  const std::string megabyte(1 << 20, 'x');
  TERCEL_EXPECT_THROW(write_file_atomically(folder / "data", megabyte), IoError, "write: No space left on device");
  const auto write_much = [&] {
    AtomicDir out(folder / "out", kMarker);
    write_file(out.temporary_path() + "/x", megabyte);
    out.commit();
  };
  TERCEL_EXPECT_THROW(write_much(), IoError, "write: No space left on device");
  Tree expected = kOldFolder;
  expected["data"] = kOld;
  EXPECT_EQ(folder.tree(), expected);
  EXPECT_EQ(::umount(folder.path().c_str()), 0);
}

TEST(StaleTemporaries, OnlyThoseOfDeadWritersGo) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile file(folder / "a");
    AtomicDir dir(folder / "b");
    write_file(dir.temporary_path() + "/x", "1");
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(list_dir(folder.path()).size(), 2u);
  AtomicFile mine(folder / "a");
  mine.write("abc");
  const AtomicDir mine_too(folder / "b");
  folder.put("c.tmp-1234567", "7 digits");
  folder.put("c.tmp-1234567g", "no digit");
  folder.put(".tmp-12345678", "no name");
  EXPECT_EQ(remove_stale_temporaries(folder.path(), "a"), 1);
  EXPECT_EQ(remove_stale_temporaries(folder.path()), 1);
  EXPECT_EQ(remove_stale_temporaries(folder.path()), 0);
  EXPECT_EQ(list_dir(folder.path()).size(), 5u);
  mine.commit();
  EXPECT_EQ(folder.get("a"), "abc");
  EXPECT_THROW(remove_stale_temporaries(folder / "none"), IoError);
}

// NFS grants exclusive locks on files that are open for writing alone.
TEST(StaleTemporaries, AreLockedAsNfsWantsIt) {
  struct Nfs : FileHook {
    int before(const FileCall& call, size_t&) override {
      struct stat status;
      if (call.op != FileOp::Lock || ::fstat(call.fd, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
      return (::fcntl(call.fd, F_GETFL) & O_ACCMODE) == O_RDONLY ? EBADF : 0;
    }
  };
  const TemporaryFolder folder;
  folder.put("a.tmp-01234567", "half");
  Nfs hook;
  const ScopedFileHook scope(hook);
  EXPECT_EQ(remove_stale_temporaries(folder.path()), 1);
  EXPECT_EQ(folder.tree(), Tree{});
}

// A running cleaner must never remove the temporary of a running writer, even between its creation and its lock.
TEST(StaleTemporariesThreads, CleanerAndWritersAtOnce) {
  const TemporaryFolder folder;
  std::atomic<bool> done{false};
  std::thread cleaner([&] {
    while (!done) remove_stale_temporaries(folder.path());
  });
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) EXPECT_NO_THROW(write_file_atomically(folder / "a", std::to_string(i)));
  });
  for (int i = 0; i < 30; ++i) {
    EXPECT_NO_THROW({
      AtomicDir out(folder / "b", "x");
      write_file(out.temporary_path() + "/x", std::to_string(i));
      out.commit();
    });
  }
  other.join();
  done = true;
  cleaner.join();
  remove_stale_temporaries(folder.path());
  EXPECT_EQ(folder.tree(), (Tree{{"a", "99"}, {"b/", ""}, {"b/x", "29"}}));
}

}  // namespace
}  // namespace tercel
