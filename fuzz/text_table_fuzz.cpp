// Any file is rows of a table or a DataError; valid rows can be encoded: keys inside their slots, finite numbers. The
// first byte of the input selects the table's format.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/data/row_encoder.h"
#include "tercel/data/text_format.h"
#include "tercel/data/text_table.h"
#include "tercel/util/error.h"

namespace {

using tercel::data::CsvOptions;
using tercel::data::DenseTransform;
using tercel::data::EncodedText;
using tercel::data::LabelColumn;
using tercel::data::RowEncoder;
using tercel::data::TextFormat;
using tercel::data::TextRow;
using tercel::data::TextTable;
using tercel::data::Vocabulary;

TextFormat format_of(uint8_t how) {
  if ((how & 3) == 0) return tercel::data::criteo_format();
  CsvOptions options;
  options.no_header = (how & 3) == 1;
  options.label = options.no_header ? "2" : "y";
  options.dense = options.no_header ? std::vector<std::string>{"1"} : std::vector<std::string>{"a"};
  options.categorical = options.no_header ? std::vector<std::string>{"3", "1"} : std::vector<std::string>{"c", "a"};
  options.trim = (how & 4) != 0;
  if ((how & 8) != 0) options.missing = {"NA", "?"};
  if ((how & 16) != 0) options.positive = {"yes"};
  if ((how & 48) == 48) options.negative = {"no"};
  return tercel::data::csv_format(options);
}

RowEncoder encoder_of(const TextFormat& format, uint8_t how) {
  Vocabulary vocabulary;
  const std::vector<std::string_view> categories = {"1", "x", "a long category"};
  for (const std::string& name : format.categorical_names) vocabulary.add_field(name, categories);
  constexpr DenseTransform kTransforms[] = {DenseTransform::Standard, DenseTransform::Log, DenseTransform::Raw};
  const size_t dim = format.dense.size();
  return {{kTransforms[how % 3], std::vector<double>(dim, 1.5), std::vector<double>(dim, 0.3)}, std::move(vocabulary)};
}

void check_row(const TextRow& row, const TextFormat& format) {
  if (row.label != 0 && row.label != 1) std::abort();
  if (row.dense.size() != format.dense.size() || row.categories.size() != format.categorical.size()) std::abort();
  for (const double value : row.dense)
    if (std::isinf(value)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const TextFormat format = format_of(data[0]);
  const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, data + 1, size - 1) != static_cast<ssize_t>(size - 1)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const LabelColumn label = (data[0] & 64) != 0 ? LabelColumn::Optional : LabelColumn::Required;

  int64_t rows = 0;
  std::string error, encoded_error;
  try {
    TextTable table(format, {{path, "fuzz"}}, label);
    TextRow row;
    for (; table.next(row); ++rows) check_row(row, format);
    if (table.rows() != rows || table.bytes_done() != table.bytes_total()) std::abort();
  } catch (const tercel::DataError& failed) {
    error = failed.what();
  }

  const RowEncoder encoder = encoder_of(format, data[0]);
  constexpr int64_t kRows = 7;
  std::vector<float> labels(kRows), dense(static_cast<size_t>(kRows * encoder.dense_dim()));
  std::vector<int64_t> keys(static_cast<size_t>(kRows * encoder.slot_num()));
  int64_t encoded_rows = 0;
  try {
    EncodedText text(encoder, format, {{path, "fuzz"}}, label);
    for (int64_t count; (count = text.read(kRows, labels.data(), dense.data(), keys.data())) > 0;) {
      for (int64_t i = 0; i < count * encoder.dense_dim(); ++i)
        if (!std::isfinite(dense[static_cast<size_t>(i)])) std::abort();
      for (int64_t i = 0; i < count * encoder.slot_num(); ++i) {
        const int64_t first = i % encoder.slot_num() * 4, key = keys[static_cast<size_t>(i)];
        if (key < first || key >= first + 4) std::abort();
      }
      encoded_rows += count;
    }
    if (encoded_rows != rows) std::abort();
  } catch (const tercel::DataError& failed) {
    encoded_error = failed.what();
  }
  if (error != encoded_error) std::abort();
  ::close(fd);
  return 0;
}
