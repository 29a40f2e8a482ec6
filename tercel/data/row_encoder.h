// Converts raw rows to the dense values and keys of a dataset. The same code converts train rows, test rows and rows
// for later predictions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/text_table.h"
#include "tercel/data/vocabulary.h"
#include "tercel/util/export.h"

namespace tercel::data {

/** Parameters of the transform of dense values. */
struct DenseEncoding {
  DenseTransform transform = DenseTransform::Raw;
  std::vector<double> mean, std;  // one per dense value; only Standard uses them, for ln(1 + max(x, 0))
};

/** ln(1 + max(x, 0)), the first step of Log and Standard. */
TERCEL_API double log_of_count(double value);

class TERCEL_API RowEncoder {
 public:
  RowEncoder(DenseEncoding dense, Vocabulary vocabulary);

  int64_t dense_dim() const { return dense_dim_; }
  int64_t slot_num() const { return vocabulary_.num_fields(); }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  const DenseEncoding& dense_encoding() const { return dense_; }

  /**
   * Dense values [dense_dim] and keys [slot_num] of a row. A missing number is taken as 0 before the transform. A
   * category that the vocabulary does not know gets the first key of its slot.
   */
  void encode(const TextRow& row, float* dense, int64_t* keys) const;

 private:
  DenseEncoding dense_;
  Vocabulary vocabulary_;
  int64_t dense_dim_;
  std::vector<int64_t> first_key_;
};

/**
 * The encoder of a dataset or of a model that was trained on it: its schema, how it was converted, and the path
 * of the vocabulary. ConfigError if it was not converted from text, DataError if it is not the right vocabulary.
 */
TERCEL_API RowEncoder load_row_encoder(const Schema& schema, const Conversion& conversion,
                                       const std::string& vocabulary_path);

/** Raw text as rows of a dataset. */
class TERCEL_API EncodedText {
 public:
  /** The encoder must outlive it. */
  EncodedText(const RowEncoder& encoder, const TextFormat& format, std::vector<TextSource> sources,
              LabelColumn label = LabelColumn::Required);

  /**
   * Next rows, at most `max_rows`; 0 only at the end. Labels [rows] (0 where the text has none), dense [rows,
   * dense_dim], keys [rows, slot_num]. Errors as from TextTable::next; rows before the bad one are lost.
   */
  int64_t read(int64_t max_rows, float* labels, float* dense, int64_t* keys);
  const TextTable& table() const { return table_; }

 private:
  const RowEncoder& encoder_;
  TextTable table_;
  TextRow row_;
};

}  // namespace tercel::data
