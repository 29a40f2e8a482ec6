#include "tercel/util/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <memory>
#include <thread>

#include "tercel/util/error.h"
#include "tercel/util/file_hook.h"
#include "tests/support/errors.h"
#include "tests/util/temporary_folder.h"

namespace tercel {
namespace {

using test::TemporaryFolder;

TEST(File, WritesAndReadsBack) {
  const TemporaryFolder folder;
  const std::string path = folder / "data";
  File out = File::create(path);
  out.write_all("hello world", 11);
  out.pwrite_all("H", 1, 0);
  out.sync();
  out.close();
  EXPECT_FALSE(out.is_open());

  File in = File::open_read(path);
  EXPECT_EQ(in.size(), 11);
  char buffer[32] = {};
  in.read_exact(buffer, 5);
  EXPECT_STREQ(buffer, "Hello");
  EXPECT_EQ(in.pread_some(buffer, 32, 6), 5u);
  in.pread_exact(buffer, 3, 8);
  EXPECT_EQ(std::string(buffer, 3), "rld");
  EXPECT_EQ(in.read_some(buffer, 32), 6u);
  EXPECT_EQ(in.read_some(buffer, 32), 0u);

  File more = File::append(path);
  more.write_all("!", 1);
  more.close();
  EXPECT_EQ(folder.get("data"), "Hello world!");
  TERCEL_EXPECT_THROW(File::create_new(path), IoError, path + ": create: File exists");
  File::create(path).close();
  EXPECT_EQ(folder.get("data"), "");
}

TEST(File, ShortFileSaysWhereAndHowMuch) {
  const TemporaryFolder folder;
  const std::string path = folder.put("data", "0123456789");
  char buffer[16];
  File file = File::open_read(path);
  file.read_exact(buffer, 4);
  TERCEL_EXPECT_THROW(file.read_exact(buffer, 8), DataError,
                      path + ": byte 4: expected 8 more bytes, found 6 before the end of the file");
  TERCEL_EXPECT_THROW(file.pread_exact(buffer, 2, 9), DataError,
                      path + ": byte 9: expected 2 more bytes, found 1 before the end of the file");
  TERCEL_EXPECT_THROW(file.pread_exact(buffer, 2, 100), DataError, "byte 100: expected 2 more bytes, found 0");
}

TEST(File, MoveLeavesNothingBehind) {
  const TemporaryFolder folder;
  File a = File::create(folder / "a");
  File b = std::move(a);
  EXPECT_FALSE(a.is_open());  // NOLINT(bugprone-use-after-move): the state is documented
  a = File::create(folder / "b");
  const int fd = b.fd();
  b = std::move(a);
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1) << "the previous file is closed";
  EXPECT_EQ(b.path(), folder / "b");
}

TEST(File, RefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  TERCEL_EXPECT_THROW(File::open_read(folder / "none"), IoError, folder / "none" + ": open: No such file or directory");
  TERCEL_EXPECT_THROW(File::open_read(folder.path()), IoError,
                      folder.path() + ": open: expected a regular file, found a directory");
  TERCEL_EXPECT_THROW(File::open_read("/dev/zero"), IoError,
                      "/dev/zero: open: expected a regular file, found a character device");
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  TERCEL_EXPECT_THROW(File::open_read(fifo), IoError, fifo + ": open: expected a regular file, found a FIFO");
  TERCEL_EXPECT_THROW(File::create(fifo), IoError, fifo + ": create: No such device or address");
  const std::string loop = folder / "loop";
  ASSERT_EQ(::symlink(loop.c_str(), loop.c_str()), 0);
  TERCEL_EXPECT_THROW(File::open_read(loop), IoError, loop + ": open: Too many levels of symbolic links");
  TERCEL_EXPECT_THROW(File::create(folder.path()), IoError, folder.path() + ": create: Is a directory");
  TERCEL_EXPECT_THROW(File::open_read(""), IoError, "expected a path, found an empty string");
  TERCEL_EXPECT_THROW(File::open_read(std::string("a\0b", 3)), IoError, "a\\x00b: open: the path has a NUL byte");
  TERCEL_EXPECT_THROW(File::open_read(folder / std::string(5000, 'x')), IoError, "File name too long");
  TERCEL_EXPECT_THROW(File::open_read(folder / "two\nlines"), IoError, "two\\nlines: open: No such file");
}

TEST(File, MissingPermissionIsAnIoError) {
  const TemporaryFolder folder;
  const std::string path = folder.put("secret", "x");
  ASSERT_EQ(::chmod(path.c_str(), 0000), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  // The superuser may read everything, so switch to user nobody temporarily.
  const uid_t user = ::geteuid();
  ASSERT_EQ(::seteuid(user == 0 ? 65534 : user), 0);
  TERCEL_EXPECT_THROW(File::open_read(path), IoError, path + ": open: Permission denied");
  TERCEL_EXPECT_THROW(File::create(folder / "new"), IoError, "");
  ASSERT_EQ(::seteuid(user), 0);
}

TEST(File, StandardInputIsADash) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int saved = ::dup(0);
  ASSERT_EQ(::dup2(ends[0], 0), 0);
  std::thread writer([&] {
    // In pieces, so that reads come back short.
    for (const char* piece : {"ab", "cd", "ef"}) EXPECT_EQ(::write(ends[1], piece, 2), 2);
    ::close(ends[1]);
  });
  File in = File::open_input("-");
  char buffer[6];
  EXPECT_TRUE(in.wait_readable(60'000));
  in.read_exact(buffer, 6);
  EXPECT_EQ(std::string(buffer, 6), "abcdef");
  EXPECT_EQ(in.read_some(buffer, 6), 0u);
  EXPECT_TRUE(in.wait_readable(60'000)) << "its end can be read";
  EXPECT_EQ(in.path(), "standard input");
  writer.join();
  in.close();
  ASSERT_EQ(::dup2(saved, 0), 0) << "closing it does not close descriptor 0";
  ::close(saved);
  ::close(ends[0]);
}

TEST(File, WaitsNoLongerThanToldForAPipe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int saved = ::dup(0);
  ASSERT_EQ(::dup2(ends[0], 0), 0);
  const File in = File::open_input("-");
  EXPECT_FALSE(in.wait_readable(0));
  EXPECT_FALSE(in.wait_readable(20));
  ASSERT_EQ(::write(ends[1], "a", 1), 1);
  EXPECT_TRUE(in.wait_readable(60'000));
  ASSERT_EQ(::dup2(saved, 0), 0);
  for (const int fd : {saved, ends[0], ends[1]}) ::close(fd);
}

TEST(File, ReadFileHasALimit) {
  const TemporaryFolder folder;
  const std::string path = folder.put("data", std::string(10'000, 'x'));
  EXPECT_EQ(read_file(path, 10'000), std::string(10'000, 'x'));
  TERCEL_EXPECT_THROW(read_file(path, 9'999), DataError, path + ": expected at most 9.8 KiB, found 9.8 KiB");
  EXPECT_EQ(read_file(folder.put("empty", ""), 0), "");
  TERCEL_EXPECT_THROW(read_file(path, 0), DataError, "expected at most 0 B");
  EXPECT_NE(read_file("/proc/self/status", 1 << 20).find("Name:"), std::string::npos) << "reports a size of 0 bytes";
  TERCEL_EXPECT_THROW(read_file("/proc/self/status", 10), DataError, "expected at most 10 B, found 11 B and more");
  EXPECT_EQ(read_system_file("/proc/sys/kernel/ostype"), "Linux\n");
  EXPECT_EQ(read_system_file("/proc/none"), "");
}

TEST(File, InfoTellsChanges) {
  const TemporaryFolder folder;
  const std::string path = folder.put("data", "one");
  const FileInfo before = file_info(path);
  EXPECT_EQ(before.size, 3);
  EXPECT_EQ(before.kind, FileKind::Regular);
  EXPECT_GT(before.mtime_ns, int64_t{1'600'000'000} * 1'000'000'000);
  EXPECT_EQ(File::open_read(path).info(), before);
  folder.put("other", "two");
  rename_path(folder / "other", path);
  EXPECT_NE(file_info(path), before) << "replaced by a file of the same size";
  EXPECT_EQ(file_info(folder.path()).kind, FileKind::Directory);
  EXPECT_EQ(file_info("/dev/null").kind, FileKind::Other);
  TERCEL_EXPECT_THROW(file_info(folder / "none"), IoError, "stat: No such file");
}

TEST(File, Folders) {
  const TemporaryFolder folder;
  create_dirs(folder / "a/b/c/");
  create_dirs(folder / "a/b/c");
  EXPECT_TRUE(is_directory(folder / "a/b/c"));
  write_file(folder / "a/x", "1");
  write_file(folder / "a/b/y", "2");
  ASSERT_EQ(::symlink("/etc", (folder / "a/link").c_str()), 0);
  EXPECT_EQ(list_dir(folder / "a"), (std::vector<std::string>{"b", "link", "x"}));
  TERCEL_EXPECT_THROW(create_dirs(folder / "a/x"), IoError, "expected a directory or nothing, found a file");
  TERCEL_EXPECT_THROW(create_dirs(folder / "a/x/y"), IoError, "");
  TERCEL_EXPECT_THROW(list_dir(folder / "none"), IoError, "none: list: No such file or directory");
  sync_tree(folder / "a");
  EXPECT_TRUE(exists(folder / "a/x"));
  EXPECT_FALSE(exists(folder / "a/z"));
  EXPECT_FALSE(exists(folder / "a/x/z")) << "a file is not a folder, so it has no entries";
  remove_tree(folder / "a");
  EXPECT_FALSE(exists(folder / "a"));
  EXPECT_TRUE(exists("/etc/passwd")) << "links are not followed";
  remove_tree(folder / "a");
  remove_file(folder / "a");
  TERCEL_EXPECT_THROW(rename_path(folder / "a", folder / "b"), IoError, "b: rename: No such file");
  TERCEL_EXPECT_THROW(sync_dir(folder / "a"), IoError, "open: No such file");
}

TEST(File, PathParts) {
  EXPECT_EQ(parent_path("a/b/c"), "a/b");
  EXPECT_EQ(parent_path("a/b/c/"), "a/b");
  EXPECT_EQ(parent_path("c"), ".");
  EXPECT_EQ(parent_path("/c"), "/");
  EXPECT_EQ(parent_path("//c"), "/");
  EXPECT_EQ(parent_path("/"), "/");
  EXPECT_EQ(parent_path("a//b"), "a");
  EXPECT_EQ(file_name("a/b/c"), "c");
  EXPECT_EQ(file_name("a/b/c//"), "c");
  EXPECT_EQ(file_name("c"), "c");
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("a", "/b"), "/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(join_path("https://h/a%20b", "c d/100%#?.data"), "https://h/a%20b/c%20d/100%25%23%3F.data");
  EXPECT_EQ(join_path("s3://bucket", "c d#"), "s3://bucket/c d#");
}

TEST(File, FullDiskSaysSo) {
  File file = File::create("/dev/full");
  TERCEL_EXPECT_THROW(file.write_all("x", 1), IoError, "/dev/full: write: No space left on device");
}

TEST(File, SizeLimitIsAnErrorOnceTheSignalIsIgnored) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      File file = File::create(folder / "data");
      const std::string bytes(5000, 'x');
      file.write_all(bytes.data(), bytes.size());
    } catch (const IoError& error) {
      _exit(std::string(error.what()).find("write: File too large") != std::string::npos ? 0 : 2);
    }
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A task that uses every kind of call; returns the content that it read.
std::string job(const TemporaryFolder& folder) {
  create_dirs(folder / "d/e");
  File out = File::create(folder / "d/e/data");
  const std::string text(1000, 'a');
  out.write_all(text.data(), text.size());
  out.pwrite_all("b", 1, 500);
  out.sync();
  out.close();
  rename_path(folder / "d/e/data", folder / "d/e/final");
  sync_dir(folder / "d/e");
  std::string content = read_file(folder / "d/e/final", 5000);
  const FileLock lock(folder / "d/lock");
  remove_tree(folder / "d");
  return content;
}

TEST(File, EveryCallSurvivesInterruptsAndShortTransfers) {
  std::string expected(1000, 'a');
  expected[500] = 'b';
  for (const FaultPlan plan :
       {FaultPlan{.kind = FaultKind::Error, .error = EINTR}, FaultPlan{.op = FileOp::Read, .kind = FaultKind::Short},
        FaultPlan{.op = FileOp::Write, .kind = FaultKind::Short}}) {
    int64_t n = 1;
    for (;; ++n) {
      const TemporaryFolder folder;
      FaultPlan nth = plan;
      nth.nth = n;
      const ScopedFault fault(nth);
      ASSERT_EQ(job(folder), expected) << n;
      if (!fault.fired()) break;
    }
    EXPECT_GT(n, 2) << "the plan matched nothing";
    FaultPlan always = plan;
    always.persistent = plan.kind == FaultKind::Short;
    const TemporaryFolder folder;
    const ScopedFault fault(always);
    EXPECT_EQ(job(folder), expected);
  }
}

TEST(File, EveryFailingCallIsAnIoErrorAndLeaksNoDescriptor) {
  const auto open_descriptors = [] {
    int count = 0;
    for (int fd = 0; fd < 256; ++fd) count += ::fcntl(fd, F_GETFD) != -1;
    return count;
  };
  const int before = open_descriptors();
  int failures = 0;
  for (int64_t n = 1;; ++n) {
    const TemporaryFolder folder;
    const ScopedFault fault({.nth = n, .error = EIO});
    try {
      job(folder);
    } catch (const IoError& error) {
      ++failures;
      EXPECT_NE(std::string(error.what()).find("Input/output error"), std::string::npos) << error.what();
    }
    ASSERT_EQ(open_descriptors(), before) << n;
    if (!fault.fired()) break;
  }
  EXPECT_GT(failures, 20);
}

TEST(FileLock, KnowsWhetherItsFileIsInItsPlace) {
  const TemporaryFolder folder;
  create_dirs(folder / "run");
  const FileLock lock(folder / "run/lock");
  EXPECT_TRUE(lock.is_in_place());
  rename_path(folder / "run", folder / "moved");
  EXPECT_FALSE(lock.is_in_place());
  create_dirs(folder / "run");
  folder.put("run/lock", "another one");
  EXPECT_FALSE(lock.is_in_place());
  remove_tree(folder / "run");
  rename_path(folder / "moved", folder / "run");
  EXPECT_TRUE(lock.is_in_place());
}

TEST(File, FreeBytesOfWhatIsToBe) {
  const TemporaryFolder folder;
  const int64_t found = free_bytes(folder.path());
  EXPECT_GT(found, 0);
  // Other processes may write there too, so the check has a tolerance.
  EXPECT_GT(free_bytes(folder / "not/there/yet"), found / 2);
  EXPECT_EQ(free_bytes("/proc"), std::numeric_limits<int64_t>::max()) << "which has no sizes";
}

TEST(FileLock, SecondHolderIsToldWhoHasIt) {
  const TemporaryFolder folder;
  const std::string path = folder / "lock";
  {
    const FileLock lock(path);
    TERCEL_EXPECT_THROW(FileLock{path}, IoError, path + ": lock: held by process " + std::to_string(::getpid()));
  }
  const FileLock again(path);
}

TEST(FileLock, WithoutLocksAFileIsTheLock) {
  for (const int code : {ENOLCK, ENOSYS, EOPNOTSUPP}) {
    const TemporaryFolder folder;
    const ScopedFault no_locks({.op = FileOp::Lock, .error = code, .persistent = true});
    const std::string path = folder / "lock";
    char host[256] = {};
    ASSERT_EQ(::gethostname(host, sizeof(host) - 1), 0);
    {
      const FileLock lock(path);
      TERCEL_EXPECT_THROW(
          FileLock{path}, IoError,
          path + ": lock: held by process " + std::to_string(::getpid()) + " " + host + ", as " + path + ".held says");
      EXPECT_TRUE(exists(path + ".held")) << "a refused lock does not change it";
      EXPECT_TRUE(lock.is_in_place());
    }
    EXPECT_FALSE(exists(path + ".held"));
    const pid_t child = fork();
    if (child == 0) _exit(0);
    ::waitpid(child, nullptr, 0);
    folder.put("lock.held", std::to_string(child) + " " + host + "\n");
    { const FileLock lock(path); }  // its process has ended
    for (const std::string& text : {std::to_string(child) + " another-host\n", std::string("1 ") + host + "\n",
                                    std::string(), std::string("what is this")}) {
      folder.put("lock.held", text);
      TERCEL_EXPECT_THROW(FileLock{path}, IoError, "remove that file if the process has ended");
      EXPECT_EQ(folder.get("lock.held"), text);
    }
    EXPECT_EQ(folder.tree().size(), 2u) << "nothing else is left";
  }
  const TemporaryFolder folder;
  const ScopedFault fault({.op = FileOp::Lock, .error = EIO});
  TERCEL_EXPECT_THROW(FileLock{folder / "lock"}, IoError, "lock: Input/output error");
}

TEST(FileLock, KilledHolderLosesIt) {
  const TemporaryFolder folder;
  const std::string path = folder / "lock";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const FileLock lock(path);
    if (::write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  TERCEL_EXPECT_THROW(FileLock{path}, IoError, "held by process " + std::to_string(child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const FileLock lock(path);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(FileLock, ReleaseCountsEvenIfAForkedChildLives) {
  const TemporaryFolder folder;
  const std::string path = folder / "lock";
  auto lock = std::make_unique<FileLock>(path);
  const pid_t child = fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  lock.reset();
  EXPECT_NO_THROW(FileLock{path});
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(FileLock, ForkedChildDoesNotReleaseIt) {
  const TemporaryFolder folder;
  const std::string path = folder / "lock";
  auto lock = std::make_unique<FileLock>(path);
  const pid_t child = fork();
  if (child == 0) {
    lock.reset();
    _exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_THROW(FileLock{path}, IoError);
}

}  // namespace
}  // namespace tercel
