// .npy files of records: NumPy's structured arrays, which have named fields of different types.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/util/atomic_file.h"
#include "tercel/util/export.h"

namespace tercel::io {

/** A field of a record. */
struct NpyField {
  std::string name;   // UTF-8, not empty
  std::string type;   // as NumPy writes it: "<i8", "<f4", or "<U12", text of 12 code points of 4 bytes
  int64_t bytes = 0;  // of a value
};

/** Writes an array [n] of records whose number is not known in advance. The file appears on commit(). */
class TERCEL_API NpyRecordWriter {
 public:
  /** ValueError unless there are fields, with different names. */
  NpyRecordWriter(const std::string& path, const std::vector<NpyField>& fields);

  /** Bytes of a record: its fields one behind the other. */
  int64_t record_bytes() const { return record_bytes_; }
  /** Appends `count` records, whose numbers are little-endian. */
  void write(const void* records, int64_t count);
  /** Makes the file durable under its name; no more can be written. */
  void commit();

 private:
  std::string header(int64_t records) const;

  AtomicFile file_;
  std::string descr_;
  int64_t record_bytes_ = 0;
  int64_t records_ = 0;
};

/** The code points of a UTF-8 text, as values of NumPy's type U have them. ValueError for text that is not UTF-8. */
TERCEL_API std::u32string code_points(std::string_view text);

}  // namespace tercel::io
