// Files and folders that appear under their name complete or not at all, whatever stops the writer.
//
// Note [Atomic replacement]
// Content is written under a temporary name beside the target ("model.json.tmp-1f00ba42"), synced, renamed over the
// target, and the folder is synced, in this order: without the first sync a power cut may leave the new name with old
// or no content, without the last it may undo the rename. Until commit() the target is untouched. If commit()
// throws, the target is either as it was or (only the last sync failed) complete and new.
// The writer holds a flock on the temporary for as long as it lives, so that remove_stale_temporaries can distinguish
// leftovers of dead writers from files that are being written. On a file system without flock nothing is ever removed.
// A folder that replaces another is exchanged with it. On a file system that cannot (NFS, FUSE) the old one first gets
// a temporary name ("data.old-1f00ba42"), then the new one its name: a writer that is killed in between leaves no
// folder under the target's name, until remove_stale_temporaries gives the old one its name back. If the old one cannot
// be renamed either (EXDEV: a folder of a lower layer of overlayfs), it is removed first, beginning with the file that
// marks it as complete.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tercel/util/export.h"
#include "tercel/util/file.h"
#include "tercel/util/file_stream.h"

namespace tercel {

namespace detail {

/** Removes the file or folder at a path when destroyed, unless the path was cleared. */
struct TERCEL_API TemporaryPath {
  std::string path;

  TemporaryPath() = default;
  explicit TemporaryPath(std::string owned) : path(std::move(owned)) {}
  TemporaryPath(TemporaryPath&& other) noexcept : path(std::exchange(other.path, {})) {}
  TemporaryPath& operator=(TemporaryPath&&) = delete;
  ~TemporaryPath();
};

}  // namespace detail

/** A file under construction, removed unless commit() is called. See Note [Atomic replacement]. */
class TERCEL_API AtomicFile {
 public:
  /** A target that exists must be a regular file; a symbolic link is followed. */
  explicit AtomicFile(const std::string& path, const FileWriterOptions& options = {});
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  FileWriter& writer() { return writer_; }
  void write(const void* data, size_t bytes) { writer_.write(data, bytes); }
  void write(std::string_view text) { writer_.write(text); }
  const std::string& path() const { return target_; }
  /** Makes the content durable under the target's name; nothing can be written after it. */
  void commit();

 private:
  std::string target_;
  detail::TemporaryPath temporary_;
  FileWriter writer_;
};

/** A folder under construction, removed unless commit() is called. See Note [Atomic replacement]. */
class TERCEL_API AtomicDir {
 public:
  /**
   * Folders above the target are created. The target must not exist, or be an empty folder, or contain a file named
   * `replaces`, which marks a folder that this program wrote and may delete.
   */
  explicit AtomicDir(const std::string& path, std::string_view replaces = {});
  AtomicDir(const AtomicDir&) = delete;
  AtomicDir& operator=(const AtomicDir&) = delete;

  /** Where to write until commit(). */
  const std::string& temporary_path() const { return temporary_.path; }
  const std::string& path() const { return target_; }
  /** Makes everything in the folder durable under the target's name. All files in it must be closed or flushed. */
  void commit();

 private:
  void replace_without_exchange();
  void replace_by_removal();

  std::string target_;
  std::string replaces_;
  File lock_;
  detail::TemporaryPath temporary_;
};

/** ConfigError if `file` lies in `folder`, which is about to be replaced: the file would be deleted with it. */
TERCEL_API void check_outside(const std::string& folder, const std::string& file);

/**
 * Removes a folder with everything in it. If the program is stopped, the folder is either complete under its name or
 * gone, or, where folders cannot be renamed (EXDEV), without the file `marker`. A missing folder is no error.
 */
TERCEL_API void remove_dir_atomically(const std::string& path, std::string_view marker = {});

/** Renames a folder; where that cannot be done (EXDEV), moves its files one by one. Nothing may have the new name. */
TERCEL_API void move_dir(const std::string& from, const std::string& to);

/** Creates or replaces a file as AtomicFile does. */
TERCEL_API void write_file_atomically(const std::string& path, std::string_view content);

/**
 * Removes what dead writers of AtomicFile and AtomicDir left in `folder`: for the target `name`, or for all if it is
 * empty. Returns how many were removed. Files that are still being written stay. An old folder whose replacement
 * was never renamed into place gets its name back.
 */
TERCEL_API int64_t remove_stale_temporaries(const std::string& folder, std::string_view name = {});

}  // namespace tercel
