// Writes rows as files in HugeCTR's Norm format, byte for byte.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tercel/data/dataset.h"
#include "tercel/util/export.h"

namespace tercel::data {

struct NormWriterOptions {
  std::string folder;                  // of the dataset
  std::string prefix = "train/part-";  // of the files, relative to the folder: "train/part-0.data", "train/part-1.data"
  std::string file_list;               // relative to the folder, e.g. "train.txt"; empty: none is written
  int64_t rows_per_file = 4 << 20;
  KeyType key_type = KeyType::I64;
  CheckMode check_mode = CheckMode::Sum;
  bool binary_labels = true;  // labels other than 0 and 1 are refused
};

/**
 * Writes rows to files in constant memory. Each file appears under its name when it is complete, the file list
 * last; all are removed again unless finish() is called. At least one file is written, which may have
 * 0 rows.
 */
class TERCEL_API NormWriter {
 public:
  /** Creates missing folders. ConfigError for an invalid schema or options. */
  NormWriter(const Schema& schema, const NormWriterOptions& options);
  ~NormWriter();
  NormWriter(const NormWriter&) = delete;
  NormWriter& operator=(const NormWriter&) = delete;

  /**
   * Appends rows: labels [rows, label_dim], dense [rows, dense_dim], nnz [rows, slot_num] (null: `hotness` keys in
   * every slot), and the concatenated keys of all slots of all rows. ValueError that names the row for a
   * label that is neither 0 nor 1, a dense value that is not finite, more keys than the slot's hotness, a key outside
   * its slot's range or too large for the key type; rows before the bad one are written.
   */
  void write(int64_t rows, const float* labels, const float* dense, const int32_t* nnz, const int64_t* keys);

  /** Rows written so far. */
  int64_t rows() const noexcept;

  /** Completes the last file and the list; returns files, rows, sizes and checksums. Nothing can be written after it.
   */
  DataPart finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tercel::data
