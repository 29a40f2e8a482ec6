#include "tercel/util/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <limits>
#include <utility>

#include "tercel/util/error.h"
#include "tercel/util/file_calls_impl.h"
#include "tercel/util/format.h"

namespace tercel {

using detail::throw_io_error;

namespace {

const char* kind_name(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISCHR(mode)) return "a character device";
  if (S_ISBLK(mode)) return "a block device";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISLNK(mode)) return "a symbolic link";
  return "a special file";
}

void check_path(const std::string& path) {
  TERCEL_CHECK(!path.empty(), IoError, "open: expected a path, found an empty string");
  TERCEL_CHECK(path.find('\0') == std::string::npos, IoError, printable(path), ": open: the path has a NUL byte");
}

FileInfo to_info(const struct stat& status) {
  FileInfo info;
  info.kind = S_ISREG(status.st_mode)   ? FileKind::Regular
              : S_ISDIR(status.st_mode) ? FileKind::Directory
                                        : FileKind::Other;
  info.size = status.st_size;
  info.mtime_ns = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  info.device = status.st_dev;
  info.inode = status.st_ino;
  return info;
}

[[noreturn]] void throw_short(const std::string& path, size_t wanted, int64_t offset, size_t found) {
  throw_error<DataError>({printable(path), ": byte ", offset, ": expected ", wanted, " more bytes, found ", found,
                          " before the end of the file"});
}

// False if the path does not exist.
bool look_up(const std::string& path, struct stat& status) {
  check_path(path);
  if (detail::call_stat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw_io_error(path, "stat", errno);
}

std::string_view without_end_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

// Names in a folder; the caller has checked that it is one.
std::vector<std::string> entries(const std::string& path) {
  std::vector<std::string> names;
  if (detail::call_list(path.c_str(), names) != 0) throw_io_error(path, "list", errno);
  std::sort(names.begin(), names.end());
  return names;
}

bool is_real_directory(const std::string& path, bool& there) {
  struct stat status;
  there = detail::call_lstat(path.c_str(), &status) == 0;
  if (!there && errno != ENOENT) throw_io_error(path, "stat", errno);
  return there && S_ISDIR(status.st_mode);
}

}  // namespace

File::File(File&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), position_(other.position_), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    File old(std::move(*this));
    fd_ = std::exchange(other.fd_, -1);
    position_ = other.position_;
    path_ = std::move(other.path_);
  }
  return *this;
}

File::~File() {
  if (fd_ < 0) return;
  try {
    detail::call_close(fd_);
  } catch (...) {  // a simulated crash
  }
}

File File::open_read(const std::string& path) {
  check_path(path);
  // Without O_NONBLOCK, opening a FIFO that nobody writes to would wait forever.
  const int fd = detail::call_open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) throw_io_error(path, "open", errno);
  File file(fd, path);
  struct stat status;
  if (detail::call_fstat(fd, &status) != 0) throw_io_error(path, "stat", errno);
  TERCEL_CHECK(S_ISREG(status.st_mode), IoError, printable(path), ": open: expected a regular file, found ",
               kind_name(status.st_mode));
  return file;
}

File File::open_input(const std::string& path) {
  if (path != "-") return open_read(path);
  const int fd = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) throw_io_error("standard input", "open", errno);
  File file(fd, "standard input");
  struct stat status;
  if (detail::call_fstat(fd, &status) != 0) throw_io_error(file.path_, "stat", errno);
  TERCEL_CHECK(!S_ISDIR(status.st_mode), IoError, "standard input: open: expected a file or pipe, found a directory");
  return file;
}

File File::open_dir(const std::string& path) {
  check_path(path);
  const int fd = detail::call_open(path.c_str(), O_RDONLY | O_DIRECTORY);
  if (fd < 0) throw_io_error(path, "open", errno);
  return File(fd, path);
}

File File::duplicate() const {
  TERCEL_ASSERT(is_open());
  const int fd = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) throw_io_error(path_, "duplicate", errno);
  return File(fd, path_);
}

File File::open_write(const std::string& path, int flags) {
  check_path(path);
  // A FIFO that nobody reads is an error at once instead of a wait.
  const char* const operation = (flags & O_CREAT) != 0 ? "create" : "open";
  const int fd = detail::call_open(path.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | flags);
  if (fd < 0) throw_io_error(path, operation, errno);
  File file(fd, path);
  if (::fcntl(fd, F_SETFL, flags & O_APPEND) != 0) throw_io_error(path, operation, errno);
  return file;
}

File File::create(const std::string& path) { return open_write(path, O_CREAT | O_TRUNC); }
File File::create_new(const std::string& path) { return open_write(path, O_CREAT | O_EXCL); }
File File::open_existing(const std::string& path) {
  File file = open_write(path, 0);
  TERCEL_CHECK(file.info().kind == FileKind::Regular, IoError, printable(path), ": open: expected a regular file");
  return file;
}
File File::append(const std::string& path) { return open_write(path, O_CREAT | O_APPEND); }

bool File::wait_readable(int milliseconds) const {
  TERCEL_ASSERT(is_open());
  struct pollfd wanted = {fd_, POLLIN, 0};
  return ::poll(&wanted, 1, milliseconds) > 0;
}

size_t File::read_some(void* out, size_t bytes) {
  TERCEL_ASSERT(is_open());
  const ssize_t count = detail::call_read(fd_, out, bytes);
  if (count < 0) throw_io_error(path_, "read", errno);
  position_ += count;
  return static_cast<size_t>(count);
}

void File::read_exact(void* out, size_t bytes) {
  const int64_t start = position_;
  size_t done = 0;
  while (done < bytes) {
    const size_t count = read_some(static_cast<char*>(out) + done, bytes - done);
    if (count == 0) throw_short(path_, bytes, start, done);
    done += count;
  }
}

size_t File::pread_some(void* out, size_t bytes, int64_t offset) const {
  TERCEL_ASSERT(is_open() && offset >= 0);
  size_t done = 0;
  while (done < bytes) {
    const ssize_t count =
        detail::call_pread(fd_, static_cast<char*>(out) + done, bytes - done, offset + static_cast<int64_t>(done));
    if (count < 0) throw_io_error(path_, "read", errno);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

void File::pread_exact(void* out, size_t bytes, int64_t offset) const {
  const size_t count = pread_some(out, bytes, offset);
  if (count < bytes) throw_short(path_, bytes, offset, count);
}

void File::write_all(const void* data, size_t bytes) {
  TERCEL_ASSERT(is_open());
  for (size_t done = 0; done < bytes;) {
    const ssize_t count = detail::call_write(fd_, static_cast<const char*>(data) + done, bytes - done);
    // write() returning 0 without an error would loop forever.
    if (count <= 0) throw_io_error(path_, "write", count < 0 ? errno : EIO);
    done += static_cast<size_t>(count);
  }
}

void File::pwrite_all(const void* data, size_t bytes, int64_t offset) {
  TERCEL_ASSERT(is_open() && offset >= 0);
  for (size_t done = 0; done < bytes;) {
    const ssize_t count = detail::call_pwrite(fd_, static_cast<const char*>(data) + done, bytes - done,
                                              offset + static_cast<int64_t>(done));
    if (count <= 0) throw_io_error(path_, "write", count < 0 ? errno : EIO);
    done += static_cast<size_t>(count);
  }
}

void File::sync() {
  TERCEL_ASSERT(is_open());
  if (detail::call_fsync(fd_) != 0) throw_io_error(path_, "sync", errno);
}

FileInfo File::info() const {
  TERCEL_ASSERT(is_open());
  struct stat status;
  if (detail::call_fstat(fd_, &status) != 0) throw_io_error(path_, "stat", errno);
  return to_info(status);
}

int64_t File::size() const { return info().size; }

bool File::is_at(const std::string& path) const {
  struct stat status;
  if (detail::call_lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    throw_io_error(path, "stat", errno);
  }
  const FileInfo own = info();
  return own.inode == status.st_ino && own.device == status.st_dev;
}

bool File::try_lock() {
  TERCEL_ASSERT(is_open());
  if (detail::call_flock(fd_, LOCK_EX) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  throw_io_error(path_, "lock", errno);
}

void File::close() {
  if (fd_ < 0) return;
  if (detail::call_close(std::exchange(fd_, -1)) != 0) throw_io_error(path_, "close", errno);
}

std::string read_file(const std::string& path, int64_t max_bytes) {
  File file = File::open_read(path);
  const int64_t size = file.size();
  const auto check = [&](int64_t found) {
    TERCEL_CHECK(found <= max_bytes, DataError, printable(path), ": expected at most ", format_bytes(max_bytes),
                 ", found ", format_bytes(found), found > size ? " and more" : "");
  };
  check(size);
  // Files of /proc report size 0, others may grow: read until the end.
  std::string content(static_cast<size_t>(std::min(std::max<int64_t>(size, 4095), max_bytes)) + 1, '\0');
  size_t done = 0;
  while (const size_t count = file.read_some(content.data() + done, content.size() - done)) {
    done += count;
    check(static_cast<int64_t>(done));
    if (done == content.size())
      content.resize(static_cast<size_t>(std::min(static_cast<int64_t>(done) * 2, max_bytes)) + 1);
  }
  content.resize(done);
  return content;
}

void write_file(const std::string& path, std::string_view content) {
  File file = File::create(path);
  file.write_all(content.data(), content.size());
  file.close();
}

std::string read_system_file(const std::string& path) {
  std::string content;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return content;
  constexpr size_t kMost = size_t{1} << 20;
  char buffer[4096];
  while (content.size() < kMost) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    content.append(buffer, static_cast<size_t>(count));
  }
  ::close(fd);
  return content;
}

bool exists(const std::string& path) {
  struct stat status;
  return look_up(path, status);
}

bool is_directory(const std::string& path) {
  struct stat status;
  return look_up(path, status) && S_ISDIR(status.st_mode);
}

FileInfo file_info(const std::string& path) {
  struct stat status;
  if (!look_up(path, status)) throw_io_error(path, "stat", ENOENT);
  return to_info(status);
}

int64_t file_size(const std::string& path) { return file_info(path).size; }

int64_t free_bytes(const std::string& path) {
  std::string place = path;
  while (!exists(place) && parent_path(place) != place) place = parent_path(place);
  struct statvfs status;
  // Some FUSE file systems report no size.
  if (::statvfs(place.c_str(), &status) != 0 || status.f_blocks == 0) return std::numeric_limits<int64_t>::max();
  int64_t bytes = 0;
  const bool over = __builtin_mul_overflow(status.f_bavail, status.f_frsize, &bytes);
  return over ? std::numeric_limits<int64_t>::max() : bytes;
}

std::vector<std::string> list_dir(const std::string& path) {
  check_path(path);
  return entries(path);
}

void create_dirs(const std::string& path) {
  check_local(path);
  struct stat status;
  if (look_up(path, status)) {
    TERCEL_CHECK(S_ISDIR(status.st_mode), IoError, printable(path),
                 ": create directory: expected a directory or nothing, found ",
                 S_ISREG(status.st_mode) ? "a file" : kind_name(status.st_mode));
    return;
  }
  const std::string parent = parent_path(path);
  if (parent != path) create_dirs(parent);
  // Another process may have created it in the meantime.
  if (detail::call_mkdir(path.c_str()) != 0 && (errno != EEXIST || !is_directory(path)))
    throw_io_error(path, "create directory", errno);
  sync_dir(parent);
}

bool create_new_dir(const std::string& path) {
  check_path(path);
  if (detail::call_mkdir(path.c_str()) != 0) {
    if (errno == EEXIST) return false;
    throw_io_error(path, "create directory", errno);
  }
  sync_dir(parent_path(path));
  return true;
}

void remove_file(const std::string& path) {
  check_path(path);
  if (detail::call_unlink(path.c_str()) != 0 && errno != ENOENT) throw_io_error(path, "remove", errno);
}

void remove_tree(const std::string& path) {
  check_path(path);
  bool there = false;
  if (!is_real_directory(path, there)) {
    if (there) remove_file(path);
    return;
  }
  for (const std::string& name : entries(path)) remove_tree(join_path(path, name));
  if (detail::call_rmdir(path.c_str()) != 0 && errno != ENOENT) throw_io_error(path, "remove", errno);
}

void rename_path(const std::string& from, const std::string& to) {
  check_path(from);
  check_path(to);
  if (detail::call_rename(from.c_str(), to.c_str(), 0) != 0) throw_io_error(to, "rename", errno);
}

void sync_dir(const std::string& path) {
  const File folder = File::open_dir(path);
  // Some network file systems cannot sync a folder; there is no way to do more.
  if (detail::call_fsync(folder.fd()) != 0 && errno != EINVAL && errno != ENOTSUP) throw_io_error(path, "sync", errno);
}

void sync_tree(const std::string& path) {
  check_path(path);
  bool there = false;
  if (is_real_directory(path, there)) {
    for (const std::string& name : entries(path)) sync_tree(join_path(path, name));
    sync_dir(path);
    return;
  }
  struct stat status;
  if (detail::call_lstat(path.c_str(), &status) != 0) throw_io_error(path, "stat", errno);
  if (!S_ISREG(status.st_mode)) return;
  File file = File::open_read(path);
  file.sync();
  file.close();
}

std::string parent_path(std::string_view path) {
  path = without_end_slashes(path);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(without_end_slashes(path.substr(0, std::max<size_t>(slash, 1))));
}

std::string file_name(std::string_view path) {
  path = without_end_slashes(path);
  return std::string(path.substr(path.rfind('/') + 1));
}

bool is_url(std::string_view path) {
  const size_t end = path.find("://");
  if (end == 0 || end == std::string_view::npos) return false;
  return path.substr(0, end).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+-.") == std::string_view::npos;
}

void check_local(std::string_view path) {
  TERCEL_CHECK(
      !is_url(path), ConfigError, printable(path),
      ": expected a path of this machine to write to, found a URL; write to a local folder and copy it with the "
      "store's own tool (aws s3 cp --recursive, gcloud storage cp -r)");
}

/** A path as a part of the URL of a web server: RFC 3986, 2.1. */
static std::string percent_encoded(std::string_view path) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  constexpr std::string_view kAsTheyAre =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/!$&'()*+,;=:@";
  std::string encoded;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (kAsTheyAre.find(c) != std::string_view::npos)
      encoded += c;
    else
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return encoded;
}

std::string join_path(std::string_view folder, std::string_view name) {
  if (folder.empty() || name.starts_with('/') || is_url(name)) return std::string(name);
  std::string joined(folder);
  if (!joined.ends_with('/')) joined += '/';
  const bool is_web = folder.starts_with("http://") || folder.starts_with("https://");
  return joined.append(is_web ? percent_encoded(name) : std::string(name));
}

FileLock::FileLock(const std::string& path) : file_(File::append(path)), owner_(::getpid()) {
  const int error = detail::call_flock(file_.fd(), LOCK_EX) == 0 ? 0 : errno;
  if (error == EWOULDBLOCK) {
    int64_t holder = 0;
    const std::string text = read_system_file(path);
    const auto end = std::from_chars(text.data(), text.data() + text.size(), holder);
    throw_error<IoError>({printable(path), ": lock: held by ",
                          end.ec == std::errc() ? str_cat({"process ", holder}) : std::string("another process"),
                          end.ec == std::errc() && holder == owner_
                              ? ", which is this one: what holds it must be closed"
                              : "; wait for it to end, or stop it"});
  }
  const bool has_locks = error != ENOLCK && error != ENOSYS && error != ENOTSUP;
  if (error != 0 && has_locks) throw_io_error(path, "lock", error);
  // Whoever held the lock may have removed the file between our opening it and the lock.
  TERCEL_CHECK(is_in_place(), IoError, printable(path), ": lock: another process has just removed it");
  try {
    if (!has_locks) hold_by_name();
    if (detail::call_truncate(file_.fd(), 0) != 0) throw_io_error(path, "write", errno);
    const std::string pid = std::to_string(owner_) + "\n";
    file_.write_all(pid.data(), pid.size());
  } catch (...) {
    if (!held_.empty()) ::unlink(held_.c_str());
    throw;
  }
}

FileLock::~FileLock() {
  if (!file_.is_open() || ::getpid() != owner_) return;
  if (!held_.empty()) {
    static_cast<void>(detail::call_unlink(held_.c_str()));
    return;
  }
  // A child forked meanwhile shares the lock: closing only our descriptor would leave it held.
  ::flock(file_.fd(), LOCK_UN);
}

void FileLock::hold_by_name() {
  const std::string path = file_.path() + ".held";
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  const std::string own = str_cat({owner_, " ", host, "\n"});
  for (int attempt = 0; attempt < 2; ++attempt) {
    File file;
    try {
      file = File::create_new(path);
    } catch (const IoError&) {
      if (!exists(path)) throw;
    }
    if (file.is_open()) {
      held_ = path;
      file.write_all(own.data(), own.size());
      file.close();
      return;
    }
    const std::string text = read_system_file(path);
    int holder = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), holder);
    const bool is_here = end.ec == std::errc() && text == str_cat({holder, " ", host, "\n"});
    TERCEL_CHECK(is_here && holder > 0 && ::kill(holder, 0) != 0 && errno == ESRCH, IoError, printable(file_.path()),
                 ": lock: held by process ", printable(text.substr(0, text.find('\n'))), ", as ", printable(path),
                 " says; this file system has no locks: remove that file if the process has ended");
    // Another process may have removed it and taken the lock by now: remove only the file that was seen.
    const std::string dead = str_cat({path, "-", owner_});
    if (detail::call_rename(path.c_str(), dead.c_str(), 0) != 0) continue;
    if (read_system_file(dead) == text)
      static_cast<void>(detail::call_unlink(dead.c_str()));
    else
      static_cast<void>(detail::call_rename(dead.c_str(), path.c_str(), 0));
  }
  throw_error<IoError>({printable(file_.path()), ": lock: another process has just taken it"});
}

}  // namespace tercel
