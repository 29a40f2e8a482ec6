#include "tercel/data/convert.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "tercel/data/conversion_settings_impl.h"
#include "tercel/data/row_encoder.h"
#include "tercel/data/text_table.h"
#include "tercel/data/token_table_impl.h"
#include "tercel/data/vocabulary.h"
#include "tercel/util/atomic_file.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/file_stream.h"
#include "tercel/util/format.h"
#include "tercel/util/version.h"

namespace tercel::data {

namespace {

constexpr int64_t kBatchRows = 4096;
constexpr std::string_view kStandardInput = "-";
constexpr int kPatienceMs = 100;
constexpr std::string_view kSpoolFile = "standard-input";

using Progress = FunctionRef<void(const ConvertProgress&)>;

/** Running mean and variance (Welford). */
struct RunningMoments {
  int64_t count = 0;
  double mean = 0, squares = 0;

  void add(double value) {
    ++count;
    const double before = value - mean;
    mean += before / static_cast<double>(count);
    squares += before * (value - mean);
  }
  double std() const {
    // A constant becomes 0, also if rounding errors give it a tiny variance.
    const double std = count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0;
    return std > 1e-9 ? std : 1;
  }
};

bool is_test_row(int64_t row, const ConvertOptions& options) {
  if (options.test_from >= 0) return row >= options.test_from;
  return options.test_every > 0 && row % options.test_every == options.test_every - 1;
}

/** Result of the first pass. */
struct Survey {
  std::vector<TokenTable> counts;       // per categorical field, of train rows
  std::vector<RunningMoments> moments;  // per dense value, of train rows
  int64_t rows = 0, train_rows = 0;
  int64_t num_columns = 0;
  std::vector<FileInfo> files;
};

class Converter {
 public:
  Converter(std::string tool, const std::vector<std::string>& sources, const std::string& folder, TextFormat format,
            const ConvertOptions& options, bool replace, Progress progress)
      : tool_(std::move(tool)),
        source_names_(sources),
        format_(std::move(format)),
        options_(options),
        progress_(progress),
        target_(folder, replace ? kDatasetFile : std::string_view()) {
    TERCEL_CHECK(!sources.empty(), ConfigError, "convert: expected files to convert, found none");
    TERCEL_CHECK(options_.format, ConfigError, "convert: expected a format, such as norm_format(), found none");
    TERCEL_CHECK(std::count(sources.begin(), sources.end(), kStandardInput) <= 1, ConfigError,
                 "convert: expected the standard input ('-') once, found it more often");
    for (const std::string& source : sources)
      if (replace && source != kStandardInput) check_outside(folder, source);
  }

  /** First pass. */
  void survey() {
    for (const std::string& source : source_names_)
      sources_.push_back(source == kStandardInput ? spool() : TextSource{source, source});
    TextTable table(format_, sources_);
    survey_.counts.resize(format_.categorical.size());
    survey_.moments.resize(format_.dense.size());
    TextRow row;
    while (table.next(row)) {
      if (!is_test_row(survey_.rows, options_)) survey_row(row);
      if (++survey_.rows % kBatchRows == 0) report(1, table);
    }
    report(1, table);
    survey_.num_columns = table.num_columns();
    survey_.files = table.file_infos();
    const std::string first = source_names_.front() == "-" ? "standard input" : printable(source_names_.front());
    TERCEL_CHECK(survey_.rows > 0, DataError, first, ": expected rows, found none",
                 source_names_.size() > 1 ? " in this file and those after it" : "");
    TERCEL_CHECK(survey_.train_rows > 0, DataError, first, ": expected train rows, found ", survey_.rows,
                 " rows, which are all test rows");
  }

  int64_t num_columns() const { return survey_.num_columns; }

  /** Second pass. `settings` are the tool's options. */
  ConvertResult write(std::vector<Conversion::Setting> settings) {
    ConvertResult result;
    const RowEncoder encoder = make_encoder(result);
    Dataset& dataset = result.dataset;
    dataset.format = options_.format;
    fill_schema(dataset.schema, encoder.vocabulary());
    fill_conversion(dataset.conversion.emplace(), encoder, std::move(settings));
    write_rows(encoder, result);
    remove_file(spool_path());
    save_dataset(dataset, target_.temporary_path());
    target_.commit();
    dataset.folder = target_.path();
    return result;
  }

 private:
  std::string spool_path() const { return join_path(target_.temporary_path(), kSpoolFile); }

  TextSource spool() {
    File input = File::open_input(std::string(kStandardInput));
    FileWriter writer(File::create_new(spool_path()));
    std::vector<char> buffer(size_t{1} << 20);
    ConvertProgress progress;
    for (;;) {
      progress_(progress);
      // A stop request need not wait for the writer of the pipe.
      if (!input.wait_readable(kPatienceMs)) continue;
      const size_t count = input.read_some(buffer.data(), buffer.size());
      if (count == 0) break;
      writer.write(buffer.data(), count);
    }
    writer.close();
    return {spool_path(), "standard input"};
  }

  void survey_row(const TextRow& row) {
    ++survey_.train_rows;
    for (size_t i = 0; i < row.dense.size(); ++i) survey_.moments[i].add(log_of_count(row.dense[i]));
    for (size_t i = 0; i < row.categories.size(); ++i)
      if (!row.categories[i].empty()) TERCEL_ASSERT(survey_.counts[i].add(row.categories[i], 1));
  }

  void report(int pass, const TextTable& table) {
    ConvertProgress progress;
    progress.pass = pass;
    progress.rows = table.rows();
    progress.bytes_total = 2 * table.bytes_total();
    progress.bytes_done = table.bytes_done() + (pass == 2 ? table.bytes_total() : 0);
    progress_(progress);
  }

  RowEncoder make_encoder(ConvertResult& result) {
    Vocabulary vocabulary;
    for (size_t i = 0; i < survey_.counts.size(); ++i) {
      struct Kept {
        int64_t count;
        std::string_view category;
      };
      std::vector<Kept> kept;
      survey_.counts[i].for_each([&](std::string_view category, int64_t count) {
        if (count >= options_.min_count) kept.push_back({count, category});
      });
      std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) {
        return a.count != b.count ? a.count > b.count : a.category < b.category;
      });
      std::vector<std::string_view> categories;
      categories.reserve(kept.size());
      for (const Kept& entry : kept) categories.push_back(entry.category);
      vocabulary.add_field(format_.categorical_names[i], categories);
      result.categories_seen.push_back(survey_.counts[i].size());
      // The counts are no longer needed, and may be large.
      survey_.counts[i] = TokenTable();
    }
    DenseEncoding dense;
    dense.transform = options_.dense_transform;
    for (const RunningMoments& moments : survey_.moments) {
      dense.mean.push_back(moments.mean);
      dense.std.push_back(moments.std());
    }
    return {std::move(dense), std::move(vocabulary)};
  }

  void fill_schema(Schema& schema, const Vocabulary& vocabulary) const {
    schema.label_names = {format_.label_name};
    schema.dense_dim = static_cast<int64_t>(format_.dense.size());
    schema.dense_names = format_.dense_names;
    for (int64_t f = 0; f < vocabulary.num_fields(); ++f)
      schema.slots.push_back({vocabulary.name(f), vocabulary.size(f), 0, 1});
    schema.set_consecutive_keys();
  }

  void fill_conversion(Conversion& conversion, const RowEncoder& encoder,
                       std::vector<Conversion::Setting> settings) const {
    conversion.tool = tool_;
    conversion.tercel_version = version();
    conversion.sources = source_names_;
    conversion.settings = std::move(settings);
    conversion.dense_transform = options_.dense_transform;
    if (options_.dense_transform == DenseTransform::Standard) {
      conversion.dense_mean = encoder.dense_encoding().mean;
      conversion.dense_std = encoder.dense_encoding().std;
    }
    FileRecord& record = conversion.vocabulary.emplace();
    record.path = kVocabularyFile;
    const std::string path = join_path(target_.temporary_path(), kVocabularyFile);
    save_vocabulary(encoder.vocabulary(), path);
    record.bytes = file_size(path);
    record.checksum = checksum_to_hex(file_checksum(path));
  }

  std::unique_ptr<DatasetWriter> make_writer(const Schema& schema, const char* part) const {
    WriterOptions options;
    options.folder = target_.temporary_path();
    options.prefix = str_cat({part, "/part-"});
    options.file_list = str_cat({part, ".txt"});
    options.rows_per_file = options_.rows_per_file;
    return options_.format->create_writer(schema, options);
  }

  void write_rows(const RowEncoder& encoder, ConvertResult& result) {
    Dataset& dataset = result.dataset;
    const std::unique_ptr<DatasetWriter> train = make_writer(dataset.schema, "train");
    std::unique_ptr<DatasetWriter> test;
    if (survey_.train_rows < survey_.rows) test = make_writer(dataset.schema, "test");

    EncodedText text(encoder, format_, sources_);
    std::vector<float> labels(kBatchRows), dense(static_cast<size_t>(kBatchRows * encoder.dense_dim()));
    std::vector<int64_t> keys(static_cast<size_t>(kBatchRows * encoder.slot_num()));
    int64_t row = 0;
    for (int64_t count; (count = text.read(kBatchRows, labels.data(), dense.data(), keys.data())) > 0;) {
      for (int64_t begin = 0; begin < count;) {
        // Rows of one part are mostly consecutive.
        const bool is_test = is_test_row(row + begin, options_);
        int64_t end = begin + 1;
        while (end < count && is_test_row(row + end, options_) == is_test) ++end;
        int64_t& clicks = is_test ? result.test_clicks : result.train_clicks;
        for (int64_t i = begin; i < end; ++i) clicks += labels[static_cast<size_t>(i)] != 0 ? 1 : 0;
        // A file that grew meanwhile may have test rows now; detected below.
        if (!is_test || test) {
          (is_test ? test : train)
              ->write({end - begin, labels.data() + begin, dense.data() + begin * encoder.dense_dim(), nullptr,
                       keys.data() + begin * encoder.slot_num()});
        }
        begin = end;
      }
      row += count;
      report(2, text.table());
    }
    check_unchanged(text.table());
    dataset.train = train->finish();
    if (test) dataset.test = test->finish();
  }

  void check_unchanged(const TextTable& table) const {
    for (size_t i = 0; i < sources_.size(); ++i) {
      TERCEL_CHECK(table.file_infos()[i] == survey_.files[i] && file_info(sources_[i].path) == survey_.files[i],
                   DataError, printable(sources_[i].name),
                   ": expected the same file in both passes, found that it changed");
    }
    TERCEL_ASSERT(table.rows() == survey_.rows);
  }

  std::string tool_;
  std::vector<std::string> source_names_;
  std::vector<TextSource> sources_;
  TextFormat format_;
  ConvertOptions options_;
  Progress progress_;
  AtomicDir target_;
  Survey survey_;
};

}  // namespace

ConvertResult convert_criteo(const std::vector<std::string>& sources, const std::string& folder,
                             const CriteoOptions& options, bool replace, Progress progress) {
  check_options(options, "criteo");
  Converter converter("criteo", sources, folder, criteo_format(), options, replace, progress);
  converter.survey();
  return converter.write(settings_of(options));
}

ConvertResult convert_csv(const std::vector<std::string>& sources, const std::string& folder, const CsvOptions& options,
                          bool replace, Progress progress) {
  Converter converter("csv", sources, folder, csv_format(options), options, replace, progress);
  converter.survey();
  // Later text must have the same number of columns.
  CsvOptions resolved = options;
  if (options.no_header) resolved.columns = converter.num_columns();
  return converter.write(settings_of(resolved));
}

}  // namespace tercel::data
