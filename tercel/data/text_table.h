// Rows of raw text: label, numbers and categories, not encoded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/text_format.h"
#include "tercel/util/export.h"
#include "tercel/util/file.h"

namespace tercel::data {

/** A file of raw text. */
struct TextSource {
  std::string path;  // "-": the standard input
  std::string name;  // its name in errors; empty: its path
};

/** A row of the text. */
struct TextRow {
  float label = 0;                           // 0 where the text has none
  std::vector<double> dense;                 // NaN: missing
  std::vector<std::string_view> categories;  // empty: missing; valid until the next row
};

/** Whether rows must have a label. Optional: a file has the label's column in all rows or in none. */
enum class LabelColumn : uint8_t { Required, Optional };

/** Rows of text files (gzip or plain), one file after the other, in constant memory. */
class TERCEL_API TextTable {
 public:
  TextTable(TextFormat format, std::vector<TextSource> sources, LabelColumn label = LabelColumn::Required);
  ~TextTable();
  TextTable(const TextTable&) = delete;
  TextTable& operator=(const TextTable&) = delete;

  /**
   * False at the end. DataError that names file, line and column for a row with too few or too many columns, an
   * invalid label, or a dense value that is not a finite number.
   */
  bool next(TextRow& row);

  /** Whether the present file has the label's column; false before the first row. */
  bool has_label() const;
  /** Rows so far. */
  int64_t rows() const;
  /** Columns of the first row; 0 before it. */
  int64_t num_columns() const;
  /** Bytes of the files gone through so far, and all of them; compressed where files are. */
  int64_t bytes_done() const;
  int64_t bytes_total() const;
  /** FileInfo of each opened file at the time of opening. */
  const std::vector<FileInfo>& file_infos() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tercel::data
