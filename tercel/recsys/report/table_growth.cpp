#include "tercel/recsys/report/table_growth.h"

#include <optional>

#include "tercel/io/safetensors.h"
#include "tercel/recsys/model_files.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

namespace {

constexpr std::string_view kCounters = "/counters";

/** The first size of a tensor of keys. */
int64_t count_of(const io::SafetensorsReader& reader, const std::string& path, const std::string& name) {
  const io::TensorEntry* const entry = reader.find(name);
  TERCEL_CHECK(entry && !entry->sizes.empty(), DataError, printable(path), ": expected a list of keys '",
               printable(name), "', found ", entry ? "a number" : "none");
  return entry->sizes[0];
}

HashedTableStatistics statistics_of(const io::SafetensorsReader& reader, const std::string& path,
                                    const io::TensorEntry& counters, const std::string& table) {
  const Tensor values = reader.read(counters);
  TERCEL_CHECK(values.dtype() == kInt64 && values.dim() == 1 && values.numel() >= 4, DataError, printable(path),
               ": tensor '", printable(counters.name), "': expected counters, found ", values.sizes(), " of ",
               to_string(values.dtype()));
  const auto* const numbers = values.data<int64_t>();
  HashedTableStatistics s;
  s.keys = count_of(reader, path, table + "/keys") - 1 - count_of(reader, path, table + "/free");
  s.waiting = count_of(reader, path, table + "/waiting");
  s.admitted = numbers[1];
  s.refused = numbers[2];
  s.evicted = numbers[3];
  if (values.numel() > 4) s.forgotten = numbers[4];
  return s;
}

}  // namespace

std::vector<TableGrowth> growth_of(const Checkpoint& checkpoint) {
  std::vector<TableGrowth> all;
  for (size_t t = 0;; ++t) {
    std::vector<std::string> files;
    for (const FileShard& shard : checkpoint.shards(table_file(t))) files.push_back(shard.name);
    if (files.empty()) files.push_back(table_file(t));
    std::optional<TableGrowth> growth;
    for (const std::string& file : files) {
      const std::string path = join_path(checkpoint.folder(), file + ".safetensors");
      if (!exists(path)) return all;
      const io::SafetensorsReader reader(path);
      for (const io::TensorEntry& entry : reader.entries()) {
        if (!entry.name.ends_with(kCounters)) continue;
        const std::string table = entry.name.substr(0, entry.name.size() - kCounters.size());
        const HashedTableStatistics s = statistics_of(reader, path, entry, table);
        if (!growth) {
          growth = TableGrowth{table, s};
        } else {
          growth->statistics += s;
        }
      }
    }
    if (growth) all.push_back(*std::move(growth));
  }
}

}  // namespace tercel::recsys
