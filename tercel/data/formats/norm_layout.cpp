#include <cstring>

#include "tercel/data/formats/norm_layout_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr int32_t kHeaderPayload = int32_t{sizeof(NormHeader)};

template <class T>
void expect(ByteCursor& cursor, std::string_view what, T wanted, std::string_view hint = {}) {
  const int64_t offset = cursor.position();
  const T found = cursor.read<T>(what);
  if (found != wanted) cursor.fail_at(offset, str_cat({what, " ", wanted}), str_cat({found, hint}));
}

}  // namespace

NormLayout::NormLayout(const Schema& schema, const NormOptions& norm_options, bool binary_labels,
                       Span<SparseInput> inputs)
    : options(norm_options),
      rules(schema, binary_labels, max_key(norm_options.key_type), inputs),
      min_record_bytes(record_bytes(0)),
      max_record_bytes(record_bytes(schema.max_nnz())) {
  for (const Slot& slot : schema.slots)
    TERCEL_CHECK(!slot.weighted, ConfigError, "norm: slot '", printable(slot.name),
                 "': expected keys without weights, which the files cannot hold, found keys with weights");
  TERCEL_CHECK(schema.columns.empty(), ConfigError,
               "norm: expected no columns besides labels, dense values and keys, which are all that the files hold, "
               "found '",
               printable(schema.columns[0].name), "'");
}

int64_t read_norm_header(const RandomAccessFile& file, const NormLayout& layout) {
  std::byte bytes[sizeof(NormHeader) + 5];
  const size_t size = file.read_at(bytes, static_cast<size_t>(layout.header_bytes()), 0);
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
  expect<int64_t>(fields, "label_dim", layout.schema().label_dim);
  expect<int64_t>(fields, "dense_dim", layout.schema().dense_dim);
  expect<int64_t>(fields, "slot_num", layout.schema().slot_num());
  return records;
}

std::string key_type_hint(int64_t bytes, int64_t records, const NormLayout& layout) {
  const KeyType other = layout.options.key_type == KeyType::U32 ? KeyType::I64 : KeyType::U32;
  const Schema& schema = layout.schema();
  const int64_t record = norm_record_bytes(schema.label_dim, schema.dense_dim, schema.slot_num(), schema.max_nnz(),
                                           other, layout.options.check_mode);
  const int64_t body = bytes - layout.header_bytes();
  if (records == 0 || schema.max_nnz() == 0 || body % record != 0 || body / record != records) return {};
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
  const RowRules& rules = layout.rules;
  const Schema& schema = layout.schema();
  int64_t payload = 0;
  if (layout.framed()) {
    payload = cursor.read<int32_t>("length of the record");
    const int64_t most = layout.max_record_bytes - norm_frame_bytes(layout.options.check_mode);
    const int64_t least = exact ? most : layout.min_record_bytes - norm_frame_bytes(layout.options.check_mode);
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
    if (!rules.is_label(label)) cursor.fail_at(offset, rules.expected_label(i), format_double(label));
  }
  for (int64_t i = 0; i < schema.dense_dim; ++i) {
    const int64_t offset = cursor.position();
    const auto value = cursor.read<float>("dense value");
    if (!RowRules::is_dense_value(value)) cursor.fail_at(offset, rules.expected_dense(i), format_double(value));
  }
  for (size_t s = 0; s < rules.slots().size(); ++s) {
    const RowRules::SlotRule& rule = rules.slots()[s];
    const int64_t offset = cursor.position();
    const int64_t nnz = cursor.read<int32_t>("key count");
    if (!rule.allows(nnz) || (exact && nnz != rule.hotness))
      cursor.fail_at(offset, str_cat({rules.expected_count(s, exact), exact ? ", as the size of the file says" : ""}),
                     str_cat({nnz}));
    for (int64_t i = 0; i < nnz; ++i) {
      const int64_t at = cursor.position();
      const int64_t key =
          layout.options.key_type == KeyType::U32 ? int64_t{cursor.read<uint32_t>("key")} : cursor.read<int64_t>("key");
      if (!rule.has(key)) cursor.fail_at(at, rules.expected_key(s), str_cat({key}));
    }
  }
  if (layout.framed() && cursor.position() != start + payload)
    cursor.fail_at(context.base_offset,
                   str_cat({"a record of ", cursor.position() - start, " bytes, as its key counts say"}),
                   str_cat({payload}));
}

}  // namespace tercel::data
