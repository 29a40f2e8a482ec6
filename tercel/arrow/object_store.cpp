// Files of S3 and Google Cloud Storage, by Arrow's file systems.
#include <arrow/filesystem/filesystem.h>
#include <arrow/util/key_value_metadata.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tercel/arrow/arrow_io_impl.h"
#include "tercel/arrow/fork_locks.h"

namespace tercel::data {

struct ArrowStoreFile {
  std::shared_ptr<::arrow::io::RandomAccessFile> file;
};

}  // namespace tercel::data

namespace tercel::arrow_module {

using ::arrow::Result;
using ::arrow::Status;
using data::ArrowCode;
using data::ArrowStoreFile;

namespace {

namespace fs = ::arrow::fs;

struct Store {
  std::shared_ptr<fs::FileSystem> files;
  std::string path;  // in the store
};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string escaped(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '-' ||
        byte == '.' || byte == '_') {
      out += c;
    } else {
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

using FinalizeS3 = Status (*)();
FinalizeS3 finalize_s3 = nullptr;

/** Loads the library that some builds of Arrow keep S3 in, from the folder of libarrow. */
Status load_s3() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&fs::EnsureFinalized), &here) == 0 || !here.dli_fname) return Status::OK();
  std::string name = here.dli_fname;
  const size_t at = name.rfind("libarrow.so");
  if (at == std::string::npos) return Status::OK();
  name.insert(at + std::string_view("libarrow").size(), "_s3");
  // Arrow would complain about a library that is not there; then S3 is in libarrow, or in nothing.
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library) ARROW_RETURN_NOT_OK(fs::LoadFileSystemFactories(name.c_str()));
  // S3's library must be shut down before its static objects are destroyed.
  constexpr const char* kFinalize = "_ZN5arrow2fs17EnsureS3FinalizedEv";
  finalize_s3 = reinterpret_cast<FinalizeS3>(::dlsym(library ? library : RTLD_DEFAULT, kFinalize));
  return Status::OK();
}

/** The query of a URI. */
class Query {
 public:
  void add(std::string_view key, std::string_view value) {
    text_ += text_.empty() ? '?' : '&';
    text_.append(key).append("=").append(escaped(value));
  }
  /** The server at an address such as "http://localhost:9000"; without "http://" by `scheme`, if that is not empty. */
  void add_endpoint(std::string_view endpoint, std::string_view scheme) {
    const size_t split = endpoint.find("://");
    if (split != std::string_view::npos) {
      scheme = endpoint.substr(0, split);
      endpoint.remove_prefix(split + 3);
    }
    while (endpoint.ends_with('/')) endpoint.remove_suffix(1);
    if (!scheme.empty()) add("scheme", scheme);
    add("endpoint_override", endpoint);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/** The URI that makes the file system of a bucket. */
std::string bucket_uri(std::string_view scheme, std::string_view bucket) {
  Query query;
  std::string user;
  if (scheme == "gs") {
    const std::string emulator = environment("STORAGE_EMULATOR_HOST");
    // Without credentials the client would ask the metadata service of Google's machines for some, for minutes.
    const bool anonymous = environment("GOOGLE_APPLICATION_CREDENTIALS").empty() && !emulator.empty();
    if (anonymous || environment("TERCEL_GS_ANONYMOUS") == "1") user = "anonymous@";
    if (!emulator.empty()) query.add_endpoint(emulator, "http");
    query.add("retry_limit_seconds", "20");
  } else {
    std::string endpoint = environment("AWS_ENDPOINT_URL_S3");
    if (endpoint.empty()) endpoint = environment("AWS_ENDPOINT_URL");
    if (!endpoint.empty()) query.add_endpoint(endpoint, "");
    std::string region = environment("AWS_REGION");
    if (region.empty()) region = environment("AWS_DEFAULT_REGION");
    // Otherwise Arrow asks S3 for the bucket's region, which other servers do not know.
    if (region.empty() && !endpoint.empty()) region = "us-east-1";
    if (!region.empty()) query.add("region", region);
  }
  std::string uri(scheme);
  uri.append("://").append(user).append(bucket).append(query.text());
  return uri;
}

std::atomic<int> requests{0};  // under way

class Request {
 public:
  Request() { ++requests; }
  ~Request() { --requests; }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
};

/** S3's library would wait for requests that nobody waits for any more, such as one to a server that does not answer.
 */
void finish_s3(int status, void* /*unused*/) {
  if (requests == 0) {
    static_cast<void>(finalize_s3());
  } else {
    std::fflush(nullptr);
    ::_exit(status);
  }
}

using FileSystems = std::map<std::string, std::shared_ptr<fs::FileSystem>>;

/**
 * File systems are made once for each bucket: they keep connections, and looking for credentials takes time. Guarded by
 * ModuleMutex::Stores. A forked child must not use its parent's connections.
 */
struct Stores {
  pid_t process = ::getpid();
  bool loaded = false;
  bool finalized_at_exit = false;
  FileSystems by_bucket;
};

Stores& stores() {
  // Never destroyed: threads may still read while the program exits.
  static auto* const stores = new Stores;
  return *stores;
}

/** Forgets file systems without destroying them. */
void abandon(FileSystems& systems) {
  static std::vector<std::unique_ptr<FileSystems>>* const abandoned = new std::vector<std::unique_ptr<FileSystems>>;
  abandoned->push_back(std::make_unique<FileSystems>(std::move(systems)));
  systems.clear();
}

Result<Store> store_of(std::string_view url) {
  const size_t split = url.find("://");
  if (split == std::string_view::npos) return Status::Invalid("not a URL");
  const std::string_view scheme = url.substr(0, split), path = url.substr(split + 3);
  const std::string_view bucket = path.substr(0, path.find('/'));
  const std::string uri = bucket_uri(scheme, bucket);
  std::string inside(path);
  while (inside.ends_with('/')) inside.pop_back();
  Stores& all = stores();
  {
    const std::lock_guard lock(module_mutex(ModuleMutex::Stores));
    if (std::exchange(all.process, ::getpid()) != ::getpid()) abandon(all.by_bucket);
    if (!all.loaded) {
      ARROW_RETURN_NOT_OK(load_s3());
      all.loaded = true;
    }
    const auto known = all.by_bucket.find(uri);
    if (known != all.by_bucket.end()) return Store{known->second, std::move(inside)};
  }
  // It may ask servers, for which no fork() should wait; another thread may make one too.
  ARROW_ASSIGN_OR_RAISE(std::shared_ptr<fs::FileSystem> made, fs::FileSystemFromUri(uri));
  const std::lock_guard lock(module_mutex(ModuleMutex::Stores));
  // Registered behind the objects that the first file system made, and so called before they are destroyed.
  if (finalize_s3 && scheme == "s3" && !std::exchange(all.finalized_at_exit, true)) ::on_exit(finish_s3, nullptr);
  return Store{all.by_bucket.emplace(uri, std::move(made)).first->second, std::move(inside)};
}

}  // namespace

ArrowCode store_info(const char* url, data::ArrowStoreInfo* out, data::ArrowFailure* failure) {
  const Request request;
  return guarded(failure, [&]() -> Status {
    ARROW_ASSIGN_OR_RAISE(const Store store, store_of(url));
    ARROW_ASSIGN_OR_RAISE(const fs::FileInfo info, store.files->GetFileInfo(store.path));
    *out = {};
    if (info.IsFile()) *out = {1, info.size(), info.mtime().time_since_epoch().count()};
    if (info.IsDirectory()) out->kind = 2;
    return Status::OK();
  });
}

ArrowCode store_list(const char* url, void* context, void (*add)(void* context, const char* name),
                     data::ArrowFailure* failure) {
  const Request request;
  return guarded(failure, [&]() -> Status {
    ARROW_ASSIGN_OR_RAISE(const Store store, store_of(url));
    fs::FileSelector selector;
    selector.base_dir = store.path;
    ARROW_ASSIGN_OR_RAISE(const std::vector<fs::FileInfo> entries, store.files->GetFileInfo(selector));
    for (const fs::FileInfo& entry : entries) add(context, entry.base_name().c_str());
    return Status::OK();
  });
}

ArrowCode store_open(const char* url, int64_t* size, uint64_t* version, ArrowStoreFile** out,
                     data::ArrowFailure* failure) {
  const Request request;
  return guarded(failure, [&]() -> Status {
    ARROW_ASSIGN_OR_RAISE(const Store store, store_of(url));
    auto opened = std::make_unique<ArrowStoreFile>();
    ARROW_ASSIGN_OR_RAISE(opened->file, store.files->OpenInputFile(store.path));
    ARROW_ASSIGN_OR_RAISE(*size, opened->file->GetSize());
    ARROW_ASSIGN_OR_RAISE(const auto metadata, opened->file->ReadMetadata());
    std::string text;
    for (const char* key : {"ETag", "etag", "generation", "Last-Modified"}) {
      if (!metadata || !metadata->Contains(key)) continue;
      ARROW_ASSIGN_OR_RAISE(const std::string value, metadata->Get(key));
      text.append(value).append("\n");
    }
    *version = std::hash<std::string>{}(text);
    *out = opened.release();
    return Status::OK();
  });
}

ArrowCode store_read(ArrowStoreFile* file, void* out, int64_t bytes, int64_t offset, int64_t* found,
                     data::ArrowFailure* failure) {
  const Request request;
  return guarded(failure, [&]() -> Status {
    ARROW_ASSIGN_OR_RAISE(*found, file->file->ReadAt(offset, bytes, out));
    return Status::OK();
  });
}

void store_close(ArrowStoreFile* file) { delete file; }

}  // namespace tercel::arrow_module
