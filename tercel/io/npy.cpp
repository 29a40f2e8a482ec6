#include "tercel/io/npy.h"

#include "tercel/core/alignment.h"
#include "tercel/io/npy_impl.h"

namespace tercel::io {

void save_npy(const std::string& path, const Tensor& tensor) {
  check_exportable(tensor, "save_npy", "");
  const bool fortran = is_fortran_contiguous(tensor);
  const std::string header = npy_header_text(tensor.dtype(), fortran, tensor.sizes(), path);
  AtomicFile file(path);
  file.write(header);
  if (fortran)
    file.write(tensor.data_ptr(), tensor.nbytes());
  else
    write_row_major(tensor, [&](const void* data, size_t bytes) { file.write(data, bytes); });
  file.commit();
}

Tensor load_npy(const std::string& path, const NpyOptions& options) {
  const auto open = [&] {
    File file = File::open_read(path);
    const int64_t size = file.size();
    return std::pair(FileReader(std::move(file)), size);
  };
  if (options.mmap) {
    auto [reader, size] = open();
    const NpyHeader header = read_npy_header(reader, size);
    if (header.dtype != kBool && !header.swapped && header.nbytes > 0 &&
        header.data % static_cast<int64_t>(item_size(header.dtype)) == 0) {
      auto map = std::make_shared<const MappedFile>(File::open_read(path));
      TERCEL_CHECK(static_cast<int64_t>(map->size()) == size, DataError, path, ": expected ", size,
                   " bytes as before, found ", map->size(), ": the file was changed");
      const DimVector strides = header.fortran ? fortran_strides(header.sizes) : contiguous_strides(header.sizes);
      return Tensor(make_intrusive<TensorImpl>(map_storage(std::move(map), header.data, header.nbytes), header.dtype,
                                               header.sizes, strides, 0));
    }
  }
  auto [reader, size] = open();
  return read_npy(reader, size);
}

NpyWriter::NpyWriter(const std::string& path) : file_(path) {
  file_.write(npy_header_text(kFloat32, false, {0}, path));
}

void NpyWriter::write(Span<float> values) {
  file_.write(values.data(), values.size() * sizeof(float));
  length_ += static_cast<int64_t>(values.size());
}

void NpyWriter::commit() {
  // Has the length of the first header: the format pads it for any array length.
  const std::string header = npy_header_text(kFloat32, false, {length_}, file_.path());
  file_.writer().rewrite(0, header.data(), header.size());
  file_.commit();
}

}  // namespace tercel::io
