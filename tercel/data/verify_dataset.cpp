#include "tercel/data/verify_dataset.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "tercel/data/batch_reader.h"
#include "tercel/data/file_list.h"
#include "tercel/data/row_encoder.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/parallel.h"

namespace tercel::data {

namespace {

using Progress = FunctionRef<void(const VerifyProgress&)>;

class Verifier {
 public:
  Verifier(const Dataset& dataset, const VerifyOptions& options, Progress progress)
      : dataset_(dataset), options_(options), progress_(progress) {
    check_options(options, "verify");
    state_.bytes_total = 0;
    for (const auto& [name, part] : dataset.parts()) state_.bytes_total += 2 * part.bytes();
  }

  VerifyResult run() {
    verify_vocabulary();
    for (const auto& named : dataset_.parts()) {
      const DataPart& part = named.part;
      if (!part.file_list.empty() && !full()) attempt([&] { verify_list(part); });
      for (const DataFile& file : part.files) {
        if (full()) return std::move(result_);
        verify_file_and_rows(file);
      }
    }
    return std::move(result_);
  }

 private:
  bool full() const { return static_cast<int64_t>(result_.faults.size()) >= options_.max_faults; }
  /** Whether there is none; a fault that was found before is not repeated. */
  template <class Check>
  bool attempt(Check check) {
    try {
      check();
      return true;
    } catch (const DataError& error) {
      add_fault(error.what());
    } catch (const ConfigError& error) {
      // The description asks for what there is not.
      add_fault(error.what());
    }
    return false;
  }
  void add_fault(const std::string& fault) {
    if (std::find(result_.faults.begin(), result_.faults.end(), fault) == result_.faults.end())
      result_.faults.push_back(fault);
  }

  void verify_vocabulary() {
    if (!dataset_.conversion || !dataset_.conversion->vocabulary) return;
    const FileRecord& record = *dataset_.conversion->vocabulary;
    ++result_.files;
    result_.bytes += record.bytes;
    attempt([&] { verify_file(dataset_, record); }) && attempt([&] {
      static_cast<void>(load_row_encoder(dataset_.schema, *dataset_.conversion, dataset_.path_of(record)));
    });
  }

  void verify_list(const DataPart& part) const {
    const std::string list = dataset_.folder.empty() ? part.file_list : join_path(dataset_.folder, part.file_list);
    const std::vector<std::string> names = read_file_list(list);
    TERCEL_CHECK(names.size() == part.files.size(), DataError, printable(list), ": line 1: expected ",
                 part.files.size(), " files, as ", kDatasetFile, " says, found ", names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string path = dataset_.path_of(part.files[i]);
      TERCEL_CHECK(std::filesystem::equivalent(names[i], path), DataError, printable(list), ": line ", i + 2,
                   ": expected ", printable(path), ", as ", kDatasetFile, " says, found ", printable(names[i]));
    }
  }

  void verify_file_and_rows(const DataFile& file) {
    ++result_.files;
    result_.bytes += file.bytes;
    result_.unsummed += file.checksum.empty() ? 1 : 0;
    const int64_t done = state_.bytes_done;
    report();
    // Rows first: their faults say where the file is damaged, a checksum only that it is.
    if (file.rows > 0) verify_rows(file);
    state_.bytes_done = done + file.bytes;
    report();
    if (!full()) attempt([&] { verify_file(dataset_, file); });
    state_.bytes_done = done + 2 * file.bytes;
    report();
  }

  /** All rows of a file; after a fault, those behind the bad row, as far as they can be found. */
  void verify_rows(const DataFile& file) {
    Dataset alone = dataset_;
    alone.train.files = {file};
    alone.train.file_list.clear();
    const int64_t done = state_.bytes_done;
    int64_t row = 0;
    while (row < file.rows && !full()) {
      const auto read = [&](int64_t batch_size, int64_t end) {
        ReaderOptions reading;
        reading.batch_size = batch_size;
        reading.num_workers = batch_size == 1 ? 1 : num_threads();
        reading.binary_labels = options_.binary_labels;
        for (const Column& column : dataset_.schema.columns) reading.columns.push_back(column.name);
        BatchReader reader(alone, PartName::Train, reading);
        ReaderPosition position = reader.position();
        position.row = row;
        reader.seek(position);
        Batch batch;
        while (row < end && reader.next(batch)) {
          row += batch.rows;
          result_.rows += batch.rows;
          state_.rows = result_.rows;
          state_.bytes_done = done + static_cast<int64_t>(static_cast<double>(file.bytes) * static_cast<double>(row) /
                                                          static_cast<double>(file.rows));
          report();
        }
      };
      constexpr int64_t kBatchRows = 4096;
      const size_t known = result_.faults.size();
      if (attempt([&] { read(kBatchRows, file.rows); })) break;
      // The bad row is in the next batch: rows are read one by one, up to it.
      if (attempt([&] { read(1, std::min(file.rows, row + kBatchRows)); })) continue;
      // No other message than for the rows before: the fault hides where rows begin.
      if (result_.faults.size() == known) break;
      ++row;
    }
  }

  void report() { progress_(state_); }

  const Dataset& dataset_;
  const VerifyOptions& options_;
  Progress progress_;
  VerifyProgress state_;
  VerifyResult result_;
};

}  // namespace

VerifyResult verify_dataset(const Dataset& dataset, const VerifyOptions& options, Progress progress) {
  return Verifier(dataset, options, progress).run();
}

}  // namespace tercel::data
