#include "tercel/data/batch_reader.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "tercel/data/prefetcher_impl.h"
#include "tercel/data/record_source_impl.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

namespace {

constexpr std::string_view kOwner = "reader";

void check_distinct(std::string_view option, std::vector<std::string_view> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  TERCEL_CHECK(twice == names.end(), ConfigError, "[", kOwner, "] option '", option, "': the name '", printable(*twice),
               "' occurs twice");
}

void check_inputs(const Schema& schema, const std::vector<SparseInput>& inputs) {
  std::vector<std::string_view> names;
  for (const SparseInput& input : inputs) names.push_back(input.name);
  check_distinct("inputs", std::move(names));
  // By subtraction, which cannot overflow for any requested numbers of slots.
  int64_t left = schema.slot_num();
  for (const SparseInput& input : inputs) {
    TERCEL_CHECK(input.slot_num <= left, ConfigError, "[", kOwner, "] option 'inputs': expected ", schema.slot_num(),
                 " slots in all, found more: '", printable(input.name), "' wants ", input.slot_num, ", ", left,
                 " are left");
    left -= input.slot_num;
  }
  TERCEL_CHECK(left == 0, ConfigError, "[", kOwner, "] option 'inputs': expected ", schema.slot_num(),
               " slots in all, found ", schema.slot_num() - left);
}

/** The most rows of a rank's part: of a short batch it may have one more than of a whole one. */
int64_t max_part_rows(const ReaderOptions& options, int64_t rows) {
  return ceil_div(std::min(options.batch_size, rows), options.ranks);
}

/** ConfigError unless i32 keys and offsets hold every key that rows may have, and the number of keys of a part. */
void check_narrow_keys(const Schema& schema, const ReaderOptions& options, int64_t rows) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const auto refuse = [](auto expected, auto found) {
    throw_error<ConfigError>({"[", kOwner, "] option 'narrow_keys': expected ", expected, ", found ", found});
  };
  size_t slot = 0;
  for (const SparseInput& input : options.inputs) {
    int64_t row_nnz = 0;
    for (int64_t s = 0; s < input.slot_num; ++s, ++slot) {
      const Slot& of = schema.slots[slot];
      const int64_t end = of.size > 0 ? of.first_key + of.size : input.num_keys;
      if (end <= 0 || end - 1 > kMost)
        refuse(str_cat({"keys of slot '", printable(of.name), "' up to ", kMost}),
               end > 0 ? str_cat({"keys up to ", end - 1}) : std::string("that any may occur"));
      row_nnz += of.hotness;
    }
    if (row_nnz > 0 && rows > kMost / row_nnz)
      refuse(str_cat({"at most ", kMost, " keys in a batch of input '", printable(input.name), "'"}),
             str_cat({rows, " rows of up to ", row_nnz}));
  }
}

/** See Note [Validation rows]. */
RowSubset chosen_rows(const ReaderOptions& options, int64_t part_rows) {
  TERCEL_CHECK(options.hold_out != 1, ConfigError, "[", kOwner,
               "] option 'hold_out': expected 0 or at least 2, found 1: all rows would be held out");
  TERCEL_CHECK(options.hold_out > 0 || !options.held_out, ConfigError, "[", kOwner,
               "] option 'held_out': expected option 'hold_out' too, found none");
  if (options.hold_out == 0) return part_rows;
  return RowSubset(part_rows, options.hold_out, options.held_out);
}

}  // namespace

struct BatchReader::State {
  ReaderOptions options;
  Schema schema;
  std::unique_ptr<RecordSource> source;
  BatchShape shape;
  std::optional<RowOrder> order;
  std::vector<Tensor> uniform_offsets;
  BatchSequence::Rules rules;
  std::optional<BatchSequence> sequence;  // the batch that comes next
  int64_t bad_records = 0;
  std::string first_bad_record, failure;  // failure: too many bad records
  // Declared last, because its threads use the members above.
  std::unique_ptr<Prefetcher, Prefetcher::Destroy> prefetcher;
};

BatchReader::BatchReader(const Dataset& dataset, PartName part_name, const ReaderOptions& options)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  check_options(options, kOwner);
  state.options = options;
  state.schema = dataset.schema;
  if (state.options.inputs.empty() && state.schema.slot_num() > 0)
    state.options.inputs.push_back({"keys", state.schema.slot_num()});
  check_inputs(state.schema, state.options.inputs);
  check_distinct("columns", {options.columns.begin(), options.columns.end()});
  const auto is_weight = [&options](const Column& column) { return column.name == options.weight; };
  TERCEL_CHECK(
      options.weight.empty() || std::any_of(state.schema.columns.begin(), state.schema.columns.end(), is_weight),
      ConfigError, "[", kOwner, "] option 'weight': ", printable(dataset.name()), " has no further column '",
      printable(options.weight), "'");
  std::vector<std::string>& columns = state.options.columns;
  if (!options.weight.empty() && std::find(columns.begin(), columns.end(), options.weight) == columns.end())
    columns.push_back(options.weight);
  const DataPart& part = dataset.part(part_name);
  const std::string where =
      str_cat({dataset.folder.empty() && !part.file_list.empty() ? part.file_list : dataset.name(), ": ",
               to_string(part_name)});
  TERCEL_CHECK(!part.files.empty(), DataError, printable(where), ": expected files of rows, found none");
  if (options.verify_checksums && dataset.checked_format().has_files())
    for (const DataFile& file : part.files) verify_file(dataset, file);
  TERCEL_CHECK(options.rank < options.ranks, ConfigError, "[", kOwner, "] option 'rank': expected one below ",
               options.ranks, ", the number of ranks, found ", options.rank);
  state.source = dataset.checked_format().open(
      dataset, part,
      {state.options.inputs, state.options.columns, state.options.weight, options.binary_labels, options.shuffle,
       options.num_workers, options.on_bad_record == OnBadRecord::Skip});
  const int64_t part_rows = state.source->rows();
  TERCEL_CHECK(part_rows > 0, DataError, printable(where), ": expected rows, found 0 in ", part.files.size(), " files");
  const RowSubset subset = chosen_rows(options, part_rows);
  const int64_t rows = subset.count();
  TERCEL_CHECK(rows > 0, ConfigError, "[", kOwner, "] option 'hold_out': expected at most ", part_rows,
               ", the rows of ", printable(where), ", found ", options.hold_out);
  if (options.narrow_keys) check_narrow_keys(state.schema, state.options, max_part_rows(options, rows));
  TERCEL_CHECK(!options.drop_last || options.batch_size <= rows, ConfigError, "[", kOwner,
               "] option 'batch_size': expected at most ", rows, ", the rows of ", printable(where),
               ", as drop_last leaves out short batches, found ", options.batch_size);
  if (options.shuffle && options.shuffle_unit == ShuffleUnit::Batches)
    state.order = RowOrder::shuffled_blocks(subset, options.seed, options.batch_size);
  else if (options.shuffle)
    state.order = RowOrder::shuffled(subset, options.seed, options.shuffle_window, options.shuffle_block);
  else
    state.order = RowOrder::in_order(state.source->windows(), subset);
  state.rules = {options.batch_size, options.epochs, options.drop_last, options.rank, options.ranks};
  state.shape = state.source->shape();
  state.shape.bag_order = options.bag_order;
  state.shape.key_dtype = options.narrow_keys ? kInt32 : kInt64;
  if (state.shape.uniform)
    for (size_t i = 0; i < state.shape.inputs.size(); ++i)
      state.uniform_offsets.push_back(uniform_row_offsets(state.shape, i, max_part_rows(options, rows)));
  state.sequence.emplace(*state.order, state.rules, 0, 0);
}

BatchReader::~BatchReader() = default;

void BatchReader::start() {
  State& state = *state_;
  if (state.prefetcher) return;
  const Prefetcher::Options options{state.rules, state.options.num_workers, state.options.prefetch,
                                    state.options.on_bad_record == OnBadRecord::Skip};
  state.prefetcher.reset(new Prefetcher(*state.source, state.shape, *state.order, state.uniform_offsets, options,
                                        state.sequence->plan().epoch, state.sequence->row()));
}

bool BatchReader::ready_within(int64_t milliseconds) {
  if (state_->sequence->done()) return true;
  start();
  return state_->prefetcher->ready_within(milliseconds);
}

bool BatchReader::next(Batch& batch) {
  State& state = *state_;
  while (!state.sequence->done()) {
    if (!state.failure.empty()) throw DataError(state.failure);
    start();
    state.prefetcher->take(batch);
    state.sequence->next_batch();
    if (batch.bad_rows.empty()) return true;
    count_bad_records(batch);
    if (batch.rows > 0 || state.rules.ranks > 1) return true;
  }
  return false;
}

void BatchReader::count_bad_records(const Batch& batch) {
  State& state = *state_;
  if (state.first_bad_record.empty()) state.first_bad_record = batch.bad_record;
  state.bad_records += static_cast<int64_t>(batch.bad_rows.size());
  if (state.bad_records <= state.options.max_bad_records) return;
  state.failure = str_cat({batch.bad_record, "; with it, more than ", state.options.max_bad_records,
                           " bad records, which max_bad_records allows, would be left out"});
  throw DataError(state.failure);
}

int64_t BatchReader::bad_records() const noexcept { return state_->bad_records; }
const std::string& BatchReader::first_bad_record() const noexcept { return state_->first_bad_record; }

int64_t BatchReader::row_behind_damage(int64_t row) const { return state_->source->row_behind_damage(row); }

ReaderPosition BatchReader::position() const {
  const State& state = *state_;
  ReaderPosition position;
  position.epoch = state.sequence->plan().epoch;
  position.row = state.sequence->row();
  position.epoch_rows = epoch_rows();
  position.shuffle = state.options.shuffle;
  position.bad_records = state.bad_records;
  position.hold_out = state.options.hold_out;
  position.held_out = state.options.held_out;
  if (position.shuffle) {
    position.seed = state.options.seed;
    const bool batches = state.options.shuffle_unit == ShuffleUnit::Batches;
    position.shuffle_window = batches ? state.options.batch_size : state.options.shuffle_window;
    position.shuffle_block = batches ? state.options.batch_size : state.options.shuffle_block;
    position.shuffle_unit = state.options.shuffle_unit;
  }
  return position;
}

void BatchReader::seek(const ReaderPosition& position) {
  State& state = *state_;
  const ReaderPosition own = this->position();
  TERCEL_CHECK(position.epoch_rows == own.epoch_rows, ConfigError,
               "reader: seek: the position belongs to a dataset with another number of rows: expected epoch_rows ",
               own.epoch_rows, ", found ", position.epoch_rows);
  const auto check = [](std::string_view what, auto found, auto expected) {
    TERCEL_CHECK(found == expected, ConfigError,
                 "reader: seek: the position belongs to another order of rows: expected ", what, " ", expected,
                 ", found ", found);
  };
  check("hold_out", position.hold_out, own.hold_out);
  check("held_out", position.held_out, own.held_out);
  check("shuffle", position.shuffle, own.shuffle);
  check("shuffle_unit", to_string(position.shuffle_unit), to_string(own.shuffle_unit));
  check("seed", position.seed, own.seed);
  check("shuffle_window", position.shuffle_window, own.shuffle_window);
  check("shuffle_block", position.shuffle_block, own.shuffle_block);
  TERCEL_CHECK(
      position.epoch >= 0 && position.epoch <= kMaxEpoch && position.row >= 0 && position.row <= position.epoch_rows,
      ConfigError, "reader: seek: expected a row from 0 to ", position.epoch_rows, " of an epoch from 0 to ", kMaxEpoch,
      ", found row ", position.row, " of epoch ", position.epoch);
  if (state.prefetcher) state.prefetcher->check_here();
  state.prefetcher.reset();
  state.bad_records = position.bad_records;
  state.first_bad_record.clear();
  state.failure.clear();
  state.sequence.emplace(*state.order, state.rules, position.epoch, position.row);
}

void BatchReader::rewind() {
  ReaderPosition start = position();
  start.epoch = 0;
  start.row = 0;
  start.bad_records = 0;
  seek(start);
}

void BatchReader::set_end(int64_t epoch) {
  TERCEL_CHECK(epoch >= 1, ConfigError, kOwner, ": set_end: expected an epoch of at least 1, found ", epoch);
  State& state = *state_;
  // A loop that goes on keeps what was read ahead.
  if (state.options.epochs == 0 || epoch == state.rules.epochs) return;
  const ReaderPosition at = position();
  if (state.prefetcher) state.prefetcher->check_here();
  state.prefetcher.reset();
  state.rules.epochs = epoch;
  state.sequence.emplace(*state.order, state.rules, at.epoch, at.row);
}

int64_t BatchReader::epoch_rows() const noexcept { return state_->order->rows(); }

int64_t BatchReader::epoch_batches() const noexcept {
  const int64_t size = state_->options.batch_size;
  return (epoch_rows() + (state_->options.drop_last ? 0 : size - 1)) / size;
}

const Schema& BatchReader::schema() const noexcept { return state_->schema; }
const ReaderOptions& BatchReader::options() const noexcept { return state_->options; }

std::string bad_records_text(int64_t count, const std::string& first) {
  return str_cat({format_count(count), count == 1 ? " bad record was" : " bad records were", " left out",
                  first.empty() ? "" : ", the first: ", first});
}

}  // namespace tercel::data
