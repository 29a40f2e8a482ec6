#include "tercel/io/npz.h"

#include "tercel/io/npy_impl.h"
#include "tercel/io/zip_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::io {

namespace {
constexpr std::string_view kSuffix = ".npy";
}

void save_npz(const std::string& path, Span<NamedTensor> tensors, bool compressed) {
  for (const NamedTensor& t : tensors) check_exportable(t.tensor, "save_npz", t.name);
  ZipWriter zip(path);
  for (const NamedTensor& t : tensors) {
    const bool fortran = is_fortran_contiguous(t.tensor);
    const std::string header = npy_header_text(t.tensor.dtype(), fortran, t.tensor.sizes(), t.name);
    zip.begin(t.name + std::string(kSuffix), static_cast<int64_t>(header.size() + t.tensor.nbytes()), compressed);
    zip.write(header.data(), header.size());
    if (fortran)
      zip.write(t.tensor.data_ptr(), t.tensor.nbytes());
    else
      write_row_major(t.tensor, [&](const void* data, size_t bytes) { zip.write(data, bytes); });
    zip.end();
  }
  zip.commit();
}

struct NpzReader::State {
  ZipReader zip;
  std::vector<std::string> names;
};

NpzReader::NpzReader(const std::string& path, const NpzOptions& options)
    : state_(new State{ZipReader(path, options.max_inflated_bytes, "max_inflated_bytes"), {}}) {
  for (const ZipEntry& entry : state_->zip.entries()) {
    TERCEL_CHECK(entry.name.ends_with(kSuffix), DataError, printable(path), ": byte ", entry.header,
                 ": expected only .npy files, found '", printable(entry.name), "'");
    state_->names.push_back(entry.name.substr(0, entry.name.size() - kSuffix.size()));
  }
}

NpzReader::~NpzReader() = default;
NpzReader::NpzReader(NpzReader&&) noexcept = default;

const std::vector<std::string>& NpzReader::names() const { return state_->names; }

Tensor NpzReader::read(std::string_view name) const {
  const ZipEntry* entry = state_->zip.find(str_cat({name, kSuffix}));
  TERCEL_CHECK(entry, DataError, printable(state_->zip.file().path()), ": no array '", printable(name), "'");
  const std::unique_ptr<ByteReader> reader = state_->zip.open(*entry);
  return read_npy(*reader, entry->size);
}

std::vector<NamedTensor> load_npz(const std::string& path, const NpzOptions& options) {
  const NpzReader reader(path, options);
  std::vector<NamedTensor> tensors;
  tensors.reserve(reader.names().size());
  for (const std::string& name : reader.names()) tensors.push_back({name, reader.read(name)});
  return tensors;
}

}  // namespace tercel::io
