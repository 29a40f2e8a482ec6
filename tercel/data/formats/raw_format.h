// HugeCTR's Raw format: rows of equal size, without a header: labels, dense values, and one 32-bit key per slot.
//
// docs/formats/raw.md has the bytes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tercel/data/dataset.h"
#include "tercel/data/dataset_format.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/options.h"

namespace tercel::data {

/** What is added to the keys in files: nothing, or the slot's first_key, as their keys begin at 0 in every slot. */
enum class SlotOffsets : uint8_t { None, Add };

constexpr auto enum_names(SlotOffsets) {
  return std::to_array<EnumName<SlotOffsets>>({{SlotOffsets::None, "none"}, {SlotOffsets::Add, "add"}});
}

/** What Raw files do not say themselves. */
struct RawOptions {
  bool float_label_dense = true;
  SlotOffsets slot_offsets = SlotOffsets::None;

  static constexpr auto fields() {
    return option_list(
        option_field<&RawOptions::float_label_dense>(
            "float_label_dense",
            "labels and dense values are f32 in the files; else i32, and dense values are read as ln(x + 1)"),
        option_field<&RawOptions::slot_offsets>("slot_offsets", "add: keys in the files begin at 0 in every slot"));
  }
};

/** The format of a dataset of Raw files. */
TERCEL_API std::shared_ptr<const DatasetFormat> raw_format(const RawOptions& options = {});

/** Files of rows of equal size, Raw or RawAsync, of other tools, and what they do not say themselves. */
struct RawFilesSpec {
  std::vector<std::string> train;  // files
  std::vector<std::string> valid;
  std::vector<std::string> test;
  int64_t label_dim = 1;
  int64_t dense_dim = 0;
  std::vector<int64_t> nnz_per_slot;     // one for each slot: the keys that every row has in it
  std::vector<int64_t> slot_size_array;  // empty: any key may occur; else keys of a slot follow those of the one before
  SlotOffsets slot_offsets = SlotOffsets::None;

  static constexpr auto fields() {
    return option_list(
        option_field<&RawFilesSpec::train>("train", "files of the train part, in order", required()),
        option_field<&RawFilesSpec::valid>("valid", "files of the validation part, in order"),
        option_field<&RawFilesSpec::test>("test", "files of the test part, in order"),
        option_field<&RawFilesSpec::label_dim>("label_dim", "labels of a row", at_least(1), at_most(kMaxDim)),
        option_field<&RawFilesSpec::dense_dim>("dense_dim", "dense values of a row", at_least(0), at_most(kMaxDim)),
        option_field<&RawFilesSpec::nnz_per_slot>("nnz_per_slot", "for each slot, the keys that every row has in it",
                                                  at_least(1), at_most(kMaxHotness)),
        option_field<&RawFilesSpec::slot_size_array>(
            "slot_size_array",
            "keys of each slot, by which those of later ones are offset; 0: as the next; empty: any key may occur",
            at_least(0)),
        option_field<&RawFilesSpec::slot_offsets>(
            "slot_offsets",
            "add: keys in the files begin at 0 in every slot, and the sizes of the slots before are added"));
  }
};

/** Properties of Raw files of other tools. */
struct RawSpec : RawFilesSpec {
  bool float_label_dense = false;
  int64_t num_samples = 0;
  int64_t eval_num_samples = 0;

  static constexpr auto fields() {
    return option_list(
        RawFilesSpec::fields(),

        option_field<&RawSpec::float_label_dense>(
            "float_label_dense", "labels and dense values are f32; else i32, and dense values are read as ln(x + 1)"),
        option_field<&RawSpec::num_samples>("num_samples", "train rows, from the start of the files; 0: all",
                                            at_least(0)),
        option_field<&RawSpec::eval_num_samples>("eval_num_samples", "test rows, from the start of the files; 0: all",
                                                 at_least(0)));
  }
};

/** Describes bare Raw files: checks their sizes, and the types of the first values; reads no more. */
TERCEL_API Dataset dataset_from_raw_files(const RawSpec& spec);

}  // namespace tercel::data
