// Stores on the network that data files are read from, by the scheme of a URL: s3 and gs (Arrow's), http and https
// (libcurl's), and those that a program registers.
//
// A file is read by ranges, with bounded read-ahead when it is read in order. A request that fails is repeated; one
// that gets no answer for TERCEL_REMOTE_TIMEOUT seconds (60) ends in an IoError that names the URL. A content that
// changes while it is read is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tercel/util/export.h"
#include "tercel/util/file.h"

namespace tercel::data {

/** A file of a store as it was opened. read() may be called by several threads at once. */
class TERCEL_API RemoteObject {
 public:
  virtual ~RemoteObject();

  virtual int64_t size() const = 0;
  /** A number that another content of the same name does not have; 0: not known. */
  virtual uint64_t version() const = 0;
  /** Reads up to `bytes` at `offset`, which lie in the file. IoError; DataError if the content has changed. */
  virtual size_t read(void* out, size_t bytes, int64_t offset) = 0;
};

/** A store. Its functions may be called by several threads at once; they throw IoError. */
class TERCEL_API RemoteStore {
 public:
  virtual ~RemoteStore();

  /** Kind and size; none if nothing is there. */
  virtual std::optional<FileInfo> info(const std::string& url) = 0;
  /** Names of the files and folders in a folder, in any order. */
  virtual std::vector<std::string> list(const std::string& url) = 0;
  virtual std::unique_ptr<RemoteObject> open(const std::string& url) = 0;
  /**
   * Whether requests may be made by threads of the library. Otherwise the thread that reads makes them, one after the
   * other, and a request cannot be abandoned.
   */
  virtual bool allows_threads() const { return true; }
};

/** Makes a store known for URLs "<scheme>://...", "" for those of unknown schemes; replaces the one that was. */
TERCEL_API void register_remote_store(const std::string& scheme, std::shared_ptr<RemoteStore> store);

/**
 * Sets a function that threads call every few milliseconds while they wait for a request; what it throws ends the
 * wait. Null: none. Programs end long waits at Ctrl-C with it. It is not called by threads of a BatchReader, which
 * end a wait when the reader is closed.
 */
TERCEL_API void set_remote_wait_check(void (*check)());

}  // namespace tercel::data
