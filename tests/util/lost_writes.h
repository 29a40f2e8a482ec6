// Simulates a power cut: unsynced changes on the disk are lost.
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tercel/util/file_hook.h"

namespace tercel::test {

/**
 * Makes the n-th call (counted over all kinds but Close) and every later one throw SimulatedCrash. lose() and similar
 * functions then revert changes that a disk may have lost: bytes of unsynced files, and new, renamed and removed names
 * in unsynced folders. Single-threaded; `scratch` is a folder on the same file system that the test does
 * not use.
 */
class LostWrites : public FileHook {
 public:
  LostWrites(std::string scratch, int64_t crash_at)
      : scratch_(std::move(scratch)), crash_at_(crash_at), scope_(*this) {}
  ~LostWrites() override {
    for (const auto& [id, file] : files_) ::close(file.fd);
  }

  bool crashed() const { return crashed_; }

  int before(const FileCall& call, size_t&) override {
    if (call.op == FileOp::Close) return 0;
    if (crashed_ || ++calls_ == crash_at_) {
      crashed_ = true;
      throw SimulatedCrash{};
    }
    // Saves what the call is about to destroy.
    existed_ = false;
    backup_.clear();
    const char* const victim = call.op == FileOp::Rename ? call.to : call.path;
    struct stat status;
    if (::lstat(victim, &status) != 0) return 0;
    existed_ = true;
    existed_as_folder_ = S_ISDIR(status.st_mode);
    const bool destroys = call.op == FileOp::Remove || (call.op == FileOp::Rename && call.flags == 0);
    if (destroys && S_ISREG(status.st_mode)) {
      backup_ = scratch_ + "/" + std::to_string(calls_);
      if (::link(victim, backup_.c_str()) != 0) throw std::runtime_error("link failed: " + backup_);
    }
    return 0;
  }

  void after(const FileCall& call) override {
    switch (call.op) {
      case FileOp::Open: opened(call); break;
      case FileOp::Sync: synced(call.fd); break;
      case FileOp::MakeDir: log(Kind::Create, call.path, ""); break;
      case FileOp::Remove: log(existed_as_folder_ ? Kind::RemoveFolder : Kind::RemoveFile, call.path, ""); break;
      case FileOp::Rename:
        log(call.flags != 0 ? Kind::Exchange : existed_ ? Kind::Replace : Kind::Rename, call.path, call.to);
        move_prefix(entries_.size() - 1, call.path, call.to, call.flags != 0);
        break;
      default: break;
    }
  }

  /** Reverts both: the disk as it was at the last syncs. */
  void lose() {
    lose_bytes();
    lose_names();
  }
  /** Reverts bytes only, since a file system may write names first. */
  void lose_bytes() {
    for (const auto& [id, file] : files_) {
      struct stat status;
      if (::fstat(file.fd, &status) == 0 && status.st_size > file.synced_size &&
          ::ftruncate(file.fd, file.synced_size) != 0)
        throw std::runtime_error("ftruncate failed");
    }
  }
  /** Reverts names only; with a folder, only those in it. */
  void lose_names(const std::string& folder = "") {
    struct stat status {};
    if (!folder.empty() && ::stat(folder.c_str(), &status) != 0) throw std::runtime_error("stat failed: " + folder);
    for (size_t i = entries_.size(); i-- > 0;)
      if (!entries_[i].durable && (folder.empty() || entries_[i].folder == id_of(status))) undo(i);
  }

 private:
  using Id = std::pair<dev_t, ino_t>;
  enum class Kind { Create, RemoveFile, RemoveFolder, Rename, Replace, Exchange };
  struct Entry {
    Kind kind;
    std::string path, to, backup;
    bool replaced_folder;
    Id folder;  // whose sync makes it durable
    bool durable;
  };
  struct OpenFile {
    int fd;
    int64_t synced_size;
  };

  static Id id_of(const struct stat& status) { return {status.st_dev, status.st_ino}; }
  static std::string parent(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

  void log(Kind kind, const std::string& path, const std::string& to) {
    struct stat status;
    if (::stat(parent(path).c_str(), &status) != 0) throw std::runtime_error("stat failed: " + path);
    entries_.push_back({kind, path, to, backup_, existed_as_folder_, id_of(status), false});
  }

  void opened(const FileCall& call) {
    if ((call.flags & O_ACCMODE) == O_RDONLY) return;
    struct stat status;
    if (::fstat(call.fd, &status) != 0) throw std::runtime_error("fstat failed");
    if (!existed_) log(Kind::Create, call.path, "");
    const auto [file, is_new] = files_.try_emplace(id_of(status), OpenFile{-1, status.st_size});
    if (is_new) file->second.fd = ::fcntl(call.fd, F_DUPFD_CLOEXEC, 0);
  }

  void synced(int fd) {
    struct stat status;
    if (::fstat(fd, &status) != 0) throw std::runtime_error("fstat failed");
    for (Entry& entry : entries_)
      if (entry.folder == id_of(status)) entry.durable = true;
    const auto file = files_.find(id_of(status));
    if (file != files_.end()) file->second.synced_size = status.st_size;
  }

  // Earlier entries name things by paths that a rename, or its undoing, changes.
  void move_prefix(size_t count, const std::string& from, const std::string& to, bool both_ways) {
    const auto moved = [&](std::string& path, const std::string& a, const std::string& b) {
      if (path != a && !path.starts_with(a + "/")) return false;
      path = b + path.substr(a.size());
      return true;
    };
    for (size_t i = 0; i < count; ++i)
      for (std::string* path : {&entries_[i].path, &entries_[i].to})
        if (!moved(*path, from, to) && both_ways) moved(*path, to, from);
  }

  void undo(size_t index) {
    const Entry entry = entries_[index];
    int status = 0;
    switch (entry.kind) {
      case Kind::Create: std::filesystem::remove_all(entry.path); break;
      case Kind::RemoveFile: status = ::rename(entry.backup.c_str(), entry.path.c_str()); break;
      case Kind::RemoveFolder: status = ::mkdir(entry.path.c_str(), 0777); break;
      case Kind::Exchange:
        status = ::renameat2(AT_FDCWD, entry.path.c_str(), AT_FDCWD, entry.to.c_str(), RENAME_EXCHANGE);
        move_prefix(index, entry.to, entry.path, true);
        break;
      case Kind::Rename:
      case Kind::Replace:
        status = ::rename(entry.to.c_str(), entry.path.c_str());
        move_prefix(index, entry.to, entry.path, false);
        if (entry.kind == Kind::Replace && entry.replaced_folder) status |= ::mkdir(entry.to.c_str(), 0777);
        if (!entry.backup.empty()) status |= ::rename(entry.backup.c_str(), entry.to.c_str());
        break;
    }
    if (status != 0) throw std::runtime_error("cannot take back: " + entry.path);
  }

  std::string scratch_;
  int64_t crash_at_;
  int64_t calls_ = 0;
  bool crashed_ = false;
  bool existed_ = false, existed_as_folder_ = false;
  std::string backup_;
  std::vector<Entry> entries_;
  std::map<Id, OpenFile> files_;
  ScopedFileHook scope_;
};

}  // namespace tercel::test
