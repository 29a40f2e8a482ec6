#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "tercel/data/curl_impl.h"
#include "tercel/data/remote_store_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/process_mutex.h"

namespace tercel::data {

namespace {

// Numbers of libcurl's binary interface, which stay the same within libcurl.so.4.
enum CurlOption : int {
  kOptTimeoutConnect = 78,
  kOptFollow = 52,
  kOptMaxRedirects = 68,
  kOptLowSpeedLimit = 19,
  kOptLowSpeedTime = 20,
  kOptNetrc = 51,
  kOptNoSignal = 99,
  kOptProtocols = 181,
  kOptRedirectProtocols = 182,
  kOptWriteData = 10001,
  kOptUrl = 10002,
  kOptRange = 10007,
  kOptErrorBuffer = 10010,
  kOptUserAgent = 10018,
  kOptHeaderData = 10029,
  kOptCaFile = 10065,
  kOptWriteFunction = 20011,
  kOptHeaderFunction = 20079,
};
constexpr int kInfoStatus = 0x200002;
constexpr long kHttpAndHttps = 3;
constexpr long kNetrcOptional = 1;
constexpr long kGlobalDefault = 3;
constexpr int kCurlOk = 0, kCurlWriteError = 23;
// Failures that the same request would meet again: of the URL, the certificate, the redirects.
constexpr int kFinalCodes[] = {1, 3, 47, 53, 54, 58, 59, 60, 66, 77, 80, 82, 83, 90, 91};

struct Curl {
  int (*global_init)(long) = nullptr;
  void* (*easy_init)() = nullptr;
  void (*easy_reset)(void*) = nullptr;
  void (*easy_cleanup)(void*) = nullptr;
  int (*easy_setopt)(void*, int, ...) = nullptr;
  int (*easy_getinfo)(void*, int, ...) = nullptr;
  int (*easy_perform)(void*) = nullptr;
  const char* (*easy_strerror)(int) = nullptr;
};

template <class Function>
bool find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(library, name));
  return out != nullptr;
}

const Curl* load_curl() {
  static Curl curl;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"}) {
    void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) continue;
    if (find(library, "curl_global_init", curl.global_init) && find(library, "curl_easy_init", curl.easy_init) &&
        find(library, "curl_easy_reset", curl.easy_reset) && find(library, "curl_easy_cleanup", curl.easy_cleanup) &&
        find(library, "curl_easy_setopt", curl.easy_setopt) && find(library, "curl_easy_getinfo", curl.easy_getinfo) &&
        find(library, "curl_easy_perform", curl.easy_perform) &&
        find(library, "curl_easy_strerror", curl.easy_strerror) && curl.global_init(kGlobalDefault) == kCurlOk)
      return &curl;
  }
  return nullptr;
}

const Curl& curl_of(const std::string& url) {
  static const Curl* const curl = load_curl();
  TERCEL_CHECK(curl, RuntimeError, printable(url),
               ": expected libcurl (libcurl.so.4), which reads files by HTTP, found none; apt-get install libcurl4");
  return *curl;
}

/**
 * Handles that are not in use: each keeps its connections to servers. Guarded by ProcessMutex::HttpConnections. Never
 * destroyed. A forked child forgets its parent's connections: it must neither use them nor send the server that they
 * end.
 */
struct IdleHandles {
  std::vector<void*> handles;
  pid_t process = ::getpid();
};
constexpr size_t kMostIdle = 8;

IdleHandles& idle() {
  static auto* const idle = new IdleHandles;
  return *idle;
}

class Handle {
 public:
  explicit Handle(const Curl& curl) : curl_(curl) {
    {
      const std::lock_guard lock(process_mutex(ProcessMutex::HttpConnections));
      if (std::exchange(idle().process, ::getpid()) != ::getpid()) idle().handles.clear();
      if (!idle().handles.empty()) {
        handle_ = idle().handles.back();
        idle().handles.pop_back();
      }
    }
    if (!handle_) handle_ = curl_.easy_init();
    TERCEL_CHECK(handle_, OutOfMemoryError, "libcurl: no memory for a request");
  }
  ~Handle() {
    curl_.easy_reset(handle_);
    {
      const std::lock_guard lock(process_mutex(ProcessMutex::HttpConnections));
      if (idle().handles.size() < kMostIdle) {
        idle().handles.push_back(handle_);
        return;
      }
    }
    curl_.easy_cleanup(handle_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void* get() const { return handle_; }

 private:
  const Curl& curl_;
  void* handle_ = nullptr;
};

struct Transfer {
  HttpResponse response;
  char* out = nullptr;
  size_t capacity = 0;
  bool was_cut = false;  // by us: the content is longer than asked for
  std::exception_ptr error;
};

/** Stops behind the bytes that were asked for: a server without ranges sends the whole file. */
size_t on_content(char* data, size_t size, size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const size_t bytes = size * count;
  note_remote_progress(bytes);
  // A page that explains an error is no content.
  if (transfer.response.status >= 300) return bytes;
  const size_t room = transfer.capacity - transfer.response.received;
  const size_t taken = std::min(bytes, room);
  if (taken > 0) std::memcpy(transfer.out + transfer.response.received, data, taken);
  transfer.response.received += taken;
  transfer.was_cut = taken < bytes;
  return taken;
}

size_t on_header(char* data, size_t size, size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  try {
    read_http_header({data, size * count}, transfer.response);
  } catch (...) {  // must not pass through libcurl
    transfer.error = std::current_exception();
    return 0;
  }
  return size * count;
}

}  // namespace

HttpResponse http_get(const std::string& url, int64_t begin, size_t bytes, void* out) {
  const Curl& curl = curl_of(url);
  const Handle handle(curl);
  Transfer transfer;
  transfer.out = static_cast<char*>(out);
  transfer.capacity = bytes;
  const std::string range = str_cat({begin, "-", begin + static_cast<int64_t>(bytes) - 1});
  char reason[256] = "";  // CURL_ERROR_SIZE
  const auto set = [&](int option, auto value) { curl.easy_setopt(handle.get(), option, value); };
  set(kOptUrl, url.c_str());
  set(kOptRange, range.c_str());
  set(kOptErrorBuffer, &reason[0]);
  set(kOptUserAgent, "tercel");
  set(kOptNoSignal, 1L);
  set(kOptFollow, 1L);
  set(kOptMaxRedirects, 5L);
  set(kOptProtocols, kHttpAndHttps);
  set(kOptRedirectProtocols, kHttpAndHttps);
  set(kOptNetrc, kNetrcOptional);
  set(kOptTimeoutConnect, static_cast<long>(std::min<int64_t>(remote_timeout(), 15)));
  set(kOptLowSpeedLimit, 1L);
  set(kOptLowSpeedTime, static_cast<long>(remote_timeout()));
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* const file = std::getenv(name);
    if (!file || *file == '\0') continue;
    set(kOptCaFile, file);
    break;
  }
  set(kOptWriteFunction, &on_content);
  set(kOptWriteData, static_cast<void*>(&transfer));
  set(kOptHeaderFunction, &on_header);
  set(kOptHeaderData, static_cast<void*>(&transfer));
  const int code = curl.easy_perform(handle.get());
  long status = 0;
  curl.easy_getinfo(handle.get(), kInfoStatus, &status);
  if (transfer.error) std::rethrow_exception(transfer.error);
  transfer.response.status = status;
  if (code == kCurlOk || (code == kCurlWriteError && transfer.was_cut)) return transfer.response;
  const std::string message =
      str_cat({printable(url), ": HTTP: ", printable(reason[0] ? reason : curl.easy_strerror(code))});
  if (std::find(std::begin(kFinalCodes), std::end(kFinalCodes), code) != std::end(kFinalCodes)) throw IoError(message);
  throw TransientIoError(message);
}

}  // namespace tercel::data
