#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "tercel/data/prefetcher_impl.h"
#include "tercel/data/remote_store_impl.h"
#include "tercel/util/error.h"

namespace tercel::data {

BatchSequence::BatchSequence(const RowOrder& order, const Rules& rules, int64_t epoch, int64_t row)
    : order_(&order), rules_(rules) {
  TERCEL_ASSERT(order.rows() >= (rules.drop_last ? rules.batch_size : 1));
  enter(epoch, row, 0);
}

void BatchSequence::enter(int64_t epoch, int64_t row, int64_t window_number) {
  for (;; ++epoch, row = 0) {
    const int64_t left = order_->rows() - row;
    plan_ = {epoch, row, row + (rules_.drop_last ? left / rules_.batch_size * rules_.batch_size : left),
             0,     0,   window_number};
    row_ = row;
    // Before the end is looked at: behind the last batch of an epoch begins the next one, even if it is not delivered.
    if (plan_.begin == plan_.end) continue;
    if (done()) return;
    plan_.first_window = order_->window_of(epoch, plan_.begin);
    plan_.end_window = order_->window_of(epoch, plan_.end - 1) + 1;
    return;
  }
}

int64_t BatchSequence::rows() const { return std::min(rules_.batch_size, plan_.end - row_); }

RowRange BatchSequence::part_of(const Rules& rules, const RowRange& batch) {
  const auto begin = [&](int64_t rank) {
    return batch.begin + batch.count / rules.ranks * rank + batch.count % rules.ranks * rank / rules.ranks;
  };
  return {begin(rules.rank), begin(rules.rank + 1) - begin(rules.rank)};
}

void BatchSequence::next_batch() {
  ++number_;
  row_ += rows();
  if (row_ >= plan_.end) next_epoch();
}

void BatchSequence::next_epoch() {
  enter(plan_.epoch + 1, 0, plan_.first_window_number + plan_.end_window - plan_.first_window);
}

Prefetcher::Prefetcher(RecordSource& source, const BatchShape& shape, const RowOrder& order,
                       Span<Tensor> uniform_offsets, const Options& options, int64_t epoch, int64_t row)
    : source_(source),
      shape_(shape),
      order_(order),
      uniform_offsets_(uniform_offsets.begin(), uniform_offsets.end()),
      rules_(options.rules),
      skip_bad_records_(options.skip_bad_records),
      to_load_(order, options.rules, epoch, row),
      to_decode_(order, options.rules, epoch, row) {
  // Windows in use by the workers, and one that is being loaded.
  const int64_t window_rows = (order.rows() + order.num_windows() - 1) / order.num_windows();
  const int64_t in_work = options.num_workers * std::min(rules_.batch_size, order.rows());
  const int64_t prepared_ahead = source.prepares() ? options.num_workers - 1 : 0;
  windows_.resize(static_cast<size_t>(2 + (in_work - 1) / window_rows + prepared_ahead));
  for (WindowPlace& place : windows_) place.window = source.make_window();
  batches_.resize(static_cast<size_t>(std::max(options.prefetch, options.num_workers)));
  start(options.num_workers);
}

Prefetcher::~Prefetcher() { stop(); }

void Prefetcher::Destroy::operator()(Prefetcher* prefetcher) const {
  // A forked child does not have the threads, and destroying a condition that they wait on would hang.
  if (prefetcher->is_here()) delete prefetcher;
}

void Prefetcher::start(int64_t num_workers) {
  try {
    threads_.emplace_back([this] {
      const RemoteWaitScope scope(stop_);
      load_windows();
    });
    for (int64_t i = 0; i < num_workers; ++i)
      threads_.emplace_back([this] {
        const RemoteWaitScope scope(stop_);
        decode_batches();
      });
  } catch (const std::system_error& error) {
    stop();
    throw_error<OutOfMemoryError>({"reader: cannot start ", num_workers + 1, " threads: ", error.what()});
  }
}

void Prefetcher::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  window_free_.notify_all();
  window_ready_.notify_all();
  batch_free_.notify_all();
  for (Thread& thread : threads_) thread.join();
  threads_.clear();
}

void Prefetcher::load_windows() {
  for (; !to_load_.done(); to_load_.next_epoch()) {
    const EpochPlan plan = to_load_.plan();
    bool used = false;
    for (int64_t window = plan.first_window; window < plan.end_window; ++window) {
      if (count_uses(plan, window) == 0) continue;
      used = true;
      if (!load_window(plan, window)) return;
    }
    // A whole epoch without rows of this rank: all others are the same.
    if (!used && plan.begin == 0) return;
  }
}

RowRange Prefetcher::rows_of(const EpochPlan& plan, int64_t window) const {
  const int64_t begin = std::max(order_.window_begin(plan.epoch, window), plan.begin);
  return {begin, std::min(order_.window_end(plan.epoch, window), plan.end) - begin};
}

int64_t Prefetcher::count_uses(const EpochPlan& plan, int64_t window) const {
  const RowRange rows = rows_of(plan, window);
  const int64_t begin = rows.begin, end = rows.begin + rows.count, size = rules_.batch_size;
  const auto uses = [&](int64_t batch) {
    const int64_t first = plan.begin + batch * size;
    const RowRange part = BatchSequence::part_of(rules_, {first, std::min(size, plan.end - first)});
    return part.count > 0 && part.begin < end && begin < part.begin + part.count;
  };
  const int64_t first = (begin - plan.begin) / size, last = (end - 1 - plan.begin) / size;
  // A batch between the first and the last lies within the window; all of these are whole.
  const int64_t between = last - first - 1;
  int64_t count = uses(first) ? 1 : 0;
  if (last > first && uses(last)) ++count;
  if (between > 0 && uses(first + 1)) count += between;
  return count;
}

bool Prefetcher::load_window(const EpochPlan& plan, int64_t window) {
  const int64_t number = plan.first_window_number + window - plan.first_window;
  const int64_t last = rows_of(plan, window).begin + rows_of(plan, window).count - 1;
  WindowPlace& place = window_place(number);
  {
    std::unique_lock lock(mutex_);
    window_free_.wait(lock, [&] { return stop_ || place.state == WindowState::Free; });
    if (stop_) return false;
    place.state = WindowState::Loading;
  }
  Window& target = *place.window;
  std::exception_ptr error;
  try {
    order_.ranges(plan.epoch, window, ranges_);
    order_.mix(plan.epoch, window, target.mix);
    source_.load(ranges_, target, stop_);
  } catch (...) {
    error = std::current_exception();
  }
  const bool good = error == nullptr;
  // Regardless of the rows that the source reports: the batch with the last row must get the error, if it is not the
  // one of a later window, since no further window follows.
  if (!good) target.rows = std::min(target.rows, last - order_.window_begin(plan.epoch, window));
  target.error = std::move(error);
  {
    const std::lock_guard lock(mutex_);
    place.number = number;
    place.uses = count_uses(plan, window);
    place.state = source_.prepares() ? WindowState::Loaded : WindowState::Ready;
    if (!good) {
      failed_window_ = number;
      load_error_ = target.error;
    }
  }
  window_ready_.notify_all();
  return good;
}

const Window* Prefetcher::wait_for_window(int64_t number) {
  WindowPlace& place = window_place(number);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stop_) return nullptr;
    if (number > failed_window_) std::rethrow_exception(load_error_);
    if (place.state == WindowState::Ready && place.number == number) return place.window.get();
    // Instead of waiting, it prepares the oldest window that nobody prepares.
    WindowPlace* oldest = nullptr;
    for (WindowPlace& other : windows_)
      if (other.state == WindowState::Loaded && (oldest == nullptr || other.number < oldest->number)) oldest = &other;
    if (oldest == nullptr) {
      window_ready_.wait(lock);
      continue;
    }
    oldest->state = WindowState::Preparing;
    lock.unlock();
    prepare(*oldest->window);
    lock.lock();
    oldest->state = WindowState::Ready;
    window_ready_.notify_all();
  }
}

void Prefetcher::prepare(Window& window) const {
  if (window.error && (window.rows == 0 || order_.is_mixed())) return;  // no row of it is decoded
  try {
    source_.prepare(window);
  } catch (...) {
    window.rows = 0;
    if (!window.error) window.error = std::current_exception();
  }
}

void Prefetcher::release_window(int64_t number) {
  WindowPlace& place = window_place(number);
  {
    const std::lock_guard lock(mutex_);
    if (--place.uses > 0) return;
    place.state = WindowState::Free;
  }
  window_free_.notify_one();
}

void Prefetcher::decode_batches() {
  for (;;) {
    std::unique_lock lock(mutex_);
    batch_free_.wait(lock, [&] {
      return stop_ || to_decode_.done() || to_decode_.number() < taken_ + static_cast<int64_t>(batches_.size());
    });
    if (stop_ || to_decode_.done()) return;
    const EpochPlan plan = to_decode_.plan();
    const RowRange whole{to_decode_.row(), to_decode_.rows()}, part = to_decode_.part();
    BatchPlace& place = batch_place(to_decode_.number());
    to_decode_.next_batch();
    lock.unlock();

    std::exception_ptr error;
    place.buffer.batch.epoch = plan.epoch;
    place.buffer.batch.global_row = whole.begin;
    place.buffer.batch.global_rows = whole.count;
    decode_batch(plan, part, place.buffer, error);
    if (stop_) return;

    lock.lock();
    place.error = std::move(error);
    place.ready = true;
    lock.unlock();
    batch_ready_.notify_one();
  }
}

int64_t Prefetcher::decode_places(const Window& window, int64_t begin, int64_t count, int64_t position, int64_t rows,
                                  BatchBuffer& out) const {
  const int64_t end = begin + count;
  while (begin < end) {
    try {
      source_.decode(window, {begin, end - begin, rows}, out);
      return rows + end - begin;
    } catch (const BadRecord& bad) {
      if (!skip_bad_records_) throw;
      rows += bad.place - begin;
      position += bad.place - begin;
      out.truncate(rows);
      if (out.batch.bad_rows.empty()) out.batch.bad_record = bad.what();
      out.batch.bad_rows.push_back(position++);
      begin = bad.place + 1;
    }
  }
  return rows;
}

void Prefetcher::decode_batch(const EpochPlan& plan, const RowRange& part, BatchBuffer& out,
                              std::exception_ptr& error) {
  try {
    out.prepare(part.count, shape_, uniform_offsets_);
    out.batch.row = part.begin;
    int64_t rows = 0;  // without bad ones
    for (int64_t done = 0; done < part.count;) {
      const int64_t position = part.begin + done;
      const int64_t index = order_.window_of(plan.epoch, position);
      const int64_t number = plan.first_window_number + index - plan.first_window;
      const Window* window = wait_for_window(number);
      if (window == nullptr) return;
      const int64_t begin = order_.window_begin(plan.epoch, index);
      const int64_t count = std::min(order_.window_end(plan.epoch, index) - position, part.count - done);
      // Rows before the missing one may be invalid too, and are reported first; in a mixed window it could be any row.
      const int64_t there = !window->error ? count : order_.is_mixed() ? 0 : window->rows - (position - begin);
      if (there > 0) rows = decode_places(*window, position - begin, std::min(count, there), position, rows, out);
      if (there < count) {
        error = window->error;
        return;
      }
      release_window(number);
      done += count;
    }
    out.finish(rows);
  } catch (...) {
    error = std::current_exception();
  }
}

bool Prefetcher::is_here() const { return threads_.front().is_here(); }

void Prefetcher::check_here() const {
  TERCEL_CHECK(is_here(), RuntimeError,
               "reader: a forked process cannot continue with its parent's reader: open another");
}

bool Prefetcher::ready_within(int64_t milliseconds) {
  check_here();
  if (failed_) return true;
  std::unique_lock lock(mutex_);
  const BatchPlace& place = batch_place(taken_);
  return batch_ready_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return place.ready; });
}

void Prefetcher::take(Batch& batch) {
  check_here();
  if (failed_) std::rethrow_exception(failed_);
  {
    std::unique_lock lock(mutex_);
    BatchPlace& place = batch_place(taken_);
    batch_ready_.wait(lock, [&] { return place.ready; });
    if (place.error) {
      failed_ = place.error;
    } else {
      std::swap(batch, place.buffer.batch);
      place.ready = false;
      ++taken_;
    }
  }
  if (failed_) std::rethrow_exception(failed_);
  batch_free_.notify_one();
}

}  // namespace tercel::data
