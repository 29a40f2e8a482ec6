// Writes .npy files, NumPy's format for one array: https://numpy.org/neps/nep-0001-npy-format.html, version 1.0.
#pragma once

#include <cstdint>
#include <string>

#include "tercel/util/atomic_file.h"
#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::io {

/** A one-dimensional little-endian float32 array of a length that is known at the end. Nothing is there before
 * commit().
 */
class TERCEL_API NpyWriter {
 public:
  explicit NpyWriter(const std::string& path);

  void write(Span<float> values);
  /** Makes the file appear under its name, whole and durable; nothing can be written after it. */
  void commit();

 private:
  AtomicFile file_;
  int64_t length_ = 0;
};

}  // namespace tercel::io
