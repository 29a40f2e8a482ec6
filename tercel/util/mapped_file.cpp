#include "tercel/util/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>

#include "tercel/util/file_calls_impl.h"

namespace tercel {

MappedFile::MappedFile(const File& file) : size_(static_cast<size_t>(file.size())) {
  if (size_ == 0) return;  // an empty range cannot be mapped
  data_ = static_cast<std::byte*>(detail::call_map(file.fd(), size_));
  if (!data_) detail::throw_io_error(file.path(), "map", errno);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(data_, size_);
}

}  // namespace tercel
