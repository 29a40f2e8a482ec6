// Files of rows of equal size as a source of rows: Raw and RawAsync. Private.
//
// Note [Reading by workers]
// With one worker, the loading thread reads a window while the worker decodes another. With several, the loading thread
// only plans a window, and the worker that prepares it reads it: as many reads as workers are under way, which a fast
// disk needs, and bytes are decoded on the core that read them.
#pragma once

#include <memory>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/formats/raw_decode_kernels.h"
#include "tercel/data/formats/raw_layout_impl.h"
#include "tercel/data/formats/row_loop_impl.h"
#include "tercel/data/formats/source_files_impl.h"
#include "tercel/data/record_source_impl.h"

namespace tercel::data {

class RawSource final : public RecordSource {
 public:
  RawSource(const RawTypes& types, const Dataset& dataset, const DataPart& part, const SourceOptions& options);

  int64_t rows() const override { return files_.rows(); }
  RowWindows windows() const override { return RowWindows::every(rows(), rows_per_read_); }
  const BatchShape& shape() const override { return shape_; }
  std::unique_ptr<Window> make_window() const override;
  void load(Span<RowRange> ranges, Window& window, const std::atomic<bool>& stop) override;
  bool prepares() const override { return workers_read_; }
  void prepare(Window& window) const override;
  void decode(const Window& window, const Places& places, BatchBuffer& out) const override;

 private:
  /** Consecutive rows of a file in a window. */
  struct Piece {
    size_t file = 0;
    std::shared_ptr<const RandomAccessFile> open;
    int64_t first_record = 0;
    int64_t count = 0;
    int64_t first_row = 0;  // in the window
  };
  struct RawWindow final : Window {
    ByteBuffer bytes;
    std::vector<Piece> pieces;
  };

  void read(const Piece& piece, RawWindow& window) const;
  /** What is the same for all windows and batches. */
  void make_loop(bool binary_labels);
  [[noreturn]] void fail_row(const RawWindow& window, int64_t row) const;

  RawLayout layout_;
  BatchShape shape_;
  RowLoopShape loop_shape_;
  SourceFiles files_;
  int64_t rows_per_read_;
  bool workers_read_;

  RawRowsLoop loop_{};
  std::vector<int64_t> key_offset_;  // of each key of a row
};

}  // namespace tercel::data
