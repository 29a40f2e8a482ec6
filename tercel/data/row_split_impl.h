// Which rows are in which part. Private.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "tercel/data/convert_options.h"

namespace tercel::data {

/** Division of the rows of the sources, in order, as SplitOptions say. */
class RowSplit {
 public:
  /**
   * Rows are divided by time if there is a time column. ConfigError that starts with [owner] for options that exclude
   * each other. `test_every_default` is what -1 stands for where no other option chooses rows.
   */
  RowSplit(const SplitOptions& options, bool by_time, TimeUnit unit, int64_t test_every_default,
           std::string_view owner);

  /** Whether set_valid_from() is to choose the validation rows: the last tenth by time of those that are no test rows.
   */
  bool wants_valid_from() const;
  void set_valid_from(double time) { valid_from_ = time; }

  /** The part of the next row, whose time is given if they are divided by it. */
  PartName next(double time);
  /** Starts again with the first row. */
  void rewind() { row_ = rest_ = 0; }

  /** DataError that starts with `name` if a test or validation part that was asked for has no rows. */
  void check_parts(const std::string& name, bool has_test, bool has_valid) const;

 private:
  std::optional<double> bound(const std::string& text, std::string_view option) const;
  void check_every(const std::string& name, std::string_view option, int64_t every, bool has_rows) const;
  void check_bound(const std::string& name, std::string_view option, const std::string& text, bool has_rows) const;

  SplitOptions options_;
  bool by_time_;
  TimeUnit unit_;
  std::string owner_;
  int64_t test_every_ = 0;
  std::optional<double> test_from_, valid_from_;
  int64_t row_ = 0, rest_ = 0;  // rows so far; those that are no test rows
  double first_time_ = std::numeric_limits<double>::infinity(), last_time_ = -first_time_;
};

}  // namespace tercel::data
