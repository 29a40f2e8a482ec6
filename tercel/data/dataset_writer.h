// Writes rows as the files of a part of a dataset, in any format (DatasetFormat::create_writer).
#pragma once

#include <cstdint>
#include <string>

#include "tercel/util/export.h"

namespace tercel::data {

struct DataPart;

struct WriterOptions {
  std::string folder;                  // of the dataset
  std::string prefix = "train/part-";  // of the files, relative to the folder: "train/part-0.data", "train/part-1.data"
  std::string file_list;               // HugeCTR's list of the files, a name in the folder; empty: none is written
  int64_t rows_per_file = 4 << 20;
  bool binary_labels = true;  // labels other than 0 and 1 are refused
};

/**
 * Writes rows to files in constant memory. Each file appears under its name when it is complete, the file list last;
 * all are removed again unless finish() is called. At least one file is written, which may have 0 rows.
 */
class TERCEL_API DatasetWriter {
 public:
  virtual ~DatasetWriter();

  /**
   * Appends rows: labels [rows, label_dim], dense [rows, dense_dim], nnz [rows, slot_num] (null: `hotness` keys in
   * every slot), and the concatenated keys of all slots of all rows. ValueError that names the row for a value that
   * RowRules or the format refuses; rows before the bad one are written.
   */
  virtual void write(int64_t rows, const float* labels, const float* dense, const int32_t* nnz,
                     const int64_t* keys) = 0;
  /** Rows written so far. */
  virtual int64_t rows() const noexcept = 0;
  /** Completes the last file and the list; returns files, rows, sizes and checksums. Nothing can be written after it.
   */
  virtual DataPart finish() = 0;
};

}  // namespace tercel::data
