// s3:// and gs://, by the Arrow module.
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tercel/data/arrow_module_impl.h"
#include "tercel/data/remote_store_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

void check_store(ArrowCode code, const ArrowFailure& failure, const std::string& url) {
  if (code == ArrowCode::Ok) return;
  const std::string message = str_cat({printable(url), ": Arrow: ", printable(failure.text)});
  if (code == ArrowCode::Memory) throw OutOfMemoryError(message);
  if (code == ArrowCode::Unsupported)
    throw RuntimeError(str_cat({message, "; this Arrow was built without that store"}));
  throw IoError(message);  // the clients of the stores have repeated the request
}

class ArrowObject final : public RemoteObject {
 public:
  explicit ArrowObject(const std::string& url) : url_(url), api_(arrow_api(printable(url))) {
    ArrowFailure failure{};
    check_store(api_.store_open(url.c_str(), &size_, &version_, &file_, &failure), failure, url);
  }
  ~ArrowObject() override {
    if (file_) api_.store_close(file_);
  }
  ArrowObject(const ArrowObject&) = delete;
  ArrowObject& operator=(const ArrowObject&) = delete;

  int64_t size() const override { return size_; }
  uint64_t version() const override { return version_; }
  size_t read(void* out, size_t bytes, int64_t offset) override {
    int64_t found = 0;
    ArrowFailure failure{};
    check_store(api_.store_read(file_, out, static_cast<int64_t>(bytes), offset, &found, &failure), failure, url_);
    return static_cast<size_t>(found);
  }

 private:
  std::string url_;
  const ArrowApi& api_;
  ArrowStoreFile* file_ = nullptr;
  int64_t size_ = 0;
  uint64_t version_ = 0;
};

class ArrowStore final : public RemoteStore {
 public:
  std::optional<FileInfo> info(const std::string& url) override {
    ArrowStoreInfo found{};
    ArrowFailure failure{};
    check_store(arrow_api(printable(url)).store_info(url.c_str(), &found, &failure), failure, url);
    if (found.kind == 0) return std::nullopt;
    FileInfo info;
    info.kind = found.kind == 1 ? FileKind::Regular : FileKind::Directory;
    info.size = found.size;
    info.mtime_ns = found.mtime_ns;
    return info;
  }

  std::vector<std::string> list(const std::string& url) override {
    struct Names {
      std::vector<std::string> list;
      std::exception_ptr error;
    } names;
    ArrowFailure failure{};
    const auto add = [](void* context, const char* name) {
      auto& found = *static_cast<Names*>(context);
      try {
        found.list.emplace_back(name);
      } catch (...) {  // must not pass through the module
        found.error = std::current_exception();
      }
    };
    check_store(arrow_api(printable(url)).store_list(url.c_str(), &names, add, &failure), failure, url);
    if (names.error) std::rethrow_exception(names.error);
    return std::move(names.list);
  }

  std::unique_ptr<RemoteObject> open(const std::string& url) override { return std::make_unique<ArrowObject>(url); }
};

}  // namespace

std::shared_ptr<RemoteStore> make_arrow_store() { return std::make_shared<ArrowStore>(); }

}  // namespace tercel::data
