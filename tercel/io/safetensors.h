// Tensors in safetensors files: a JSON header, then the bytes of every tensor.
//
// docs/formats/safetensors.md has the layout. Files are byte for byte what the reference implementation writes: tensors
// sorted by descending alignment, then by name; no holes; little-endian, row-major.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/io/named_tensor.h"
#include "tercel/util/file.h"

namespace tercel::io {

/** String entries of the header. */
using Metadata = std::vector<std::pair<std::string, std::string>>;

/**
 * Writes a new file and syncs it. Tensors are contiguous, on the CPU, and are not copied; ValueError for others, and
 * for a duplicate name or one that is not UTF-8. The caller must make the file appear atomically
 * (AtomicDir). Returns the XXH3-64 checksum of the whole file.
 */
TERCEL_API uint64_t write_safetensors(const std::string& path, Span<NamedTensor> tensors,
                                      const Metadata& metadata = {});

/** The same, but replaces an existing file atomically. */
TERCEL_API void save_safetensors(const std::string& path, Span<NamedTensor> tensors, const Metadata& metadata = {});

struct SafetensorsOptions {
  /** Tensors view the mapped file instead of copies (MappedFile has the conditions); those of bools are still read. */
  bool mmap = false;
};

/** All tensors of a file, in its order. DataError as of SafetensorsReader. */
TERCEL_API std::vector<NamedTensor> load_safetensors(const std::string& path, const SafetensorsOptions& options = {});

/** Position of a tensor in a file. */
struct TensorEntry {
  std::string name;
  ScalarType dtype = ScalarType::Undefined;
  DimVector sizes;
  int64_t begin = 0;  ///< in bytes from the start of the file
  int64_t nbytes = 0;
};

/**
 * A file open for reading. The constructor reads and checks the header; DataError describes what is wrong with it.
 * Thread-safe.
 */
class TERCEL_API SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::string& path, const SafetensorsOptions& options = {});
  /** The same of a file that is open. */
  explicit SafetensorsReader(File file, const SafetensorsOptions& options = {});
  ~SafetensorsReader();
  SafetensorsReader(SafetensorsReader&&) noexcept;

  /** In the order of the file. */
  const std::vector<TensorEntry>& entries() const;
  const Metadata& metadata() const;
  /** The entry of a name, or null. */
  const TensorEntry* find(std::string_view name) const;
  /** The entry that read_into() would read; ValueError and DataError as there. */
  const TensorEntry& find_for(const NamedTensor& target) const;
  /** The entry of a name, dtype and sizes; DataError unless there is one. */
  const TensorEntry& find_for(std::string_view name, ScalarType dtype, IntSpan sizes) const;
  /** A tensor with the content, a new one or over the mapped file. DataError when the file has become shorter, or a
   * BOOL is neither 0 nor 1. */
  Tensor read(const TensorEntry& entry) const;
  /**
   * Reads the entry of that name into a contiguous CPU tensor. DataError, before anything is read, unless there is one
   * with its dtype and sizes.
   */
  void read_into(const NamedTensor& target) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tercel::io
