// Describes Parquet files of other tools.
#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <utility>

#include "tercel/data/file_list.h"
#include "tercel/data/formats/column_describer_impl.h"
#include "tercel/data/formats/parquet_format.h"
#include "tercel/data/formats/parquet_layout_impl.h"
#include "tercel/data/formats/parquet_metadata_impl.h"
#include "tercel/data/formats/parquet_reader_impl.h"
#include "tercel/data/random_access_file.h"
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
  for (const std::string& name : list_data_folder(folder))
    if (name.ends_with(kExtension) && !is_hidden(name)) paths.push_back(join_path(folder, name));
  const std::string below = is_url(folder) ? "" : subfolder_with_files(folder);
  TERCEL_CHECK(below.empty(), IoError, printable(folder),
               ": expected Parquet files in the folder itself, found some in its subfolder ", printable(below),
               "; give the folders one by one, or a pattern");
  TERCEL_CHECK(!paths.empty(), IoError, printable(folder), ": expected a folder with files *.parquet, found none");
  return paths;
}

/** Whether a name says that it is of a Parquet file, or a pattern of such names. */
bool is_parquet_name(std::string_view name) { return name.ends_with(kExtension) || name.ends_with(".pq"); }

bool has_pattern(std::string_view source) { return source.find_first_of("*?[") != std::string_view::npos; }

/** Web servers have no folders, and cannot list files. */
bool is_web_url(std::string_view source) { return source.starts_with("http://") || source.starts_with("https://"); }

bool is_folder(const std::string& source) {
  const std::optional<FileInfo> info = data_path_info(source);
  return info && info->kind == FileKind::Directory;
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
    const bool is_pattern = has_pattern(source);
    const bool is_file = source.ends_with(kExtension) || source.ends_with(".txt");
    // Of a URL, what it names is asked for only where its name does not say so.
    const std::optional<FileInfo> info =
        is_url(source) && (is_pattern || is_file) ? std::nullopt : data_path_info(source);
    if (info && info->kind == FileKind::Directory) {
      paths = files_of_folder(source);
    } else if (!info && is_pattern) {
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

class Describer final : ColumnDescriber {
 public:
  explicit Describer(const ParquetSpec& spec) : ColumnDescriber(spec, kOwner), spec_(spec) {}

  Dataset describe() {
    check_options(spec_, kOwner);
    check_fills(spec_.fill_null_dense, spec_.fill_null_key);
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
      record.bytes = file.info.size;
      record.rows = file.footer.rows;
      part.files.push_back(std::move(record));
    }
    return part;
  }

  static void check_files(const ParquetMetadata& metadata, const std::vector<OpenFile>& files) {
    for (const OpenFile& file : files) metadata.check_file(file.path, file.footer.rows);
  }

  ColumnChoice choose() const {
    ColumnChoice named{spec_.label, spec_.dense, spec_.categorical};
    const bool names = named != ColumnChoice();
    const std::string beside = join_path(parent_path(train_.front().path), kParquetMetadataFile);
    const std::string path = !spec_.metadata.empty() ? spec_.metadata : !names && data_path_info(beside) ? beside : "";
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
    ColumnChoice choice = train.choose(train_.front().footer, train_.front().name);
    TERCEL_CHECK(!choice.labels.empty(), DataError, printable(path), ": labels: expected at least one, found none");
    for (const std::vector<OpenFile>* files : {&valid_, &test_}) {
      if (files->empty()) continue;
      const std::string other_path = join_path(parent_path(files->front().path), kParquetMetadataFile);
      if (other_path == path || !data_path_info(other_path)) continue;
      const ParquetMetadata other(other_path, spec_.by_name);
      check_files(other, *files);
      TERCEL_CHECK(other.choose(files->front().footer, files->front().name) == choice, DataError, printable(other_path),
                   ": expected the same columns as ", printable(path), " has, found others");
    }
    return choice;
  }

  const std::string& table_name() const override { return train_.front().name; }
  Span<ParquetColumnInfo> table_columns() const override { return train_.front().footer.columns; }
  /** The column of the first file, or of the first one where it has values. */
  const ParquetColumnInfo* find_column(const std::string& name) const override {
    const ParquetColumnInfo* column = train_.front().footer.find(name, train_.front().name);
    if (!column) return nullptr;
    for (const std::vector<OpenFile>* files : {&train_, &valid_, &test_})
      for (const OpenFile& other : *files) {
        const ParquetColumnInfo* same = other.footer.find(name, other.name);
        if (same && !same->all_missing) return same;
      }
    return column;
  }
  /**
   * Of the first list. The number of values in the metadata does not tell: a list that is missing or empty counts as
   * one value. Lists of other lengths are found when they are read.
   */
  int64_t list_width(const std::string& name) const override {
    constexpr int64_t kBatchRows = 1024;
    ColumnPlan plan;
    plan.floats.push_back({name, 1, true});
    plan.integers = spec_.integers;
    std::optional<int64_t> width;
    for (const OpenFile& file : train_) {
      const ParquetColumnInfo* own = file.footer.find(name, file.name);
      if (!own || own->all_missing) continue;
      decode(file, plan, kBatchRows, [&](const DecodedRows& rows) {
        width = rows.floats[0].first_list_length(rows.rows);
        return !width;
      });
      if (!width) continue;
      TERCEL_CHECK(*width <= kMaxDim, DataError, file.name, ": column '", printable(name),
                   "': expected lists of at most ", kMaxDim, " values, found ", *width);
      return *width;
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
    decode(file, plan, kBatchRows, [&](const DecodedRows& rows) {
      for (size_t i = 0; i < places.size(); ++i)
        for (int64_t row = 0; row < rows.rows; ++row) {
          int64_t& most = schema_.slots[places[i]].hotness;
          most = std::max(most, rows.keys[i].count(row));
        }
      return true;
    });
  }

  /** Calls go_on(rows) with up to `batch_rows` rows of a file at a time, in order, while it returns true. */
  template <class GoOn>
  static void decode(const OpenFile& file, const ColumnPlan& plan, int64_t batch_rows, GoOn go_on) {
    ParquetHandle handle(file.path);
    const std::vector<int32_t> leaves = leaves_of(plan, file.footer, file.name);
    for (size_t g = 0; g < file.footer.row_groups.size(); ++g) {
      const ParquetRowGroup& group = file.footer.row_groups[g];
      if (group.rows == 0) continue;
      const RowGroupStream::Place place{0,          static_cast<int32_t>(g),   group.first_row,
                                        group.rows, largest_allocation(group), file.info};
      RowGroupStream stream(handle, plan, leaves, place, batch_rows);
      for (DecodedRows rows; stream.next(rows);)
        if (!go_on(rows)) return;
    }
  }

  const ParquetSpec& spec_;
  std::vector<OpenFile> train_, valid_, test_;
};

}  // namespace

Dataset dataset_from_parquet_files(const ParquetSpec& spec) { return Describer(spec).describe(); }

std::optional<std::vector<std::string>> parquet_files_of(const std::vector<std::string>& sources) {
  std::vector<std::string> all;
  for (const std::string& source : sources) {
    const bool may_have_files = !is_web_url(source) && (has_pattern(source) || is_folder(source));
    if (!is_parquet_name(source) && !may_have_files) return std::nullopt;
    const std::vector<std::string> paths = files_of({source}).paths;
    if (!std::all_of(paths.begin(), paths.end(), is_parquet_name)) return std::nullopt;
    all.insert(all.end(), paths.begin(), paths.end());
  }
  return all;
}

}  // namespace tercel::data
