// The first pass over the text: counts of categories, moments, labels and lengths of lists. Private.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/label_rule_impl.h"
#include "tercel/data/text_format.h"
#include "tercel/data/text_rows.h"
#include "tercel/data/token_table_impl.h"
#include "tercel/util/span.h"

namespace tercel::data {

/** Running mean and variance (Welford). */
struct RunningMoments {
  int64_t count = 0;
  double mean = 0, squares = 0;

  void add(double value) {
    ++count;
    const double before = value - mean;
    mean += before / static_cast<double>(count);
    squares += before * (value - mean);
  }
  /** Of a population, or as estimated from a sample, which divides by n - 1; 1 for a constant. */
  double std(bool of_sample) const;
};

/** Labels that are texts or comparisons: whether each that means 1 occurs. */
class LabelSurvey {
 public:
  explicit LabelSurvey(const TextFormat& format);

  void add(std::string_view label);
  /** Adds what the survey of further labels found. */
  void merge(const LabelSurvey& other);
  /** DataError that starts with `name` if a label that means 1 does not occur. */
  void check_each(const std::string& name) const;
  /** The same if none of them does. */
  void check_some(const std::string& name) const;

 private:
  [[noreturn]] void fail(const std::string& name, size_t condition) const;

  LabelRule rule_;
  std::string column_;
  std::vector<bool> found_;
  size_t missing_;                   // conditions that no label has met
  std::vector<std::string> labels_;  // the first few different ones
};

/** Rows of a block, and which of them are train rows. */
struct SurveyBlock {
  const TextRows* rows;
  const std::vector<uint8_t>* is_train;
  size_t group;  // of files
};

/** Groups of files: those whose rows are divided, of validation rows, of test rows. */
constexpr size_t kFileGroups = 3;

/** Counts of a categorical field over the train rows. */
struct FieldCounts {
  TokenTable table;
  int64_t values = 0;   // that are not missing
  int32_t hotness = 1;  // most values of any row
};

class Survey {
 public:
  /** Without statistics, only labels and lengths of lists are looked at. Moments are those that the transform needs. */
  Survey(const TextFormat& format, DenseTransform transform, bool statistics);

  /** Adds rows in order; columns go to several threads, so the result does not depend on their number. */
  void add(Span<SurveyBlock> blocks);

  std::vector<FieldCounts>& fields() { return fields_; }
  const std::vector<FieldCounts>& fields() const { return fields_; }
  const std::vector<RunningMoments>& moments() const { return moments_; }
  const LabelSurvey& labels(size_t group) const { return labels_[group]; }

 private:
  void add_field(size_t f, const SurveyBlock& block);
  void add_dense(size_t d, const SurveyBlock& block);

  const TextFormat& format_;
  DenseTransform transform_;
  bool statistics_;
  std::vector<size_t> order_;  // of the columns, in which threads take them: fields, then dense values
  std::vector<FieldCounts> fields_;
  std::vector<RunningMoments> moments_;
  std::vector<LabelSurvey> labels_;  // of each group
};

}  // namespace tercel::data
