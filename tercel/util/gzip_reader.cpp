#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "tercel/util/error.h"
#include "tercel/util/file_stream.h"
#include "tercel/util/format.h"

namespace tercel {

namespace {

constexpr size_t kInputBytes = size_t{64} << 10;
// zlib counts in 32 bits.
constexpr size_t kMaxPerCall = size_t{1} << 30;
constexpr unsigned char kMagic[2] = {0x1f, 0x8b};

}  // namespace

namespace {

/** A file without a buffer: the reader has one. */
class FileBytes final : public ByteReader {
 public:
  explicit FileBytes(File file) : file_(std::move(file)) {}

  size_t read_some(void* out, size_t bytes) override { return file_.read_some(out, bytes); }
  const std::string& name() const override { return file_.path(); }

 private:
  File file_;
};

}  // namespace

struct GzipReader::State {
  std::unique_ptr<ByteReader> source;
  int64_t max_bytes = 0;
  int64_t produced = 0;
  int64_t consumed = 0;  // of the file: where next_in points
  int64_t member = 1;
  bool gzip = false;
  bool inside_member = false;
  bool finished = false;
  bool input_ended = false;
  z_stream stream{};
  std::vector<unsigned char> input = std::vector<unsigned char>(kInputBytes);

  ~State() {
    if (gzip) inflateEnd(&stream);
  }

  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    throw_error<DataError>({printable(source->name()), ": byte ", consumed, ": gzip member ", member, ": expected ",
                            expected, ", found ", found});
  }

  /** Reads until at least `wanted` bytes are there or the file ends. */
  void fill(size_t wanted) {
    while (stream.avail_in < wanted && !input_ended) {
      std::memmove(input.data(), stream.next_in, stream.avail_in);
      stream.next_in = input.data();
      const size_t count = source->read_some(input.data() + stream.avail_in, input.size() - stream.avail_in);
      stream.avail_in += static_cast<uInt>(count);
      input_ended = count == 0;
    }
  }

  bool at_magic() const {
    return stream.avail_in >= sizeof kMagic && std::memcmp(stream.next_in, kMagic, sizeof kMagic) == 0;
  }

  void start() {
    stream.next_in = input.data();
    fill(sizeof kMagic);
    if (at_magic()) {
      TERCEL_CHECK(inflateInit2(&stream, 15 + 16) == Z_OK, OutOfMemoryError, printable(source->name()),
                   ": no memory to decompress gzip data");
      gzip = true;
      inside_member = true;
    } else if (source->name().ends_with(".gz")) {
      fail("gzip data, which starts with the bytes 1f 8b",
           stream.avail_in < sizeof kMagic ? "the end of the file" : "something else");
    }
  }

  size_t read_plain(void* out, size_t bytes) {
    fill(1);
    const size_t count = std::min<size_t>(bytes, stream.avail_in);
    if (count > 0) std::memcpy(out, stream.next_in, count);
    stream.next_in += count;
    stream.avail_in -= static_cast<uInt>(count);
    consumed += static_cast<int64_t>(count);
    return count;
  }

  // After a member comes another one, zeros to the end (tapes and some tools pad), or the end.
  void next_member() {
    fill(sizeof kMagic);
    if (at_magic()) {
      TERCEL_ASSERT(inflateReset(&stream) == Z_OK);
      inside_member = true;
      ++member;
      return;
    }
    for (; stream.avail_in > 0; fill(1)) {
      for (; stream.avail_in > 0; ++stream.next_in, --stream.avail_in, ++consumed)
        if (*stream.next_in != 0) fail("another gzip member, zeros or the end of the file after it", "other bytes");
    }
    finished = true;
  }

  size_t read_gzip(void* out, size_t bytes) {
    stream.next_out = static_cast<unsigned char*>(out);
    stream.avail_out = static_cast<uInt>(std::min(bytes, kMaxPerCall));
    const uInt room = stream.avail_out;
    while (stream.avail_out == room && !finished) {
      if (!inside_member) {
        next_member();
        continue;
      }
      fill(1);
      if (stream.avail_in == 0) fail("more compressed data", "the end of the file: it is truncated");
      const uInt before = stream.avail_in;
      const int status = inflate(&stream, Z_NO_FLUSH);
      consumed += before - stream.avail_in;
      if (status == Z_STREAM_END) {
        inside_member = false;
      } else if (status == Z_MEM_ERROR) {
        throw_error<OutOfMemoryError>({printable(source->name()), ": no memory to decompress gzip data"});
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        fail("valid gzip data", stream.msg != nullptr ? stream.msg : "damaged data");
      }
    }
    return room - stream.avail_out;
  }
};

GzipReader::GzipReader(File file, int64_t max_bytes)
    : GzipReader(std::make_unique<FileBytes>(std::move(file)), max_bytes) {}

GzipReader::GzipReader(std::unique_ptr<ByteReader> source, int64_t max_bytes) : state_(std::make_unique<State>()) {
  state_->source = std::move(source);
  state_->max_bytes = max_bytes;
  state_->start();
}

GzipReader::~GzipReader() = default;

size_t GzipReader::read_some(void* out, size_t bytes) {
  State& state = *state_;
  if (bytes == 0) return 0;
  const size_t count = state.gzip ? state.read_gzip(out, bytes) : state.read_plain(out, bytes);
  state.produced += static_cast<int64_t>(count);
  TERCEL_CHECK(state.produced <= state.max_bytes, DataError, printable(name()), ": byte ", state.consumed,
               ": expected at most ", format_bytes(state.max_bytes), state.gzip ? " of decompressed data" : "",
               ", found more");
  return count;
}

const std::string& GzipReader::name() const { return state_->source->name(); }

bool GzipReader::is_gzip() const noexcept { return state_->gzip; }

int64_t GzipReader::compressed_position() const noexcept { return state_->consumed; }

}  // namespace tercel
