// Rows of raw text, not encoded.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tercel::data {

/** Values of a categorical field. */
struct TextValues {
  std::vector<std::string_view> values;  // of all rows; empty: missing
  std::vector<int32_t> nnz;              // of each row, in lists; else none
  std::vector<float> weights;            // of each value, in fields with weights; else none
};

/** Consecutive rows of a file by column. Views are valid as long as the block of text that the rows were read from. */
struct TextRows {
  int64_t rows = 0;
  bool ragged = false;    // some field holds lists or has weights
  bool weighted = false;  // some field has weights
  std::vector<float> labels;
  std::vector<std::string_view> label_texts;  // none where the format has no texts or comparisons for labels
  std::vector<std::vector<double>> dense;     // of each column; NaN: missing
  std::vector<TextValues> fields;
  std::vector<float> weights;         // of the rows; none where the format has no column of them
  std::vector<double> times;          // none where the format has no time column
  std::vector<std::string_view> ids;  // as they stand in the text; none where the format has no id column
  int64_t cut = 0;                    // values beyond the longest list allowed, which are left out
  std::deque<std::string> texts;  // what views into records with quotes, and others that are no part of it, refer to
};

}  // namespace tercel::data
