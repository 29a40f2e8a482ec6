// Any bytes are rows or a DataError, the same for every batch size and order of reading; valid rows are written as the
// same bytes again. The first byte of the input selects the dataset description.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "fuzz/read_rows.h"
#include "tercel/data/formats/norm_format.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"

namespace {

using tercel::DataError;
using tercel::data::CheckMode;
using tercel::data::DataPart;
using tercel::data::Dataset;
using tercel::data::KeyType;
using tercel::data::NormSpec;
using tercel::data::WriterOptions;
using tercel::fuzz::BadRecords;
using tercel::fuzz::Outcome;
using tercel::fuzz::read_every_way;
using tercel::fuzz::work_folder;

void check_writes_the_same(const Dataset& dataset, CheckMode mode, const Outcome& read, const uint8_t* data,
                           size_t size) {
  WriterOptions options;
  options.folder = work_folder();
  options.prefix = "out-";
  options.rows_per_file = std::max<int64_t>(1, read.rows);
  const auto writer = dataset.format->create_writer(dataset.schema, options);
  writer->write({read.rows, read.labels.data(), read.dense.data(), read.nnz.data(), read.keys.data()});
  const DataPart part = writer->finish();
  const std::string written = tercel::read_file(options.folder + "/" + part.files[0].path, int64_t{1} << 30);
  // Reserved bytes of the header may have any value.
  const size_t header = mode == CheckMode::Sum ? 69 : 64;
  const std::string expected(reinterpret_cast<const char*>(data), size);
  if (written.size() != size || written.substr(header) != expected.substr(header)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t how = data[0];
  ++data;
  --size;
  const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  const std::string list = work_folder() + "/list.txt";
  tercel::write_file(list, "1\n/proc/self/fd/" + std::to_string(fd) + "\n");
  NormSpec spec;
  spec.train_list = list;
  spec.key_type = (how & 1) != 0 ? KeyType::U32 : KeyType::I64;
  spec.check_mode = (how & 2) != 0 ? CheckMode::Sum : CheckMode::None;
  spec.dense_dim = (how >> 2) & 3;
  spec.nnz_per_slot = (how & 16) != 0 ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{1, 5};
  if ((how & 32) != 0) spec.slot_size_array = {10, 1000};
  try {
    const Dataset dataset = tercel::data::dataset_from_norm_files(spec);
    if (dataset.train.rows() > 0) {
      const Outcome read = read_every_way(dataset, {}, BadRecords::MayEndReading);
      if (read.error.empty()) check_writes_the_same(dataset, spec.check_mode, read, data, size);
    }
  } catch (const DataError&) {
  }
  ::close(fd);
  return 0;
}
