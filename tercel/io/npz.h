// .npz files: NumPy arrays by name, a zip archive of .npy files. docs/formats/npy.md has the layout.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/io/named_tensor.h"
#include "tercel/util/export.h"

namespace tercel::io {

/**
 * Writes tensors as numpy.savez (compressed: numpy.savez_compressed) does, atomically.
 * ValueError for a duplicate name or one that leads out of a folder; otherwise errors as of save_npy().
 */
TERCEL_API void save_npz(const std::string& path, Span<NamedTensor> tensors, bool compressed = false);

struct NpzOptions {
  /** Limit on the total size of compressed arrays; 0: 1 GiB or 128 times the file, whichever is more. */
  int64_t max_inflated_bytes = 0;
};

/** An archive open for reading: the constructor checks its directory, read() each array. */
class TERCEL_API NpzReader {
 public:
  /** DataError if it is not such an archive, or has members other than .npy files. */
  explicit NpzReader(const std::string& path, const NpzOptions& options = {});
  ~NpzReader();
  NpzReader(NpzReader&&) noexcept;

  /** In the order of the archive, without ".npy". */
  const std::vector<std::string>& names() const;
  /** Reads one array; DataError if there is none of that name, and as of load_npy(). Thread-safe. */
  Tensor read(std::string_view name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/** All arrays of an archive, in its order. */
TERCEL_API std::vector<NamedTensor> load_npz(const std::string& path, const NpzOptions& options = {});

}  // namespace tercel::io
