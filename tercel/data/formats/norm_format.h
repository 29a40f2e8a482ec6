// HugeCTR's Norm format: 64-byte header, then records of labels, dense values and per slot a count and its keys.
//
// docs/formats/norm.md has the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/dataset_format.h"
#include "tercel/data/formats/key_type.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/options.h"

namespace tercel::data {

/** Framing of header and records: none, or a length before and a checksum after each. */
enum class CheckMode : uint8_t { None, Sum };

/** "Sum" and "Non" are HugeCTR's names. */
constexpr auto enum_names(CheckMode) {
  return std::to_array<EnumName<CheckMode>>(
      {{CheckMode::None, "none"}, {CheckMode::Sum, "sum"}, {CheckMode::None, "Non"}, {CheckMode::Sum, "Sum"}});
}

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

/** What Norm files do not say themselves. */
struct NormOptions {
  KeyType key_type = KeyType::I64;
  CheckMode check_mode = CheckMode::Sum;

  static constexpr auto fields() {
    return option_list(option_field<&NormOptions::key_type>("key_type", "width of the keys in the files"),
                       option_field<&NormOptions::check_mode>("check_mode", "framing of the records"));
  }
};

/** The format of a dataset of Norm files. */
TERCEL_API std::shared_ptr<const DatasetFormat> norm_format(const NormOptions& options = {});

/** Properties of files from HugeCTR's tools that only the user knows. */
struct NormSpec {
  std::string train_list;  // HugeCTR file lists
  std::string valid_list;  // may be empty
  std::string test_list;   // may be empty
  int64_t label_dim = 1;
  int64_t dense_dim = 0;
  std::vector<int64_t> nnz_per_slot;     // one for each slot: the most keys that a row has in it
  std::vector<int64_t> slot_size_array;  // empty: any key may occur; else keys of a slot follow those of the one before
  KeyType key_type = KeyType::U32;
  CheckMode check_mode = CheckMode::Sum;

  static constexpr auto fields() {
    return option_list(
        option_field<&NormSpec::train_list>("train_list", "HugeCTR file list of the train part", required()),
        option_field<&NormSpec::valid_list>("valid_list", "HugeCTR file list of the validation part, may be empty"),
        option_field<&NormSpec::test_list>("test_list", "HugeCTR file list of the test part, may be empty"),
        option_field<&NormSpec::label_dim>("label_dim", "labels of a row", at_least(1)),
        option_field<&NormSpec::dense_dim>("dense_dim", "dense values of a row", at_least(0)),
        option_field<&NormSpec::nnz_per_slot>("nnz_per_slot", "for each slot, the most keys that a row has in it",
                                              at_least(1)),
        option_field<&NormSpec::slot_size_array>(
            "slot_size_array",
            "keys of each slot, by which those of later ones are offset; 0: as the next; empty: any key may occur",
            at_least(0)),
        option_field<&NormSpec::key_type>("key_type", "width of the keys in the files"),
        option_field<&NormSpec::check_mode>("check_mode", "framing of the records"));
  }
};

/** Describes bare Norm files: opens each, checks its header against the spec, and reads its number of rows. */
TERCEL_API Dataset dataset_from_norm_files(const NormSpec& spec);

}  // namespace tercel::data
