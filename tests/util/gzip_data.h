// Gzip data for tests.
#pragma once

#include <zlib.h>

#include <stdexcept>
#include <string>

namespace tercel::test {

/** One gzip member with the text. */
inline std::string gzip(const std::string& text, int level = Z_DEFAULT_COMPRESSION) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib");
  std::string out(deflateBound(&stream, text.size()), '\0');
  std::string input = text;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("zlib");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace tercel::test
