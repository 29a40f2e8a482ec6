// A file system on which folders that were there before cannot be renamed, as in the lower layers of overlayfs.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include "tercel/util/file_hook.h"

namespace tercel::test {

/** Lets renames of folders that exist below `root` now fail with EXDEV; the n-th call may be a crash. */
class LowerLayer : public ScopedFault {
 public:
  /** Without `exchange`, no folders can be exchanged either. */
  LowerLayer(const std::string& root, bool exchange, int64_t crash_at = 0)
      : LowerLayer(folders_in(root), exchange, crash_at) {}

  int before(const FileCall& call, size_t& bytes) override {
    if (call.op == FileOp::Rename && call.flags != 0 && !exchange_) return EINVAL;
    if (call.op == FileOp::Rename && (lower_.contains(inode(call.path)) || lower_.contains(inode(call.to))))
      return EXDEV;
    return ScopedFault::before(call, bytes);
  }

 private:
  // The folders are listed before the hook is set.
  LowerLayer(std::set<uint64_t> lower, bool exchange, int64_t crash_at)
      : ScopedFault({.nth = crash_at, .kind = FaultKind::Crash}), lower_(std::move(lower)), exchange_(exchange) {}

  static uint64_t inode(const std::string& path) {
    struct stat status;
    return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) ? status.st_ino : 0;
  }
  static std::set<uint64_t> folders_in(const std::string& root) {
    std::set<uint64_t> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) found.insert(inode(entry.path()));
    found.erase(0);
    return found;
  }

  std::set<uint64_t> lower_;
  bool exchange_;
};

}  // namespace tercel::test
