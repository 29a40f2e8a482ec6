#include <cmath>
#include <cstring>
#include <limits>

#include "tercel/data/norm_layout_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr int32_t kHeaderPayload = int32_t{sizeof(NormHeader)};

std::string slot_text(const Schema& schema, size_t slot) {
  return str_cat({"slot ", slot, " ('", schema.slots[slot].name, "')"});
}

template <class T>
void expect(ByteCursor& cursor, std::string_view what, T wanted, std::string_view hint = {}) {
  const int64_t offset = cursor.position();
  const T found = cursor.read<T>(what);
  if (found != wanted) cursor.fail_at(offset, str_cat({what, " ", wanted}), str_cat({found, hint}));
}

}  // namespace

NormLayout::NormLayout(const Schema& schema_of_rows, KeyType width, CheckMode mode, bool labels_are_binary,
                       Span<SparseInput> inputs)
    : schema(schema_of_rows), key_type(width), check_mode(mode), binary_labels(labels_are_binary) {
  tables.resize(schema.slots.size());
  std::vector<int64_t> num_keys(schema.slots.size());
  size_t next = 0;
  for (const SparseInput& input : inputs)
    for (int64_t s = 0; s < input.slot_num; ++s, ++next) {
      tables[next] = input.table;
      num_keys[next] = input.num_keys;
    }
  for (size_t s = 0; s < schema.slots.size(); ++s) {
    const Slot& slot = schema.slots[s];
    const int64_t size = slot.size > 0 ? slot.size : num_keys[s];
    const uint64_t range = size > 0 ? static_cast<uint64_t>(size - 1) : std::numeric_limits<uint64_t>::max();
    slots.push_back({static_cast<uint64_t>(slot.first_key), range, slot.hotness});
  }
  min_record_bytes = norm_record_bytes(schema.label_dim, schema.dense_dim, schema.slot_num(), 0, key_type, mode);
  max_record_bytes =
      norm_record_bytes(schema.label_dim, schema.dense_dim, schema.slot_num(), schema.max_nnz(), key_type, mode);
}

int64_t read_norm_header(const File& file, const NormLayout& layout) {
  std::byte bytes[sizeof(NormHeader) + 5];
  const size_t size = file.pread_some(bytes, static_cast<size_t>(layout.header_bytes()), 0);
  ByteCursor cursor(Span<std::byte>(bytes, size), {file.path()});

  // Sum mode starts with the header's length, None mode with error_check = 0, which distinguishes the two.
  int32_t start = 0;
  if (size >= sizeof(start)) std::memcpy(&start, bytes, sizeof(start));
  std::string_view hint;
  if (layout.framed() && start == 0) hint = " (a file with check mode none?)";
  if (!layout.framed() && start == kHeaderPayload) hint = " (a file with check mode sum?)";

  if (layout.framed()) expect<int32_t>(cursor, "length of the header", kHeaderPayload, hint);
  const Span<std::byte> header = cursor.sub(sizeof(NormHeader), "header").bytes(sizeof(NormHeader), "header");
  if (layout.framed()) expect<uint8_t>(cursor, "sum of the header", norm_sum(header.data(), header.size()));

  ByteCursor fields(header, {file.path(), -1, layout.framed() ? 4 : 0});
  expect<int64_t>(fields, "error_check", layout.framed() ? 1 : 0, hint);
  const int64_t records_offset = fields.position();
  const auto records = fields.read<int64_t>("number_of_records");
  if (records < 0) fields.fail_at(records_offset, "number_of_records of 0 or more", str_cat({records}));
  expect<int64_t>(fields, "label_dim", layout.schema.label_dim);
  expect<int64_t>(fields, "dense_dim", layout.schema.dense_dim);
  expect<int64_t>(fields, "slot_num", layout.schema.slot_num());
  return records;
}

std::string key_type_hint(int64_t bytes, int64_t records, const NormLayout& layout) {
  const KeyType other = layout.key_type == KeyType::U32 ? KeyType::I64 : KeyType::U32;
  const Schema& schema = layout.schema;
  const int64_t record = norm_record_bytes(schema.label_dim, schema.dense_dim, schema.slot_num(), schema.max_nnz(),
                                           other, layout.check_mode);
  const int64_t body = bytes - layout.header_bytes();
  if (records == 0 || body % record != 0 || body / record != records) return {};
  return str_cat({" (the size of the file is right for ", to_string(other), " keys)"});
}

bool check_norm_size(const std::string& path, int64_t bytes, int64_t records, const NormLayout& layout) {
  const int64_t body = bytes - layout.header_bytes();
  if (body >= 0 && body % layout.max_record_bytes == 0 && body / layout.max_record_bytes == records) return true;
  const auto fail = [&](std::string_view expected) {
    throw_error<DataError>({printable(path), ": expected ", expected, " for ", records, " records, found ", bytes,
                            key_type_hint(bytes, records, layout)});
  };
  // By division, which cannot overflow for any number of records in the file.
  if (body < 0 || records > body / layout.min_record_bytes)
    fail(str_cat({"at least ", layout.header_bytes(), " + ", records, " x ", layout.min_record_bytes, " bytes"}));
  if (body / layout.max_record_bytes >= records)
    fail(str_cat({"at most ", layout.header_bytes() + records * layout.max_record_bytes, " bytes"}));
  return false;
}

void check_norm_record(const NormLayout& layout, Span<std::byte> bytes, const CursorContext& context, bool exact) {
  ByteCursor cursor(bytes, context);
  const Schema& schema = layout.schema;
  int64_t payload = 0;
  if (layout.framed()) {
    payload = cursor.read<int32_t>("length of the record");
    const int64_t most = layout.max_record_bytes - norm_frame_bytes(layout.check_mode);
    const int64_t least = exact ? most : layout.min_record_bytes - norm_frame_bytes(layout.check_mode);
    if (payload < least || payload > most)
      cursor.fail_at(context.base_offset, str_cat({"a record of ", least, " to ", most, " bytes"}), str_cat({payload}));
  }
  // The checksum is checked first, to distinguish damage from wrong values.
  const int64_t start = cursor.position();
  if (layout.framed()) {
    ByteCursor whole = cursor;
    const Span<std::byte> all = whole.bytes(static_cast<size_t>(payload), "record");
    expect<uint8_t>(whole, "sum of the record", norm_sum(all.data(), all.size()));
  }
  for (int64_t i = 0; i < schema.label_dim; ++i) {
    const int64_t offset = cursor.position();
    const auto label = cursor.read<float>("label");
    if (layout.binary_labels ? label != 0.0f && label != 1.0f : !std::isfinite(label))
      cursor.fail_at(offset, str_cat({"label ", i, layout.binary_labels ? " of 0 or 1" : " to be a finite number"}),
                     format_double(label));
  }
  for (int64_t i = 0; i < schema.dense_dim; ++i) {
    const int64_t offset = cursor.position();
    const auto value = cursor.read<float>("dense value");
    if (!std::isfinite(value))
      cursor.fail_at(offset, str_cat({"dense value ", i, " to be a finite number"}), format_double(value));
  }
  for (size_t s = 0; s < layout.slots.size(); ++s) {
    const NormLayout::SlotRule& rule = layout.slots[s];
    const int64_t offset = cursor.position();
    const int64_t nnz = cursor.read<int32_t>("key count");
    if (nnz < 0 || nnz > rule.hotness || (exact && nnz != rule.hotness))
      cursor.fail_at(offset,
                     str_cat({exact ? "" : "0 to ", rule.hotness, " keys in ", slot_text(schema, s),
                              exact ? ", as the size of the file says" : ""}),
                     str_cat({nnz}));
    for (int64_t i = 0; i < nnz; ++i) {
      const int64_t at = cursor.position();
      const int64_t key =
          layout.key_type == KeyType::U32 ? int64_t{cursor.read<uint32_t>("key")} : cursor.read<int64_t>("key");
      if (static_cast<uint64_t>(key) - rule.first_key > rule.key_range)
        cursor.fail_at(at,
                       str_cat({"a key from ", rule.first_key, " to ", rule.first_key + rule.key_range, " in ",
                                slot_text(schema, s),
                                layout.tables[s].empty() ? "" : str_cat({" of table '", layout.tables[s], "'"})}),
                       str_cat({key}));
    }
  }
  if (layout.framed() && cursor.position() != start + payload)
    cursor.fail_at(context.base_offset,
                   str_cat({"a record of ", cursor.position() - start, " bytes, as its key counts say"}),
                   str_cat({payload}));
}

}  // namespace tercel::data
