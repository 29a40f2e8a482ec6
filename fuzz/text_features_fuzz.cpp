// Any text is rows of libsvm's or libffm's features or a DataError, and what a scan finds is what the parser takes. The
// first byte of the input selects the format.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tercel/data/feature_scan_impl.h"
#include "tercel/data/text_format.h"
#include "tercel/data/text_table.h"
#include "tercel/util/error.h"

namespace {

using tercel::data::FeatureScan;
using tercel::data::FeatureValues;
using tercel::data::LabelColumn;
using tercel::data::LibffmOptions;
using tercel::data::LibsvmOptions;
using tercel::data::TextBlock;
using tercel::data::TextFormat;
using tercel::data::TextRows;
using tercel::data::TextSource;
using tercel::data::TextTable;

void set_options(LibsvmOptions& options, uint8_t how) {
  if ((how & 2) != 0) options.values = FeatureValues::Weights;
  if ((how & 4) != 0) options.values = FeatureValues::Ignore;
  if ((how & 8) != 0) options.max_hotness = {"2"};
  if ((how & 16) != 0) options.positive = {">=1"};
}

void check_rows(const TextRows& rows, const TextFormat& format) {
  for (size_t f = 0; f < format.fields.size(); ++f) {
    const auto& field = rows.fields[f];
    size_t values = 0;
    for (const int32_t nnz : field.nnz) {
      if (nnz < 0 || (format.fields[f].max_hotness > 0 && nnz > format.fields[f].max_hotness)) std::abort();
      values += static_cast<size_t>(nnz);
    }
    if (static_cast<int64_t>(field.nnz.size()) != rows.rows || field.values.size() != values) std::abort();
    if (field.weights.size() != (format.fields[f].weighted ? values : 0)) std::abort();
    for (const float weight : field.weights)
      if (!std::isfinite(weight)) std::abort();
    for (const std::string_view index : field.values)
      if (index.empty() || (index.size() > 1 && index[0] == '0')) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t how = data[0];
  const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, data + 1, size - 1) != static_cast<ssize_t>(size - 1)) std::abort();
  const TextSource source{"/proc/self/fd/" + std::to_string(fd), "fuzz"};
  LibffmOptions options;
  set_options(options, how);
  try {
    TextFormat format = (how & 1) != 0 ? tercel::data::libffm_format(options) : tercel::data::libsvm_format(options);
    const FeatureScan scan = tercel::data::scan_features(format, {source}, [](int64_t, int64_t, int64_t) {});
    if (options.values == FeatureValues::Auto && !scan.all_ones) options.values = FeatureValues::Weights;
    for (const int64_t number : scan.fields) options.field_numbers.push_back(std::to_string(number));
    if ((how & 1) != 0 && !scan.fields.empty()) format = tercel::data::libffm_format(options);
    if ((how & 1) == 0) format = tercel::data::libsvm_format(options);
    TextTable table(format, {source}, (how & 32) != 0 ? LabelColumn::Optional : LabelColumn::Required);
    TextBlock block;
    TextRows rows;
    while (table.next(block)) {
      table.parse(block, rows);
      check_rows(rows, format);
    }
  } catch (const tercel::DataError&) {
  }
  ::close(fd);
  return 0;
}
