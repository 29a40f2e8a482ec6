#include "tercel/util/file_calls_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "tercel/util/error.h"
#include "tercel/util/file_hook.h"
#include "tercel/util/format.h"

namespace tercel {

namespace {

std::atomic<FileHook*> current_hook{nullptr};

FileHook* hook() { return current_hook.load(std::memory_order_acquire); }

// Repeats the call while it is interrupted; the hook sees every attempt.
template <class Call>
auto run(const FileCall& call, size_t bytes, Call&& system_call) -> decltype(system_call(bytes)) {
  for (;;) {
    FileHook* const watcher = hook();
    if (watcher == nullptr) [[likely]] {
      const auto result = system_call(bytes);
      if (result < 0 && errno == EINTR) continue;
      return result;
    }
    size_t allowed = bytes;
    if (const int error = watcher->before(call, allowed)) {
      if (error == EINTR) continue;
      errno = error;
      return -1;
    }
    const auto result = system_call(allowed);
    if (result < 0) {
      if (errno == EINTR) continue;
      return result;
    }
    FileCall done = call;
    if (call.op == FileOp::Open) done.fd = static_cast<int>(result);
    watcher->after(done);
    return result;
  }
}

template <class Call>
int run(const FileCall& call, Call&& system_call) {
  return run(call, 0, [&](size_t) { return system_call(); });
}

}  // namespace

FileHook::~FileHook() = default;
void FileHook::after(const FileCall&) {}

ScopedFileHook::ScopedFileHook(FileHook& hook) : outer_(current_hook.exchange(&hook)) {}
ScopedFileHook::~ScopedFileHook() { current_hook.store(outer_); }

ScopedFault::ScopedFault(const FaultPlan& plan) : plan_(plan), scope_(*this) {}
ScopedFault::~ScopedFault() = default;

int64_t ScopedFault::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

bool ScopedFault::fired() const {
  const std::lock_guard lock(mutex_);
  return fired_;
}

int ScopedFault::before(const FileCall& call, size_t& bytes) {
  const std::lock_guard lock(mutex_);
  if (fired_ && plan_.kind == FaultKind::Crash) {
    if (call.op == FileOp::Close) return 0;
    throw SimulatedCrash{};
  }
  if (plan_.op != FileOp::Any && call.op != plan_.op) return 0;
  ++calls_;
  const bool hit = calls_ == plan_.nth || (fired_ && plan_.persistent);
  if (!hit) return 0;
  fired_ = true;
  switch (plan_.kind) {
    case FaultKind::Error: return plan_.error;
    case FaultKind::Short:
      if (bytes > 1) bytes /= 2;
      return 0;
    case FaultKind::Crash: throw SimulatedCrash{};
  }
  return 0;
}

namespace detail {

int call_open(const char* path, int flags, mode_t mode) {
  return run({.op = FileOp::Open, .path = path, .flags = flags}, [&] { return ::open(path, flags | O_CLOEXEC, mode); });
}

ssize_t call_read(int fd, void* out, size_t bytes) {
  return run({.op = FileOp::Read, .fd = fd}, bytes, [&](size_t allowed) { return ::read(fd, out, allowed); });
}

ssize_t call_pread(int fd, void* out, size_t bytes, int64_t offset) {
  return run({.op = FileOp::Read, .fd = fd}, bytes, [&](size_t allowed) { return ::pread(fd, out, allowed, offset); });
}

ssize_t call_write(int fd, const void* data, size_t bytes) {
  return run({.op = FileOp::Write, .fd = fd}, bytes, [&](size_t allowed) { return ::write(fd, data, allowed); });
}

ssize_t call_pwrite(int fd, const void* data, size_t bytes, int64_t offset) {
  return run({.op = FileOp::Write, .fd = fd}, bytes,
             [&](size_t allowed) { return ::pwrite(fd, data, allowed, offset); });
}

void* call_map(int fd, size_t bytes) {
  void* start = MAP_FAILED;
  const int status = run({.op = FileOp::Read, .fd = fd}, [&] {
    start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    return start == MAP_FAILED ? -1 : 0;
  });
  return status == 0 ? start : nullptr;
}

int call_fsync(int fd) {
  return run({.op = FileOp::Sync, .fd = fd}, [&] { return ::fsync(fd); });
}

int call_truncate(int fd, int64_t size) {
  return run({.op = FileOp::Write, .fd = fd}, [&] { return ::ftruncate(fd, size); });
}

int call_close(int fd) {
  int error = 0;
  if (FileHook* const watcher = hook()) {
    size_t bytes = 0;
    try {
      error = watcher->before({.op = FileOp::Close, .fd = fd}, bytes);
    } catch (...) {
      ::close(fd);
      throw;
    }
  }
  // Linux frees the descriptor even when close is interrupted, so EINTR is success; a retry could close another file.
  if (::close(fd) != 0 && errno != EINTR && error == 0) error = errno;
  if (error == 0 || error == EINTR) return 0;
  errno = error;
  return -1;
}

int call_rename(const char* from, const char* to, unsigned flags) {
  return run({.op = FileOp::Rename, .path = from, .to = to, .flags = static_cast<int>(flags)},
             [&] { return flags == 0 ? ::rename(from, to) : ::renameat2(AT_FDCWD, from, AT_FDCWD, to, flags); });
}

int call_mkdir(const char* path) {
  return run({.op = FileOp::MakeDir, .path = path}, [&] { return ::mkdir(path, 0777); });
}

int call_unlink(const char* path) {
  return run({.op = FileOp::Remove, .path = path}, [&] { return ::unlink(path); });
}

int call_rmdir(const char* path) {
  return run({.op = FileOp::Remove, .path = path}, [&] { return ::rmdir(path); });
}

int call_fstat(int fd, struct stat* out) {
  return run({.op = FileOp::Stat, .fd = fd}, [&] { return ::fstat(fd, out); });
}

int call_stat(const char* path, struct stat* out) {
  return run({.op = FileOp::Stat, .path = path}, [&] { return ::stat(path, out); });
}

int call_lstat(const char* path, struct stat* out) {
  return run({.op = FileOp::Stat, .path = path}, [&] { return ::lstat(path, out); });
}

int call_realpath(const char* path, std::string& out) {
  return run({.op = FileOp::Stat, .path = path}, [&] {
    char* const real = ::realpath(path, nullptr);
    if (real == nullptr) return -1;
    out = real;
    std::free(real);
    return 0;
  });
}

int call_flock(int fd, int operation) {
  return run({.op = FileOp::Lock, .fd = fd}, [&] { return ::flock(fd, operation | LOCK_NB); });
}

int call_list(const char* path, std::vector<std::string>& out) {
  return run({.op = FileOp::List, .path = path}, [&] {
    out.clear();
    DIR* const folder = ::opendir(path);
    if (folder == nullptr) return -1;
    for (;;) {
      errno = 0;
      const dirent* const entry = ::readdir(folder);
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name != "." && name != "..") out.push_back(name);
    }
    const int error = errno;
    ::closedir(folder);
    errno = error;
    return error == 0 ? 0 : -1;
  });
}

void throw_io_error(const std::string& path, const char* operation, int error) {
  throw_error<IoError>({printable(path), ": ", operation, ": ", std::system_category().message(error)});
}

}  // namespace detail

}  // namespace tercel
