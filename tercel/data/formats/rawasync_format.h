// HugeCTR's RawAsync format: rows of equal size, without a header: i32 labels, dense values, and a fixed number of keys
// per slot.
//
// docs/formats/rawasync.md has the bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/dataset_format.h"
#include "tercel/data/formats/key_type.h"
#include "tercel/data/formats/raw_format.h"
#include "tercel/util/export.h"
#include "tercel/util/options.h"

namespace tercel::data {

/** What RawAsync files do not say themselves. */
struct RawAsyncOptions {
  bool is_dense_float = true;
  KeyType key_type = KeyType::I64;
  SlotOffsets slot_offsets = SlotOffsets::None;

  static constexpr auto fields() {
    return std::tuple(
        Field{"is_dense_float", &RawAsyncOptions::is_dense_float,
              "dense values are f32 in the files; else i32, and are read as ln(x + 1)"},
        Field{"key_type", &RawAsyncOptions::key_type, "width of the keys in the files"},
        Field{"slot_offsets", &RawAsyncOptions::slot_offsets, "add: keys in the files begin at 0 in every slot"});
  }
};

/** The format of a dataset of RawAsync files. */
TERCEL_API std::shared_ptr<const DatasetFormat> rawasync_format(const RawAsyncOptions& options = {});

/** Properties of RawAsync files of other tools. */
struct RawAsyncSpec {
  std::vector<std::string> train;  // files
  std::vector<std::string> valid;
  std::vector<std::string> test;
  int64_t label_dim = 1;
  int64_t dense_dim = 0;
  std::vector<int64_t> nnz_per_slot;     // one for each slot: the keys that every row has in it
  std::vector<int64_t> slot_size_array;  // empty: any key may occur; else keys of a slot follow those of the one before
  bool is_dense_float = true;
  KeyType key_type = KeyType::U32;
  SlotOffsets slot_offsets = SlotOffsets::None;

  static constexpr auto fields() {
    return std::tuple(
        Field{"train", &RawAsyncSpec::train, "files of the train part, in order", required()},
        Field{"valid", &RawAsyncSpec::valid, "files of the validation part, in order"},
        Field{"test", &RawAsyncSpec::test, "files of the test part, in order"},
        Field{"label_dim", &RawAsyncSpec::label_dim, "labels of a row, i32", at_least(1), at_most(kMaxDim)},
        Field{"dense_dim", &RawAsyncSpec::dense_dim, "dense values of a row", at_least(0), at_most(kMaxDim)},
        Field{"nnz_per_slot", &RawAsyncSpec::nnz_per_slot, "for each slot, the keys that every row has in it",
              at_least(1), at_most(kMaxHotness)},
        Field{"slot_size_array", &RawAsyncSpec::slot_size_array, "keys of each slot; empty: any key may occur",
              at_least(1)},
        Field{"is_dense_float", &RawAsyncSpec::is_dense_float,
              "dense values are f32; else i32, and are read as ln(x + 1)"},
        Field{"key_type", &RawAsyncSpec::key_type, "width of the keys in the files"},
        Field{"slot_offsets", &RawAsyncSpec::slot_offsets,
              "add: keys in the files begin at 0 in every slot, and the sizes of the slots before are added"});
  }
};

/** Describes bare RawAsync files: checks their sizes, and the types of the first values; reads no more. */
TERCEL_API Dataset dataset_from_rawasync_files(const RawAsyncSpec& spec);

}  // namespace tercel::data
