#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tercel/data/formats/raw_layout_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr int64_t kNumberBytes = 4;
constexpr int64_t kSampleBytes = int64_t{1} << 20;
constexpr int64_t kSampleRows = 1024;

int64_t row_bytes_of(const Schema& schema, KeyType keys) {
  return kNumberBytes * (schema.label_dim + schema.dense_dim) + schema.max_nnz() * key_bytes(keys);
}

Schema in_files(Schema schema, SlotOffsets slot_offsets) {
  if (slot_offsets == SlotOffsets::Add)
    for (Slot& slot : schema.slots) slot.first_key = 0;
  return schema;
}

void check_schema(const Schema& schema, const RawTypes& types) {
  TERCEL_CHECK(
      schema.columns.empty(), ConfigError, types.format,
      ": expected no columns besides labels, dense values and keys, which are all that the files hold, found '",
      printable(schema.columns[0].name), "'");
  for (const Slot& slot : schema.slots) {
    TERCEL_CHECK(!slot.weighted, ConfigError, types.format, ": slot '", printable(slot.name),
                 "': expected keys without weights, which the files cannot hold, found keys with weights");
    TERCEL_CHECK(types.slot_offsets == SlotOffsets::None || slot.size > 0, ConfigError, types.format, ": slot '",
                 printable(slot.name),
                 "': expected its number of keys, as slot_offsets = add needs that of every slot, ", "found none");
    TERCEL_CHECK(types.slot_offsets == SlotOffsets::Add || static_cast<uint64_t>(slot.first_key) <= types.max_key,
                 ConfigError, types.format, ": slot '", printable(slot.name), "': expected keys up to ", types.max_key,
                 ", which fit in the files, found keys from ", slot.first_key, " on");
  }
}

/** Whether the bits are a float of ordinary size: integers with such bits are above 800 million or negative. */
bool looks_like_float(uint32_t bits) {
  const float magnitude = std::fabs(std::bit_cast<float>(bits));
  return magnitude > 1e-10f && magnitude < 1e10f;
}

/** Whether the bits are an integer of ordinary size: floats with such bits are denormal or NaN. */
bool looks_like_integer(uint32_t bits) {
  constexpr uint32_t kExponent = 0x7f800000;
  return bits != 0 && ((bits & kExponent) == 0 || bits >= 0xff800000);
}

bool looks_like_other(uint32_t bits, NumberType type) {
  return type == NumberType::F32 ? looks_like_integer(bits) : looks_like_float(bits);
}

/** Why a label or dense value may be wrong: the file has the other type. */
std::string other_type_hint(const RawTypes& types, bool is_label, uint32_t bits) {
  const NumberType type = is_label ? types.labels : types.dense;
  if (!looks_like_other(bits, type)) return {};
  const std::string seen =
      type == NumberType::F32
          ? str_cat({" (the bits of the integer ", std::bit_cast<int32_t>(bits), ": written without "})
          : str_cat({" (the bits of the float ", format_double(std::bit_cast<float>(bits)), ": written with "});
  // Labels of RawAsync have no option: such files come from a generator of Raw files.
  if (is_label && types.labels != types.dense)
    return str_cat({seen, "f32 labels, as HugeCTR's DataGenerator writes Raw files with float_label_dense? ",
                    "Labels of RawAsync files are i32)"});
  if (is_label && types.float_option == "is_dense_float")
    return str_cat({seen, "f32 labels? Those of RawAsync files are i32)"});
  return str_cat({seen, types.float_option, "?)"});
}

std::string number_text(uint32_t bits, NumberType type) {
  return type == NumberType::F32 ? format_double(std::bit_cast<float>(bits)) : str_cat({std::bit_cast<int32_t>(bits)});
}

}  // namespace

RawLayout::RawLayout(const Schema& schema, const RawTypes& raw_types, bool binary_labels, Span<SparseInput> inputs)
    : types(raw_types),
      rules(in_files(schema, raw_types.slot_offsets), binary_labels, raw_types.max_key, inputs),
      row_bytes(row_bytes_of(schema, raw_types.keys)) {
  check_schema(schema, types);
  for (size_t s = 0; s < schema.slots.size(); ++s)
    key_offsets.push_back(schema.slots[s].first_key - this->schema().slots[s].first_key);
}

float log_of_dense(int32_t value) { return std::log(static_cast<float>(value) + 1.0f); }

bool inverse_log_of_dense(float value, int32_t& out) {
  // The logarithm of floats is within a few steps of the exact one, and of large integers many have the same.
  const double guess = std::round(std::expm1(static_cast<double>(value)));
  if (!(guess >= 0 && guess <= std::numeric_limits<int32_t>::max())) return false;
  const auto center = static_cast<int64_t>(guess);
  const int64_t reach = 2 + (center >> 20);
  for (int64_t distance = 0; distance <= reach; ++distance)
    for (const int64_t candidate : {center - distance, center + distance}) {
      if (candidate < 0 || candidate > std::numeric_limits<int32_t>::max()) continue;
      out = static_cast<int32_t>(candidate);
      if (std::bit_cast<uint32_t>(log_of_dense(out)) == std::bit_cast<uint32_t>(value)) return true;
    }
  return false;
}

int64_t raw_rows(const std::string& path, int64_t bytes, const RawLayout& layout) {
  const int64_t rest = bytes % layout.row_bytes;
  if (rest == 0) return bytes / layout.row_bytes;
  const Schema& schema = layout.schema();
  std::string hint;
  const KeyType other = layout.types.keys == KeyType::U32 ? KeyType::I64 : KeyType::U32;
  if (layout.types.format == "rawasync" && bytes % row_bytes_of(schema, other) == 0)
    hint = str_cat({" (the size of the file is right for ", to_string(other), " keys)"});
  throw_error<DataError>({printable(path), ": expected a multiple of ", layout.row_bytes,
                          " bytes, the size of a row of ", schema.label_dim, " labels, ", schema.dense_dim,
                          " dense values and ", schema.max_nnz(), " keys of ", key_bytes(layout.types.keys),
                          " bytes, found ", bytes, " bytes, which are ", rest, " too many", hint});
}

void check_raw_size(const std::string& path, int64_t bytes, int64_t rows, const RawLayout& layout) {
  const int64_t found = raw_rows(path, bytes, layout);
  TERCEL_CHECK(rows <= found, DataError, printable(path), ": expected ", rows, " rows of ", layout.row_bytes,
               " bytes, found ", found);
}

void check_raw_row(const RawLayout& layout, Span<std::byte> row, const CursorContext& context) {
  ByteCursor cursor(row, context);
  const RowRules& rules = layout.rules;
  const Schema& schema = layout.schema();
  for (int64_t i = 0; i < schema.label_dim; ++i) {
    const int64_t offset = cursor.position();
    const auto bits = cursor.read<uint32_t>("label");
    const float label = layout.types.labels == NumberType::F32 ? std::bit_cast<float>(bits)
                                                               : static_cast<float>(std::bit_cast<int32_t>(bits));
    if (!rules.is_label(label))
      cursor.fail_at(offset, rules.expected_label(i),
                     number_text(bits, layout.types.labels) + other_type_hint(layout.types, true, bits));
  }
  for (int64_t i = 0; i < schema.dense_dim; ++i) {
    const int64_t offset = cursor.position();
    const auto bits = cursor.read<uint32_t>("dense value");
    const bool is_float = layout.types.dense == NumberType::F32;
    const float value = is_float ? std::bit_cast<float>(bits) : log_of_dense(std::bit_cast<int32_t>(bits));
    if (!RowRules::is_dense_value(value))
      cursor.fail_at(offset,
                     is_float ? rules.expected_dense(i)
                              : str_cat({"dense value ", i, " of 0 or more, as ln(x + 1) is taken of it"}),
                     number_text(bits, layout.types.dense) + other_type_hint(layout.types, false, bits));
  }
  for (size_t s = 0; s < rules.slots().size(); ++s) {
    const RowRules::SlotRule& rule = rules.slots()[s];
    for (int64_t i = 0; i < rule.hotness; ++i) {
      const int64_t offset = cursor.position();
      int64_t key = 0, shown = 0;
      if (layout.types.keys == KeyType::I64) {
        shown = key = cursor.read<int64_t>("key");
      } else {
        const auto bits = cursor.read<uint32_t>("key");
        key = bits;
        shown = layout.types.max_key == max_key(KeyType::U32) ? key : int64_t{std::bit_cast<int32_t>(bits)};
      }
      if (!rule.has(key)) cursor.fail_at(offset, rules.expected_key(s), str_cat({shown}));
    }
  }
}

void check_raw_types(const RandomAccessFile& file, const RawLayout& layout) {
  const Schema& schema = layout.schema();
  const int64_t rows =
      std::min({file.size() / layout.row_bytes, kSampleRows, std::max<int64_t>(1, kSampleBytes / layout.row_bytes)});
  const auto numbers = static_cast<size_t>(schema.label_dim + schema.dense_dim);
  std::vector<std::byte> bytes(numbers * kNumberBytes);
  int64_t suspects = 0, values = 0, first_offset = 0, first_record = 0;
  size_t first_index = 0;
  uint32_t first_bits = 0;
  const auto fail = [&] {
    const bool is_label = first_index < static_cast<size_t>(schema.label_dim);
    const auto index = static_cast<int64_t>(first_index) - (is_label ? 0 : schema.label_dim);
    const NumberType type = is_label ? layout.types.labels : layout.types.dense;
    throw_error<DataError>({printable(file.path()), ": record ", first_record, ": byte ", first_offset, ": expected ",
                            is_label ? "label " : "dense value ", index, " as ",
                            type == NumberType::F32 ? "f32" : "i32", ", found ", number_text(first_bits, type),
                            other_type_hint(layout.types, is_label, first_bits)});
  };
  for (int64_t row = 0; row < rows; ++row) {
    if (file.read_at(bytes.data(), bytes.size(), row * layout.row_bytes) != bytes.size()) return;
    for (size_t i = 0; i < numbers; ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, bytes.data() + i * kNumberBytes, sizeof(bits));
      const bool is_label = i < static_cast<size_t>(schema.label_dim);
      values += !is_label && bits != 0 ? 1 : 0;
      if (!looks_like_other(bits, is_label ? layout.types.labels : layout.types.dense)) continue;
      if (!is_label && suspects++ > 0) continue;
      first_bits = bits;
      first_index = i;
      first_record = row;
      first_offset = row * layout.row_bytes + static_cast<int64_t>(i) * kNumberBytes;
      // No label has such a value; of dense values, some may.
      if (is_label) fail();
    }
  }
  if (2 * suspects > values) fail();
}

}  // namespace tercel::data
