#include <algorithm>

#include "tercel/data/feature_parser_impl.h"
#include "tercel/data/feature_scan_impl.h"
#include "tercel/data/schema.h"
#include "tercel/data/text_number_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

/** Sorted numbers of the fields seen so far. */
class FieldNumbers {
 public:
  explicit FieldNumbers(std::vector<int64_t>& numbers) : numbers_(numbers) {}

  void add(const RecordReader& record, size_t column, const Feature& feature) {
    if (feature.field == last_) return;
    int64_t number = 0;
    if (!parse_integer(feature.field, number))
      record.fail(column, {}, "the number of a field below 2^63", quoted_text(feature.field));
    last_.assign(feature.field);
    const auto place = std::lower_bound(numbers_.begin(), numbers_.end(), number);
    if (place != numbers_.end() && *place == number) return;
    if (static_cast<int64_t>(numbers_.size()) == kMaxDim)
      record.fail(column, {}, str_cat({"at most ", kMaxDim, " fields"}), "more");
    numbers_.insert(place, number);
  }

 private:
  std::vector<int64_t>& numbers_;
  std::string last_;
};

}  // namespace

FeatureScan scan_features(const TextFormat& format, const std::vector<TextSource>& sources,
                          FunctionRef<void(int64_t, int64_t, int64_t)> progress) {
  FeatureScan scan;
  FieldNumbers numbers(scan.fields);
  TextTable table(format, sources);
  TextBlock block;
  int64_t rows = 0;
  while (table.next(block)) {
    RecordReader records(block.text, dialect_of(format), block.name, block.lines_before);
    for (; records.next(); ++rows) {
      for (size_t i = 1; i < records.columns().size(); ++i) {
        Feature feature;
        if (!split_feature(records, i, format, feature)) continue;
        scan.all_ones &= feature.value == 0 || feature.value == 1;
        if (format.kind == TextKind::Libffm) numbers.add(records, i, feature);
      }
    }
    progress(rows, table.bytes_done(), table.bytes_total());
  }
  return scan;
}

}  // namespace tercel::data
