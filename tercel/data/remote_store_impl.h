// Remote files behind random_access_file.h, and the stores that are always known. Private.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tercel/data/random_access_file.h"
#include "tercel/data/remote_store.h"
#include "tercel/util/error.h"

namespace tercel::data {

/** A failure of a request that may succeed when it is made again: a cut connection, an overloaded server. */
class TransientIoError final : public IoError {
 public:
  using IoError::IoError;
};

std::unique_ptr<RandomAccessFile> open_remote_file(const std::string& url);
std::optional<FileInfo> remote_identity(const std::string& url);
std::optional<FileInfo> remote_info(const std::string& url);
std::vector<std::string> remote_list(const std::string& url);

/** s3 and gs, by the Arrow module. */
std::shared_ptr<RemoteStore> make_arrow_store();
/** http and https. */
std::shared_ptr<RemoteStore> make_http_store();

/** Seconds that a request may go without an answer. ConfigError if TERCEL_REMOTE_TIMEOUT is no such number. */
int64_t remote_timeout();

/** Called by a store while it reads: those who wait for the request go on waiting. */
void note_remote_progress(size_t bytes);

/** While it lives, waits of its thread for requests end with an error once the flag is set. */
class RemoteWaitScope {
 public:
  explicit RemoteWaitScope(const std::atomic<bool>& stop);
  ~RemoteWaitScope();
  RemoteWaitScope(const RemoteWaitScope&) = delete;
  RemoteWaitScope& operator=(const RemoteWaitScope&) = delete;

 private:
  const std::atomic<bool>* outer_;
};

}  // namespace tercel::data
