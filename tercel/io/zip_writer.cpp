// The input of zlib is const.
#define ZLIB_CONST
#include <zlib.h>

#include <algorithm>
#include <array>
#include <set>

#include "tercel/io/zip_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::io {

namespace {

constexpr uint64_t kAll32 = 0xffffffff;
constexpr uint64_t kAll16 = 0xffff;
constexpr uint16_t kVersion = 20, kVersion64 = 45;
constexpr uint16_t kUtf8 = 0x800;
// The earliest time that zip can represent (1980); a fixed time makes files reproducible.
constexpr uint32_t kTime = 0x00210000;
// The field that torch pads with.
constexpr uint16_t kPaddingExtra = 0x4246;
constexpr size_t kOutputBytes = size_t{64} << 10;
constexpr size_t kMaxPerCall = size_t{1} << 30;
constexpr int64_t kCrcOffset = 14;

/** Consecutive little-endian fields of a header. */
class Fields {
 public:
  Fields& u16(uint64_t value) { return put(value, 2); }
  Fields& u32(uint64_t value) { return put(value, 4); }
  Fields& u64(uint64_t value) { return put(value, 8); }
  Fields& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Fields& put(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  std::string bytes_;
};

uint16_t flags_of(std::string_view name) {
  return std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) > 127; }) ? kUtf8 : 0;
}

}  // namespace

struct ZipWriter::Deflater {
  z_stream stream{};
  std::vector<Bytef> output = std::vector<Bytef>(kOutputBytes);

  Deflater() {
    TERCEL_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK,
                 OutOfMemoryError, "zip: no memory to deflate");
  }
  ~Deflater() { deflateEnd(&stream); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
};

ZipWriter::ZipWriter(const std::string& path) : file_(path) {}
ZipWriter::~ZipWriter() = default;

void ZipWriter::put(const void* data, size_t bytes) {
  file_.write(data, bytes);
  position_ += static_cast<int64_t>(bytes);
}

void ZipWriter::begin(std::string_view name, int64_t size, bool deflate, size_t alignment) {
  TERCEL_CHECK(is_safe_member_name(name), ValueError, printable(file_.path()), ": '", printable(name),
               "' cannot be the name of a member: expected a relative one in UTF-8");
  ZipEntry entry;
  entry.name = name;
  entry.header = position_;
  entry.size = size;
  entry.deflated = deflate;
  written_ = 0;
  // Deflated data may be slightly larger than its input.
  wide_ = static_cast<uint64_t>(size) + static_cast<uint64_t>(size) / 1000 + 1000 >= kAll32;
  Fields extra;
  if (wide_) extra.u16(1).u16(16).u64(static_cast<uint64_t>(size)).u64(deflate ? 0 : static_cast<uint64_t>(size));
  if (alignment > 1) {
    const uint64_t before = static_cast<uint64_t>(position_) + 30 + name.size() + extra.bytes().size() + 4;
    const uint64_t padding = (alignment - before % alignment) % alignment;
    extra.u16(kPaddingExtra).u16(padding).text(std::string(padding, 'Z'));
  }
  const uint64_t known = wide_ ? kAll32 : static_cast<uint64_t>(size);
  Fields header;
  header.u32(0x04034b50).u16(wide_ ? kVersion64 : kVersion).u16(flags_of(name)).u16(deflate ? 8 : 0).u32(kTime).u32(0);
  header.u32(known).u32(known).u16(name.size()).u16(extra.bytes().size()).text(name).text(extra.bytes());
  put(header.bytes().data(), header.bytes().size());
  entry.data = position_;
  entries_.push_back(std::move(entry));
  if (deflate) deflater_ = std::make_unique<Deflater>();
}

void ZipWriter::write(const void* data, size_t bytes) {
  ZipEntry& entry = entries_.back();
  entry.crc = static_cast<uint32_t>(crc32_z(entry.crc, static_cast<const Bytef*>(data), bytes));
  written_ += static_cast<int64_t>(bytes);
  if (!deflater_) {
    put(data, bytes);
    return;
  }
  z_stream& stream = deflater_->stream;
  const auto* next = static_cast<const Bytef*>(data);
  while (bytes > 0) {
    const size_t part = std::min(bytes, kMaxPerCall);
    stream.next_in = next;
    stream.avail_in = static_cast<uInt>(part);
    next += part;
    bytes -= part;
    do {
      stream.next_out = deflater_->output.data();
      stream.avail_out = kOutputBytes;
      TERCEL_ASSERT(deflate(&stream, Z_NO_FLUSH) != Z_STREAM_ERROR);
      put(deflater_->output.data(), kOutputBytes - stream.avail_out);
    } while (stream.avail_out == 0);
  }
}

void ZipWriter::end() {
  ZipEntry& entry = entries_.back();
  TERCEL_ASSERT(written_ == entry.size);
  if (deflater_) {
    z_stream& stream = deflater_->stream;
    stream.avail_in = 0;
    for (int status = Z_OK; status != Z_STREAM_END;) {
      stream.next_out = deflater_->output.data();
      stream.avail_out = kOutputBytes;
      status = deflate(&stream, Z_FINISH);
      TERCEL_ASSERT(status == Z_OK || status == Z_STREAM_END);
      put(deflater_->output.data(), kOutputBytes - stream.avail_out);
    }
    deflater_.reset();
  }
  entry.packed = position_ - entry.data;
  // Values that were not known when the header was written.
  Fields late;
  late.u32(entry.crc);
  if (!wide_) late.u32(static_cast<uint64_t>(entry.packed));
  file_.writer().rewrite(entry.header + kCrcOffset, late.bytes().data(), late.bytes().size());
  if (wide_ && entry.deflated) {
    Fields packed;
    packed.u64(static_cast<uint64_t>(entry.packed));
    const int64_t at = entry.header + 30 + static_cast<int64_t>(entry.name.size()) + 12;
    file_.writer().rewrite(at, packed.bytes().data(), packed.bytes().size());
  }
}

void ZipWriter::add(std::string_view name, std::string_view content, size_t alignment) {
  begin(name, static_cast<int64_t>(content.size()), false, alignment);
  write(content.data(), content.size());
  end();
}

void ZipWriter::commit() {
  std::set<std::string_view> names;
  for (const ZipEntry& entry : entries_)
    TERCEL_CHECK(names.insert(entry.name).second, ValueError, printable(file_.path()), ": the name '",
                 printable(entry.name), "' is a duplicate");
  const auto begin = static_cast<uint64_t>(position_);
  for (const ZipEntry& entry : entries_) {
    Fields extra;
    const auto narrow = [&](int64_t value) {
      const auto whole = static_cast<uint64_t>(value);
      if (whole >= kAll32) extra.u64(whole);
      return std::min(whole, kAll32);
    };
    const uint64_t size = narrow(entry.size), packed = narrow(entry.packed), header = narrow(entry.header);
    Fields wide;
    if (!extra.bytes().empty()) wide.u16(1).u16(extra.bytes().size()).text(extra.bytes());
    const uint16_t version = wide.bytes().empty() ? kVersion : kVersion64;
    Fields fields;
    fields.u32(0x02014b50).u16(version).u16(version).u16(flags_of(entry.name)).u16(entry.deflated ? 8 : 0).u32(kTime);
    fields.u32(entry.crc).u32(packed).u32(size).u16(entry.name.size()).u16(wide.bytes().size()).u16(0).u16(0).u16(0);
    fields.u32(0).u32(header).text(entry.name).text(wide.bytes());
    put(fields.bytes().data(), fields.bytes().size());
  }
  const auto end = static_cast<uint64_t>(position_), count = uint64_t{entries_.size()};
  Fields fields;
  if (count >= kAll16 || begin >= kAll32 || end - begin >= kAll32) {
    fields.u32(0x06064b50).u64(44).u16(kVersion64).u16(kVersion64).u32(0).u32(0);
    fields.u64(count).u64(count).u64(end - begin).u64(begin);
    fields.u32(0x07064b50).u32(0).u64(end).u32(1);
  }
  const uint64_t shown = std::min(count, kAll16);
  fields.u32(0x06054b50).u16(0).u16(0).u16(shown).u16(shown);
  fields.u32(std::min(end - begin, kAll32)).u32(std::min(begin, kAll32)).u16(0);
  put(fields.bytes().data(), fields.bytes().size());
  file_.commit();
}

}  // namespace tercel::io
