#include <cstring>
#include <string>

#include "tercel/data/formats/norm_writer_impl.h"

namespace tercel::data {

namespace {

char* open_frame(char* out, size_t payload_bytes) {
  const auto length = static_cast<int32_t>(payload_bytes);
  std::memcpy(out, &length, sizeof(length));
  return out + sizeof(length);
}

void close_frame(char* payload, size_t payload_bytes) {
  const uint8_t sum = norm_sum(payload, payload_bytes);
  std::memcpy(payload + payload_bytes, &sum, sizeof(sum));
}

}  // namespace

NormWriter::NormWriter(const Schema& schema, const NormOptions& norm, const WriterOptions& options)
    : RecordWriter({"norm", ".data", /*full_slots=*/false, /*file_list=*/true},
                   RowRules(schema, options.binary_labels, max_key(norm.key_type)), options),
      norm_(norm) {}

std::string NormWriter::header(int64_t rows) const {
  const bool framed = norm_.check_mode == CheckMode::Sum;
  NormHeader header;
  header.error_check = framed ? 1 : 0;
  header.number_of_records = rows;
  header.label_dim = schema().label_dim;
  header.dense_dim = schema().dense_dim;
  header.slot_num = schema().slot_num();
  std::string bytes(static_cast<size_t>(norm_header_bytes(norm_.check_mode)), '\0');
  char* const payload = framed ? open_frame(bytes.data(), sizeof(header)) : bytes.data();
  std::memcpy(payload, &header, sizeof(header));
  if (framed) close_frame(payload, sizeof(header));
  return bytes;
}

// Most files become full, so the header is written for a full file, and their checksum needs no second pass.
void NormWriter::begin_file(RecordFile& file, int64_t expected_rows) {
  const std::string bytes = header(expected_rows);
  std::memcpy(file.append(bytes.size()), bytes.data(), bytes.size());
}

void NormWriter::end_file(RecordFile& file, int64_t rows, int64_t expected_rows) {
  if (rows == expected_rows) return;
  const std::string bytes = header(rows);
  file.replace_start(bytes.data(), bytes.size());
}

void NormWriter::put_row(const RowView& row, RecordFile& file) {
  const bool framed = norm_.check_mode == CheckMode::Sum;
  const auto total = static_cast<size_t>(norm_record_bytes(schema().label_dim, schema().dense_dim, schema().slot_num(),
                                                           row.num_keys, norm_.key_type, norm_.check_mode));
  const size_t payload_bytes = total - static_cast<size_t>(norm_frame_bytes(norm_.check_mode));
  char* const start = file.append(total);
  char* const payload = framed ? open_frame(start, payload_bytes) : start;
  char* out = payload;
  const auto put = [&out](const void* data, size_t bytes) {
    if (bytes > 0) std::memcpy(out, data, bytes);
    out += bytes;
  };
  put(row.labels, static_cast<size_t>(schema().label_dim) * sizeof(float));
  put(row.dense, static_cast<size_t>(schema().dense_dim) * sizeof(float));
  const int64_t* keys = row.keys;
  for (size_t s = 0; s < schema().slots.size(); ++s) {
    const auto count = static_cast<int32_t>(row.count(s, schema().slots[s].hotness));
    put(&count, sizeof(count));
    if (norm_.key_type == KeyType::I64) {
      put(keys, static_cast<size_t>(count) * sizeof(int64_t));
    } else {
      for (int32_t i = 0; i < count; ++i) {
        const auto key = static_cast<uint32_t>(keys[i]);
        put(&key, sizeof(key));
      }
    }
    keys += count;
  }
  if (framed) close_frame(payload, payload_bytes);
}

}  // namespace tercel::data
