// HugeCTR's RawAsync format: rows of equal size, without a header: i32 labels, dense values, and a fixed number of keys
// per slot.
//
// docs/formats/rawasync.md has the bytes.
#pragma once

#include <memory>

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
    return option_list(option_field<&RawAsyncOptions::is_dense_float>(
                           "is_dense_float", "dense values are f32 in the files; else i32, and are read as ln(x + 1)"),
                       option_field<&RawAsyncOptions::key_type>("key_type", "width of the keys in the files"),
                       option_field<&RawAsyncOptions::slot_offsets>("slot_offsets",
                                                                    "add: keys in the files begin at 0 in every slot"));
  }
};

/** The format of a dataset of RawAsync files. */
TERCEL_API std::shared_ptr<const DatasetFormat> rawasync_format(const RawAsyncOptions& options = {});

/** Properties of RawAsync files of other tools. Labels are i32. */
struct RawAsyncSpec : RawFilesSpec {
  bool is_dense_float = true;
  KeyType key_type = KeyType::U32;

  static constexpr auto fields() {
    return option_list(RawFilesSpec::fields(),
                       option_field<&RawAsyncSpec::is_dense_float>(
                           "is_dense_float", "dense values are f32; else i32, and are read as ln(x + 1)"),
                       option_field<&RawAsyncSpec::key_type>("key_type", "width of the keys in the files"));
  }
};

/** Describes bare RawAsync files: checks their sizes, and the types of the first values; reads no more. */
TERCEL_API Dataset dataset_from_rawasync_files(const RawAsyncSpec& spec);

}  // namespace tercel::data
