// Parquet files as a source of rows. Private.
//
// Note [Windows of row groups]
// In the order of the files, a window is a row group, or several small ones; each is decoded by the worker that
// prepares it, so that several are decoded at once. A row group that would take more than kMaxWindowBytes, or than what
// Arrow may hold allows for as many windows as are in work, is cut into windows of kPieceBytes, which the reading
// thread decodes one after the other, since a position inside a row group can only be reached from its start. In random
// order each window has rows of many row groups. So each row group is decoded once, when it is first needed, and kept,
// piece by piece: in memory, and beyond kHeapBytes in a file without a name in TMPDIR. Its pages are the system's to
// write out.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "tercel/data/formats/parquet_layout_impl.h"
#include "tercel/data/formats/parquet_reader_impl.h"
#include "tercel/data/formats/source_files_impl.h"
#include "tercel/data/record_source_impl.h"
#include "tercel/data/spool_impl.h"

namespace tercel::data {

class ParquetSource final : public RecordSource {
 public:
  ParquetSource(const ParquetOptions& parquet, const Dataset& dataset, const DataPart& part,
                const SourceOptions& options);

  int64_t rows() const override { return files_.rows(); }
  int64_t row_behind_damage(int64_t row) const override;
  RowWindows windows() const override;
  const BatchShape& shape() const override { return assembler_->shape(); }
  std::unique_ptr<Window> make_window() const override { return std::make_unique<ParquetWindow>(); }
  void load(Span<RowRange> ranges, Window& window, const std::atomic<bool>& stop) override;
  bool prepares() const override { return !jumps_; }
  void prepare(Window& window) const override;
  void decode(const Window& window, const Places& places, BatchBuffer& out) const override;

 private:
  struct Group {
    size_t file = 0;
    int32_t number = 0;       // in the file
    int64_t first_row = 0;    // over all files
    int64_t row_in_file = 0;  // its first
    int64_t rows = 0;
    int64_t row_bytes = 0;  // decoded
    int64_t largest_allocation = 0;
    int64_t bytes_in_file = 0;  // of the columns that are read: compressed, and their pages
  };
  /** A row group that the worker will decode. */
  struct Task {
    size_t group = 0;
    int64_t first = 0;  // row of the window
  };
  struct ParquetWindow final : Window {
    std::vector<Task> tasks;
    std::vector<DecodedPart> parts;
    DecodedRows mixed;  // in random order, instead of the parts
  };
  struct Piece {
    int64_t first = 0;  // row of the row group
    DecodedRows rows;
  };
  /** A row group that was decoded and kept, or why not. */
  struct Kept {
    std::vector<Piece> pieces;  // in order
    std::exception_ptr error;
    bool is_done = false;
  };

  void open_files(const Dataset& dataset, const DataPart& part);
  bool is_uniform(const ParquetFooter& footer, const ParquetRowGroup& group, std::string_view file) const;
  size_t group_of(int64_t row) const;
  bool is_cut(const Group& group) const;
  int64_t piece_rows(const Group& group) const;
  std::unique_ptr<RowGroupStream> open_group(const Group& group, int64_t batch_rows) const;
  /** Appends the rows of a row group to the parts of a window, and an error as one of them. */
  void decode_group(const Task& task, std::vector<DecodedPart>& parts) const;
  /** Appends rows of a row group that is cut. */
  void load_piece(size_t group, int64_t skip, int64_t count, ParquetWindow& window);
  void load_mixed(Span<RowRange> ranges, ParquetWindow& window, const std::atomic<bool>& stop);
  void keep_groups(Span<RowRange> ranges, const std::atomic<bool>& stop);
  void keep(size_t group);

  ParquetLayout layout_;
  ColumnPlan plan_;
  std::vector<int64_t> hotness_;  // of each slot
  SourceFiles files_;
  std::vector<std::unique_ptr<ParquetHandle>> handles_;  // of the files
  std::vector<std::vector<int32_t>> leaves_;
  std::vector<Group> groups_;
  std::unique_ptr<RowAssembler> assembler_;
  int64_t memory_;        // that Arrow may hold
  int64_t window_bytes_;  // row groups of more are cut
  bool jumps_ = false;
  bool uniform_ = true;

  // Of the thread that loads:
  std::unique_ptr<RowGroupStream> stream_;  // of a row group that is cut
  std::shared_ptr<const DecodedRows> streamed_;
  int64_t streamed_first_ = 0;  // row in the group of its first
  size_t stream_group_ = 0;
  std::vector<Kept> kept_;  // of each row group, in random order
  std::unique_ptr<Spool> spool_;
};

}  // namespace tercel::data
