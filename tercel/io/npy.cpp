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

NpyWriter::NpyWriter(const std::string& path, IntSpan row_sizes) : file_(path), row_sizes_(row_sizes) {
  file_.write(header(0));
}

void NpyWriter::write(Span<float> values) {
  file_.write(values.data(), values.size() * sizeof(float));
  numel_ += static_cast<int64_t>(values.size());
}

void NpyWriter::commit() {
  const int64_t row = numel_of(row_sizes_);
  TERCEL_CHECK(row > 0 && numel_ % row == 0, ValueError, file_.path(), ": ", numel_, " values are no whole rows ",
               IntSpan(row_sizes_));
  const std::string text = header(numel_ / row);
  file_.writer().rewrite(0, text.data(), text.size());
  file_.commit();
}

/** Has the same length for any number of rows: the format pads it. */
std::string NpyWriter::header(int64_t rows) const {
  DimVector sizes{rows};
  for (const int64_t size : row_sizes_) sizes.push_back(size);
  return npy_header_text(kFloat32, false, sizes, file_.path());
}

}  // namespace tercel::io
