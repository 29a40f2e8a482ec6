// Any format, metadata and numbers of a column over real memory give a tensor inside that memory or a typed error, and
// everything is released once. Input: six bytes of numbers, then the format, a zero byte, and the extension's JSON.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tercel/io/arrow.h"
#include "tercel/util/error.h"

namespace {

using namespace tercel;
using io::ArrowArray;
using io::ArrowSchema;

// Room for 24 elements of 8 bytes, and as many bits.
constexpr int64_t kElements = 24;

int released = 0;

void expect(bool holds) {
  if (!holds) std::abort();
}

template <class T>
void release(T* self) {
  ++released;
  self->release = nullptr;
}

void read_all(const Tensor& t) {
  std::string bytes;
  if (t.numel() > 0) expect(t.storage()->nbytes() <= static_cast<size_t>(8 * kElements));
  for (size_t i = 0; t.numel() > 0 && i < t.storage()->nbytes(); ++i)
    bytes += static_cast<const char*>(t.storage()->data())[i];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 6) return 0;
  const std::string rest(reinterpret_cast<const char*>(data + 6), size - 6);
  const std::string format = rest.substr(0, rest.find('\0')),
                    json = rest.substr(std::min(rest.size(), format.size() + 1));
  std::string metadata;
  const auto text = [&](const std::string& value) {
    const auto length = static_cast<int32_t>(value.size());
    metadata.append(reinterpret_cast<const char*>(&length), 4);
    metadata += value;
  };
  metadata.append("\2\0\0\0", 4);
  text("ARROW:extension:name");
  text("arrow.fixed_shape_tensor");
  text("ARROW:extension:metadata");
  text(json);

  const auto number = [&](size_t i) { return static_cast<int64_t>(static_cast<int8_t>(data[i])); };
  std::vector<uint8_t> values(8 * kElements, 0x55);
  const void* buffers[2] = {data[5] & 1 ? values.data() : nullptr, values.data()};
  const char child_format[2] = {static_cast<char>(data[4]), '\0'};
  ArrowSchema child_schema{}, schema{};
  ArrowArray child_array{}, array{};
  ArrowSchema* schemas[] = {&child_schema};
  ArrowArray* arrays[] = {&child_array};
  const bool is_list = format.rfind("+w:", 0) == 0;
  child_schema.format = child_format;
  child_array.buffers = array.buffers = buffers;
  child_array.n_buffers = 2;
  child_array.length = kElements;
  schema.format = format.c_str();
  schema.metadata = data[5] & 2 ? metadata.data() : nullptr;
  schema.n_children = array.n_children = is_list ? 1 : 0;
  schema.children = schemas;
  array.children = arrays;
  array.n_buffers = is_list ? 1 : 2;
  array.length = number(0);
  array.offset = number(1);
  array.null_count = number(2);
  child_array.null_count = number(3);
  // The producer's promise holds: buffers have the lengths that it declares.
  if (array.length >= 0 && array.offset >= 0 && array.length + array.offset > kElements) return 0;
  schema.release = release<ArrowSchema>;
  array.release = release<ArrowArray>;
  released = 0;
  try {
    const io::ArrowColumn column = io::from_arrow(&schema, &array, {.mask = (data[5] & 4) != 0});
    read_all(column.values);
    if (column.valid.defined()) expect(column.valid.numel() == column.values.sizes()[0]);
  } catch (const RuntimeError&) {
  } catch (const DataError&) {
  }
  expect(released == 2 && !schema.release && !array.release);
  return 0;
}
