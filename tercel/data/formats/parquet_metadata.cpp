#include <set>

#include "tercel/data/formats/parquet_metadata_impl.h"
#include "tercel/data/random_access_file.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

Json columns_json(const std::vector<ParquetValues>& columns, int64_t first) {
  Json list = Json::array();
  for (const ParquetValues& column : columns) list.push_back({{"col_name", column.name}, {"index", first++}});
  return list;
}

}  // namespace

ParquetMetadata::ParquetMetadata(const std::string& path, bool by_name)
    : name_(printable(path)),
      by_name_(by_name),
      json_(parse_json(read_data_file(path, JsonLimits{}.max_bytes), path, JsonErrors::Data)) {
  for (const char* key : {"file_stats", "labels", "conts", "cats"})
    TERCEL_CHECK(json_.is_object() && json_.contains(key) && json_[key].is_array(), DataError, name_,
                 ": expected a list '", key, "', found ", json_.is_object() ? "none" : "no object");
}

ColumnChoice ParquetMetadata::choose(const ParquetFooter& footer, std::string_view file) const {
  return {columns("labels", footer, file), columns("conts", footer, file), columns("cats", footer, file)};
}

void ParquetMetadata::check_file(const std::string& path, int64_t rows) const {
  const Json* found = nullptr;
  for (const Json& entry : json_["file_stats"]) {
    const bool good = entry.is_object() && entry.contains("file_name") && entry["file_name"].is_string();
    TERCEL_CHECK(good, DataError, name_, ": file_stats: expected objects with a file_name, found ",
                 printable(dump_json_line(entry)));
    if (file_name(entry["file_name"].get<std::string>()) == file_name(path)) found = &entry;
  }
  TERCEL_CHECK(found, DataError, name_, ": file_stats: expected an entry of '", printable(file_name(path)),
               "', found none");
  const bool has_rows = found->contains("num_rows") && (*found)["num_rows"].is_number_integer();
  TERCEL_CHECK(has_rows && (*found)["num_rows"].get<int64_t>() == rows, DataError, name_, ": file_stats: '",
               printable(file_name(path)), "': expected num_rows ", rows, ", as the file has, found ",
               has_rows ? dump_json_line((*found)["num_rows"]) : "none");
}

std::vector<std::string> ParquetMetadata::columns(const char* group, const ParquetFooter& footer,
                                                  std::string_view file) const {
  std::vector<std::string> names;
  std::set<int64_t> indices;
  const auto count = static_cast<int64_t>(footer.columns.size());
  for (const Json& entry : json_[group]) {
    const char* key = by_name_ ? "col_name" : "index";
    const bool good = entry.is_object() && entry.contains(key) &&
                      (by_name_ ? entry[key].is_string() : entry[key].is_number_integer());
    TERCEL_CHECK(good, DataError, name_, ": ", group, ": expected objects with ",
                 by_name_ ? "a col_name" : "an integer index", ", found ", printable(dump_json_line(entry)));
    if (by_name_) {
      names.push_back(entry[key].get<std::string>());
      continue;
    }
    const auto index = entry[key].get<int64_t>();
    TERCEL_CHECK(index >= 0 && index < count, DataError, name_, ": ", group, ": expected an index below ", count,
                 ", the columns of ", file, ", found ", index);
    indices.insert(index);
  }
  for (const int64_t index : indices) names.push_back(footer.columns[static_cast<size_t>(index)].name);
  return names;
}

// HugeCTR selects columns by index: labels, dense values and keys lie in the files in this order.
std::string parquet_metadata(const ParquetLayout& layout, const DataPart& part) {
  Json json;
  json["file_stats"] = Json::array();
  for (const DataFile& file : part.files)
    json["file_stats"].push_back({{"file_name", file_name(file.path)}, {"num_rows", file.rows}});
  auto index = static_cast<int64_t>(layout.labels.size());
  json["labels"] = columns_json(layout.labels, 0);
  json["conts"] = columns_json(layout.dense, index);
  index += static_cast<int64_t>(layout.dense.size());
  json["cats"] = Json::array();
  for (const ParquetKeys& column : layout.keys) {
    json["cats"].push_back({{"col_name", column.name}, {"index", index}});
    index += column.weights.empty() ? 1 : 2;
  }
  return dump_json(json);
}

}  // namespace tercel::data
