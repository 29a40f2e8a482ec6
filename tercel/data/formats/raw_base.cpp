#include <algorithm>
#include <limits>
#include <utility>

#include "tercel/data/formats/raw_base_impl.h"
#include "tercel/data/formats/raw_source_impl.h"
#include "tercel/data/formats/raw_writer_impl.h"
#include "tercel/data/slot_sizes_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

/** Files of a part, and how many of their rows belong to it; 0: all. */
struct RawFiles {
  const std::vector<std::string>& paths;
  int64_t num_samples = 0;
  std::string_view option = {};  // that gave the number
};

DataPart part_of(const RawFiles& files, const RawLayout& layout) {
  DataPart part;
  int64_t left = files.num_samples > 0 ? files.num_samples : std::numeric_limits<int64_t>::max();
  for (const std::string& path : files.paths) {
    const std::unique_ptr<RandomAccessFile> file = open_data_file(path);
    DataFile record;
    record.path = path;
    record.bytes = file->size();
    record.rows = std::min(raw_rows(path, record.bytes, layout), left);
    left -= record.rows;
    check_raw_types(*file, layout);
    part.files.push_back(std::move(record));
  }
  TERCEL_CHECK(files.num_samples == 0 || left == 0, DataError, printable(files.paths.front()), ": expected ",
               files.num_samples, " rows, as ", files.option, " says, found ", files.num_samples - left,
               files.paths.size() > 1 ? " in this file and those after it" : "");
  return part;
}

}  // namespace

void RawBase::check_sizes(const Dataset& dataset) const {
  const RawLayout layout(dataset.schema, types(), false);
  for (const auto& [part_name, part] : dataset.parts())
    for (const DataFile& file : part.files) check_raw_size(dataset.path_of(file), file.bytes, file.rows, layout);
}

int64_t RawBase::estimate_bytes(const Schema& schema, int64_t rows) const {
  const RawLayout layout(schema, types(), false);
  int64_t bytes = 0;
  if (__builtin_mul_overflow(rows, layout.row_bytes, &bytes)) return std::numeric_limits<int64_t>::max();
  return bytes;
}

std::unique_ptr<RecordSource> RawBase::open(const Dataset& dataset, const DataPart& part,
                                            const SourceOptions& options) const {
  return std::make_unique<RawSource>(types(), dataset, part, options);
}

std::unique_ptr<DatasetWriter> RawBase::create_writer(const Schema& schema, const WriterOptions& options) const {
  schema.check(name());
  return std::make_unique<RawWriter>(schema, types(), options);
}

void describe_raw_files(Dataset& dataset, const RawTypes& types, const RawFilesSpec& spec, int64_t num_samples,
                        int64_t eval_num_samples) {
  const size_t slot_num = spec.nnz_per_slot.size();
  TERCEL_CHECK(spec.slot_size_array.empty() || spec.slot_size_array.size() == slot_num, ConfigError, "[", types.format,
               "] option 'slot_size_array': expected none or ", slot_num, " sizes, one for each slot, found ",
               spec.slot_size_array.size());
  Schema& schema = dataset.schema;
  schema.label_dim = spec.label_dim;
  schema.dense_dim = spec.dense_dim;
  for (size_t s = 0; s < slot_num; ++s) {
    Slot slot;
    slot.name = str_cat({"slot", s});
    slot.hotness = spec.nnz_per_slot[s];
    schema.slots.push_back(std::move(slot));
  }
  set_slot_sizes(schema.slots, spec.slot_size_array, types.format);
  schema.check(types.format);
  TERCEL_CHECK(eval_num_samples == 0 || !spec.test.empty(), ConfigError, "[", types.format,
               "] option 'eval_num_samples': expected files of that part too, found none");
  const RawLayout layout(schema, types, false);
  dataset.train = part_of({spec.train, num_samples, "num_samples"}, layout);
  if (!spec.valid.empty()) dataset.valid = part_of({spec.valid}, layout);
  if (!spec.test.empty()) dataset.test = part_of({spec.test, eval_num_samples, "eval_num_samples"}, layout);
}

}  // namespace tercel::data
