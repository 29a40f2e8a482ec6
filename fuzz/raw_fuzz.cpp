// Any bytes are rows or a DataError, the same for every batch size, order and number of workers; valid rows are written
// as the same bytes again. Raw and RawAsync: the first two bytes of the input select the dataset description.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "fuzz/read_rows.h"
#include "tercel/data/formats/raw_format.h"
#include "tercel/data/formats/rawasync_format.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"

namespace {

using tercel::ConfigError;
using tercel::DataError;
using tercel::data::DataPart;
using tercel::data::Dataset;
using tercel::data::KeyType;
using tercel::data::RawAsyncSpec;
using tercel::data::RawSpec;
using tercel::data::ReaderOptions;
using tercel::data::SlotOffsets;
using tercel::data::WriterOptions;
using tercel::fuzz::BadRecords;
using tercel::fuzz::Outcome;
using tercel::fuzz::read_every_way;
using tercel::fuzz::work_folder;

void check_writes_the_same(const Dataset& dataset, const Outcome& read, const uint8_t* data, size_t size) {
  WriterOptions options;
  options.folder = work_folder();
  options.prefix = "out-";
  options.rows_per_file = std::max<int64_t>(1, read.rows);
  options.binary_labels = false;
  const auto writer = dataset.format->create_writer(dataset.schema, options);
  writer->write({read.rows, read.labels.data(), read.dense.data(), read.nnz.data(), read.keys.data()});
  const DataPart part = writer->finish();
  const std::string written = tercel::read_file(options.folder + "/" + part.files[0].path, int64_t{1} << 30);
  if (written != std::string(reinterpret_cast<const char*>(data), size)) std::abort();
}

/** Whether the bytes of integers are the only ones that give these rows. */
bool is_reversible(const Outcome& read, bool integers) {
  if (!integers) return true;
  // Large integers have the same logarithm, and as labels the same float.
  const auto all_below = [](const std::vector<float>& values, float limit) {
    return std::all_of(values.begin(), values.end(), [limit](float value) { return value < limit && value > -limit; });
  };
  return all_below(read.dense, 12.0f) && all_below(read.labels, 16777216.0f);
}

template <class Spec>
Dataset describe(Spec spec, const std::string& path, uint8_t how) {
  spec.train = {path};
  spec.dense_dim = (how >> 2) & 3;
  spec.nnz_per_slot = (how & 16) != 0 ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{1, 3};
  if ((how & 32) != 0) spec.slot_size_array = {10, 1000};
  if ((how & 64) != 0) spec.slot_offsets = SlotOffsets::Add;
  if constexpr (std::is_same_v<Spec, RawSpec>) {
    spec.float_label_dense = (how & 128) != 0;
    return tercel::data::dataset_from_raw_files(spec);
  } else {
    spec.is_dense_float = (how & 128) != 0;
    spec.key_type = (how & 2) != 0 ? KeyType::I64 : KeyType::U32;
    return tercel::data::dataset_from_rawasync_files(spec);
  }
}

void check(const Dataset& dataset, bool integers, bool binary_labels, const uint8_t* data, size_t size) {
  ReaderOptions options;
  options.binary_labels = binary_labels;
  const Outcome read = read_every_way(dataset, options, BadRecords::AllCanBeLeftOut);
  if (read.error.empty() && is_reversible(read, integers)) check_writes_the_same(dataset, read, data, size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const uint8_t how = data[0];
  const bool binary_labels = data[1] % 2 == 0;
  data += 2;
  size -= 2;
  const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const bool async = (how & 1) != 0;
  try {
    const Dataset dataset = async ? describe(RawAsyncSpec(), path, how) : describe(RawSpec(), path, how);
    if (dataset.train.rows() > 0) check(dataset, async || (how & 128) == 0, binary_labels, data, size);
  } catch (const DataError&) {
  } catch (const ConfigError&) {
    // Offsets without sizes of slots.
    if ((how & 96) != 64) std::abort();
  }
  ::close(fd);
  return 0;
}
