#include "tercel/io/npy.h"

namespace tercel::io {

namespace {

// Room for any length; the format wants the values to begin at a multiple of 64 bytes.
constexpr size_t kHeaderBytes = 128;

std::string header(int64_t length) {
  std::string text("\x93NUMPY\x01\x00", 8);
  const size_t dict_bytes = kHeaderBytes - text.size() - 2;
  text += static_cast<char>(dict_bytes & 0xff);
  text += static_cast<char>(dict_bytes >> 8);
  text += "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(length) + ",), }";
  text.resize(kHeaderBytes - 1, ' ');
  return text + '\n';
}

}  // namespace

NpyWriter::NpyWriter(const std::string& path) : file_(path) { file_.write(header(0)); }

void NpyWriter::write(Span<float> values) {
  file_.write(values.data(), values.size() * sizeof(float));
  length_ += static_cast<int64_t>(values.size());
}

void NpyWriter::commit() {
  file_.writer().rewrite(0, header(length_).data(), kHeaderBytes);
  file_.commit();
}

}  // namespace tercel::io
