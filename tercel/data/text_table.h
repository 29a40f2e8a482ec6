// Rows of raw text: label, numbers and categories, not encoded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tercel/data/text_format.h"
#include "tercel/data/text_rows.h"
#include "tercel/util/export.h"
#include "tercel/util/file.h"

namespace tercel::data {

class RowParser;  // row_parser_impl.h

/** A file of raw text. */
struct TextSource {
  std::string path;  // "-": the standard input
  std::string name;  // its name in errors; empty: its path
};

/** Whether rows must have a label. Optional: a file has the label's column in all rows or in none. */
enum class LabelColumn : uint8_t { Required, Optional };

/** A piece of a file that consists of whole records. */
struct TextBlock {
  std::string text;
  std::string name;          // of the file, for errors
  size_t source = 0;         // index of the file
  int64_t lines_before = 0;  // in the file
  int64_t skip_lines = 0;    // at its start
  bool has_header = false;   // behind them
  /** Bound to the file's columns; null if the file has no records so far. */
  std::shared_ptr<const RowParser> parser;
};

/** Rows of text files (gzip or plain), one file after the other, in constant memory. */
class TERCEL_API TextTable {
 public:
  TextTable(TextFormat format, std::vector<TextSource> sources, LabelColumn label = LabelColumn::Required);
  ~TextTable();
  TextTable(const TextTable&) = delete;
  TextTable& operator=(const TextTable&) = delete;

  /**
   * The next piece of a file, whose memory is reused; false at the end. DataError for damaged gzip data and for a
   * header without the columns.
   */
  bool next(TextBlock& block);
  /**
   * The rows of a block, which must outlive them; any thread may parse any block. DataError that names file, line and
   * column for a row with too few or too many columns, an invalid label, a dense value, weight or feature that is not a
   * finite number, or an invalid time.
   */
  void parse(const TextBlock& block, TextRows& rows) const;

  /** Whether the file of the last block has the label's column; false before the first row. */
  bool has_label() const;
  /** Columns of the first file with rows or a header; 0 before it, and in text of features. */
  int64_t num_columns() const;
  /** Bytes of the files gone through so far, and all of them; compressed where files are. */
  int64_t bytes_done() const;
  int64_t bytes_total() const;
  /** FileInfo of each opened file at the time of opening. */
  const std::vector<FileInfo>& file_infos() const;
  const TextFormat& format() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tercel::data
