// All file system calls of the library: they retry on EINTR and call the hook of file_hook.h.
// All return -1 (or null) and set errno on failure, like the calls they wrap.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tercel::detail {

int call_open(const char* path, int flags, mode_t mode = 0666);
ssize_t call_read(int fd, void* out, size_t bytes);
ssize_t call_pread(int fd, void* out, size_t bytes, int64_t offset);
ssize_t call_write(int fd, const void* data, size_t bytes);
ssize_t call_pwrite(int fd, const void* data, size_t bytes, int64_t offset);
/** A private copy-on-write map of the first bytes; null on failure. */
void* call_map(int fd, size_t bytes);
int call_fsync(int fd);
int call_truncate(int fd, int64_t size);
/** The descriptor is closed even if this fails. */
int call_close(int fd);
int call_rename(const char* from, const char* to, unsigned flags);
int call_mkdir(const char* path);
int call_unlink(const char* path);
int call_rmdir(const char* path);
int call_fstat(int fd, struct stat* out);
int call_stat(const char* path, struct stat* out);
int call_lstat(const char* path, struct stat* out);
/** The absolute path with links resolved. */
int call_realpath(const char* path, std::string& out);
/** Non-blocking. */
int call_flock(int fd, int operation);
/** Names without "." and "..", unsorted. */
int call_list(const char* path, std::vector<std::string>& out);

/** Throws IoError "path: operation: what errno says". */
[[noreturn, gnu::cold]] void throw_io_error(const std::string& path, const char* operation, int error);

}  // namespace tercel::detail
