// .npy files, NumPy's format for one array. docs/formats/npy.md has the layout.
#pragma once

#include <cstdint>
#include <string>

#include "tercel/core/tensor.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::io {

/**
 * Writes a strided CPU tensor of any sizes, byte for byte as numpy.save does: version 1.0, in Fortran order if the
 * elements have it. The file is written atomically. TypeError for a dtype that NumPy lacks (bfloat16), RuntimeError for
 * other tensors.
 */
TERCEL_API void save_npy(const std::string& path, const Tensor& tensor);

struct NpyOptions {
  /** Maps the file instead of reading it (MappedFile has the conditions); bool and swapped bytes are still read. */
  bool mmap = false;
};

/**
 * Reads versions 1.0, 2.0 and 3.0 in any byte order; strides are column-major for an array in Fortran order.
 * DataError for damaged files and for arrays of objects, strings, dates and records.
 */
TERCEL_API Tensor load_npy(const std::string& path, const NpyOptions& options = {});

/**
 * Writes a little-endian float32 array [n, row_sizes...] whose first size is not known in advance. The file appears on
 * commit().
 */
class TERCEL_API NpyWriter {
 public:
  explicit NpyWriter(const std::string& path, IntSpan row_sizes = {});

  /** Appends rows. */
  void write(Span<float> values);
  /** Makes the file durable under its name; no more can be written. ValueError if the last row is not whole. */
  void commit();

 private:
  std::string header(int64_t rows) const;

  AtomicFile file_;
  DimVector row_sizes_;
  int64_t numel_ = 0;
};

}  // namespace tercel::io
