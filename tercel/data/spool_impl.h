// Memory for what is decoded once and read in any order. Private.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tercel/data/decoded_rows_impl.h"
#include "tercel/util/file.h"

namespace tercel::data {

/**
 * Hands out memory that lives as long as it does: first from the heap, beyond a limit from a file without a name in
 * TMPDIR (or /tmp), which the system may write out.
 */
class Spool {
 public:
  explicit Spool(int64_t heap_bytes) : heap_left_(heap_bytes) {}
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  /** A copy of the rows that points into the spool. IoError if the disk is full. May be called by several threads. */
  DecodedRows keep(const DecodedRows& rows);

 private:
  std::byte* allocate(size_t bytes);
  void map_chunk(size_t bytes);

  struct Mapping {
    void* address;
    size_t bytes;
  };

  std::mutex mutex_;
  int64_t heap_left_;
  std::vector<std::unique_ptr<std::byte[]>> heap_;
  File file_;
  int64_t file_bytes_ = 0;
  std::vector<Mapping> mappings_;
  std::byte* next_ = nullptr;  // what is left of the last one
  size_t left_ = 0;
};

}  // namespace tercel::data
