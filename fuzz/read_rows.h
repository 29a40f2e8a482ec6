// Reading a whole dataset, and a folder for it, for the fuzz targets of the dataset formats.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "tercel/data/batch_reader.h"
#include "tercel/util/error.h"

namespace tercel::fuzz {

/** A folder for the life of the program. */
struct WorkFolder {
  std::string path = (std::filesystem::temp_directory_path() / "tercel_fuzz_XXXXXX").string();

  WorkFolder() {
    if (::mkdtemp(path.data()) == nullptr) std::abort();
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

inline const std::string& work_folder() {
  static const WorkFolder folder;
  return folder.path;
}

/** The rows of a train part up to the first error, one after the other. */
struct Outcome {
  std::string error;  // empty: everything was read
  std::vector<float> labels, dense;
  std::vector<int32_t> nnz;
  std::vector<int64_t> keys;
  int64_t rows = 0;
};

template <class T>
void append(std::vector<T>& to, const void* from, int64_t count) {
  if (count > 0) to.insert(to.end(), static_cast<const T*>(from), static_cast<const T*>(from) + count);
}

inline Outcome read_all(const data::Dataset& dataset, const data::ReaderOptions& options) {
  Outcome outcome;
  try {
    data::BatchReader reader(dataset, data::PartName::Train, options);
    data::Batch batch;
    while (reader.next(batch)) {
      outcome.rows += batch.rows;
      append(outcome.labels, batch.labels.data_ptr(), batch.labels.numel());
      append(outcome.dense, batch.dense.data_ptr(), batch.dense.numel());
      for (const data::SparseBatch& sparse : batch.sparse) {
        const int64_t* offsets = sparse.row_offsets.data<int64_t>();
        for (int64_t bag = 0; bag < batch.rows * sparse.slot_num; ++bag)
          outcome.nnz.push_back(static_cast<int32_t>(offsets[bag + 1] - offsets[bag]));
        append(outcome.keys, sparse.keys.data_ptr(), sparse.keys.numel());
      }
    }
    if (outcome.rows + reader.bad_records() != reader.epoch_rows()) std::abort();
  } catch (const DataError& error) {
    outcome.error = error.what();
  }
  return outcome;
}

/** Whether reading goes on behind every record that is left out, or may end where the next one cannot be known. */
enum class BadRecords : uint8_t { AllCanBeLeftOut, MayEndReading };

/**
 * Reads the train part in batches of one row, which is the result, in large ones by two workers, shuffled, and without
 * bad records; ends the program if these contradict each other.
 */
inline Outcome read_every_way(const data::Dataset& dataset, data::ReaderOptions options, BadRecords bad) {
  const auto expect = [](bool holds) {
    if (!holds) std::abort();
  };
  options.batch_size = 1;
  const Outcome one = read_all(dataset, options);
  const bool good = one.error.empty();
  options.batch_size = 100;
  options.num_workers = 2;
  const Outcome many = read_all(dataset, options);
  expect(one.error == many.error);
  options.shuffle = true;
  options.shuffle_block = 2;
  options.shuffle_window = 4;
  const Outcome shuffled = read_all(dataset, options);
  expect(good == shuffled.error.empty());
  options.shuffle = false;
  options.on_bad_record = data::OnBadRecord::Skip;
  options.max_bad_records = dataset.train.rows();
  const Outcome skipping = read_all(dataset, options);
  if (good || bad == BadRecords::AllCanBeLeftOut) expect(skipping.error.empty());
  if (!good) return one;
  expect(one.nnz == many.nnz && one.keys == many.keys && one.keys == skipping.keys);
  expect(one.rows == shuffled.rows && one.keys.size() == shuffled.keys.size());
  return one;
}

}  // namespace tercel::fuzz
