// Reads a dataset's rows as batches, ahead of the consumer, on its own threads.
//
// Note [Order of rows]
// An epoch delivers every row of the part once. Without shuffling, rows come in the order of the files. With it, the
// rows are cut into blocks of `shuffle_block` consecutive ones, the blocks come in random order, and as many of them as
// fit into `shuffle_window` rows are mixed with each other. The order is a function of only the number of rows, these
// two sizes, the seed and the epoch (Philox), not of batch size, threads, files or format. So an epoch and a row within
// it determine a reader's position.
//
// Shuffled by batches, as HugeCTR's Raw readers do it, whole batches come in random order, and the rows of one are
// those of the files; a short last batch stays the last.
//
// Batches end where an epoch ends, so the last one may be short.
//
// Note [Bad records]
// With on_bad_record = skip, the row of a record that breaks a rule is left out, if the format knows where the next
// record begins. It keeps its number: the batch that it would be in has one row less, and everything else, the order,
// the other batches, positions, the parts of ranks, is as without it. So threads do not matter, and a resumed run
// leaves out the same rows. A batch without any row left is passed over (by one rank of several it is delivered, as the
// ranks take each step together). Rows that are left out are counted, over all epochs, and the position has the count;
// more than max_bad_records are an error.
//
// Note [Validation rows]
// Where a dataset has no validation part, one row of every `hold_out` of the train part is held out from training to
// choose a model by. One reader delivers the rows that are left, another one (`held_out`) the others; to each, its rows
// are all there are: epochs, orders and positions are of them. Which rows it is depends on the number of rows of the
// part and on `hold_out` alone; see row_subset_impl.h.
//
// Note [Parts of ranks]
// Several readers, one per rank of a job, share the rows: each is asked for the same batches (of batch_size rows in
// all), and delivers its part of each, consecutive rows that start where those of the rank before it end. Parts differ
// by one row at most; of a short batch, a part may be empty. The order of rows does not depend on the number of ranks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tercel/data/batch.h"
#include "tercel/data/dataset.h"
#include "tercel/data/sparse_input.h"
#include "tercel/util/enum_names.h"
#include "tercel/util/export.h"
#include "tercel/util/options.h"

namespace tercel::data {

/** Limits of ReaderOptions. */
constexpr int64_t kMaxShuffleWindow = 1 << 26, kMaxWorkers = 1024, kMaxPrefetch = 1024, kMaxRanks = 1 << 20;
/** The last epoch that a reader seeks. */
constexpr int64_t kMaxEpoch = int64_t{1} << 53;

/** What is shuffled; see Note [Order of rows]. */
enum class ShuffleUnit : uint8_t { Rows, Batches };

constexpr auto enum_names(ShuffleUnit) {
  return std::to_array<EnumName<ShuffleUnit>>({{ShuffleUnit::Rows, "rows"}, {ShuffleUnit::Batches, "batches"}});
}

/** What happens at a record that breaks a rule; see Note [Bad records]. */
enum class OnBadRecord : uint8_t { Fail, Skip };

constexpr auto enum_names(OnBadRecord) {
  return std::to_array<EnumName<OnBadRecord>>({{OnBadRecord::Fail, "fail"}, {OnBadRecord::Skip, "skip"}});
}

struct ReaderOptions {
  int64_t batch_size = 1024;
  int64_t epochs = 1;
  bool drop_last = false;
  bool shuffle = false;
  ShuffleUnit shuffle_unit = ShuffleUnit::Rows;
  uint64_t seed = 0;
  int64_t shuffle_window = 32768;
  int64_t shuffle_block = 512;
  int64_t num_workers = 1;
  int64_t prefetch = 2;
  bool binary_labels = true;
  bool verify_checksums = false;
  OnBadRecord on_bad_record = OnBadRecord::Fail;
  int64_t max_bad_records = 1000;
  BagOrder bag_order = BagOrder::SampleMajor;
  bool narrow_keys = false;
  int64_t rank = 0;
  int64_t ranks = 1;
  int64_t hold_out = 0;
  bool held_out = false;
  std::vector<std::string> columns;
  std::string weight;
  std::vector<SparseInput> inputs;

  static constexpr auto fields() {
    return option_list(
        option_field<&ReaderOptions::batch_size>("batch_size", "rows of a batch", at_least(1), at_most(1 << 24)),
        option_field<&ReaderOptions::epochs>("epochs", "passes over the rows, 0 for no end", at_least(0)),
        option_field<&ReaderOptions::drop_last>("drop_last", "leave out the last batch of an epoch if it is short"),
        option_field<&ReaderOptions::shuffle>("shuffle", "deliver the rows of each epoch in a random order"),
        option_field<&ReaderOptions::shuffle_unit>(
            "shuffle_unit",
            "rows, or batches, whose rows keep their order; then shuffle_window and shuffle_block have no effect"),
        option_field<&ReaderOptions::seed>("seed", "of that order"),
        option_field<&ReaderOptions::shuffle_window>("shuffle_window",
                                                     "rows that are mixed with each other, held in memory", at_least(1),
                                                     at_most(kMaxShuffleWindow)),
        option_field<&ReaderOptions::shuffle_block>("shuffle_block", "consecutive rows that are read at once",
                                                    at_least(1), at_most(kMaxShuffleWindow)),
        option_field<&ReaderOptions::num_workers>("num_workers", "threads that decode, in addition to one that reads",
                                                  at_least(1), at_most(kMaxWorkers)),
        option_field<&ReaderOptions::prefetch>("prefetch", "batches that are prepared ahead", at_least(1),
                                               at_most(kMaxPrefetch)),
        option_field<&ReaderOptions::binary_labels>("binary_labels", "refuse labels other than 0 and 1"),
        option_field<&ReaderOptions::verify_checksums>("verify_checksums",
                                                       "read each file once before the start, to compare its checksum"),
        option_field<&ReaderOptions::on_bad_record>("on_bad_record", "fail, or leave out the row"),
        option_field<&ReaderOptions::max_bad_records>("max_bad_records", "rows that may be left out, over all epochs",
                                                      at_least(0)),
        option_field<&ReaderOptions::bag_order>("bag_order", "order of the bags in a batch"),
        option_field<&ReaderOptions::narrow_keys>("narrow_keys", "keys and row offsets are i32, not i64"),
        option_field<&ReaderOptions::rank>("rank", "which part of each batch is read, from 0", at_least(0)),
        option_field<&ReaderOptions::ranks>("ranks", "parts that each batch is cut into", at_least(1),
                                            at_most(kMaxRanks)),
        option_field<&ReaderOptions::hold_out>(
            "hold_out", "one row of so many is left out, to validate with; 0: none, else at least 2", at_least(0)),
        option_field<&ReaderOptions::held_out>("held_out", "deliver those rows, instead of the others"),
        option_field<&ReaderOptions::columns>("columns", "further columns of the files that batches have"),
        option_field<&ReaderOptions::weight>("weight",
                                             "further column with the weight of each row, not negative; empty: none"),
        option_field<&ReaderOptions::inputs>("inputs", "how slots are grouped; empty: all in one"));
  }
};

/** Position of a reader, and the parameters of its order; see Note [Order of rows]. */
struct ReaderPosition {
  int64_t epoch = 0;
  int64_t row = 0;         // rows of the epoch that were delivered
  int64_t epoch_rows = 0;  // rows of a whole epoch
  bool shuffle = false;
  uint64_t seed = 0;  // this and the following are 0 without shuffling
  int64_t shuffle_window = 0;
  int64_t shuffle_block = 0;
  ShuffleUnit shuffle_unit = ShuffleUnit::Rows;
  int64_t bad_records = 0;  // that were left out, over all epochs
  int64_t hold_out = 0;     // of ReaderOptions
  bool held_out = false;

  static constexpr auto fields() {
    return option_list(
        option_field<&ReaderPosition::epoch>("epoch", "epochs that are complete", at_least(0), required()),
        option_field<&ReaderPosition::row>("row", "rows of the epoch that were read", at_least(0), required()),
        option_field<&ReaderPosition::epoch_rows>("epoch_rows", "rows of an epoch", at_least(0), required()),
        option_field<&ReaderPosition::shuffle>("shuffle", "whether the order is random", required()),
        option_field<&ReaderPosition::seed>("seed", "of the order"),
        option_field<&ReaderPosition::shuffle_window>("shuffle_window", "rows that are mixed", at_least(0)),
        option_field<&ReaderPosition::shuffle_block>("shuffle_block", "rows that stay together", at_least(0)),
        option_field<&ReaderPosition::shuffle_unit>("shuffle_unit", "what is shuffled"),
        option_field<&ReaderPosition::bad_records>("bad_records", "rows that were left out", at_least(0)),
        option_field<&ReaderPosition::hold_out>("hold_out", "one row of so many is held out", at_least(0)),
        option_field<&ReaderPosition::held_out>("held_out", "whether those are read"));
  }
  friend bool operator==(const ReaderPosition&, const ReaderPosition&) = default;
};

/**
 * The rows of a part, batch by batch. One thread may use it at a time; its own threads start with the first batch.
 * Memory is bounded by `prefetch` batches and the raw bytes of a few more (or of two windows, with shuffling).
 */
class TERCEL_API BatchReader {
 public:
  /**
   * Opens the part's files and checks headers and sizes. ConfigError for options that are invalid or impossible for
   * this part, DataError and IoError for files that do not fit the description, or if there are no rows.
   */
  BatchReader(const Dataset& dataset, PartName part, const ReaderOptions& options);
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  /**
   * Exchanges `batch` for the next one; false, and no change, after the last epoch. The previous tensors of `batch` are
   * reused later, unless they are still referenced. DataError "file: record r: byte b: expected ..., found ..." instead
   * of the first batch that has an invalid row, and at every later call; see also Note [Bad records].
   */
  bool next(Batch& batch);
  /** Waits so long at most; whether next() now returns or throws at once. Starts the threads, as next() does. */
  bool ready_within(int64_t milliseconds);

  /** Where the next batch begins. */
  ReaderPosition position() const;

  /**
   * Seeks to a position() of a reader of the same rows and order. ConfigError if the number of rows or the order
   * differs; that the rows are the same is not checked.
   */
  void seek(const ReaderPosition& position);
  /**
   * The row of the part at which reading can go on where a row cannot be read for another reason than a rule: that
   * behind its row group, or the next one.
   */
  int64_t row_behind_damage(int64_t row) const;
  /** Goes to the start of the first epoch. */
  void rewind();
  /**
   * Ends before this epoch (at least 1) instead of before options().epochs: rows follow the position if its epoch is an
   * earlier one. No effect on a reader without end.
   */
  void set_end(int64_t epoch);

  /** Rows that were left out since the start, or by the reader of the position that was sought too. */
  int64_t bad_records() const noexcept;
  /** The message about the first row that this reader left out; empty if there is none. */
  const std::string& first_bad_record() const noexcept;
  /** Rows of an epoch, including those of a short last batch that is dropped. */
  int64_t epoch_rows() const noexcept;
  /** Batches of a whole epoch. */
  int64_t epoch_batches() const noexcept;
  const Schema& schema() const noexcept;
  const ReaderOptions& options() const noexcept;

 private:
  struct State;
  void start();
  /** DataError if there are too many. */
  void count_bad_records(const Batch& batch);
  std::unique_ptr<State> state_;
};

/** "3 bad records were left out, the first: <message>", of BatchReader::bad_records() and first_bad_record(). */
TERCEL_API std::string bad_records_text(int64_t count, const std::string& first);

}  // namespace tercel::data
