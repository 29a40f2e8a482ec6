#include <algorithm>
#include <cstring>

#include "tercel/io/elements_impl.h"
#include "tercel/util/format.h"

namespace tercel::io {

namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;

constexpr ElementType kTypes[] = {
    {kBool, "BOOL", 'b', "BoolStorage", DlpackCode::Bool, 'b'},
    {kUInt8, "U8", 'u', "ByteStorage", DlpackCode::UInt, 'C'},
    {kInt8, "I8", 'i', "CharStorage", DlpackCode::Int, 'c'},
    {kInt16, "I16", 'i', "ShortStorage", DlpackCode::Int, 's'},
    {kUInt16, "U16", 'u', "", DlpackCode::UInt, 'S'},
    {kFloat16, "F16", 'f', "HalfStorage", DlpackCode::Float, 'e'},
    {kBFloat16, "BF16", 0, "BFloat16Storage", DlpackCode::Bfloat, 0},
    {kInt32, "I32", 'i', "IntStorage", DlpackCode::Int, 'i'},
    {kUInt32, "U32", 'u', "", DlpackCode::UInt, 'I'},
    {kFloat32, "F32", 'f', "FloatStorage", DlpackCode::Float, 'f'},
    // Only newer readers of safetensors support it.
    {kComplex64, "C64", 'c', "ComplexFloatStorage", DlpackCode::Complex, 0},
    {kFloat64, "F64", 'f', "DoubleStorage", DlpackCode::Float, 'g'},
    {kInt64, "I64", 'i', "LongStorage", DlpackCode::Int, 'l'},
    {kUInt64, "U64", 'u', "", DlpackCode::UInt, 'L'},
    {kComplex128, "", 'c', "ComplexDoubleStorage", DlpackCode::Complex, 0},
};

template <size_t kItem>
void gather(char* out, const char* from, int64_t count, int64_t step) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(out + i * static_cast<int64_t>(kItem), from + i * step, kItem);
}

/** Copies `count` elements that are `step` bytes apart to contiguous memory. */
void gather(char* out, const char* from, int64_t count, int64_t step, size_t item) {
  switch (item) {
    case 1: return gather<1>(out, from, count, step);
    case 2: return gather<2>(out, from, count, step);
    case 4: return gather<4>(out, from, count, step);
    case 8: return gather<8>(out, from, count, step);
    default:
      for (int64_t i = 0; i < count; ++i) std::memcpy(out + i * static_cast<int64_t>(item), from + i * step, item);
  }
}

DimVector reversed(IntSpan values) {
  DimVector out(values);
  std::reverse(out.begin(), out.end());
  return out;
}

void release_map(void* context) { delete static_cast<std::shared_ptr<const MappedFile>*>(context); }

}  // namespace

Span<ElementType> element_types() { return kTypes; }

const ElementType* find_element_type(ScalarType type) {
  for (const ElementType& t : kTypes)
    if (t.type == type) return &t;
  return nullptr;
}

bool is_fortran_contiguous(const Tensor& t) {
  return !t.is_contiguous() && is_contiguous_strides(reversed(t.sizes()), reversed(t.strides()));
}

DimVector fortran_strides(IntSpan sizes) { return reversed(contiguous_strides(reversed(sizes))); }

void write_row_major(const Tensor& t, ByteSink sink) {
  if (t.numel() == 0) return;
  const auto* base = static_cast<const char*>(t.data_ptr());
  if (t.is_contiguous()) {
    sink(base, t.nbytes());
    return;
  }
  const size_t item = t.itemsize(), last = static_cast<size_t>(t.dim()) - 1;
  const IntSpan sizes = t.sizes();
  DimVector steps(t.strides()), index(sizes.size(), 0);
  for (int64_t& step : steps) step *= static_cast<int64_t>(item);
  const std::unique_ptr<char[]> block(new char[kBlockBytes]);
  size_t used = 0;
  for (const char* row = base;;) {
    for (int64_t done = 0; done < sizes[last];) {
      const int64_t room = static_cast<int64_t>((kBlockBytes - used) / item);
      const int64_t count = std::min(room, sizes[last] - done);
      gather(block.get() + used, row + done * steps[last], count, steps[last], item);
      used += static_cast<size_t>(count) * item;
      done += count;
      if (used + item > kBlockBytes) {
        sink(block.get(), used);
        used = 0;
      }
    }
    size_t d = last;
    for (; d > 0; --d) {
      row += steps[d - 1];
      if (++index[d - 1] < sizes[d - 1]) break;
      row -= steps[d - 1] * sizes[d - 1];
      index[d - 1] = 0;
    }
    if (d == 0) break;
  }
  if (used > 0) sink(block.get(), used);
}

Tensor row_major_copy(const Tensor& t) {
  Tensor out = empty(t.sizes(), t.dtype());
  auto* next = static_cast<char*>(out.data_ptr());
  write_row_major(t, [&](const void* data, size_t bytes) {
    std::memcpy(next, data, bytes);
    next += bytes;
  });
  return out;
}

void swap_bytes(void* data, size_t bytes, ScalarType type) {
  const size_t item = item_size(type) / (category_of(type) == TypeCategory::Complex ? 2 : 1);
  auto* p = static_cast<unsigned char*>(data);
  if (item > 1)
    for (size_t i = 0; i + item <= bytes; i += item) std::reverse(p + i, p + i + item);
}

int64_t find_wrong_bool(const void* data, size_t count) {
  const auto* p = static_cast<const unsigned char*>(data);
  const unsigned char* wrong = std::find_if(p, p + count, [](unsigned char byte) { return byte > 1; });
  return wrong == p + count ? -1 : wrong - p;
}

Storage map_storage(std::shared_ptr<const MappedFile> file, int64_t offset, int64_t nbytes) {
  std::byte* const start = file->data() + offset;
  auto* owner = new std::shared_ptr<const MappedFile>(std::move(file));
  return make_intrusive<StorageImpl>(static_cast<size_t>(nbytes), DataPtr(start, owner, release_map, kCpu), nullptr,
                                     false);
}

void check_exportable(const Tensor& t, std::string_view op, std::string_view name) {
  TERCEL_CHECK(!t.defined() || t.layout() == Layout::Strided, RuntimeError, name.empty() ? "a tensor" : "tensor '",
               printable(name), name.empty() ? "" : "'", " of layout ", to_string(t.layout()),
               t.layout() == Layout::Opaque ? ", which is a packed weight," : "",
               " cannot be saved or exported as its elements; convert it with to_dense() first");
  TERCEL_CHECK(t.defined() && t.layout() == Layout::Strided && t.device().is_cpu(), RuntimeError, op, ": ",
               name.empty() ? "expected a strided tensor on the CPU" : "tensor '", printable(name),
               name.empty() ? "" : "': expected a strided one on the CPU", " but got ", describe(t));
}

Storage lend_storage(const Tensor& t) {
  if (t.has_storage()) t.storage()->set_resizable(false);
  return t.storage();
}

}  // namespace tercel::io
