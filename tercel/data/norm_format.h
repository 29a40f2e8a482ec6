// HugeCTR's Norm format: 64-byte header, then records of labels, dense values and per slot a count and its keys.
//
// docs/formats/norm.md has the bytes. Everything here is a pure function of its arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"

namespace tercel::data {

/** Width of the keys in a file, which the file does not record. Keys in batches are always i64. */
enum class KeyType : uint8_t { U32, I64 };

/** Framing of header and records: none, or a length before and a checksum after each. */
enum class CheckMode : uint8_t { None, Sum };

constexpr auto enum_names(KeyType) {
  return std::to_array<EnumName<KeyType>>({{KeyType::U32, "u32"}, {KeyType::I64, "i64"}});
}
/** "Sum" and "Non" are HugeCTR's names. */
constexpr auto enum_names(CheckMode) {
  return std::to_array<EnumName<CheckMode>>(
      {{CheckMode::None, "none"}, {CheckMode::Sum, "sum"}, {CheckMode::None, "Non"}, {CheckMode::Sum, "Sum"}});
}
/** Bytes of a key. */
constexpr int64_t key_bytes(KeyType type) { return type == KeyType::U32 ? 4 : 8; }

/** First 64 bytes of a file (after the length, in Sum mode); little-endian. */
struct NormHeader {
  int64_t error_check = 0;  // 0: CheckMode::None, 1: CheckMode::Sum
  int64_t number_of_records = 0;
  int64_t label_dim = 0;
  int64_t dense_dim = 0;
  int64_t slot_num = 0;
  int64_t reserved[3] = {0, 0, 0};
};
static_assert(sizeof(NormHeader) == 64);

/** Limits that keep the sizes below in range; larger values in files and options are errors. */
constexpr int64_t kMaxDim = 1 << 20;      // labels, dense values or slots of a record
constexpr int64_t kMaxHotness = 1 << 24;  // keys of one slot in a record

/** Bytes that a frame adds to its payload: i32 length before, i8 sum behind. */
constexpr int64_t norm_frame_bytes(CheckMode mode) { return mode == CheckMode::Sum ? 5 : 0; }

/** Bytes of the framed header. */
constexpr int64_t norm_header_bytes(CheckMode mode) { return int64_t{sizeof(NormHeader)} + norm_frame_bytes(mode); }

/** Bytes of a framed record that has `nnz` keys in `slot_num` slots together. */
constexpr int64_t norm_record_bytes(int64_t label_dim, int64_t dense_dim, int64_t slot_num, int64_t nnz,
                                    KeyType key_type, CheckMode mode) {
  return norm_frame_bytes(mode) + 4 * (label_dim + dense_dim + slot_num) + nnz * key_bytes(key_type);
}

/** The last byte of a frame: the sum of the payload's bytes, modulo 256. */
TERCEL_API uint8_t norm_sum(const void* payload, size_t bytes);

}  // namespace tercel::data
