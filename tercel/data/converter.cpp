#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tercel/data/converter_impl.h"
#include "tercel/data/random_access_file.h"
#include "tercel/data/time_sample_impl.h"
#include "tercel/data/token_table_impl.h"
#include "tercel/data/vocabulary.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/file_stream.h"
#include "tercel/util/format.h"
#include "tercel/util/philox.h"
#include "tercel/util/version.h"

namespace tercel::data {

namespace {

constexpr std::string_view kStandardInput = "-";
constexpr double kValidShare = 0.1;
constexpr int kPatienceMs = 100;
constexpr std::string_view kSpoolFile = "standard-input";

/** In place of a part: a row in none. */
constexpr uint8_t kLeftOut = 255;
/** Philox streams are numbered by what they decide. */
constexpr uint64_t kNegativeStream = 1;

size_t index_of(PartName part) { return static_cast<size_t>(part); }

}  // namespace

Converter::Converter(ConversionJob job, TextFormat format, ConvertProgressFunction progress)
    : job_(std::move(job)),
      format_(std::move(format)),
      progress_(progress),
      target_(job_.folder, job_.replace ? kDatasetFile : std::string_view()),
      split_(job_.options, !format_.time_column.empty(), format_.time_unit,
             job_.like != nullptr ? 0 : kDefaultTestEvery, job_.tool) {
  TERCEL_CHECK(!job_.sources.empty(), ConfigError, "convert: expected files to convert, found none");
  TERCEL_CHECK(job_.options.format, ConfigError, "convert: expected a format, such as norm_format(), found none");
  const auto add = [&](const std::vector<std::string>& paths, std::optional<PartName> part) {
    for (const std::string& name : paths) {
      const std::string path = name == kStandardInput ? name : join_path(job_.options.source_folder, name);
      if (job_.replace && path != kStandardInput) check_outside(job_.folder, path);
      sources_.push_back({path, name});
      parts_.push_back(part);
    }
  };
  add(job_.sources, std::nullopt);
  add(job_.options.valid, PartName::Valid);
  add(job_.options.test, PartName::Test);
  if (job_.replace && job_.like != nullptr && job_.like->conversion->vocabulary)
    check_outside(job_.folder, job_.like->path_of(*job_.like->conversion->vocabulary));
  const auto inputs = std::count_if(sources_.begin(), sources_.end(),
                                    [](const TextSource& source) { return source.path == kStandardInput; });
  TERCEL_CHECK(inputs <= 1, ConfigError, "convert: expected the standard input ('-') once, found it more often");
  check_writable();
}

std::string Converter::spool_path() const { return join_path(target_.temporary_path(), kSpoolFile); }

TextSource Converter::spool() {
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

void Converter::open_sources() {
  if (std::exchange(is_open_, true)) return;
  for (TextSource& source : sources_)
    if (source.path == kStandardInput) {
      source = spool();
      has_spool_ = true;
    }
}

/** ConfigError before the first pass for what the format can never hold. */
void Converter::check_writable() const {
  Schema schema;
  schema.dense_dim = static_cast<int64_t>(format_.dense.size());
  // Sizes are not known yet, but there will be some.
  for (const TextField& field : format_.fields) schema.slots.push_back({field.name, 1, 0, 1, field.weighted});
  if (!format_.weight_column.empty()) schema.columns.push_back({format_.weight_column, ColumnType::F32});
  try {
    // The size of a row is known only to a format that can hold it.
    static_cast<void>(job_.options.format->estimate_bytes(schema, 1));
  } catch (const ConfigError& error) {
    if (format_.kind == TextKind::Table || !format_.has_weights()) throw;
    throw_error<ConfigError>({error.what(), "; with the value 'ignore' of option 'values', values are left out"});
  }
}

FeatureScan Converter::scan() {
  open_sources();
  const FeatureScan found = scan_features(format_, sources_, [&](int64_t rows, int64_t done, int64_t total) {
    ConvertProgress progress{1, 3, rows, done, 3 * total};
    progress_(progress);
  });
  ++passes_before_;
  return found;
}

void Converter::report(int pass, int64_t rows, int64_t bytes_done, int64_t bytes_total) {
  ConvertProgress progress;
  progress.pass = pass + passes_before_;
  progress.passes = 2 + passes_before_;
  progress.rows = rows;
  progress.bytes_total = progress.passes * bytes_total;
  progress.bytes_done = bytes_done + (progress.pass - 1) * bytes_total;
  progress_(progress);
}

/** Whether a train row of label 0 is left out: a function of seed and row, the same in both passes. */
bool Converter::is_left_out(int64_t row) const {
  const double rate = job_.options.negative_rate;
  if (rate == 1) return false;
  const PhiloxBlock bits = Philox{job_.options.seed, kNegativeStream}(static_cast<uint64_t>(row));
  return uniform_f64(random_u64(bits.word[0], bits.word[1])) >= rate;
}

void Converter::assign_parts(ParsedBlock& block) {
  const std::optional<PartName> fixed = parts_[block.text.source];
  const auto rows = static_cast<size_t>(block.rows.rows);
  block.parts.resize(rows);
  for (size_t row = 0; row < rows; ++row) {
    const PartName part = fixed ? *fixed : split_.next(block.rows.times.empty() ? 0 : block.rows.times[row]);
    const bool left_out = part == PartName::Train && block.rows.labels[row] == 0 && is_left_out(next_row_);
    block.parts[row] = left_out ? kLeftOut : static_cast<uint8_t>(part);
    ++next_row_;
  }
}

void Converter::find_valid_from() {
  TextTable table(format_, sources_);
  const auto nothing_more = [](ParsedBlock&) {};
  TextPipeline pipeline(table, nothing_more);
  TimeSample times;
  int64_t rows = 0;
  for (std::span<ParsedBlock> group = pipeline.next(); !group.empty(); group = pipeline.next()) {
    for (const ParsedBlock& block : group) {
      rows += block.rows.rows;
      if (parts_[block.text.source]) continue;
      for (const double time : block.rows.times)
        if (split_.next(time) != PartName::Test) times.add(time);
    }
    ConvertProgress progress{1, 3, rows, pipeline.bytes_done(), 3 * table.bytes_total()};
    progress_(progress);
  }
  split_.rewind();
  ++passes_before_;
  valid_from_ = times.start_of_last(kValidShare);
  if (valid_from_) split_.set_valid_from(*valid_from_);
}

void Converter::survey() {
  open_sources();
  check_writable();
  if (job_.like == nullptr && split_.wants_valid_from()) find_valid_from();
  survey_.emplace(format_, job_.options.dense_transform, job_.like == nullptr);
  TextTable table(format_, sources_);
  const auto nothing_more = [](ParsedBlock&) {};
  TextPipeline pipeline(table, nothing_more);
  std::vector<std::vector<uint8_t>> is_train;
  std::vector<SurveyBlock> blocks;
  for (std::span<ParsedBlock> group = pipeline.next(); !group.empty(); group = pipeline.next()) {
    is_train.resize(group.size());
    blocks.clear();
    for (size_t i = 0; i < group.size(); ++i) {
      assign_parts(group[i]);
      is_train[i].clear();
      for (const uint8_t part : group[i].parts) {
        ++(part == kLeftOut ? left_out_ : rows_[part]);
        is_train[i].push_back(part == index_of(PartName::Train) ? 1 : 0);
      }
      blocks.push_back({&group[i].rows, &is_train[i], group_of(group[i].text.source)});
    }
    survey_->add(blocks);
    report(1, next_row_, pipeline.bytes_done(), table.bytes_total());
  }
  in_text_ = next_row_;
  num_columns_ = table.num_columns();
  files_ = table.file_infos();
  check_rows();
}

void Converter::check_rows() const {
  const std::string first = printable(sources_.front().name);
  const int64_t rows = in_text_;
  const int64_t train = rows_[index_of(PartName::Train)], valid = rows_[index_of(PartName::Valid)],
                test = rows_[index_of(PartName::Test)];
  TERCEL_CHECK(rows > 0, DataError, first, ": expected rows, found none",
               sources_.size() > 1 ? " in this file and those after it" : "");
  TERCEL_CHECK(train > 0 || left_out_ == 0, DataError, first, ": expected train rows, found ", left_out_,
               " of label 0, which option 'negative_rate' leaves out");
  TERCEL_CHECK(train > 0, DataError, first, ": expected train rows, found ", rows, " rows, which are all ",
               valid == 0  ? "test"
               : test == 0 ? "validation"
                           : "test or validation",
               " rows");
  for (const auto& [paths, count] : {std::pair{&job_.options.valid, valid}, std::pair{&job_.options.test, test}})
    TERCEL_CHECK(paths->empty() || count > 0, DataError, printable(paths->front()), ": expected rows, found none");
  split_.check_parts(first, test > 0, valid > 0);
  if (job_.like != nullptr) return;
  // Files of their own may write labels in another way, and would be all 0.
  if (!job_.options.valid.empty())
    survey_->labels(index_of(PartName::Valid)).check_some(printable(job_.options.valid.front()));
  if (!job_.options.test.empty())
    survey_->labels(index_of(PartName::Test)).check_some(printable(job_.options.test.front()));
  LabelSurvey all = survey_->labels(0);
  for (size_t group = 1; group < kFileGroups; ++group) all.merge(survey_->labels(group));
  all.check_each(first);
}

size_t Converter::group_of(size_t source) const { return index_of(parts_[source].value_or(PartName::Train)); }

/** Adds the counts of the fields that share a field's keys to its own. */
void Converter::join_counts(size_t f, FieldSummary& summary) {
  FieldCounts& counts = survey_->fields()[f];
  summary.name = format_.fields[f].name;
  summary.is_list = counts.hotness > 1;
  for (size_t other = f + 1; other < format_.fields.size(); ++other) {
    if (format_.fields[other].keys_of != f) continue;
    summary.name += "+" + format_.fields[other].name;
    summary.is_list = true;
    FieldCounts& part = survey_->fields()[other];
    part.table.for_each(
        [&](std::string_view category, int64_t count) { TERCEL_ASSERT(counts.table.add(category, count)); });
    counts.values += part.values;
    part.table = TokenTable();
  }
}

int64_t Converter::default_min_count() const {
  return rows_[index_of(PartName::Train)] < kManyRows ? kDefaultMinCount : kDefaultMinCountOfMany;
}

std::vector<std::string_view> Converter::kept_categories(size_t f, FieldSummary& summary) const {
  struct Kept {
    int64_t count;
    std::string_view category;
  };
  const FieldCounts& counts = survey_->fields()[f];
  const int64_t given = format_.fields[f].min_count, min_count = given > 0 ? given : default_min_count();
  std::vector<Kept> kept;
  counts.table.for_each([&](std::string_view category, int64_t count) {
    if (count >= min_count)
      kept.push_back({count, category});
    else
      summary.dropped_values += count;
  });
  std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) {
    return a.count != b.count ? a.count > b.count : a.category < b.category;
  });
  summary.categories = counts.table.size();
  summary.dropped_categories = counts.table.size() - static_cast<int64_t>(kept.size());
  summary.values = counts.values;
  std::vector<std::string_view> categories;
  categories.reserve(kept.size());
  for (const Kept& entry : kept) categories.push_back(entry.category);
  return categories;
}

DenseEncoding Converter::dense_encoding() const {
  DenseEncoding dense;
  dense.transform = job_.options.dense_transform;
  dense.preparation = format_.preparation;
  for (const RunningMoments& moments : survey_->moments()) {
    dense.mean.push_back(moments.mean);
    dense.std.push_back(moments.std(/*of_sample=*/dense.transform == DenseTransform::Zscore));
  }
  return dense;
}

RowEncoder Converter::make_encoder(ConvertResult& result) {
  if (job_.like != nullptr) {
    const Conversion& conversion = *job_.like->conversion;
    return load_row_encoder(job_.like->schema, conversion, job_.like->path_of(*conversion.vocabulary));
  }
  Vocabulary vocabulary;
  for (size_t f = 0; f < format_.fields.size(); ++f) {
    if (format_.fields[f].keys_of) {
      vocabulary.add_field(format_.fields[f].name, {});
      continue;
    }
    FieldSummary summary;
    join_counts(f, summary);
    vocabulary.add_field(format_.fields[f].name, kept_categories(f, summary));
    result.fields.push_back(std::move(summary));
    // The counts are no longer needed, and may be large.
    survey_->fields()[f].table = TokenTable();
  }
  return {dense_encoding(), std::move(vocabulary), format_.fields};
}

Schema Converter::make_schema(const RowEncoder& encoder) const {
  Schema schema;
  schema.label_names = {format_.label_name};
  schema.dense_dim = static_cast<int64_t>(format_.dense.size());
  schema.dense_names = format_.dense_names;
  for (size_t f = 0; f < format_.fields.size(); ++f) {
    const TextField& field = format_.fields[f];
    const int64_t before = job_.like != nullptr ? job_.like->schema.slots[f].hotness : 1;
    const auto slot = static_cast<int64_t>(f);
    schema.slots.push_back({field.name, encoder.size(slot), encoder.first_key(slot),
                            std::max<int64_t>(before, survey_->fields()[f].hotness), field.weighted});
  }
  if (!format_.weight_column.empty()) schema.columns.push_back({format_.weight_column, ColumnType::F32});
  return schema;
}

/** The option with the default that was taken. */
std::string Converter::min_count_setting() const {
  ConvertOptions options;
  options.min_count = job_.options.min_count;
  const bool is_open = std::any_of(format_.fields.begin(), format_.fields.end(), [](const TextField& field) {
    return field.min_count == 0 && field.hash_buckets == 0;
  });
  if (is_open) options.min_count.insert(options.min_count.begin(), str_cat({default_min_count()}));
  for (const OptionField& field : option_table<ConvertOptions>())
    if (field.name == "min_count") return option_text(field, &options);
  return {};
}

void Converter::fill_conversion(Conversion& conversion, const RowEncoder& encoder,
                                std::vector<Conversion::Setting> settings) const {
  conversion.tool = job_.tool;
  conversion.tercel_version = version();
  conversion.sources = job_.sources;
  conversion.settings = std::move(settings);
  // What was found, so that the options make the same dataset again.
  for (Conversion::Setting& setting : conversion.settings) {
    if (setting.name == "valid_from" && valid_from_) setting.value = format_double(*valid_from_);
    if (setting.name == "min_count" && job_.like == nullptr) setting.value = min_count_setting();
  }
  conversion.dense_transform = job_.options.dense_transform;
  conversion.negative_rate = job_.options.negative_rate;
  if (has_moments(job_.options.dense_transform)) {
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

ConvertResult Converter::write(std::vector<Conversion::Setting> settings) {
  ConvertResult result;
  const RowEncoder encoder = make_encoder(result);
  Dataset& dataset = result.dataset;
  dataset.format = job_.options.format;
  dataset.schema = make_schema(encoder);
  fill_conversion(dataset.conversion.emplace(), encoder, std::move(settings));
  write_rows(encoder, result);
  if (has_spool_) remove_file(spool_path());
  save_dataset(dataset, target_.temporary_path());
  target_.commit();
  dataset.folder = target_.path();
  return result;
}

std::unique_ptr<DatasetWriter> Converter::make_writer(const Schema& schema, PartName part) const {
  WriterOptions options;
  options.folder = target_.temporary_path();
  options.prefix = str_cat({to_string(part), "/part-"});
  options.file_list = str_cat({to_string(part), ".txt"});
  options.rows_per_file = job_.options.rows_per_file;
  return job_.options.format->create_writer(schema, options);
}

void Converter::write_block(const ParsedBlock& block, const RowEncoder& encoder, Writers& writers,
                            std::array<int64_t, kParts>& clicks) const {
  const EncodedRows& rows = block.encoded;
  const int64_t slots = encoder.slot_num();
  for (int64_t begin = 0; begin < rows.rows;) {
    // Rows of one part are mostly consecutive.
    const uint8_t part = block.parts[static_cast<size_t>(begin)];
    int64_t end = begin + 1;
    while (end < rows.rows && block.parts[static_cast<size_t>(end)] == part) ++end;
    if (part == kLeftOut) {
      begin = end;
      continue;
    }
    for (int64_t i = begin; i < end; ++i) clicks[part] += rows.labels[static_cast<size_t>(i)] != 0 ? 1 : 0;
    const int64_t first = rows.first_key.empty() ? begin * slots : rows.first_key[static_cast<size_t>(begin)];
    RowBlock out;
    out.rows = end - begin;
    out.labels = rows.labels.data() + begin;
    out.dense = rows.dense.data() + begin * encoder.dense_dim();
    out.nnz = rows.nnz.empty() ? nullptr : rows.nnz.data() + begin * slots;
    out.keys = rows.keys.data() + first;
    out.key_weights = rows.key_weights.empty() ? nullptr : rows.key_weights.data() + first;
    const void* const weights = block.rows.weights.empty() ? nullptr : block.rows.weights.data() + begin;
    if (weights != nullptr) out.columns = {&weights, 1};
    // A file that grew meanwhile may have rows of a part now that had none; detected below.
    if (writers[part]) writers[part]->write(out);
    begin = end;
  }
}

void Converter::write_rows(const RowEncoder& encoder, ConvertResult& result) {
  Writers writers;
  for (const auto& [name, part] : result.dataset.parts())
    if (rows_[index_of(name)] > 0) writers[index_of(name)] = make_writer(result.dataset.schema, name);
  split_.rewind();
  next_row_ = 0;
  TextTable table(format_, sources_);
  const auto encode = [&](ParsedBlock& block) { encoder.encode(block.rows, block.encoded); };
  TextPipeline pipeline(table, encode);
  std::array<int64_t, kParts> clicks = {};
  for (std::span<ParsedBlock> group = pipeline.next(); !group.empty(); group = pipeline.next()) {
    for (ParsedBlock& block : group) {
      assign_parts(block);
      write_block(block, encoder, writers, clicks);
      result.cut_values += block.rows.cut;
    }
    report(2, next_row_, pipeline.bytes_done(), table.bytes_total());
  }
  check_unchanged(table);
  TERCEL_ASSERT(next_row_ == in_text_);
  result.left_out_negatives = left_out_;
  for (const auto& [name, part] : result.dataset.parts())
    if (writers[index_of(name)]) part = writers[index_of(name)]->finish();
  result.train_clicks = clicks[index_of(PartName::Train)];
  result.valid_clicks = clicks[index_of(PartName::Valid)];
  result.test_clicks = clicks[index_of(PartName::Test)];
}

void Converter::check_unchanged(const TextTable& table) const {
  for (size_t i = 0; i < sources_.size(); ++i)
    TERCEL_CHECK(table.file_infos()[i] == files_[i] && data_file_identity(sources_[i].path) == files_[i], DataError,
                 printable(sources_[i].name), ": expected the same file in both passes, found that it changed");
}

}  // namespace tercel::data
