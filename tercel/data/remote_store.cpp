#include "tercel/data/remote_store.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <list>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "tercel/data/remote_store_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/process_mutex.h"
#include "tercel/util/thread_impl.h"

namespace tercel::data {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kAttempts = 4;
constexpr milliseconds kFirstPause{200};  // doubled after each attempt
constexpr milliseconds kPoll{20};
constexpr size_t kPieceBytes = size_t{4} << 20;  // of one request
constexpr size_t kLeastBytes = size_t{64} << 10;
constexpr size_t kAheadBytes = 2 * kPieceBytes;
constexpr size_t kKeptBytes = 8 * kPieceBytes;
constexpr int kMostRequests = 4;  // of a file at a time
constexpr size_t kStreams = 4;    // places of a file that are read in order at the same time

thread_local const std::atomic<bool>* current_stop = nullptr;
thread_local std::atomic<int64_t>* current_progress = nullptr;  // of the request of this thread
std::atomic<void (*)()> wait_check{nullptr};

void pass_checks() {
  if (current_stop) {
    if (*current_stop) throw IoError("the reader was closed");
  } else if (auto* const check = wait_check.load()) {
    check();
  }
}

/** Calls a function until it does not fail by a failure that may pass. */
template <class Function>
auto persistently(Function function) {
  for (int attempt = 1;; ++attempt) {
    try {
      return function();
    } catch (const TransientIoError& error) {
      if (attempt == kAttempts)
        throw IoError(str_cat({error.what(), " (after ", static_cast<int64_t>(kAttempts), " attempts)"}));
    }
    std::this_thread::sleep_for(kFirstPause * (1 << (attempt - 1)));
  }
}

/** A request of another thread, which the thread that waits may abandon. Held by shared pointers. */
struct Request {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::exception_ptr error;
  std::atomic<int64_t> progress{0};  // bytes that have come, of all attempts

  void finish(std::exception_ptr thrown) {
    {
      const std::lock_guard lock(mutex);
      done = true;
      error = std::move(thrown);
    }
    changed.notify_all();
  }

  template <class Function>
  void run(const Function& function) {
    std::exception_ptr thrown;
    current_progress = &progress;
    try {
      function();
    } catch (...) {
      thrown = std::current_exception();
    }
    current_progress = nullptr;
    finish(std::move(thrown));
  }

  /** Runs a function, which keeps the request alive, in another thread. */
  template <class Function>
  void start(const std::string& url, Function function) {
    try {
      Thread([this, function] { run(function); }).detach();
    } catch (const std::system_error& failure) {
      finish(std::make_exception_ptr(
          IoError(str_cat({printable(url), ": a thread for a request cannot be started: ", failure.what()}))));
    }
  }

  void wait(const std::string& url) {
    // Attempts without an answer, and their pauses, included.
    const std::chrono::seconds timeout(remote_timeout());
    auto end = Clock::now() + timeout;
    int64_t seen = 0;
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, kPoll, [&] { return done; })) {
      lock.unlock();
      pass_checks();
      if (const int64_t now = progress; now != seen) {
        seen = now;
        end = Clock::now() + timeout;
      }
      TERCEL_CHECK(Clock::now() < end, IoError, printable(url), ": expected ", seen > 0 ? "more bytes" : "an answer",
                   " within ", remote_timeout(), " s (TERCEL_REMOTE_TIMEOUT), found none");
      lock.lock();
    }
    if (error) std::rethrow_exception(error);
  }
};

/** The result of a function of a store, called by another thread if the store allows it. */
template <class Function>
auto requested(const std::shared_ptr<RemoteStore>& store, const std::string& url, Function function) {
  using Result = decltype(function(*store));
  if (!store->allows_threads()) return persistently([&] { return function(*store); });
  struct State : Request {
    std::optional<Result> result;
  };
  auto state = std::make_shared<State>();
  state->start(url, [state, store, function] { state->result = persistently([&] { return function(*store); }); });
  state->wait(url);
  return std::move(*state->result);
}

class RemoteFile final : public RandomAccessFile {
 public:
  RemoteFile(std::string url, bool threads, std::shared_ptr<RemoteObject> object)
      : url_(std::move(url)), threads_(threads), object_(std::move(object)), size_(object_->size()) {}

  const std::string& path() const override { return url_; }
  int64_t size() const override { return size_; }
  FileInfo identity() const override { return {FileKind::Regular, size_, 0, 0, object_->version()}; }

  size_t read_at(void* out, size_t bytes, int64_t offset) const override {
    if (offset >= size_) return 0;
    bytes = std::min(bytes, static_cast<size_t>(size_ - offset));
    const bool in_order = note_read(offset, bytes);
    for (size_t done = 0; done < bytes;) {
      const int64_t at = offset + static_cast<int64_t>(done);
      const std::shared_ptr<Piece> piece = piece_at(at, bytes - done, in_order);
      try {
        piece->wait(url_);
      } catch (...) {
        forget(piece);
        throw;
      }
      const auto begin = static_cast<size_t>(at - piece->begin);
      const size_t count = std::min(bytes - done, piece->bytes - begin);
      std::memcpy(static_cast<char*>(out) + done, piece->data.get() + begin, count);
      done += count;
    }
    return bytes;
  }

 private:
  struct Piece : Request {
    int64_t begin = 0;
    size_t bytes = 0;
    std::unique_ptr<char[]> data;

    int64_t end() const { return begin + static_cast<int64_t>(bytes); }
    bool is_done() {
      const std::lock_guard lock(mutex);
      return done;
    }
  };

  /** Whether a read goes on where an earlier one ended. */
  bool note_read(int64_t offset, size_t bytes) const {
    const std::lock_guard lock(mutex_);
    const int64_t end = offset + static_cast<int64_t>(bytes);
    for (int64_t& known : ends_) {
      if (known != offset) continue;
      known = end;
      return true;
    }
    if (ends_.size() < kStreams)
      ends_.push_back(end);
    else
      ends_[next_end_++ % kStreams] = end;
    return false;
  }

  /** The piece that holds a byte; starts requests for what follows it, too. */
  std::shared_ptr<Piece> piece_at(int64_t at, size_t wanted, bool in_order) const {
    const std::lock_guard lock(mutex_);
    const size_t ahead = in_order ? kAheadBytes : 0;
    const int64_t limit = std::min(size_, at + static_cast<int64_t>(std::max(wanted, kLeastBytes) + ahead));
    const int64_t needed = at + static_cast<int64_t>(wanted);
    std::shared_ptr<Piece> found;
    int running = 0;
    for (const std::shared_ptr<Piece>& piece : pieces_) running += piece->is_done() ? 0 : 1;
    for (int64_t p = at; p < limit;) {
      std::shared_ptr<Piece> here;
      int64_t next = size_;
      for (const std::shared_ptr<Piece>& piece : pieces_) {
        if (piece->begin <= p && p < piece->end()) here = piece;
        if (piece->begin > p) next = std::min(next, piece->begin);
      }
      if (!here) {
        const int64_t end = std::min({next, limit, p + static_cast<int64_t>(kPieceBytes)});
        const bool is_small = end < size_ && end < next && end - p < static_cast<int64_t>(kPieceBytes) / 2;
        if (p > at && (running >= kMostRequests || !threads_ || (is_small && p >= needed))) break;
        here = start(p, static_cast<size_t>(end - p));
        ++running;
      }
      if (!found) found = here;
      p = here->end();
    }
    pieces_.remove(found);
    pieces_.push_front(found);
    drop_old();
    return found;
  }

  std::shared_ptr<Piece> start(int64_t begin, size_t bytes) const {
    auto piece = std::make_shared<Piece>();
    piece->begin = begin;
    piece->bytes = bytes;
    piece->data = std::make_unique<char[]>(bytes);
    pieces_.push_front(piece);
    const auto fetch = [piece, object = object_, url = url_] {
      persistently([&] {
        const size_t found = object->read(piece->data.get(), piece->bytes, piece->begin);
        if (found != piece->bytes)
          throw TransientIoError(str_cat(
              {printable(url), ": expected ", piece->bytes, " bytes at byte ", piece->begin, ", found ", found}));
      });
    };
    if (threads_)
      piece->start(url_, fetch);
    else
      piece->run(fetch);
    return piece;
  }

  /** Drops the pieces that were used longest ago, except those under way. */
  void drop_old() const {
    size_t kept = 0;
    for (auto piece = pieces_.begin(); piece != pieces_.end();) {
      kept += (*piece)->bytes;
      if (kept > kKeptBytes && piece != pieces_.begin() && (*piece)->is_done()) {
        kept -= (*piece)->bytes;
        piece = pieces_.erase(piece);
      } else {
        ++piece;
      }
    }
  }

  void forget(const std::shared_ptr<Piece>& piece) const {
    const std::lock_guard lock(mutex_);
    pieces_.remove(piece);
  }

  std::string url_;
  bool threads_;
  std::shared_ptr<RemoteObject> object_;
  int64_t size_;
  mutable std::mutex mutex_;
  mutable std::list<std::shared_ptr<Piece>> pieces_;  // last used first
  mutable std::vector<int64_t> ends_;
  mutable size_t next_end_ = 0;
};

/** Guarded by ProcessMutex::RemoteStores. */
struct Stores {
  std::map<std::string, std::shared_ptr<RemoteStore>> by_scheme;
};

Stores& stores() {
  // Never destroyed: threads may still make requests while the program exits.
  static auto* const stores = new Stores{{{"s3", make_arrow_store()},
                                          {"gs", make_arrow_store()},
                                          {"http", make_http_store()},
                                          {"https", make_http_store()}}};
  return *stores;
}

/** The store of a URL. Errors quote paths, and descriptions keep them: a URL must not hold a secret. */
std::shared_ptr<RemoteStore> store_of(const std::string& url) {
  const size_t split = url.find("://");
  const std::string scheme = url.substr(0, split), rest = url.substr(split + 3);
  const std::string host = rest.substr(0, rest.find_first_of("/?#"));
  TERCEL_CHECK(!rest.empty(), ConfigError, printable(url), ": expected a name after ", scheme, "://, found none");
  const bool is_web = scheme == "http" || scheme == "https";
  const bool is_known = is_web || scheme == "s3" || scheme == "gs";
  TERCEL_CHECK(!is_known || host.find('@') == std::string::npos, ConfigError, scheme, "://...@",
               printable(host.substr(host.rfind('@') + 1)),
               ": expected a URL without user and password, since messages and descriptions quote it; ",
               is_web ? "~/.netrc may hold them" : "the environment holds them");
  // Objects of S3 and Google may have names with these characters.
  const size_t query = rest.find_first_of(is_web ? "?#" : "?");
  const bool has_query = query != std::string::npos && (is_web || rest.find('=', query) != std::string::npos);
  TERCEL_CHECK(!is_known || !has_query, ConfigError, scheme, "://", printable(rest.substr(0, query)),
               "?...: expected a URL without a query, such as a signature, since messages and descriptions quote it");
  Stores& all = stores();
  const std::lock_guard lock(process_mutex(ProcessMutex::RemoteStores));
  auto found = all.by_scheme.find(scheme);
  if (found == all.by_scheme.end()) found = all.by_scheme.find("");
  std::string known;
  for (const auto& [name, store] : all.by_scheme) known += (known.empty() ? "" : ", ") + name + "://";
  TERCEL_CHECK(found != all.by_scheme.end(), ConfigError, printable(url), ": expected a path or a URL of ", known,
               ", found '", printable(scheme), "://'");
  return found->second;
}

void check_size(int64_t size, const std::string& url) {
  TERCEL_CHECK(size >= 0, IoError, printable(url), ": expected a file with a size, found ", size, " bytes");
}

}  // namespace

RemoteObject::~RemoteObject() = default;
RemoteStore::~RemoteStore() = default;

int64_t remote_timeout() {
  constexpr int64_t kDefault = 60;
  const char* const text = std::getenv("TERCEL_REMOTE_TIMEOUT");
  if (!text || *text == '\0') return kDefault;
  char* end = nullptr;
  const long long seconds = std::strtoll(text, &end, 10);
  TERCEL_CHECK(*end == '\0' && seconds > 0 && seconds <= 86400, ConfigError,
               "TERCEL_REMOTE_TIMEOUT: expected a number of seconds from 1 to 86400, found '", printable(text), "'");
  return seconds;
}

RemoteWaitScope::RemoteWaitScope(const std::atomic<bool>& stop) : outer_(std::exchange(current_stop, &stop)) {}
RemoteWaitScope::~RemoteWaitScope() { current_stop = outer_; }

void note_remote_progress(size_t bytes) {
  if (current_progress) *current_progress += static_cast<int64_t>(bytes);
}

void set_remote_wait_check(void (*check)()) { wait_check = check; }

void register_remote_store(const std::string& scheme, std::shared_ptr<RemoteStore> store) {
  Stores& all = stores();
  std::shared_ptr<RemoteStore> old;  // destroyed without the mutex
  const std::lock_guard lock(process_mutex(ProcessMutex::RemoteStores));
  old = std::exchange(all.by_scheme[scheme], std::move(store));
}

std::unique_ptr<RandomAccessFile> open_remote_file(const std::string& url) {
  const std::shared_ptr<RemoteStore> store = store_of(url);
  std::shared_ptr<RemoteObject> object =
      requested(store, url, [url](RemoteStore& s) { return std::shared_ptr<RemoteObject>(s.open(url)); });
  check_size(object->size(), url);
  return std::make_unique<RemoteFile>(url, store->allows_threads(), std::move(object));
}

std::optional<FileInfo> remote_identity(const std::string& url) {
  try {
    return open_remote_file(url)->identity();
  } catch (const IoError&) {
    if (!remote_info(url)) return std::nullopt;
    throw;
  }
}

std::optional<FileInfo> remote_info(const std::string& url) {
  std::optional<FileInfo> info = requested(store_of(url), url, [url](RemoteStore& store) { return store.info(url); });
  if (info && info->kind == FileKind::Regular) check_size(info->size, url);
  return info;
}

std::vector<std::string> remote_list(const std::string& url) {
  std::vector<std::string> names = requested(store_of(url), url, [url](RemoteStore& store) { return store.list(url); });
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tercel::data
