#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "tercel/io/zip_impl.h"
#include "tercel/util/cursor.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::io {

namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr int64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr uint32_t kAll32 = 0xffffffff;
constexpr uint16_t kAll16 = 0xffff;
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint16_t kEncrypted = 1, kSizesFollow = 8;
constexpr uint16_t kZip64Extra = 1;
// Maximum expansion of deflate.
constexpr int64_t kMaxPerByte = 1032;
constexpr int64_t kLeastInflated = int64_t{1} << 30;
constexpr int64_t kInflatedPerByte = 128;
constexpr size_t kInputBytes = size_t{64} << 10;
constexpr size_t kMaxPerCall = size_t{1} << 30;

/** Counts a member's bytes and checks its checksum at the last one. */
class MemberReader : public ByteReader {
 public:
  MemberReader(const File& file, const ZipEntry& entry)
      : file_(file), entry_(entry), name_(str_cat({file.path(), ": member '", printable(entry.name), "'"})) {}

  size_t read_some(void* out, size_t bytes) override {
    const int64_t left = entry_.size - produced_;
    if (left == 0 || bytes == 0) return 0;
    const size_t count = produce(out, std::min({bytes, static_cast<size_t>(left), kMaxPerCall}));
    crc_ = static_cast<uint32_t>(crc32_z(crc_, static_cast<const Bytef*>(out), count));
    produced_ += static_cast<int64_t>(count);
    if (produced_ == entry_.size) finish();
    return count;
  }
  const std::string& name() const override { return name_; }

  /** For empty members, which have no last byte. */
  void finish() {
    expect_end();
    if (crc_ != entry_.crc)
      fail(str_cat({"content with the CRC ", entry_.crc}), str_cat({"one with ", crc_, ": it is damaged"}));
  }

 protected:
  virtual size_t produce(void* out, size_t bytes) = 0;
  virtual void expect_end() = 0;
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    throw_error<DataError>({printable(name_), ": byte ", produced_, ": expected ", expected, ", found ", found});
  }

  const File& file_;
  const ZipEntry& entry_;
  int64_t produced_ = 0;

 private:
  std::string name_;
  uint32_t crc_ = 0;
};

class StoredReader final : public MemberReader {
 public:
  using MemberReader::MemberReader;

 private:
  size_t produce(void* out, size_t bytes) override {
    file_.pread_exact(out, bytes, entry_.data + produced_);
    return bytes;
  }
  void expect_end() override {}
};

class InflateReader final : public MemberReader {
 public:
  InflateReader(const File& file, const ZipEntry& entry) : MemberReader(file, entry), input_(kInputBytes) {
    TERCEL_CHECK(inflateInit2(&stream_, -15) == Z_OK, OutOfMemoryError, printable(name()), ": no memory to inflate it");
  }
  ~InflateReader() override { inflateEnd(&stream_); }
  InflateReader(const InflateReader&) = delete;
  InflateReader& operator=(const InflateReader&) = delete;

 private:
  size_t produce(void* out, size_t bytes) override {
    const size_t count = run(out, bytes);
    if (count == 0) fail(str_cat({entry_.size, " bytes of content"}), "the end of the deflated data");
    return count;
  }

  /** Inflates at least one byte; 0 at the end of the stream. */
  size_t run(void* out, size_t bytes) {
    stream_.next_out = static_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(bytes);
    while (!ended_ && stream_.avail_out == bytes) {
      if (stream_.avail_in == 0) {
        const auto count =
            static_cast<size_t>(std::min<int64_t>(entry_.packed - consumed_, static_cast<int64_t>(input_.size())));
        if (count == 0) fail("more deflated data", "the end of the member");
        file_.pread_exact(input_.data(), count, entry_.data + consumed_);
        consumed_ += static_cast<int64_t>(count);
        stream_.next_in = input_.data();
        stream_.avail_in = static_cast<uInt>(count);
      }
      const int status = inflate(&stream_, Z_NO_FLUSH);
      ended_ = status == Z_STREAM_END;
      if (status == Z_MEM_ERROR) throw_error<OutOfMemoryError>({printable(name()), ": no memory to inflate it"});
      if (!ended_ && status != Z_OK && status != Z_BUF_ERROR)
        fail("deflated data", stream_.msg ? stream_.msg : "something else");
    }
    return bytes - stream_.avail_out;
  }

  void expect_end() override {
    char more = 0;
    if (run(&more, 1) > 0) fail("the end of the content", "more content than the directory declares");
    if (stream_.avail_in > 0 || consumed_ != entry_.packed)
      fail("the end of the member", "bytes after the deflated data");
  }

  std::vector<Bytef> input_;
  z_stream stream_{};
  int64_t consumed_ = 0;  // of the member, already read into input_
  bool ended_ = false;
};

std::string read_range(const File& file, int64_t offset, int64_t bytes) {
  std::string text(static_cast<size_t>(bytes), '\0');
  file.pread_exact(text.data(), text.size(), offset);
  return text;
}

/** Reads values that do not fit 32 bits from the zip64 field of a header's extra fields. */
void read_zip64(ByteCursor extra, uint64_t* const* wide, size_t count) {
  if (count == 0) return;
  while (extra.remaining() >= 4) {
    const auto id = extra.read<uint16_t>("id of an extra field");
    const auto bytes = extra.read<uint16_t>("size of an extra field");
    ByteCursor field = extra.sub(bytes, "extra field");
    if (id != kZip64Extra) continue;
    for (size_t i = 0; i < count; ++i) *wide[i] = field.read<uint64_t>("zip64 size or offset");
    return;
  }
  extra.fail("a zip64 extra field for a size or offset of 0xffffffff", "none");
}

}  // namespace

bool is_safe_member_name(std::string_view name) {
  if (name.empty() || name.size() > kAll16 || !is_utf8(name) || name.front() == '/') return false;
  if (name.size() > 1 && name[1] == ':') return false;
  for (const char c : name)
    if (c == '\\' || (static_cast<unsigned char>(c) < 32) || c == 127) return false;
  for (size_t start = 0; start <= name.size();) {
    const size_t end = std::min(name.find('/', start), name.size());
    const std::string_view part = name.substr(start, end - start);
    if (part == ".." || part == ".") return false;
    start = end + 1;
  }
  return true;
}

ZipReader::ZipReader(const std::string& path, int64_t max_inflated, std::string_view parameter)
    : file_(File::open_read(path)), size_(file_.size()) {
  const Directory directory = find_directory();
  read_directory(directory);
  for (ZipEntry& entry : entries_) read_local_header(entry, directory.begin);
  check_ranges(directory.begin);
  // Folders have no content.
  std::erase_if(entries_, [](const ZipEntry& entry) { return entry.name.ends_with('/'); });
  for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].name, i);

  int64_t inflated = 0;
  for (const ZipEntry& entry : entries_)
    if (entry.deflated && __builtin_add_overflow(inflated, entry.size, &inflated)) inflated = INT64_MAX;
  const int64_t limit =
      max_inflated > 0 ? max_inflated
                       : std::max(kLeastInflated, std::min(size_, INT64_MAX / kInflatedPerByte) * kInflatedPerByte);
  TERCEL_CHECK(inflated <= limit, DataError, printable(path), ": byte ", directory.begin,
               ": expected deflated members of at most ", format_bytes(limit), " together (", parameter, "), found ",
               format_bytes(inflated));
}

void ZipReader::fail(int64_t offset, std::string_view expected, std::string_view found) const {
  throw_error<DataError>({printable(file_.path()), ": byte ", offset, ": expected ", expected, ", found ", found});
}

ZipReader::Directory ZipReader::find_directory() const {
  // The record is at the end, followed only by a comment of at most 64 KiB.
  const int64_t tail_bytes = std::min<int64_t>(size_, kEndBytes + kAll16);
  const int64_t tail_begin = size_ - tail_bytes;
  const std::string tail = read_range(file_, tail_begin, tail_bytes);
  int64_t at = tail_bytes - kEndBytes;
  for (; at >= 0; --at) {
    ByteCursor cursor(std::string_view(tail).substr(static_cast<size_t>(at)), {file_.path(), -1, tail_begin + at});
    if (cursor.read<uint32_t>("end record") != kEnd) continue;
    cursor.skip(16, "end record");
    if (cursor.read<uint16_t>("comment") == cursor.remaining()) break;
  }
  if (at < 0)
    fail(size_, "a zip archive, which ends in its directory", "no end record: it is something else or cut off");

  const int64_t end_record = tail_begin + at;
  ByteCursor cursor(std::string_view(tail).substr(static_cast<size_t>(at)), {file_.path(), -1, end_record});
  cursor.skip(4, "end record");
  const auto disk = cursor.read<uint16_t>("disk"), first_disk = cursor.read<uint16_t>("disk");
  const auto here = cursor.read<uint16_t>("entries"), total = cursor.read<uint16_t>("entries");
  uint64_t count = total, bytes = cursor.read<uint32_t>("directory size"), begin = cursor.read<uint32_t>("directory");
  const bool one_disk = (disk == 0 || disk == kAll16) && (first_disk == 0 || first_disk == kAll16) && here == total;
  if (!one_disk) fail(end_record, "an archive of one part", "one of several");

  int64_t directory_end = end_record;
  if (const int64_t locator = end_record - kLocatorBytes; locator >= kEnd64Bytes) {
    const std::string text = read_range(file_, locator, kLocatorBytes);
    ByteCursor found(text, {file_.path(), -1, locator});
    if (found.read<uint32_t>("locator") == kLocator64) {
      found.skip(4, "disk");
      directory_end = static_cast<int64_t>(std::min<uint64_t>(found.read<uint64_t>("zip64 end record"), INT64_MAX));
      if (directory_end > locator - kEnd64Bytes) fail(locator, "a zip64 end record in front of its locator", "none");
      const std::string record = read_range(file_, directory_end, kEnd64Bytes);
      ByteCursor wide(record, {file_.path(), -1, directory_end});
      if (wide.read<uint32_t>("zip64 end record") != kEnd64)
        fail(directory_end, "a zip64 end record", "something else");
      wide.skip(28, "zip64 end record");
      count = wide.read<uint64_t>("entries");
      bytes = wide.read<uint64_t>("directory size");
      begin = wide.read<uint64_t>("directory");
    }
  }
  const auto limit = static_cast<uint64_t>(directory_end);
  if (begin > limit || bytes != limit - begin)
    fail(end_record, "a directory that ends where its end record begins",
         str_cat({"one of ", bytes, " bytes at ", begin, " in front of ", limit}));
  if (count > bytes / static_cast<uint64_t>(kCentralBytes))
    fail(end_record, str_cat({"at most ", bytes / static_cast<uint64_t>(kCentralBytes), " entries"}), str_cat({count}));
  return {static_cast<int64_t>(begin), directory_end, static_cast<int64_t>(count)};
}

void ZipReader::read_directory(const Directory& directory) {
  const std::string text = read_range(file_, directory.begin, directory.end - directory.begin);
  ByteCursor cursor(text, {file_.path(), -1, directory.begin});
  entries_.reserve(static_cast<size_t>(directory.count));
  for (int64_t i = 0; i < directory.count; ++i) {
    const int64_t start = cursor.position();
    if (cursor.read<uint32_t>("entry of the directory") != kCentralHeader)
      cursor.fail_at(start, "an entry of the directory", "something else");
    cursor.skip(4, "versions");
    const auto flags = cursor.read<uint16_t>("flags"), method = cursor.read<uint16_t>("method");
    cursor.skip(4, "time");
    ZipEntry entry;
    entry.crc = cursor.read<uint32_t>("CRC");
    uint64_t packed = cursor.read<uint32_t>("packed size"), size = cursor.read<uint32_t>("size");
    const auto name_bytes = cursor.read<uint16_t>("name size");
    const auto extra_bytes = cursor.read<uint16_t>("extra size");
    const auto comment_bytes = cursor.read<uint16_t>("comment size");
    cursor.skip(8, "disk and attributes");
    uint64_t header = cursor.read<uint32_t>("offset");
    entry.name = cursor.text(name_bytes, "name");
    uint64_t* wide[3];
    size_t wides = 0;
    for (uint64_t* value : {&size, &packed, &header})
      if (*value == kAll32) wide[wides++] = value;
    read_zip64(cursor.sub(extra_bytes, "extra fields"), wide, wides);
    cursor.skip(comment_bytes, "comment");

    const std::string shown = printable(entry.name);
    if (!is_safe_member_name(entry.name)) cursor.fail_at(start, "a relative member name in UTF-8", "'" + shown + "'");
    const auto refuse = [&](std::string_view expected, std::string_view found) {
      cursor.fail_at(start, str_cat({"member '", shown, "': ", expected}), found);
    };
    if (flags & kEncrypted) refuse("no encryption", "an encrypted one");
    if (method != kStored && method != kDeflated)
      refuse("a stored or deflated one (methods 0 and 8)", str_cat({"method ", method}));
    entry.deflated = method == kDeflated;
    const auto room = static_cast<uint64_t>(directory.begin);
    if (header > room || packed > room)
      refuse("a place in front of the directory", str_cat({packed, " bytes at ", header}));
    const auto most = entry.deflated ? packed * kMaxPerByte : packed;
    if (entry.deflated ? size > most : size != most)
      refuse(str_cat({entry.deflated ? "at most " : "", most, " bytes of content"}), str_cat({size}));
    entry.header = static_cast<int64_t>(header);
    entry.packed = static_cast<int64_t>(packed);
    entry.size = static_cast<int64_t>(size);
    if (entry.name.ends_with('/') && size > 0) refuse("no content in a folder", str_cat({size, " bytes"}));
    entries_.push_back(std::move(entry));
  }
  cursor.expect_end("the entries of the directory");

  std::vector<std::string_view> names;
  for (const ZipEntry& entry : entries_) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    fail(directory.begin, "every member once", str_cat({"two called '", printable(*twice), "'"}));
}

void ZipReader::read_local_header(ZipEntry& entry, int64_t limit) const {
  const auto name_bytes = static_cast<int64_t>(entry.name.size());
  const auto refuse = [&](std::string_view expected, std::string_view found) {
    fail(entry.header, str_cat({"member '", printable(entry.name), "': ", expected}), found);
  };
  if (limit - entry.header < kLocalBytes + name_bytes) refuse("a local header", "the directory");
  const std::string text = read_range(file_, entry.header, kLocalBytes + name_bytes);
  ByteCursor cursor(text, {file_.path(), -1, entry.header});
  if (cursor.read<uint32_t>("local header") != kLocalHeader) refuse("a local header", "something else");
  cursor.skip(2, "version");
  const auto flags = cursor.read<uint16_t>("flags"), method = cursor.read<uint16_t>("method");
  cursor.skip(4, "time");
  const auto crc = cursor.read<uint32_t>("CRC"), packed = cursor.read<uint32_t>("size"),
             size = cursor.read<uint32_t>("size");
  const auto local_name = cursor.read<uint16_t>("name size"), extra = cursor.read<uint16_t>("extra size");
  const bool sizes_follow = (flags & kSizesFollow) != 0;
  const auto agrees = [](uint32_t local, int64_t central) { return local == kAll32 || int64_t{local} == central; };
  if (local_name != name_bytes || cursor.text(entry.name.size(), "name") != entry.name ||
      (method == kDeflated) != entry.deflated ||
      (!sizes_follow && (crc != entry.crc || !agrees(packed, entry.packed) || !agrees(size, entry.size))))
    refuse("a local header like its entry in the directory", "another one");
  entry.data = entry.header + kLocalBytes + name_bytes + extra;
  if (entry.data > limit || entry.packed > limit - entry.data)
    refuse(str_cat({entry.packed, " bytes in front of the directory at ", limit}), str_cat({"data at ", entry.data}));
}

void ZipReader::check_ranges(int64_t directory) const {
  std::vector<const ZipEntry*> order;
  for (const ZipEntry& entry : entries_) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const ZipEntry* a, const ZipEntry* b) { return a->header < b->header; });
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t end = order[i]->data + order[i]->packed;
    const int64_t next = i + 1 < order.size() ? order[i + 1]->header : directory;
    if (end > next)
      fail(next, str_cat({"the end of member '", printable(order[i]->name), "', which is at ", end}),
           "another part of the archive: they overlap");
  }
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

std::unique_ptr<ByteReader> ZipReader::open(const ZipEntry& entry) const {
  std::unique_ptr<MemberReader> reader;
  if (entry.deflated)
    reader = std::make_unique<InflateReader>(file_, entry);
  else
    reader = std::make_unique<StoredReader>(file_, entry);
  if (entry.size == 0) reader->finish();
  return reader;
}

void ZipReader::read_into(const ZipEntry& entry, void* out) const {
  const std::unique_ptr<ByteReader> reader = open(entry);
  for (size_t done = 0; done < static_cast<size_t>(entry.size);)
    done += reader->read_some(static_cast<char*>(out) + done, static_cast<size_t>(entry.size) - done);
}

std::string ZipReader::read(const ZipEntry& entry) const {
  std::string content(static_cast<size_t>(entry.size), '\0');
  read_into(entry, content.data());
  return content;
}

}  // namespace tercel::io
