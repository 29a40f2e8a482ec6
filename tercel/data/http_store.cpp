// http:// and https://: files of web servers, by ranges.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tercel/data/curl_impl.h"
#include "tercel/data/remote_store_impl.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

/** A file of a server that sends whole files only is kept in memory, up to this size. */
constexpr int64_t kMostWholeBytes = int64_t{64} << 20;
constexpr long kOk = 200, kPartial = 206, kNoSuchRange = 416;

bool is_missing(long status) { return status == 404 || status == 410; }

[[noreturn]] void fail_status(const std::string& url, const HttpResponse& response) {
  const long status = response.status;
  std::string_view meaning;
  if (is_missing(status)) meaning = " (there is no such file)";
  if (status == 401) meaning = " (user and password are needed; ~/.netrc may hold them)";
  if (status == 403) meaning = " (access is denied)";
  if (status == kNoSuchRange) meaning = " (the file has no such bytes)";
  const std::string message =
      str_cat({printable(url), ": HTTP: expected the file, found status ", static_cast<int64_t>(status), meaning});
  if (status == 408 || status == 425 || status == 429 || status >= 500) throw TransientIoError(message);
  throw IoError(message);
}

/** The size of the file, by the answer to a request for its first byte. */
int64_t size_of(const std::string& url, const HttpResponse& first) {
  const bool is_part = first.status == kPartial || first.status == kNoSuchRange;
  if (!is_part && first.status != kOk) fail_status(url, first);
  TERCEL_CHECK(first.content_encoding.empty(), IoError, printable(url),
               ": HTTP: expected the bytes of the file, found them packed (Content-Encoding: ",
               printable(first.content_encoding), ")");
  if (is_part) {
    TERCEL_CHECK(first.total >= 0, IoError, printable(url),
                 ": HTTP: expected the size of the file in Content-Range, found none");
    return first.total;
  }
  TERCEL_CHECK(first.content_length >= 0, IoError, printable(url),
               ": HTTP: expected a server that answers requests for ranges or says the size of the file, found "
               "neither");
  return first.content_length;
}

class HttpObject final : public RemoteObject {
 public:
  HttpObject(std::string url, const HttpResponse& first) : url_(std::move(url)), size_(size_of(url_, first)) {
    etag_ = first.etag;
    last_modified_ = first.last_modified;
    if (first.status != kOk) return;
    constexpr std::string_view expected =
        ": HTTP: expected a server that answers requests for ranges, found one that sends whole files; of those, files "
        "of up to ";
    TERCEL_CHECK(size_ <= kMostWholeBytes, IoError, printable(url_), expected, format_bytes(kMostWholeBytes),
                 " can be read, and this one has ", format_bytes(size_), "; download it first");
    load_whole();
  }

  int64_t size() const override { return size_; }
  uint64_t version() const override {
    if (etag_.empty() && last_modified_.empty()) return 0;
    const std::string text = etag_ + "\n" + last_modified_;
    return checksum(text.data(), text.size());
  }

  size_t read(void* out, size_t bytes, int64_t offset) override {
    if (whole_) {
      std::memcpy(out, whole_->data() + offset, bytes);
      return bytes;
    }
    const HttpResponse response = http_get(url_, offset, bytes, out);
    TERCEL_CHECK(!is_missing(response.status), DataError, printable(url_),
                 ": expected the file as it was when reading began, found it removed");
    if (response.status == kNoSuchRange || response.status == kPartial) check_same(response);
    TERCEL_CHECK(response.status != kOk, IoError, printable(url_), ": HTTP: expected the bytes from ", offset,
                 ", since the server answered requests for ranges before, found the whole file (status 200)");
    if (response.status != kPartial) fail_status(url_, response);
    TERCEL_CHECK(response.range_begin == offset, IoError, printable(url_), ": HTTP: expected the bytes from ", offset,
                 ", found those from ", response.range_begin);
    return response.received;
  }

 private:
  void check_same(const HttpResponse& response) const {
    static_cast<void>(size_of(url_, response));
    const bool same = response.etag == etag_ && response.last_modified == last_modified_ && response.total == size_;
    TERCEL_CHECK(same, DataError, printable(url_), ": expected the file as it was when reading began, found ",
                 response.total != size_ ? str_cat({"it with ", response.total, " bytes instead of ", size_})
                                         : std::string("another one (ETag or Last-Modified differ)"));
  }

  void load_whole() {
    std::vector<char> content(static_cast<size_t>(size_) + 1);  // no null pointer for an empty file
    const HttpResponse response = http_get(url_, 0, content.size(), content.data());
    TERCEL_CHECK(response.status != kPartial, IoError, printable(url_),
                 ": HTTP: expected the whole file, as the server sent before, found a part of it (status 206)");
    if (response.status != kOk) fail_status(url_, response);
    if (response.received != static_cast<size_t>(size_))
      throw TransientIoError(str_cat(
          {printable(url_), ": HTTP: expected ", size_, " bytes, found ", static_cast<int64_t>(response.received)}));
    whole_ = std::make_unique<std::vector<char>>(std::move(content));
  }

  std::string url_;
  std::string etag_, last_modified_;
  int64_t size_ = 0;
  std::unique_ptr<std::vector<char>> whole_;
};

class HttpStore final : public RemoteStore {
 public:
  std::optional<FileInfo> info(const std::string& url) override {
    const HttpResponse response = first_byte(url);
    if (is_missing(response.status)) return std::nullopt;
    FileInfo info;
    info.kind = FileKind::Regular;
    info.size = size_of(url, response);
    return info;
  }

  std::vector<std::string> list(const std::string& url) override {
    throw_error<ConfigError>({printable(url), ": expected the URLs of files, since web servers do not list folders"});
  }

  std::unique_ptr<RemoteObject> open(const std::string& url) override {
    return std::make_unique<HttpObject>(url, first_byte(url));
  }

 private:
  /** A request for one byte says what HEAD says, also where a server answers HEAD otherwise than GET. */
  static HttpResponse first_byte(const std::string& url) {
    char byte = 0;
    return http_get(url, 0, 1, &byte);
  }
};

}  // namespace

std::shared_ptr<RemoteStore> make_http_store() { return std::make_shared<HttpStore>(); }

}  // namespace tercel::data
