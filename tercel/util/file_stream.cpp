#include "tercel/util/file_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel {

FileWriter::FileWriter(File file, const FileWriterOptions& options)
    : file_(std::move(file)),
      buffer_(new char[std::max<size_t>(options.buffer_bytes, 1)]),
      capacity_(std::max<size_t>(options.buffer_bytes, 1)) {
  if (options.checksum) checksum_.emplace();
}

void FileWriter::put(const void* data, size_t bytes) {
  file_.write_all(data, bytes);
  if (checksum_) checksum_->update(data, bytes);
  flushed_ += static_cast<int64_t>(bytes);
}

void FileWriter::write_through(const void* data, size_t bytes) {
  flush();
  if (bytes < capacity_)
    copy_in(data, bytes);
  else
    put(data, bytes);
}

void FileWriter::flush() {
  // The buffer is dropped on failure: a second attempt could write its first part twice.
  const size_t bytes = std::exchange(used_, 0);
  if (bytes > 0) put(buffer_.get(), bytes);
}

void FileWriter::sync() {
  flush();
  file_.sync();
}

void FileWriter::close() {
  flush();
  file_.close();
}

uint64_t FileWriter::checksum() const {
  TERCEL_ASSERT(checksum_.has_value());
  if (used_ == 0) return checksum_->value();
  Checksum sum = checksum_->copy();
  sum.update(buffer_.get(), used_);
  return sum.value();
}

void FileWriter::rewrite(int64_t offset, const void* data, size_t bytes) {
  TERCEL_ASSERT(!checksum_ && offset >= 0 && offset + static_cast<int64_t>(bytes) <= position());
  flush();
  file_.pwrite_all(data, bytes, offset);
}

ByteReader::~ByteReader() = default;

FileReader::FileReader(File file, size_t buffer_bytes)
    : file_(std::move(file)), buffer_(std::max<size_t>(buffer_bytes, 1)) {}

size_t FileReader::read_some(void* out, size_t bytes) {
  if (bytes == 0) return 0;
  if (begin_ == end_) {
    if (bytes >= buffer_.size()) {
      const size_t count = file_.read_some(out, bytes);
      position_ += static_cast<int64_t>(count);
      return count;
    }
    begin_ = 0;
    end_ = 0;
    end_ = file_.read_some(buffer_.data(), buffer_.size());
  }
  const size_t count = std::min(bytes, end_ - begin_);
  std::memcpy(out, buffer_.data() + begin_, count);
  begin_ += count;
  position_ += static_cast<int64_t>(count);
  return count;
}

void FileReader::read_exact(void* out, size_t bytes) {
  const int64_t start = position_;
  for (size_t done = 0; done < bytes;) {
    const size_t count = read_some(static_cast<char*>(out) + done, bytes - done);
    TERCEL_CHECK(count > 0, DataError, printable(name()), ": byte ", start, ": expected ", bytes, " more bytes, found ",
                 done, " before the end of the file");
    done += count;
  }
}

LineReader::LineReader(ByteReader& source, size_t max_line_bytes)
    : source_(source), max_line_bytes_(max_line_bytes), buffer_(size_t{128} << 10) {}

// Moves the rest to the front and reads more; false at the end of the source.
bool LineReader::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  const size_t count = source_.read_some(buffer_.data() + end_, buffer_.size() - end_);
  end_ += count;
  at_end_ = count == 0;
  return !at_end_;
}

bool LineReader::next(std::string_view& line) {
  if (line_number_ == 0) {
    static constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    while (end_ < kByteOrderMark.size() && fill()) {
    }
    if (std::string_view(buffer_.data(), end_).starts_with(kByteOrderMark)) begin_ = kByteOrderMark.size();
  }
  size_t searched = 0;
  for (;;) {
    const char* const start = buffer_.data() + begin_;
    const void* const found =
        end_ - begin_ > searched ? std::memchr(start + searched, '\n', end_ - begin_ - searched) : nullptr;
    size_t length = found != nullptr ? static_cast<size_t>(static_cast<const char*>(found) - start) : end_ - begin_;
    const bool complete = found != nullptr || at_end_;
    if (complete && found == nullptr && length == 0) return false;
    // A carriage return before the line feed is not part of the line.
    TERCEL_CHECK(length <= max_line_bytes_ + 1, DataError, printable(name()), ": line ", line_number_ + 1,
                 ": expected at most ", max_line_bytes_, " bytes, found more");
    if (complete) {
      begin_ += length + (found != nullptr ? 1 : 0);
      if (length > 0 && start[length - 1] == '\r') --length;
      ++line_number_;
      TERCEL_CHECK(length <= max_line_bytes_, DataError, printable(name()), ": line ", line_number_,
                   ": expected at most ", max_line_bytes_, " bytes, found ", length);
      line = {start, length};
      return true;
    }
    searched = length;
    fill();
  }
}

}  // namespace tercel
