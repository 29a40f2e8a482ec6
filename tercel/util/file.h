// Files and folders: all input and output of the library goes through here.
//
// Every failure is an IoError "path: operation: reason"; interrupted calls are repeated, partial ones continued. Only
// regular files are opened for reading: a folder, FIFO or device is refused by name, since reading it could block or
// never end. Tests make any call fail through file_hook.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel {

enum class FileKind : uint8_t { Regular, Directory, Other };

/** Identifies a file's content: if any field changes, the file was replaced or written to. */
struct FileInfo {
  FileKind kind = FileKind::Other;
  int64_t size = 0;      // bytes
  int64_t mtime_ns = 0;  // since 1970
  uint64_t device = 0;
  uint64_t inode = 0;

  friend bool operator==(const FileInfo&, const FileInfo&) = default;
};

/** An open file. The destructor closes it and drops errors: a writer calls close(), which throws them. */
class TERCEL_API File {
 public:
  File() noexcept = default;
  /** Opens a regular file for reading. */
  static File open_read(const std::string& path);
  /** Like open_read, but "-" is the standard input, which may be a pipe. */
  static File open_input(const std::string& path);
  /** Opens a folder, to sync or lock it. */
  static File open_dir(const std::string& path);
  /** Opens for writing; an existing file is emptied. */
  static File create(const std::string& path);
  /** Opens for writing; the file must not exist. */
  static File create_new(const std::string& path);
  /** Opens a regular file that exists for writing; NFS grants exclusive locks on no other. */
  static File open_existing(const std::string& path);
  /** Opens for writing at the end; created if missing. */
  static File append(const std::string& path);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  /** A second handle of the same open file, which may have been unlinked; both share one position. */
  File duplicate() const;

  bool is_open() const noexcept { return fd_ >= 0; }
  int fd() const noexcept { return fd_; }
  const std::string& path() const noexcept { return path_; }

  /** Waits until a pipe or terminal has data or has ended; false on timeout or if a signal arrived. */
  bool wait_readable(int milliseconds) const;
  /** Reads up to `bytes` at the current position; 0 only at the end of the file. */
  size_t read_some(void* out, size_t bytes);
  /** Reads exactly `bytes`; DataError if the file ends early. */
  void read_exact(void* out, size_t bytes);
  /** Reads up to `bytes` at `offset`, less only at the end of the file; thread-safe. */
  size_t pread_some(void* out, size_t bytes, int64_t offset) const;
  /** Reads exactly `bytes` at `offset`; DataError if the file ends early; thread-safe. */
  void pread_exact(void* out, size_t bytes, int64_t offset) const;
  /** Writes all bytes at the current position. */
  void write_all(const void* data, size_t bytes);
  /** Writes all bytes at `offset`; does not move the position. */
  void pwrite_all(const void* data, size_t bytes, int64_t offset);

  /** Returns when content and size are on the disk. */
  void sync();
  int64_t size() const;
  FileInfo info() const;
  /** Whether the path still names this file; false if it was removed or replaced. Does not follow links. */
  bool is_at(const std::string& path) const;
  /** Takes the exclusive flock without waiting; false if somebody else holds it. Lost when the file closes. */
  bool try_lock();
  /** Closes; throws write errors that the system reports only now. */
  void close();

 private:
  File(int fd, std::string path) noexcept : fd_(fd), path_(std::move(path)) {}
  static File open_write(const std::string& path, int flags);

  int fd_ = -1;
  int64_t position_ = 0;  // of sequential reads, for messages
  std::string path_;
};

/** Whole content; DataError if it has more than `max_bytes`. */
TERCEL_API std::string read_file(const std::string& path, int64_t max_bytes);

/** Creates or replaces a file, not atomically: see AtomicFile. */
TERCEL_API void write_file(const std::string& path, std::string_view content);

/** Content of a small file of /proc or /sys; empty if it cannot be read. Not seen by file hooks. */
TERCEL_API std::string read_system_file(const std::string& path);

/** Whether the path exists; follows symbolic links. */
TERCEL_API bool exists(const std::string& path);
TERCEL_API bool is_directory(const std::string& path);
TERCEL_API FileInfo file_info(const std::string& path);
TERCEL_API int64_t file_size(const std::string& path);

/** Free bytes for this user on the file system of the path, which need not exist; INT64_MAX if unknown. */
TERCEL_API int64_t free_bytes(const std::string& path);

/** Names in a folder, sorted, without "." and "..". */
TERCEL_API std::vector<std::string> list_dir(const std::string& path);

/** Creates a folder and its parents, durably; an existing folder is no error. */
TERCEL_API void create_dirs(const std::string& path);

/** Creates a folder in one that exists, durably; false if there is something of that name. */
TERCEL_API bool create_new_dir(const std::string& path);

/** Removes a file; a missing file is no error. */
TERCEL_API void remove_file(const std::string& path);

/** Removes a folder with everything in it, or a file, without following links; a missing path is no error. */
TERCEL_API void remove_tree(const std::string& path);

/** Renames a file or folder; replaces `to` if it is a file. */
TERCEL_API void rename_path(const std::string& from, const std::string& to);

/** Returns when the names in a folder are on the disk. */
TERCEL_API void sync_dir(const std::string& path);

/** Syncs every file and folder below and including `path`. */
TERCEL_API void sync_tree(const std::string& path);

/** "a/b" of "a/b/c", "." of "c", "/" of "/c"; trailing slashes are ignored. */
TERCEL_API std::string parent_path(std::string_view path);

/** "c" of "a/b/c" and of "a/b/c/". */
TERCEL_API std::string file_name(std::string_view path);

/** Whether a path names a file of a store on the network, "s3://bucket/key", rather than one of this machine. */
TERCEL_API bool is_url(std::string_view path);

/** ConfigError, for a path that is to be written, if it is a URL: stores are read only. */
TERCEL_API void check_local(std::string_view path);

/** `name` inside `folder`; an absolute name or a URL is returned as it is. */
TERCEL_API std::string join_path(std::string_view folder, std::string_view name);

/**
 * Holds the exclusive lock of a lock file, which is not removed on release. On a file system without locks, a file
 * PATH.held is the lock: it names host and process, and is ignored once that process of this host has ended.
 */
class TERCEL_API FileLock {
 public:
  /** IoError if another process holds the lock; names it. */
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /** Whether the lock file still exists; false if it, or a folder above it, was removed. */
  bool is_in_place() const { return file_.is_at(file_.path()); }

 private:
  void hold_by_name();

  File file_;
  int owner_;         // a forked child must not release its parent's lock
  std::string held_;  // the file that is the lock, where there are no locks
};

}  // namespace tercel
