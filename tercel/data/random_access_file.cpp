#include "tercel/data/random_access_file.h"

#include <utility>

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
  return std::make_unique<LocalFile>(File::open_read(path));
}

std::optional<FileInfo> data_file_identity(const std::string& path) {
  if (!exists(path)) return std::nullopt;
  return file_info(path);
}

}  // namespace tercel::data
