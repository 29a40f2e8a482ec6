// Describes Parquet files of other tools.
#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tercel/data/file_list.h"
#include "tercel/data/formats/column_describer_impl.h"
#include "tercel/data/formats/parquet_format.h"
#include "tercel/data/formats/parquet_layout_impl.h"
#include "tercel/data/formats/parquet_reader_impl.h"
#include "tercel/data/random_access_file.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"

namespace tercel::data {

namespace {

constexpr std::string_view kOwner = "parquet";
constexpr std::string_view kMetadataFile = "_metadata.json";

std::vector<std::string> files_of_pattern(const std::string& pattern) {
  ::glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  TERCEL_CHECK(!paths.empty(), IoError, printable(pattern), ": expected files that match the pattern, found none");
  return paths;
}

/** Patterns of the last part of a URL. */
std::vector<std::string> files_of_url_pattern(const std::string& pattern) {
  const std::string folder = parent_path(pattern), name_pattern = file_name(pattern);
  TERCEL_CHECK(folder.find_first_of("*?[") == std::string::npos, ConfigError, printable(pattern),
               ": expected a pattern in the last part of the URL only, found one before it");
  std::vector<std::string> paths;
  for (const std::string& name : list_data_folder(folder))
    if (::fnmatch(name_pattern.c_str(), name.c_str(), FNM_PERIOD) == 0) paths.push_back(join_path(folder, name));
  TERCEL_CHECK(!paths.empty(), IoError, printable(pattern), ": expected files that match the pattern, found none");
  return paths;
}

/** Files of a part, in order: patterns and folders are sorted by name. */
struct Files {
  std::string list;  // HugeCTR's, if there is one for all
  std::vector<std::string> paths;
};

Files files_of(const std::vector<std::string>& sources) {
  Files files;
  for (const std::string& source : sources) {
    std::vector<std::string> paths;
    const bool has_pattern = source.find_first_of("*?[") != std::string::npos;
    const bool is_file = source.ends_with(".parquet") || source.ends_with(".txt");
    // Of a URL, what it names is asked for only where its name does not say so.
    const std::optional<FileInfo> info =
        is_url(source) && (has_pattern || is_file) ? std::nullopt : data_path_info(source);
    if (info && info->kind == FileKind::Directory) {
      for (const std::string& name : list_data_folder(source))
        if (name.ends_with(".parquet")) paths.push_back(join_path(source, name));
      TERCEL_CHECK(!paths.empty(), IoError, printable(source), ": expected a folder with files *.parquet, found none");
    } else if (!info && has_pattern) {
      paths = is_url(source) ? files_of_url_pattern(source) : files_of_pattern(source);
    } else if (source.ends_with(".txt")) {
      paths = read_file_list(source);
      if (sources.size() == 1) files.list = source;
    } else {
      paths.push_back(source);
    }
    files.paths.insert(files.paths.end(), paths.begin(), paths.end());
  }
  return files;
}

struct OpenFile {
  std::string path;
  std::string name;  // for messages
  int64_t bytes = 0;
  ParquetFooter footer;
};

std::vector<OpenFile> open_all(const Files& files) {
  std::vector<OpenFile> opened;
  for (const std::string& path : files.paths) {
    const std::unique_ptr<RandomAccessFile> file = open_data_file(path);
    opened.push_back({path, printable(path), file->size(), read_parquet_footer(*file)});
  }
  return opened;
}

/** NVTabular's _metadata.json, read as HugeCTR does: by index, sorted and without duplicates. */
class MetadataReader {
 public:
  MetadataReader(const std::string& path, bool by_name)
      : name_(printable(path)),
        by_name_(by_name),
        json_(parse_json(read_data_file(path, JsonLimits{}.max_bytes), path, JsonErrors::Data)) {
    for (const char* key : {"file_stats", "labels", "conts", "cats"})
      TERCEL_CHECK(json_.is_object() && json_.contains(key) && json_[key].is_array(), DataError, name_,
                   ": expected a list '", key, "', found ", json_.is_object() ? "none" : "no object");
  }

  ColumnChoice choose(const OpenFile& file) const {
    return {columns("labels", file), columns("conts", file), columns("cats", file)};
  }

  /** Every file must be listed, with its number of rows; entries of other files do not count. */
  void check_files(const std::vector<OpenFile>& files) const {
    for (const OpenFile& file : files) {
      const Json* found = nullptr;
      for (const Json& entry : json_["file_stats"]) {
        const bool good = entry.is_object() && entry.contains("file_name") && entry["file_name"].is_string();
        TERCEL_CHECK(good, DataError, name_, ": file_stats: expected objects with a file_name, found ",
                     printable(dump_json_line(entry)));
        if (file_name(entry["file_name"].get<std::string>()) == file_name(file.path)) found = &entry;
      }
      TERCEL_CHECK(found, DataError, name_, ": file_stats: expected an entry of '", printable(file_name(file.path)),
                   "', found none");
      const bool has_rows = found->contains("num_rows") && (*found)["num_rows"].is_number_integer();
      TERCEL_CHECK(has_rows && (*found)["num_rows"].get<int64_t>() == file.footer.rows, DataError, name_,
                   ": file_stats: '", printable(file_name(file.path)), "': expected num_rows ", file.footer.rows,
                   ", as the file has, found ", has_rows ? dump_json_line((*found)["num_rows"]) : "none");
    }
  }

 private:
  std::vector<std::string> columns(const char* group, const OpenFile& file) const {
    std::vector<std::string> names;
    std::set<int64_t> indices;
    const auto count = static_cast<int64_t>(file.footer.columns.size());
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
                   ", the columns of ", file.name, ", found ", index);
      indices.insert(index);
    }
    for (const int64_t index : indices) names.push_back(file.footer.columns[static_cast<size_t>(index)].name);
    return names;
  }

  std::string name_;
  bool by_name_;
  Json json_;
};

class Describer final : ColumnDescriber {
 public:
  explicit Describer(const ParquetSpec& spec) : ColumnDescriber(spec, kOwner), spec_(spec) {}

  Dataset describe() {
    check_options(spec_, kOwner);
    check_fills();
    const Files train = files_of(spec_.train), valid = files_of(spec_.valid), test = files_of(spec_.test);
    train_ = open_all(train);
    valid_ = open_all(valid);
    test_ = open_all(test);
    describe_columns(choose());
    const ParquetLayout layout = ParquetLayout::of(schema_, options_);
    for (const std::vector<OpenFile>* files : {&train_, &valid_, &test_})
      for (const OpenFile& file : *files) layout.check(file.footer, file.name);
    if (spec_.nnz_per_slot.empty()) count_all_keys(layout);
    schema_.check(kOwner);
    Dataset dataset;
    dataset.schema = std::move(schema_);
    dataset.format = parquet_format(options_);
    dataset.train = part_of(train, train_);
    dataset.valid = part_of(valid, valid_);
    dataset.test = part_of(test, test_);
    return dataset;
  }

 private:
  static DataPart part_of(const Files& files, const std::vector<OpenFile>& opened) {
    DataPart part;
    part.file_list = files.list;
    for (const OpenFile& file : opened) {
      DataFile record;
      record.path = file.path;
      record.bytes = file.bytes;
      record.rows = file.footer.rows;
      part.files.push_back(std::move(record));
    }
    return part;
  }

  ColumnChoice choose() const {
    ColumnChoice named{spec_.label, spec_.dense, spec_.categorical};
    const bool names = named != ColumnChoice();
    const std::string beside = join_path(parent_path(train_.front().path), kMetadataFile);
    const std::string path = !spec_.metadata.empty() ? spec_.metadata : !names && data_path_info(beside) ? beside : "";
    if (path.empty()) {
      TERCEL_CHECK(!named.labels.empty(), ConfigError, "[", kOwner,
                   "] option 'label': expected the names of columns, as there is no ", printable(beside),
                   " that says which are what; found none");
      TERCEL_CHECK(!spec_.by_name, ConfigError, "[", kOwner, "] option 'by_name': expected a ", kMetadataFile,
                   ", found none");
      return named;
    }
    TERCEL_CHECK(!names, ConfigError, "[", kOwner,
                 "] option 'metadata': expected no named columns beside it, as it says which are what");
    const MetadataReader train(path, spec_.by_name);
    train.check_files(train_);
    ColumnChoice choice = train.choose(train_.front());
    TERCEL_CHECK(!choice.labels.empty(), DataError, printable(path), ": labels: expected at least one, found none");
    for (const std::vector<OpenFile>* files : {&valid_, &test_}) {
      if (files->empty()) continue;
      const std::string other_path = join_path(parent_path(files->front().path), kMetadataFile);
      if (other_path == path || !data_path_info(other_path)) continue;
      const MetadataReader other(other_path, spec_.by_name);
      other.check_files(*files);
      TERCEL_CHECK(other.choose(files->front()) == choice, DataError, printable(other_path),
                   ": expected the same columns as ", printable(path), " has, found others");
    }
    return choice;
  }

  const std::string& table_name() const override { return train_.front().name; }
  Span<ParquetColumnInfo> table_columns() const override { return train_.front().footer.columns; }
  const ParquetColumnInfo* find_column(const std::string& name) const override {
    return train_.front().footer.find(name, train_.front().name);
  }
  int64_t list_width(const std::string& name) const override {
    // Lists of different lengths are found when they are read.
    for (const OpenFile& file : train_)
      for (const ParquetRowGroup& group : file.footer.row_groups) {
        const ParquetColumnInfo* own = file.footer.find(name, file.name);
        if (group.rows == 0 || !own) continue;
        const int64_t found = group.chunks[static_cast<size_t>(own->first_leaf)].values;
        TERCEL_CHECK(found % group.rows == 0, DataError, file.name, ": column '", printable(name),
                     "': expected lists of the same length, found ", found, " values in ", group.rows, " rows");
        return found / group.rows;
      }
    return 1;
  }

  void count_all_keys(const ParquetLayout& layout) {
    ColumnPlan lists;
    std::vector<size_t> places;
    for (size_t s = 0; s < layout.keys.size(); ++s) {
      if (!layout.keys[s].list) continue;
      lists.keys.push_back({layout.keys[s].name, true, ""});
      places.push_back(s);
    }
    if (places.empty()) return;
    lists.missing_is_empty = true;
    for (const std::vector<OpenFile>* files : {&train_, &valid_, &test_})
      for (const OpenFile& file : *files) count_keys(file, lists, places);
  }

  /** Raises the hotness of slots to the most keys of their lists. */
  void count_keys(const OpenFile& file, const ColumnPlan& plan, const std::vector<size_t>& places) {
    constexpr int64_t kBatchRows = int64_t{1} << 16;
    ParquetHandle handle(file.path);
    const std::vector<int32_t> leaves = leaves_of(plan, file.footer, file.name);
    for (size_t g = 0; g < file.footer.row_groups.size(); ++g) {
      const ParquetRowGroup& group = file.footer.row_groups[g];
      const RowGroupStream::Place place{0, static_cast<int32_t>(g), group.first_row, group.rows,
                                        largest_allocation(group)};
      RowGroupStream stream(handle, plan, leaves, place, kBatchRows);
      for (DecodedRows rows; stream.next(rows);)
        for (size_t i = 0; i < places.size(); ++i)
          for (int64_t row = 0; row < rows.rows; ++row) {
            int64_t& most = schema_.slots[places[i]].hotness;
            most = std::max(most, rows.keys[i].count(row));
          }
    }
  }

  const ParquetSpec& spec_;
  std::vector<OpenFile> train_, valid_, test_;
};

}  // namespace

Dataset dataset_from_parquet_files(const ParquetSpec& spec) { return Describer(spec).describe(); }

}  // namespace tercel::data
