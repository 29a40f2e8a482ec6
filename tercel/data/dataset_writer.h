// Writes rows as the files of a part of a dataset, in any format (DatasetFormat::create_writer).
#pragma once

#include <cstdint>
#include <string>

#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel::data {

struct DataPart;

/** Consecutive rows in memory. */
struct RowBlock {
  int64_t rows = 0;
  const float* labels = nullptr;       // [rows, label_dim]
  const float* dense = nullptr;        // [rows, dense_dim]
  const int32_t* nnz = nullptr;        // [rows, slot_num]; null: `hotness` keys in every slot
  const int64_t* keys = nullptr;       // those of all slots of all rows, one after the other
  const float* key_weights = nullptr;  // one for each key; null: all are 1
  Span<const void*> columns = {};      // for each column of the schema, [rows] float or int64_t
};

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
   * Appends rows. ValueError that names the row for a label that is neither 0 nor 1 (with binary_labels), a value that
   * is not finite, more keys than the slot's hotness, a key outside its slot's range or too large for the files; rows
   * before the bad one are written.
   */
  virtual void write(const RowBlock& block) = 0;
  /**
   * Rows that follow go to a new file, which takes so many of them (0 or more) instead of rows_per_file; files after it
   * have rows_per_file again.
   */
  virtual void start_file(int64_t rows) = 0;
  /** Rows written so far. */
  virtual int64_t rows() const noexcept = 0;
  /** Completes the last file and the list; returns files, rows, sizes and checksums. Nothing can be written after it.
   */
  virtual DataPart finish() = 0;
};

}  // namespace tercel::data
