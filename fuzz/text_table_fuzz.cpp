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
using tercel::data::EncodedRows;
using tercel::data::EncodedText;
using tercel::data::LabelColumn;
using tercel::data::RowEncoder;
using tercel::data::TextBlock;
using tercel::data::TextFormat;
using tercel::data::TextRows;
using tercel::data::TextTable;
using tercel::data::TextValues;
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
  if ((how & 128) != 0) {
    if ((how & 16) != 0) options.positive = {">=4", "=2"};
    options.negative.clear();
    options.list_separator = "|";
    options.lists = {options.categorical[0]};
    options.weighted = {options.categorical[0]};
    options.max_hotness = {"3"};
    options.time_column = options.categorical[1];
    options.time_parts = {options.categorical[1] + "=hour", "weekday", "year"};
    options.comment = "#";
    options.weight_column = options.no_header ? "4" : "w";
  }
  if ((how & 132) == 4) options.cross = {options.categorical[0] + "+" + options.categorical[1]};
  if ((how & 72) == 64) options.shared_keys = {options.categorical[0] + "+" + options.categorical[1]};
  if ((how & 136) == 8) {
    options.hex_modulo = {options.categorical[0] + "=5"};
    options.fill_missing = {"3"};
    options.clip_min = {"-2"};
  }
  return tercel::data::csv_format(options);
}

RowEncoder encoder_of(const TextFormat& format, uint8_t how) {
  Vocabulary vocabulary;
  const std::vector<std::string_view> categories = {"1", "x", "a long category"};
  std::vector<tercel::data::TextField> fields = format.fields;
  for (tercel::data::TextField& field : fields) {
    vocabulary.add_field(field.name, categories);
    field.hash_buckets = (how & 8) != 0 ? 4 : 0;
  }
  constexpr DenseTransform kTransforms[] = {DenseTransform::Standard, DenseTransform::Log, DenseTransform::Raw,
                                            DenseTransform::Zscore};
  const size_t dim = format.dense.size();
  return {{kTransforms[how / 4 % 4], std::vector<double>(dim, 1.5), std::vector<double>(dim, 0.3), format.preparation},
          std::move(vocabulary),
          fields};
}

void check_rows(const TextRows& rows, const TextFormat& format) {
  const auto count = static_cast<size_t>(rows.rows);
  if (rows.weights.size() != (format.weight_column.empty() ? 0 : count)) std::abort();
  for (const float weight : rows.weights)
    if (!(weight >= 0 && std::isfinite(weight))) std::abort();
  if (rows.labels.size() != count || rows.dense.size() != format.dense.size()) std::abort();
  for (const float label : rows.labels)
    if (label != 0 && label != 1) std::abort();
  for (const std::vector<double>& column : rows.dense) {
    if (column.size() != count) std::abort();
    for (const double value : column)
      if (std::isinf(value)) std::abort();
  }
  for (size_t f = 0; f < format.fields.size(); ++f) {
    const TextValues& field = rows.fields[f];
    size_t values = format.fields[f].is_list ? 0 : count;
    for (const int32_t nnz : field.nnz) {
      if (nnz < 0 || nnz > 3) std::abort();
      values += static_cast<size_t>(nnz);
    }
    if (field.values.size() != values || field.weights.size() != (format.fields[f].weighted ? values : 0)) std::abort();
    for (const float weight : field.weights)
      if (!std::isfinite(weight)) std::abort();
  }
  for (const double time : rows.times)
    if (!std::isfinite(time)) std::abort();
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
    TextBlock block;
    TextRows parsed;
    while (table.next(block)) {
      table.parse(block, parsed);
      check_rows(parsed, format);
      rows += parsed.rows;
    }
    if (table.bytes_done() != table.bytes_total()) std::abort();
  } catch (const tercel::DataError& failed) {
    error = failed.what();
  }

  const RowEncoder encoder = encoder_of(format, data[0]);
  int64_t encoded_rows = 0;
  try {
    EncodedText text(encoder, format, {{path, "fuzz"}}, label);
    for (EncodedRows part; text.read(7, part); encoded_rows += part.rows) {
      for (const float value : part.dense)
        if (!std::isfinite(value)) std::abort();
      size_t key = 0;
      for (int64_t i = 0; i < part.rows * encoder.slot_num(); ++i) {
        const int64_t slot = i % encoder.slot_num(), first = encoder.first_key(slot);
        const size_t end = key + (part.nnz.empty() ? 1 : static_cast<size_t>(part.nnz[static_cast<size_t>(i)]));
        for (; key < end; ++key)
          if (part.keys[key] < first || part.keys[key] >= first + encoder.size(slot)) std::abort();
      }
      if (key != part.keys.size()) std::abort();
    }
    if (encoded_rows != rows) std::abort();
  } catch (const tercel::DataError& failed) {
    encoded_error = failed.what();
  }
  if (error != encoded_error) std::abort();
  ::close(fd);
  return 0;
}
