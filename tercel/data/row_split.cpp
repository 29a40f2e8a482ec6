#include <algorithm>

#include "tercel/data/row_split_impl.h"
#include "tercel/data/text_number_impl.h"
#include "tercel/data/timestamp_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

void exclude(std::string_view owner, bool a, std::string_view first, bool b, std::string_view second) {
  TERCEL_CHECK(!a || !b, ConfigError, "[", owner, "] options '", first, "' and '", second,
               "' exclude each other, found both");
}

}  // namespace

RowSplit::RowSplit(const SplitOptions& options, bool by_time, TimeUnit unit, int64_t test_every_default,
                   std::string_view owner)
    : options_(options), by_time_(by_time), unit_(unit), owner_(owner) {
  const bool test_every = options.test_every > 0, test_from = !options.test_from.empty(), test = !options.test.empty();
  const bool valid_every = options.valid_every > 0, valid_from = !options.valid_from.empty();
  exclude(owner, test_every, "test_every", test_from, "test_from");
  exclude(owner, test_every, "test_every", test, "test");
  exclude(owner, test_from, "test_from", test, "test");
  exclude(owner, valid_every, "valid_every", valid_from, "valid_from");
  exclude(owner, valid_every, "valid_every", !options.valid.empty(), "valid");
  exclude(owner, valid_from, "valid_from", !options.valid.empty(), "valid");
  // By time, the last tenth of the rows validates.
  const bool chosen = test || test_from || valid_from || by_time;
  test_every_ = options.test_every >= 0 ? options.test_every : chosen ? 0 : test_every_default;
  test_from_ = bound(options.test_from, "test_from");
  valid_from_ = bound(options.valid_from, "valid_from");
  TERCEL_CHECK(!test_from_ || !valid_from_ || *valid_from_ < *test_from_, ConfigError, "[", owner,
               "] option 'valid_from': expected less than 'test_from', which is '", printable(options.test_from),
               "', found '", printable(options.valid_from), "'");
}

bool RowSplit::wants_valid_from() const {
  return by_time_ && options_.valid_every < 0 && options_.valid.empty() && !valid_from_;
}

std::optional<double> RowSplit::bound(const std::string& text, std::string_view option) const {
  if (text.empty()) return std::nullopt;
  if (!by_time_) {
    int64_t row = 0;
    TERCEL_CHECK(parse_integer(text, row) && row >= 0, ConfigError, "[", owner_, "] option '", option,
                 "': expected the number of a row, from 0 on",
                 owner_ == "csv" ? " (a time needs 'time_column' too)" : "", ", found '", printable(text), "'");
    return static_cast<double>(row);
  }
  double time = 0;
  TERCEL_CHECK(parse_number_or_time(text, unit_, time), ConfigError, "[", owner_, "] option '", option,
               "': expected a number or a timestamp such as 2024-05-01T12:30:00, found '", printable(text), "'");
  return time;
}

PartName RowSplit::next(double time) {
  const double place = by_time_ ? time : static_cast<double>(row_);
  if (by_time_) {
    first_time_ = std::min(first_time_, time);
    last_time_ = std::max(last_time_, time);
  }
  const int64_t row = row_++;
  if (test_from_ ? place >= *test_from_ : test_every_ > 0 && row % test_every_ == test_every_ - 1)
    return PartName::Test;
  const int64_t rest = rest_++;
  if (valid_from_ ? place >= *valid_from_
                  : options_.valid_every > 0 && rest % options_.valid_every == options_.valid_every - 1)
    return PartName::Valid;
  return PartName::Train;
}

void RowSplit::check_bound(const std::string& name, std::string_view option, const std::string& text,
                           bool has_rows) const {
  if (text.empty() || has_rows) return;
  if (by_time_)
    throw_error<DataError>({name, ": expected rows for option '", option, "', at times from ", printable(text),
                            " on, found times from ", format_double(first_time_), " to ", format_double(last_time_)});
  throw_error<DataError>(
      {name, ": expected rows for option '", option, "', from row ", printable(text), " on, found ", row_, " rows"});
}

void RowSplit::check_every(const std::string& name, std::string_view option, int64_t every, bool has_rows) const {
  TERCEL_CHECK(every <= 0 || has_rows, DataError, name, ": expected rows for option '", option, "', at least ", every,
               " rows", option == "valid_every" ? " that are no test rows" : "", ", found ",
               option == "valid_every" ? rest_ : row_);
}

void RowSplit::check_parts(const std::string& name, bool has_test, bool has_valid) const {
  check_every(name, "test_every", options_.test_every, has_test);
  check_every(name, "valid_every", options_.valid_every, has_valid);
  check_bound(name, "test_from", options_.test_from, has_test);
  check_bound(name, "valid_from", options_.valid_from, has_valid);
}

}  // namespace tercel::data
