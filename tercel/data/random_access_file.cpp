#include "tercel/data/random_access_file.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tercel/data/remote_store_impl.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

class LocalFile final : public RandomAccessFile {
 public:
  explicit LocalFile(File file) : file_(std::move(file)) {}

  const std::string& path() const override { return file_.path(); }
  int64_t size() const override { return file_.size(); }
  FileInfo identity() const override { return file_.info(); }
  size_t read_at(void* out, size_t bytes, int64_t offset) const override {
    return file_.pread_some(out, bytes, offset);
  }

 private:
  File file_;
};

}  // namespace

RandomAccessFile::~RandomAccessFile() = default;

std::unique_ptr<RandomAccessFile> open_data_file(const std::string& path) {
  if (is_url(path)) return open_remote_file(path);
  return std::make_unique<LocalFile>(File::open_read(path));
}

std::optional<FileInfo> data_file_identity(const std::string& path) {
  if (is_url(path)) return remote_identity(path);
  if (!exists(path)) return std::nullopt;
  return file_info(path);
}

std::optional<FileInfo> data_path_info(const std::string& path) {
  if (is_url(path)) return remote_info(path);
  if (!exists(path)) return std::nullopt;
  return file_info(path);
}

std::vector<std::string> list_data_folder(const std::string& path) {
  return is_url(path) ? remote_list(path) : list_dir(path);
}

SequentialReader::SequentialReader(std::unique_ptr<RandomAccessFile> file) : file_(std::move(file)) {}

size_t SequentialReader::read_some(void* out, size_t bytes) {
  const size_t count = file_->read_at(out, bytes, position_);
  position_ += static_cast<int64_t>(count);
  return count;
}

std::unique_ptr<GzipReader> open_data_stream(const std::string& path, FileInfo& info) {
  // It is streamed, so decompressed data may have any size.
  constexpr int64_t kAnySize = std::numeric_limits<int64_t>::max();
  if (is_url(path)) {
    std::unique_ptr<RandomAccessFile> file = open_data_file(path);
    info = file->identity();
    return std::make_unique<GzipReader>(std::make_unique<SequentialReader>(std::move(file)), kAnySize);
  }
  File file = File::open_input(path);
  info = file.info();
  return std::make_unique<GzipReader>(std::move(file), kAnySize);
}

std::string read_data_file(const std::string& path, int64_t max_bytes) {
  if (!is_url(path)) return read_file(path, max_bytes);
  const std::unique_ptr<RandomAccessFile> file = open_data_file(path);
  TERCEL_CHECK(file->size() <= max_bytes, DataError, printable(path), ": expected at most ", max_bytes,
               " bytes, found ", file->size());
  std::string text(static_cast<size_t>(file->size()), '\0');
  if (!text.empty()) text.resize(file->read_at(text.data(), text.size(), 0));
  return text;
}

uint64_t data_file_checksum(const std::string& path) {
  if (!is_url(path)) return file_checksum(path);
  const std::unique_ptr<RandomAccessFile> file = open_data_file(path);
  std::vector<char> buffer(size_t{1} << 20);
  Checksum sum;
  int64_t at = 0;
  while (const size_t count = file->read_at(buffer.data(), buffer.size(), at)) {
    sum.update(buffer.data(), count);
    at += static_cast<int64_t>(count);
  }
  return sum.value();
}

}  // namespace tercel::data
