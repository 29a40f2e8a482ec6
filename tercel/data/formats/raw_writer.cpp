#include <bit>
#include <cstring>
#include <limits>

#include "tercel/data/formats/raw_writer_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

/** Rules of keys as rows have them; the largest one of the files bounds them where nothing is subtracted. */
RowRules rules_of(const Schema& schema, const RawTypes& types, bool binary_labels) {
  const bool add = types.slot_offsets == SlotOffsets::Add;
  for (const Slot& slot : schema.slots) {
    const int64_t largest = slot.size - 1 + (add ? 0 : slot.first_key);
    TERCEL_CHECK(slot.size == 0 || static_cast<uint64_t>(largest) <= types.max_key, ConfigError, types.format,
                 ": slot '", printable(slot.name), "': expected keys up to ", types.max_key,
                 ", which fit in the files, found keys up to ", largest);
  }
  return add ? RowRules(schema, binary_labels) : RowRules(schema, binary_labels, types.max_key);
}

/** Exactly, sign of zero included. */
bool to_integer(float value, int32_t& out) {
  // 2^31 itself is out of range.
  if (!(value >= -2147483648.0f && value < 2147483648.0f)) return false;
  out = static_cast<int32_t>(value);
  return std::bit_cast<uint32_t>(static_cast<float>(out)) == std::bit_cast<uint32_t>(value);
}

}  // namespace

RawWriter::RawWriter(const Schema& schema, const RawTypes& types, const WriterOptions& options)
    : RecordWriter({types.format, ".bin", /*full_slots=*/true, /*file_list=*/false},
                   rules_of(schema, types, options.binary_labels), options),
      layout_(schema, types, options.binary_labels),
      integers_(static_cast<size_t>(schema.label_dim + schema.dense_dim)) {}

void RawWriter::check_row(const RowView& row) {
  const auto label_dim = static_cast<size_t>(schema().label_dim), dense_dim = static_cast<size_t>(schema().dense_dim);
  if (layout_.types.labels == NumberType::I32)
    for (size_t i = 0; i < label_dim; ++i)
      if (!to_integer(row.labels[i], integers_[i]))
        fail_row(str_cat({"label ", i, " to be an integer of 32 bits"}), format_double(row.labels[i]));
  if (layout_.types.dense == NumberType::I32)
    for (size_t i = 0; i < dense_dim; ++i)
      if (!inverse_log_of_dense(row.dense[i], integers_[label_dim + i]))
        fail_row(str_cat({"dense value ", i, " to be ln(x + 1) of an integer x, as without ",
                          layout_.types.float_option, " only that is written"}),
                 format_double(row.dense[i]));
}

void RawWriter::put_row(const RowView& row, RecordFile& file) {
  char* out = file.append(static_cast<size_t>(layout_.row_bytes));
  const auto put = [&out](const void* data, size_t bytes) {
    if (bytes > 0) std::memcpy(out, data, bytes);
    out += bytes;
  };
  const auto label_dim = static_cast<size_t>(schema().label_dim), dense_dim = static_cast<size_t>(schema().dense_dim);
  const int32_t* integers = integers_.data();
  put(layout_.types.labels == NumberType::F32 ? static_cast<const void*>(row.labels) : integers, 4 * label_dim);
  put(layout_.types.dense == NumberType::F32 ? static_cast<const void*>(row.dense) : integers + label_dim,
      4 * dense_dim);
  const int64_t* keys = row.keys;
  for (size_t s = 0; s < schema().slots.size(); ++s) {
    const int64_t hotness = schema().slots[s].hotness;
    for (int64_t k = 0; k < hotness; ++k) {
      const int64_t key = *keys++ - layout_.key_offsets[s];
      if (layout_.types.keys == KeyType::I64) {
        put(&key, sizeof(key));
      } else {
        const auto narrow = static_cast<uint32_t>(key);
        put(&narrow, sizeof(narrow));
      }
    }
  }
}

}  // namespace tercel::data
