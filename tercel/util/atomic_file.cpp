#include "tercel/util/atomic_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <utility>

#include "tercel/util/error.h"
#include "tercel/util/file_calls_impl.h"
#include "tercel/util/format.h"
#include "tercel/util/philox.h"

namespace tercel {

using detail::throw_io_error;

namespace {

constexpr std::string_view kMark = ".tmp-";     // under construction, or to be removed
constexpr std::string_view kOldMark = ".old-";  // replaced, where folders cannot be exchanged; as long as the other
constexpr size_t kDigits = 8;
constexpr int kAttempts = 100;

// Needs only to differ from names in use; a clash is detected and retried.
std::string temporary_name(const std::string& target, std::string_view mark = kMark) {
  static std::atomic<uint64_t> counter{0};
  const auto now = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  const PhiloxBlock random = Philox{now, static_cast<uint64_t>(::getpid())}(counter.fetch_add(1));
  std::string name = target;
  name += mark;
  for (size_t i = 0; i < kDigits; ++i) name += "0123456789abcdef"[(random.word[0] >> (4 * i)) & 15];
  return name;
}

bool is_temporary_name(std::string_view entry, std::string_view target, std::string_view mark = kMark) {
  const size_t tail = mark.size() + kDigits;
  if (entry.size() <= tail) return false;
  const size_t length = entry.size() - tail;
  if (!target.empty() && entry.substr(0, length) != target) return false;
  return entry.substr(length, mark.size()) == mark &&
         entry.substr(length + mark.size()).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Locks a file or folder just created at `path`; false if remove_stale_temporaries has already removed it.
bool claim(File& file, const std::string& path) {
  if (detail::call_flock(file.fd(), LOCK_EX) != 0) {
    if (errno == EWOULDBLOCK) return false;
    // On a file system without locks nothing is ever cleaned up, so no lock is needed.
    if (errno != ENOLCK && errno != ENOTSUP && errno != ENOSYS) throw_io_error(path, "lock", errno);
  }
  // False if remove_stale_temporaries ran between creation and lock.
  return file.is_at(path);
}

void remove_quietly(const std::string& path) noexcept {
  try {
    if (!path.empty()) remove_tree(path);
  } catch (...) {  // errors cannot be reported here; remove_stale_temporaries will clean up
  }
}

std::string resolve_file_target(const std::string& path) {
  const std::string name = file_name(path);
  TERCEL_CHECK(!name.empty() && name != "." && name != ".." && !path.ends_with('/'), IoError, printable(path),
               ": create: expected the name of a file");
  if (!exists(path)) return path;
  TERCEL_CHECK(file_info(path).kind == FileKind::Regular, IoError, printable(path),
               ": create: expected a regular file or nothing, found ",
               is_directory(path) ? "a directory" : "a special file");
  std::string real;
  if (detail::call_realpath(path.c_str(), real) != 0) throw_io_error(path, "resolve", errno);
  return real;
}

std::string checked_dir_target(const std::string& path) {
  std::string target = path;
  while (target.size() > 1 && target.ends_with('/')) target.pop_back();
  const std::string name = file_name(target);
  TERCEL_CHECK(!name.empty() && name != "." && name != "..", IoError, printable(path),
               ": create directory: expected the name of a new directory");
  return target;
}

enum class Present { Nothing, Empty, Replaceable };

// The kind of object at the target of an AtomicDir; throws if it must not be replaced.
Present check_dir_target(const std::string& target, const std::string& replaces) {
  struct stat status;
  if (detail::call_lstat(target.c_str(), &status) != 0) {
    if (errno == ENOENT) return Present::Nothing;
    throw_io_error(target, "stat", errno);
  }
  TERCEL_CHECK(S_ISDIR(status.st_mode), IoError, printable(target),
               ": create directory: expected a directory or nothing, found ",
               S_ISLNK(status.st_mode) ? "a symbolic link" : "a file");
  if (list_dir(target).empty()) return Present::Empty;
  TERCEL_CHECK(!replaces.empty(), IoError, printable(target), ": create directory: it exists already and is not empty");
  TERCEL_CHECK(exists(join_path(target, replaces)), IoError, printable(target),
               ": create directory: it already exists and contains no ", replaces, ", so it will not be replaced");
  return Present::Replaceable;
}

// For a folder that cannot get another name. What is left without its marker is no whole folder.
void remove_in_place(const std::string& folder, const std::string& marker) {
  if (!marker.empty()) {
    remove_file(join_path(folder, marker));
    sync_dir(folder);
  }
  remove_tree(folder);
}

File create_temporary_file(const std::string& target, detail::TemporaryPath& temporary) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string name = temporary_name(target);
    if (exists(name)) continue;
    File file = File::create_new(name);
    detail::TemporaryPath created(std::move(name));
    if (!claim(file, created.path)) continue;
    temporary.path.swap(created.path);
    return file;
  }
  throw_io_error(target, "create temporary", EEXIST);
}

File create_temporary_dir(const std::string& target, detail::TemporaryPath& temporary) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string name = temporary_name(target);
    if (detail::call_mkdir(name.c_str()) != 0) {
      if (errno == EEXIST) continue;
      throw_io_error(name, "create directory", errno);
    }
    detail::TemporaryPath created(std::move(name));
    File folder;
    try {
      folder = File::open_dir(created.path);
    } catch (const IoError&) {
      // A cleaner may remove the folder before it is opened and locked.
      if (exists(created.path)) throw;
      continue;
    }
    if (!claim(folder, created.path)) continue;
    temporary.path.swap(created.path);
    return folder;
  }
  throw_io_error(target, "create temporary", EEXIST);
}

}  // namespace

namespace detail {

TemporaryPath::~TemporaryPath() { remove_quietly(path); }

}  // namespace detail

void check_outside(const std::string& folder, const std::string& file) {
  if (is_url(file)) return;
  const auto resolved = [](const std::string& path) {
    std::error_code error;
    const std::filesystem::path found = std::filesystem::weakly_canonical(path, error);
    if (error) throw_io_error(path, "resolve", error.value());
    return found.has_filename() ? found : found.parent_path();  // "data/" is "data"
  };
  const std::filesystem::path inner = resolved(file), outer = resolved(folder);
  const auto [end, rest] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  TERCEL_CHECK(end != outer.end(), ConfigError, printable(file), ": lies in ", printable(folder),
               ", which is to be replaced and would be deleted");
}

AtomicFile::AtomicFile(const std::string& path, const FileWriterOptions& options)
    : target_((check_local(path), resolve_file_target(path))),
      writer_(create_temporary_file(target_, temporary_), options) {}

void AtomicFile::commit() {
  TERCEL_ASSERT(!temporary_.path.empty());
  writer_.sync();
  rename_path(temporary_.path, target_);
  temporary_.path.clear();
  sync_dir(parent_path(target_));
  try {
    writer_.close();
  } catch (const IoError&) {  // everything is synced already
  }
}

AtomicDir::AtomicDir(const std::string& path, std::string_view replaces)
    : target_(checked_dir_target(path)), replaces_(replaces) {
  check_local(target_);
  create_dirs(parent_path(target_));
  static_cast<void>(check_dir_target(target_, replaces_));
  lock_ = create_temporary_dir(target_, temporary_);
}

void AtomicDir::commit() {
  std::string& temporary = temporary_.path;
  TERCEL_ASSERT(!temporary.empty());
  sync_tree(temporary);
  // Checked again: the target may have changed since the constructor.
  const Present present = check_dir_target(target_, replaces_);
  const std::string parent = parent_path(target_);
  if (present != Present::Replaceable) {
    // Also atomic over an empty folder; fails if the folder is no longer empty.
    rename_path(temporary, target_);
    temporary.clear();
    sync_dir(parent);
    return;
  }
  // The old folder is about to get the temporary name. A power cut before the sync may give it the target's name back,
  // so until then no cleaner may take it: hence the lock.
  const File old = File::open_dir(target_);
  static_cast<void>(detail::call_flock(old.fd(), LOCK_EX));
  if (detail::call_rename(temporary.c_str(), target_.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno == EXDEV) return replace_by_removal();
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) throw_io_error(target_, "replace", errno);
    replace_without_exchange();
    return;
  }
  try {
    sync_dir(parent);
  } catch (const IoError&) {
    if (detail::call_rename(temporary.c_str(), target_.c_str(), RENAME_EXCHANGE) != 0) temporary.clear();
    throw;
  }
  remove_quietly(std::exchange(temporary, {}));
}

void AtomicDir::replace_without_exchange() {
  std::string& temporary = temporary_.path;
  const std::string old = temporary_name(target_, kOldMark);
  if (detail::call_rename(target_.c_str(), old.c_str(), 0) != 0) {
    if (errno == EXDEV) return replace_by_removal();
    throw_io_error(target_, "replace", errno);
  }
  const auto put_back = [&] { static_cast<void>(detail::call_rename(old.c_str(), target_.c_str(), 0)); };
  if (detail::call_rename(temporary.c_str(), target_.c_str(), 0) != 0) {
    const int error = errno;
    put_back();
    throw_io_error(target_, "replace", error);
  }
  try {
    sync_dir(parent_path(target_));
  } catch (const IoError&) {
    if (detail::call_rename(target_.c_str(), temporary.c_str(), 0) == 0)
      put_back();
    else
      temporary.clear();
    throw;
  }
  temporary.clear();
  remove_quietly(old);
}

void AtomicDir::replace_by_removal() {
  remove_in_place(target_, replaces_);
  rename_path(temporary_.path, target_);
  temporary_.path.clear();
  sync_dir(parent_path(target_));
}

void remove_dir_atomically(const std::string& path, std::string_view marker) {
  const std::string target = checked_dir_target(path);
  struct stat status;
  if (detail::call_lstat(target.c_str(), &status) != 0) {
    if (errno == ENOENT) return;
    throw_io_error(target, "stat", errno);
  }
  const File folder = File::open_dir(target);
  // A power cut before the sync may give the folder its name back, so until then no cleaner may take it: hence the
  // lock.
  static_cast<void>(detail::call_flock(folder.fd(), LOCK_EX));
  const std::string temporary = temporary_name(target);
  if (detail::call_rename(target.c_str(), temporary.c_str(), 0) != 0) {
    if (errno != EXDEV) throw_io_error(target, "remove", errno);
    return remove_in_place(target, std::string(marker));
  }
  try {
    sync_dir(parent_path(target));
  } catch (const IoError&) {
    static_cast<void>(detail::call_rename(temporary.c_str(), target.c_str(), 0));
    throw;
  }
  remove_tree(temporary);
}

void move_dir(const std::string& from, const std::string& to) {
  if (detail::call_rename(from.c_str(), to.c_str(), 0) == 0) return;
  if (errno != EXDEV) throw_io_error(to, "rename", errno);
  TERCEL_CHECK(create_new_dir(to), IoError, printable(to), ": rename: it exists already");
  for (const std::string& name : list_dir(from)) move_dir(join_path(from, name), join_path(to, name));
  remove_tree(from);
}

void write_file_atomically(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

int64_t remove_stale_temporaries(const std::string& folder, std::string_view name) {
  int64_t removed = 0;
  for (const std::string& entry : list_dir(folder)) {
    const bool is_old = is_temporary_name(entry, name, kOldMark);
    if (!is_old && !is_temporary_name(entry, name)) continue;
    const std::string path = join_path(folder, entry);
    try {
      const std::string target = path.substr(0, path.size() - kOldMark.size() - kDigits);
      const bool is_dir = file_info(path).kind == FileKind::Directory;
      File lock = is_dir ? File::open_dir(path) : File::open_existing(path);
      if (!lock.try_lock() || !lock.is_at(path)) continue;  // in use
      if (is_old && !exists(target)) {
        rename_path(path, target);
        sync_dir(folder);
        continue;
      }
      remove_tree(path);
      ++removed;
    } catch (const IoError&) {  // committed or removed meanwhile, or not ours to remove
    }
  }
  return removed;
}

}  // namespace tercel
