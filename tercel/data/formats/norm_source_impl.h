// Norm files as a source of rows. Private.
//
// Note [Uniform and ragged files]
// If a file's size is that of its records with all slots full, every record has full slots, because no slot may hold
// more: the offset of record r is a product, and only the counts have to be checked. This holds for one-hot data and
// is detected without an option. Any other file is ragged: its records are found by scanning from one to the next. The
// offset of every kMarkRows-th record is kept, so that seeking scans each byte of a file at most once, and less than
// kMarkRows records after that. Sequential readers keep no such marks.
//
// Where bad records are to be left out, a framed record whose counts break a rule is passed over by its length, if a
// record can have it. If the length is what is damaged, or there is none, the next record cannot be found.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/formats/norm_decode_kernels.h"
#include "tercel/data/formats/norm_layout_impl.h"
#include "tercel/data/formats/row_loop_impl.h"
#include "tercel/data/formats/source_files_impl.h"
#include "tercel/data/record_source_impl.h"

namespace tercel::data {

class NormSource final : public RecordSource {
 public:
  NormSource(const NormOptions& norm, const Dataset& dataset, const DataPart& part, const SourceOptions& options);

  int64_t rows() const override { return files_.rows(); }
  RowWindows windows() const override { return RowWindows::every(rows(), rows_per_read_); }
  const BatchShape& shape() const override { return shape_; }
  std::unique_ptr<Window> make_window() const override;
  void load(Span<RowRange> ranges, Window& window, const std::atomic<bool>& stop) override;
  void decode(const Window& window, const Places& places, BatchBuffer& out) const override;

 private:
  /** What is known about the records of a file. */
  struct Records {
    bool uniform = false;
    std::vector<int64_t> marks;  // offsets of records 0, kMarkRows, 2 * kMarkRows ... as far as they are known
  };
  /** Consecutive records of a file in a window. */
  struct Piece {
    size_t file = 0;
    int64_t first_record = 0;
    int64_t offset = 0;     // of the first record in the file
    int64_t first_row = 0;  // in the window
    size_t first_byte = 0;  // in the window
  };
  struct NormWindow final : Window {
    ByteBuffer bytes;
    std::vector<size_t> starts;     // ragged: where each row starts, and where the last one ends
    std::vector<size_t> malformed;  // ragged: rows whose counts contradict their length, which were passed over
    std::vector<Piece> pieces;
  };

  /** What is the same for all windows and batches. */
  void make_loop(bool binary_labels);
  void open_files(const Dataset& dataset, const DataPart& part);
  /** Opens the file for the thread that loads. */
  const RandomAccessFile& use(size_t index);

  void load_uniform(size_t index, int64_t record, int64_t count, NormWindow& window);
  void load_ragged(size_t index, int64_t record, int64_t count, NormWindow& window, const std::atomic<bool>& stop);
  /** Scans to a record from the nearest known offset. */
  RecordPlace find_record(size_t index, int64_t record, const std::atomic<bool>& stop);
  /**
   * Reads and scans `count` records; appends their bytes to the window, or drops them if it is null. Returns the
   * position after them, or an earlier one if it is stopped.
   */
  RecordPlace walk(size_t index, RecordPlace from, int64_t count, NormWindow* window, const std::atomic<bool>& stop);
  /** Bytes of the record that starts here; 0 if it is longer than `bytes`, -1 if its counts break a rule. */
  int64_t record_size(const std::byte* record, size_t bytes) const;
  /** The same by the length before a framed record, whatever its counts are; -1 if no record has this length. */
  int64_t framed_size(const std::byte* record, size_t bytes) const;
  [[noreturn]] void fail_record(size_t index, RecordPlace at);

  // These return the first place whose row breaks a rule, or -1.
  int64_t decode_uniform(const NormWindow& window, const Places& places, BatchBuffer& out) const;
  template <class Key>
  int64_t decode_ragged(const NormWindow& window, const Places& places, BatchBuffer& out) const;
  [[noreturn]] void fail_row(const NormWindow& window, size_t row) const;
  /** Throws the error of an invalid record. */
  [[noreturn]] void fail(size_t index, RecordPlace at, Span<std::byte> bytes, bool exact) const;

  NormLayout layout_;
  BatchShape shape_;
  NormRowsLoop loop_{};           // of uniform rows
  std::vector<int32_t> hotness_;  // of each slot
  RowLoopShape loop_shape_;
  SourceFiles files_;
  std::vector<Records> records_;  // of each file
  int64_t rows_per_read_ = 1;
  bool keep_marks_ = false, skips_bad_records_ = false;

  // Of the thread that loads:
  std::shared_ptr<const RandomAccessFile> open_;
  RecordPlace walked_to_;  // in the open file
  ByteBuffer scratch_;
};

}  // namespace tercel::data
