// Describes Parquet files of other tools.
#include <glob.h>

#include <algorithm>
#include <utility>

#include "tercel/data/file_list.h"
#include "tercel/data/formats/parquet_format.h"
#include "tercel/data/formats/parquet_layout_impl.h"
#include "tercel/data/formats/parquet_metadata_impl.h"
#include "tercel/data/formats/parquet_reader_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr std::string_view kOwner = "parquet";
constexpr std::string_view kExtension = ".parquet";

std::vector<std::string> files_of_pattern(const std::string& pattern) {
  ::glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  TERCEL_CHECK(!paths.empty(), IoError, printable(pattern), ": expected files that match the pattern, found none");
  return paths;
}

/** Files that programs hide, or keep beside the data: ".part-0.parquet", "_SUCCESS". */
bool is_hidden(const std::string& name) { return name.starts_with('.') || name.starts_with('_'); }

/** A subfolder, of any depth, in which there are Parquet files; empty: there is none. */
std::string subfolder_with_files(const std::string& folder, int depth = 0) {
  constexpr int kMaxDepth = 32;
  for (const std::string& name : list_dir(folder)) {
    const std::string path = join_path(folder, name);
    if (is_hidden(name) || !is_directory(path)) {
      if (depth > 0 && !is_hidden(name) && name.ends_with(kExtension)) return folder;
      continue;
    }
    if (depth == kMaxDepth) return path;
    if (std::string found = subfolder_with_files(path, depth + 1); !found.empty()) return found;
  }
  return "";
}

std::vector<std::string> files_of_folder(const std::string& folder) {
  std::vector<std::string> paths;
  for (const std::string& name : list_dir(folder))
    if (name.ends_with(kExtension) && !is_hidden(name)) paths.push_back(join_path(folder, name));
  const std::string below = subfolder_with_files(folder);
  TERCEL_CHECK(below.empty(), IoError, printable(folder),
               ": expected Parquet files in the folder itself, found some in its subfolder ", printable(below),
               "; give the folders one by one, or a pattern");
  TERCEL_CHECK(!paths.empty(), IoError, printable(folder), ": expected a folder with files *.parquet, found none");
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
    if (exists(source) && is_directory(source)) {
      paths = files_of_folder(source);
    } else if (!exists(source) && source.find_first_of("*?[") != std::string::npos) {
      paths = files_of_pattern(source);
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
  FileInfo info;
  ParquetFooter footer;
};

std::vector<OpenFile> open_all(const Files& files) {
  std::vector<OpenFile> opened;
  for (const std::string& path : files.paths) {
    const std::unique_ptr<RandomAccessFile> file = open_data_file(path);
    opened.push_back({path, printable(path), file->identity(), read_parquet_footer(*file)});
  }
  return opened;
}

class Describer {
 public:
  explicit Describer(const ParquetSpec& spec) : spec_(spec) {}

  Dataset describe() {
    check_options(spec_, kOwner);
    check_fills(spec_.fill_null_dense, spec_.fill_null_key);
    const Files train = files_of(spec_.train), valid = files_of(spec_.valid), test = files_of(spec_.test);
    train_ = open_all(train);
    valid_ = open_all(valid);
    test_ = open_all(test);
    const ParquetColumnChoice choice = choose();
    check_choice(choice);
    for (const std::string& name : choice.labels) options_.labels.push_back(values_of(name));
    for (const std::string& name : choice.dense) options_.dense.push_back(values_of(name));
    add_names(options_.labels, dataset_.schema.label_dim, dataset_.schema.label_names);
    add_names(options_.dense, dataset_.schema.dense_dim, dataset_.schema.dense_names);
    for (const std::string& name : choice.keys) add_slot(name);
    for (const std::string& name : spec_.columns) add_column(name);
    set_sizes();
    options_.missing_keys = spec_.missing_keys;
    options_.fill_null_dense = spec_.fill_null_dense;
    options_.fill_null_key = spec_.fill_null_key;
    const ParquetLayout layout = ParquetLayout::of(dataset_.schema, options_);
    for (const std::vector<OpenFile>* files : {&train_, &valid_, &test_})
      for (const OpenFile& file : *files) layout.check(file.footer, file.name);
    set_hotness(layout);
    dataset_.schema.check(kOwner);
    dataset_.format = parquet_format(options_);
    dataset_.train = part_of(train, train_);
    dataset_.valid = part_of(valid, valid_);
    dataset_.test = part_of(test, test_);
    return std::move(dataset_);
  }

 private:
  static DataPart part_of(const Files& files, const std::vector<OpenFile>& opened) {
    DataPart part;
    part.file_list = files.list;
    for (const OpenFile& file : opened) {
      DataFile record;
      record.path = file.path;
      record.bytes = file.info.size;
      record.rows = file.footer.rows;
      part.files.push_back(std::move(record));
    }
    return part;
  }

  static void check_files(const ParquetMetadata& metadata, const std::vector<OpenFile>& files) {
    for (const OpenFile& file : files) metadata.check_file(file.path, file.footer.rows);
  }

  ParquetColumnChoice choose() const {
    ParquetColumnChoice named{spec_.label, spec_.dense, spec_.categorical};
    const bool names = named != ParquetColumnChoice();
    const std::string beside = join_path(parent_path(train_.front().path), kParquetMetadataFile);
    const std::string path = !spec_.metadata.empty() ? spec_.metadata : !names && exists(beside) ? beside : "";
    if (path.empty()) {
      TERCEL_CHECK(!named.labels.empty(), ConfigError, "[", kOwner,
                   "] option 'label': expected the names of columns, as there is no ", printable(beside),
                   " that says which are what; found none");
      TERCEL_CHECK(!spec_.by_name, ConfigError, "[", kOwner, "] option 'by_name': expected a ", kParquetMetadataFile,
                   ", found none");
      return named;
    }
    TERCEL_CHECK(!names, ConfigError, "[", kOwner,
                 "] option 'metadata': expected no named columns beside it, as it says which are what");
    const ParquetMetadata train(path, spec_.by_name);
    check_files(train, train_);
    ParquetColumnChoice choice = train.choose(train_.front().footer, train_.front().name);
    TERCEL_CHECK(!choice.labels.empty(), DataError, printable(path), ": labels: expected at least one, found none");
    for (const std::vector<OpenFile>* files : {&valid_, &test_}) {
      if (files->empty()) continue;
      const std::string other_path = join_path(parent_path(files->front().path), kParquetMetadataFile);
      if (!exists(other_path) || other_path == path) continue;
      const ParquetMetadata other(other_path, spec_.by_name);
      check_files(other, *files);
      TERCEL_CHECK(other.choose(files->front().footer, files->front().name) == choice, DataError, printable(other_path),
                   ": expected the same columns as ", printable(path), " has, found others");
    }
    return choice;
  }

  void check_choice(const ParquetColumnChoice& choice) const {
    std::vector<std::string> all;
    for (const auto* names : {&choice.labels, &choice.dense, &choice.keys, &spec_.columns})
      all.insert(all.end(), names->begin(), names->end());
    std::sort(all.begin(), all.end());
    const auto twice = std::adjacent_find(all.begin(), all.end());
    TERCEL_CHECK(twice == all.end(), ConfigError, kOwner, ": expected each column once, found '", printable(*twice),
                 "' twice");
    for (const std::string& name : spec_.weighted)
      TERCEL_CHECK(std::find(choice.keys.begin(), choice.keys.end(), name) != choice.keys.end(), ConfigError, "[",
                   kOwner, "] option 'weighted': expected names of categorical columns, found '", printable(name), "'");
  }

  /** The column of a name in the first file, or in the first one where it has values. */
  const ParquetColumnInfo& find(const std::string& name) const {
    const OpenFile& file = train_.front();
    if (const ParquetColumnInfo* column = file.footer.find(name, file.name)) {
      for (const std::vector<OpenFile>* files : {&train_, &valid_, &test_})
        for (const OpenFile& other : *files) {
          const ParquetColumnInfo* same = other.footer.find(name, other.name);
          if (same && !same->all_missing) return *same;
        }
      return *column;
    }
    std::string known;
    for (size_t i = 0; i < std::min<size_t>(file.footer.columns.size(), 20); ++i)
      known += str_cat({i == 0 ? "" : ", ", printable(file.footer.columns[i].name)});
    throw_error<ConfigError>({kOwner, ": expected a column '", printable(name), "' in ", file.name, ", found ", known,
                              file.footer.columns.size() > 20 ? ", ..." : ""});
  }

  [[noreturn]] void refuse(const ParquetColumnInfo& column, std::string_view expected) const {
    throw_error<ConfigError>(
        {train_.front().name, ": column '", printable(column.name), "': expected ", expected, ", found ", column.type});
  }

  ParquetValues values_of(const std::string& name) const {
    const ParquetColumnInfo& column = find(name);
    if (column.all_missing) return {name, ElementType::F32, column.list, 1};
    if (!column.number || column.temporal) refuse(column, "numbers, or lists of numbers");
    if (!spec_.integers && !is_float(*column.number))
      refuse(column,
             "float or double (integers and bools are taken as labels and dense values with option 'integers')");
    ParquetValues values{name, *column.number, column.list, 1};
    if (!column.list) return values;
    // Lists of different lengths are found when they are read.
    for (const OpenFile& file : train_)
      for (const ParquetRowGroup& group : file.footer.row_groups) {
        const ParquetColumnInfo* own = file.footer.find(name, file.name);
        if (group.rows == 0 || !own || own->all_missing) continue;
        const int64_t found = group.chunks[static_cast<size_t>(own->first_leaf)].values;
        TERCEL_CHECK(found % group.rows == 0, DataError, file.name, ": column '", printable(name),
                     "': expected lists of the same length, found ", found, " values in ", group.rows, " rows");
        values.width = found / group.rows;
        TERCEL_CHECK(values.width <= kMaxDim, DataError, file.name, ": column '", printable(name),
                     "': expected lists of at most ", kMaxDim, " values, found ", values.width);
        return values;
      }
    return values;
  }

  static void add_names(const std::vector<ParquetValues>& columns, int64_t& dim, std::vector<std::string>& names) {
    dim = 0;
    for (const ParquetValues& column : columns) {
      dim += column.width;
      TERCEL_CHECK(dim <= kMaxDim, ConfigError, kOwner, ": expected at most ", kMaxDim,
                   " labels and dense values in a row, found more with column '", printable(column.name), "'");
      for (int64_t k = 0; k < column.width; ++k)
        names.push_back(column.list ? str_cat({column.name, "[", k, "]"}) : column.name);
    }
  }

  void add_slot(const std::string& name) {
    const ParquetColumnInfo& column = find(name);
    const bool is_key =
        column.number && !column.temporal && !is_float(*column.number) && *column.number != ElementType::Bool;
    if (!is_key && !column.all_missing)
      refuse(column, "integer keys, or lists of them (text becomes keys by 'tercel convert csv')");
    ParquetKeys keys{name, column.number.value_or(ElementType::I64), column.list, 0, ""};
    Slot slot;
    slot.name = name;
    if (std::find(spec_.weighted.begin(), spec_.weighted.end(), name) != spec_.weighted.end()) {
      keys.weights = name + "_weight";
      slot.weighted = true;
      static_cast<void>(find(keys.weights));
    }
    options_.keys.push_back(std::move(keys));
    dataset_.schema.slots.push_back(std::move(slot));
  }

  void add_column(const std::string& name) {
    const ParquetColumnInfo& column = find(name);
    const bool is_missing = column.all_missing && !column.list;
    if (!is_missing && (!column.number || column.list)) refuse(column, "numbers or times");
    const bool is_integer = column.number && !is_float(*column.number);
    dataset_.schema.columns.push_back({name, is_integer ? ColumnType::I64 : ColumnType::F32});
  }

  // HugeCTR's rule: the keys of slot i are offset by the sum of the sizes before it; a size of 0 gives a slot the keys
  // of the next one that has a size. Slots behind the end of the array are not offset.
  void set_sizes() {
    const std::vector<int64_t>& sizes = spec_.slot_size_array;
    std::vector<Slot>& slots = dataset_.schema.slots;
    TERCEL_CHECK(sizes.size() <= slots.size(), ConfigError, "[", kOwner,
                 "] option 'slot_size_array': expected at most ", slots.size(), " sizes, one for each slot, found ",
                 sizes.size());
    int64_t sum = 0;
    for (size_t s = 0; s < sizes.size(); ++s) {
      const auto next = std::find_if(sizes.begin() + static_cast<std::ptrdiff_t>(s), sizes.end(),
                                     [](int64_t size) { return size > 0; });
      options_.keys[s].offset = sum;
      if (next != sizes.end()) {
        slots[s].size = *next;
        slots[s].first_key = sum;
      }
      TERCEL_CHECK(!__builtin_add_overflow(sum, sizes[s], &sum), ConfigError, "[", kOwner,
                   "] option 'slot_size_array': expected sizes whose sum fits in 64 bits");
    }
  }

  void set_hotness(const ParquetLayout& layout) {
    std::vector<Slot>& slots = dataset_.schema.slots;
    const std::vector<int64_t>& given = spec_.nnz_per_slot;
    TERCEL_CHECK(given.size() <= 1 || given.size() == slots.size(), ConfigError, "[", kOwner,
                 "] option 'nnz_per_slot': expected ", slots.size(), ", one for each slot, or one for all, found ",
                 given.size());
    for (size_t s = 0; s < slots.size() && !given.empty(); ++s) slots[s].hotness = given[given.size() == 1 ? 0 : s];
    if (!given.empty()) return;
    ColumnPlan lists;
    std::vector<size_t> places;
    for (size_t s = 0; s < slots.size(); ++s) {
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
      if (group.rows == 0) continue;
      const RowGroupStream::Place place{0,          static_cast<int32_t>(g),   group.first_row,
                                        group.rows, largest_allocation(group), file.info};
      RowGroupStream stream(handle, plan, leaves, place, kBatchRows);
      for (DecodedRows rows; stream.next(rows);)
        for (size_t i = 0; i < places.size(); ++i)
          for (int64_t row = 0; row < rows.rows; ++row) {
            int64_t& most = dataset_.schema.slots[places[i]].hotness;
            most = std::max(most, rows.keys[i].count(row));
          }
    }
  }

  const ParquetSpec& spec_;
  std::vector<OpenFile> train_, valid_, test_;
  ParquetOptions options_;
  Dataset dataset_;
};

}  // namespace

Dataset dataset_from_parquet_files(const ParquetSpec& spec) { return Describer(spec).describe(); }

}  // namespace tercel::data
