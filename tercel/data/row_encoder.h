// Converts raw rows to the dense values and keys of a dataset. The same code converts train rows, test rows and rows
// for later predictions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/text_format.h"
#include "tercel/data/text_table.h"
#include "tercel/data/vocabulary.h"
#include "tercel/util/export.h"

namespace tercel::data {

/** Parameters of the transform of dense values. */
struct DenseEncoding {
  DenseTransform transform = DenseTransform::Raw;
  std::vector<double> mean, std;                   // one per dense value; those without moments do not use them
  std::vector<DensePreparation> preparation = {};  // one per dense value; none: a missing one is 0
};

/** ln(1 + max(x, 0)), the first step of Log and Standard. */
TERCEL_API double log_of_count(double value);

/** The key of a text in a hashed field without the slot's first key: XXH3-64 of name, a 0 byte and text, mod buckets.
 */
TERCEL_API int64_t hashed_key(std::string_view field, std::string_view text, int64_t buckets);

/** Rows of a dataset in memory. */
struct EncodedRows {
  int64_t rows = 0;
  std::vector<float> labels;       // [rows]
  std::vector<float> dense;        // [rows, dense_dim]
  std::vector<int32_t> nnz;        // [rows, slot_num]; none: one key in every slot
  std::vector<int64_t> keys;       // of all slots of all rows
  std::vector<float> key_weights;  // one for each key; none: all are 1
  std::vector<int64_t> first_key;  // [rows + 1] where the keys of each row begin; none where nnz is
  std::vector<std::string> ids;    // [rows] of TextFormat::id_column; none without one
};

class TERCEL_API RowEncoder {
 public:
  /**
   * Of the `fields` of a text, how they become keys: as many as the vocabulary has; none: all are in it, and each has
   * keys of its own.
   */
  RowEncoder(DenseEncoding dense, Vocabulary vocabulary, const std::vector<TextField>& fields = {});

  int64_t dense_dim() const { return dense_dim_; }
  int64_t slot_num() const { return vocabulary_.num_fields(); }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  const DenseEncoding& dense_encoding() const { return dense_; }
  /** The field of the vocabulary that has the categories of a slot: an earlier one where several share their keys. */
  int64_t field_of(int64_t slot) const { return fields_[static_cast<size_t>(slot)]; }
  /** Whether keys of a slot are hashes, not those of a vocabulary. */
  bool is_hashed(int64_t slot) const { return hash_buckets_[static_cast<size_t>(slot)] > 0; }
  /** Keys of a slot. */
  int64_t size(int64_t slot) const;
  /** The smallest of them. */
  int64_t first_key(int64_t slot) const { return first_key_[static_cast<size_t>(slot)]; }

  /**
   * Dense values and keys of rows. Numbers are prepared, then transformed. A category that the vocabulary
   * does not know gets the first key of its slot, a missing one the key of the empty text.
   */
  void encode(const TextRows& rows, EncodedRows& out) const;

 private:
  void encode_dense(const TextRows& rows, EncodedRows& out) const;
  int64_t key_of(int64_t slot, std::string_view text) const;

  DenseEncoding dense_;
  Vocabulary vocabulary_;
  int64_t dense_dim_;
  std::vector<int64_t> fields_, hash_buckets_, first_key_;  // of each slot
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
   * The next `max_rows` rows, fewer only at the end; false if there are none. Labels are 0 where the text has none.
   * Errors as from TextTable; up to a block of rows before the bad one is lost.
   */
  bool read(int64_t max_rows, EncodedRows& out);
  const TextTable& table() const { return table_; }

 private:
  const RowEncoder& encoder_;
  TextTable table_;
  TextBlock block_;
  TextRows rows_;
  EncodedRows encoded_;
  int64_t next_ = 0;  // of the encoded rows
};

}  // namespace tercel::data
