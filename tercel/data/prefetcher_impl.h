// The threads between a source of records and the consumer of batches.
//
// Note [Prefetching]
// One thread loads windows in order, into a ring of a few. Workers claim batches in order; one that would wait for a
// window prepares the oldest loaded one. Each decodes its batch from the windows that hold its rows, and puts it into a
// second ring, from which the consumer takes them in order. What a batch holds depends on its number alone, so the
// number of workers cannot change it. A window's place in its ring is free again when the last batch that has rows of
// it is decoded. The oldest incomplete batch needs the oldest windows, so it never waits for a place, regardless of the
// sizes of the rings.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "tercel/data/batch_buffer_impl.h"
#include "tercel/data/record_source_impl.h"
#include "tercel/data/row_order_impl.h"
#include "tercel/util/thread_impl.h"

namespace tercel::data {

/** The rows of one epoch that are delivered, and the windows that hold them; windows are numbered over all epochs. */
struct EpochPlan {
  int64_t epoch = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t first_window = 0;
  int64_t end_window = 0;
  int64_t first_window_number = 0;
};

/** Iterates over the batches of all epochs. */
class BatchSequence {
 public:
  struct Rules {
    int64_t batch_size = 1;
    int64_t epochs = 1;  // 0: without end
    bool drop_last = false;
    int64_t rank = 0, ranks = 1;  // see Note [Parts of ranks]
  };

  /** Some epoch must have a batch. */
  BatchSequence(const RowOrder& order, const Rules& rules, int64_t epoch, int64_t row);

  bool done() const { return rules_.epochs > 0 && plan_.epoch >= rules_.epochs; }
  /** Position of the current batch; its first row if there are no more. */
  const EpochPlan& plan() const { return plan_; }
  int64_t row() const { return row_; }
  int64_t rows() const;
  /** The rank's rows of the batch. */
  RowRange part() const { return part_of(rules_, {row_, rows()}); }
  static RowRange part_of(const Rules& rules, const RowRange& batch);
  int64_t number() const { return number_; }
  void next_batch();
  void next_epoch();

 private:
  void enter(int64_t epoch, int64_t row, int64_t window_number);

  const RowOrder* order_;
  Rules rules_;
  EpochPlan plan_;
  int64_t row_ = 0;
  int64_t number_ = 0;
};

class Prefetcher {
 public:
  struct Options {
    BatchSequence::Rules rules;
    int64_t num_workers = 1;
    int64_t prefetch = 2;
    bool skip_bad_records = false;
  };

  /** Starts the threads. Source, shape and order must outlive it. */
  Prefetcher(RecordSource& source, const BatchShape& shape, const RowOrder& order, Span<Tensor> uniform_offsets,
             const Options& options, int64_t epoch, int64_t row);
  /** Stops them; waits until current reads and decodes are done. */
  ~Prefetcher();
  /** Destroys it in the process that made it, and leaks it in a forked child. */
  struct Destroy {
    void operator()(Prefetcher* prefetcher) const;
  };

  /** RuntimeError in a child that was forked since: it has none of the threads. */
  void check_here() const;
  /** Waits so long at most; whether take() would not wait. */
  bool ready_within(int64_t milliseconds);
  /** The next batch of the sequence, which must not be done; an error is thrown now and at every later call. */
  void take(Batch& batch);

 private:
  enum class WindowState : uint8_t { Free, Loading, Loaded, Preparing, Ready };
  struct WindowPlace {
    std::unique_ptr<Window> window;
    int64_t number = -1;
    int64_t uses = 0;  // batches that will still read from it
    WindowState state = WindowState::Free;
  };
  struct BatchPlace {
    BatchBuffer buffer;
    std::exception_ptr error;
    bool ready = false;
  };

  bool is_here() const;
  void start(int64_t num_workers);
  void stop() noexcept;
  void load_windows();
  /** False if the thread is to end. */
  bool load_window(const EpochPlan& plan, int64_t window);
  void decode_batches();
  /** The rows of a window that the plan delivers. */
  RowRange rows_of(const EpochPlan& plan, int64_t window) const;
  /** Batches that have rows of the window in the rank's part. */
  int64_t count_uses(const EpochPlan& plan, int64_t window) const;
  /** Decodes places of a window behind the first `rows` rows of the batch; returns how many rows there are then. */
  int64_t decode_places(const Window& window, int64_t begin, int64_t count, int64_t position, int64_t rows,
                        BatchBuffer& out) const;
  void decode_batch(const EpochPlan& plan, const RowRange& part, BatchBuffer& out, std::exception_ptr& error);
  /** Waits until it is loaded and prepared, and prepares loaded ones meanwhile; null if the threads are to stop. */
  const Window* wait_for_window(int64_t number);
  void prepare(Window& window) const;
  void release_window(int64_t number);
  WindowPlace& window_place(int64_t number) { return windows_[static_cast<size_t>(number) % windows_.size()]; }
  BatchPlace& batch_place(int64_t number) { return batches_[static_cast<size_t>(number) % batches_.size()]; }

  RecordSource& source_;
  const BatchShape& shape_;
  const RowOrder& order_;
  std::vector<Tensor> uniform_offsets_;
  BatchSequence::Rules rules_;
  bool skip_bad_records_;
  BatchSequence to_load_;  // this and the next: of the loading thread
  std::vector<RowRange> ranges_;

  std::mutex mutex_;  // guards what follows, but for windows and batches between their states
  std::condition_variable window_free_, window_ready_, batch_free_, batch_ready_;
  std::vector<WindowPlace> windows_;
  std::vector<BatchPlace> batches_;
  BatchSequence to_decode_;
  int64_t taken_ = 0;
  std::exception_ptr failed_;
  int64_t failed_window_ = std::numeric_limits<int64_t>::max();  // later ones are not loaded, because of:
  std::exception_ptr load_error_;
  std::atomic<bool> stop_{false};

  std::vector<Thread> threads_;
};

}  // namespace tercel::data
