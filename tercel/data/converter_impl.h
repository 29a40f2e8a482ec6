// The two passes of a conversion. Private.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tercel/data/convert.h"
#include "tercel/data/feature_scan_impl.h"
#include "tercel/data/row_encoder.h"
#include "tercel/data/row_split_impl.h"
#include "tercel/data/survey_impl.h"
#include "tercel/data/text_pipeline_impl.h"
#include "tercel/data/text_table.h"
#include "tercel/util/atomic_file.h"

namespace tercel::data {

/** What is converted, and where to. */
struct ConversionJob {
  std::string tool;
  std::vector<std::string> sources;
  std::string folder;
  ConvertOptions options;
  bool replace = false;
  const Dataset* like = nullptr;  // whose vocabulary and moments are taken; must outlive the conversion
};

class Converter {
 public:
  Converter(ConversionJob job, TextFormat format, ConvertProgressFunction progress);

  /** A pass that finds what the options of features leave open. */
  FeatureScan scan();
  /** What it found. */
  void set_format(TextFormat format) { format_ = std::move(format); }
  /** First pass. */
  void survey();
  int64_t num_columns() const { return num_columns_; }
  /** Second pass. `settings` are the tool's options. */
  ConvertResult write(std::vector<Conversion::Setting> settings);

 private:
  static constexpr size_t kParts = 3;
  using Writers = std::array<std::unique_ptr<DatasetWriter>, kParts>;

  std::string spool_path() const;
  TextSource spool();
  void open_sources();
  void check_writable() const;
  void check_rows() const;
  /** A pass that finds the time from which rows are validation rows, where none is given. */
  void find_valid_from();
  /** Of the files of a source, for the survey. */
  size_t group_of(size_t source) const;
  void assign_parts(ParsedBlock& block);
  bool is_left_out(int64_t row) const;
  void report(int pass, int64_t rows, int64_t bytes_done, int64_t bytes_total);
  RowEncoder make_encoder(ConvertResult& result);
  DenseEncoding dense_encoding() const;
  int64_t default_min_count() const;
  void join_counts(size_t f, FieldSummary& summary);
  std::vector<std::string_view> kept_categories(size_t f, FieldSummary& summary) const;
  Schema make_schema(const RowEncoder& encoder) const;
  std::string min_count_setting() const;
  void fill_conversion(Conversion& conversion, const RowEncoder& encoder,
                       std::vector<Conversion::Setting> settings) const;
  std::unique_ptr<DatasetWriter> make_writer(const Schema& schema, PartName part) const;
  void write_rows(const RowEncoder& encoder, ConvertResult& result);
  void write_block(const ParsedBlock& block, const RowEncoder& encoder, Writers& writers,
                   std::array<int64_t, kParts>& clicks) const;
  void check_unchanged(const TextTable& table) const;

  ConversionJob job_;
  TextFormat format_;
  ConvertProgressFunction progress_;
  AtomicDir target_;
  RowSplit split_;
  std::vector<TextSource> sources_;
  std::vector<std::optional<PartName>> parts_;  // of each source; none: its rows are divided
  bool is_open_ = false, has_spool_ = false;
  int passes_before_ = 0;             // before the survey
  std::optional<double> valid_from_;  // that was found

  std::optional<Survey> survey_;
  std::array<int64_t, kParts> rows_ = {};
  int64_t next_row_ = 0;                // of this pass, over all sources
  int64_t left_out_ = 0, in_text_ = 0;  // negatives left out of the train part; all rows
  int64_t num_columns_ = 0;
  std::vector<FileInfo> files_;
};

}  // namespace tercel::data
