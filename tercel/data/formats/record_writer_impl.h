// Writers of files that hold rows one after the other as records: what they have in common. Private.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/dataset_writer.h"
#include "tercel/data/row_rules_impl.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/checksum.h"

namespace tercel::data {

/** A file that records are appended to; it appears under its name when it is committed. */
class RecordFile {
 public:
  explicit RecordFile(const std::string& path);

  /** Room for the next `bytes`; the caller fills all of it before the next call. */
  char* append(size_t bytes);
  /** Replaces the first bytes of the file. */
  void replace_start(const void* bytes, size_t count);
  /** Writes what is buffered, gives the file its name, and records its size and checksum. */
  void commit(FileRecord& record);

 private:
  void flush();

  AtomicFile file_;
  Checksum checksum_;
  std::vector<char> buffer_;
  bool replaced_ = false;  // the checksum is not that of the content
};

/** A row of a RowBlock. */
struct RowView {
  const float* labels;
  const float* dense;
  const int32_t* nnz;  // null: `hotness` keys in every slot
  const int64_t* keys;
  int64_t num_keys;
  const float* key_weights;   // of these keys; null: all are 1
  Span<const void*> columns;  // of the block
  int64_t index;              // in the block

  int64_t count(size_t slot, int64_t hotness) const { return nnz ? nnz[slot] : hotness; }
};

/** Checks rows, cuts them into files, and removes the files unless finish() is called; formats encode rows. */
class RecordWriter : public DatasetWriter {
 public:
  ~RecordWriter() override;
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  void write(const RowBlock& block) final;
  void start_file(int64_t rows) final;
  int64_t rows() const noexcept final { return rows_; }
  DataPart finish() final;

 protected:
  struct Traits {
    std::string_view format;     // "norm", for messages
    std::string_view extension;  // ".data"
    bool full_slots = false;     // every row has `hotness` keys in every slot
    bool file_list = false;      // the format has HugeCTR's file lists
  };

  RecordWriter(const Traits& traits, RowRules rules, WriterOptions options);

  const Schema& schema() const { return rules_.schema(); }
  /** Before the first row of a file, which will have so many rows unless it is the last. */
  virtual void begin_file(RecordFile& file, int64_t expected_rows);
  /** After the last row of a file. */
  virtual void end_file(RecordFile& file, int64_t rows, int64_t expected_rows);
  /** Throws by fail_row() if the format cannot hold a row that follows the rules. */
  virtual void check_row(const RowView& row);
  /** Behind the last file and the list. */
  virtual void end_part(const DataPart& part);
  /** Appends a row that was checked. */
  virtual void put_row(const RowView& row, RecordFile& file) = 0;
  [[noreturn]] void fail_row(std::string_view expected, std::string_view found) const;

 private:
  std::string relative_path(size_t index) const;
  /** Counts the row's keys; throws before anything of the row is written. */
  void check_rules(RowView& row) const;
  void check_writable(std::string_view what) const;
  void open_file(int64_t expected_rows);
  void close_file();
  void remove_files() noexcept;

  Traits traits_;
  RowRules rules_;
  WriterOptions options_;
  std::unique_ptr<RecordFile> file_;
  int64_t rows_in_file_ = 0, expected_rows_ = 0;  // of the open file
  int64_t rows_ = 0;
  DataPart part_;
  bool finished_ = false;
  bool broken_ = false;  // a file could not be written: no more rows are accepted
};

}  // namespace tercel::data
