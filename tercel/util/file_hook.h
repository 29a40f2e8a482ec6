// Fault injection for tests: every file system call invokes a hook, if one is set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "tercel/util/export.h"

namespace tercel {

enum class FileOp : uint8_t { Open, Read, Write, Sync, Rename, Close, MakeDir, Remove, Stat, List, Lock, Any };

/** One call into the file system. */
struct FileCall {
  FileOp op;
  int fd = -1;            // -1 where the call has only a path
  const char* path = "";  // "" where the call has only a descriptor
  const char* to = "";    // Rename: the new name
  int flags = 0;          // Open: those of open(2); Rename: those of renameat2(2)
};

/** Is called for every file system call, possibly from several threads at once. */
class TERCEL_API FileHook {
 public:
  virtual ~FileHook();
  /**
   * Before a call: 0 lets it happen, an errno makes it fail; may lower `bytes` of a Read or Write (not to 0), and may
   * throw. Calls that fail with EINTR are repeated.
   */
  virtual int before(const FileCall& call, size_t& bytes) = 0;
  /** After a call that succeeded; an Open carries its new descriptor. */
  virtual void after(const FileCall& call);
};

/** Sets the process-wide hook for its lifetime; scopes must nest. */
class TERCEL_API ScopedFileHook {
 public:
  explicit ScopedFileHook(FileHook& hook);
  ~ScopedFileHook();
  ScopedFileHook(const ScopedFileHook&) = delete;
  ScopedFileHook& operator=(const ScopedFileHook&) = delete;

 private:
  FileHook* outer_;
};

/** Thrown to simulate the death of the process. Not an Error, so that no handler catches it. */
struct SimulatedCrash {};

enum class FaultKind : uint8_t {
  Error,  // the call fails with an errno
  Short,  // a Read or Write handles half of its bytes
  Crash,  // SimulatedCrash; no later call but Close reaches the disk, so destructors cannot tidy up
};

/** Which call fails, and how. */
struct FaultPlan {
  FileOp op = FileOp::Any;
  int64_t nth = 1;  // counted from 1 among the calls of this op; 0 only counts
  FaultKind kind = FaultKind::Error;
  int error = 5;            // EIO
  bool persistent = false;  // all later calls of this op fail too, as on a full disk
};

/** Makes the n-th call fail, for its lifetime. */
class TERCEL_API ScopedFault : public FileHook {
 public:
  explicit ScopedFault(const FaultPlan& plan);
  ~ScopedFault() override;

  /** Calls of the plan's op so far. */
  int64_t calls() const;
  /** Whether the fault has happened. */
  bool fired() const;

  int before(const FileCall& call, size_t& bytes) override;

 private:
  mutable std::mutex mutex_;
  FaultPlan plan_;
  int64_t calls_ = 0;
  bool fired_ = false;
  ScopedFileHook scope_;  // last: the hook is complete when it is set, and unset before it goes
};

}  // namespace tercel
