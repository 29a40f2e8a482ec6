#include "tercel/distributed/group_worker_impl.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "tercel/distributed/error.h"

namespace tercel::distributed {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Between two signs of life of a group without work.
constexpr milliseconds kIdle(200);
// Between two polls of the group's thread: from the first to the second, while nobody waits for the call.
constexpr microseconds kLeastPause(20), kMostPause(100);
// The same while a thread of the program polls.
constexpr microseconds kPauseOfOther(1000);
// Polls after which a thread that waits spares the processor, too: the other ranks may need it.
constexpr int64_t kBusyPolls = 4096;
// For a program to end the job itself once the group has failed.
constexpr milliseconds kGrace(5000);
// For the rank that ends the job to say why: once a process has ended with an error, mpirun may drop what others print.
constexpr milliseconds kLastWords(1000);

/** Counts a thread for as long as it lives. */
class Counted {
 public:
  explicit Counted(std::atomic<int>& count) : count_(count) { count_.fetch_add(1, std::memory_order_relaxed); }
  ~Counted() { count_.fetch_sub(1, std::memory_order_relaxed); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int>& count_;
};

}  // namespace

void Work::State::end(std::exception_ptr with) {
  {
    const std::lock_guard lock(mutex);
    is_done = true;
    error = std::move(with);
  }
  changed.notify_all();
}

GroupWorker::GroupWorker(const Callable<std::unique_ptr<Transport>()>& connect, const GroupOptions& options)
    : thread_([this, connect, options] { run(connect, options); }) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return exchange_ || failed_; });
  if (!failed_) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(failed_);
}

GroupWorker::~GroupWorker() {
  if (thread_.joinable()) thread_.join();
}

bool GroupWorker::has_failed() {
  const std::lock_guard lock(mutex_);
  return failed_ != nullptr;
}

Work GroupWorker::post(Operation operation, bool is_awaited) {
  TERCEL_CHECK(is_here(), DistributedError, operation.name, ": the group is that of the process that was forked");
  TERCEL_CHECK(!is_closed_, DistributedError, operation.name, ": the group is closed");
  is_closed_ = operation.is_last;
  const auto state = std::make_shared<Work::State>();
  state->worker = weak_from_this();
  {
    const std::lock_guard lock(mutex_);
    if (failed_) {
      state->end(failed_);
      return Work(state);
    }
    queue_.push_back({std::move(operation), state});
  }
  if (const std::unique_lock turn(turn_, std::try_to_lock); turn && !current_) {
    advance(/*is_own_thread=*/false);
  }
  Work work(state);
  if (is_awaited || work.is_done()) return work;
  {
    const std::lock_guard lock(mutex_);
    is_needed_ = true;
  }
  changed_.notify_all();
  return work;
}

bool GroupWorker::wait(Work::State& state, std::optional<Clock::time_point> until) {
  TERCEL_CHECK(is_here(), DistributedError, "wait: the group is that of the process that was forked");
  Progress progress = Progress::None;
  const auto is_over = [&] { return state.is_done || (until && Clock::now() >= *until); };
  const auto is_done = [&] {
    if (state.error) std::rethrow_exception(state.error);
    return state.is_done;
  };
  {
    const Counted counted(waiting_);
    for (int64_t polls = 0;; ++polls) {
      {
        std::unique_lock lock(state.mutex);
        if (polls >= kBusyPolls) state.changed.wait_for(lock, kLeastPause, is_over);
        if (is_over()) return is_done();
      }
      progress = Progress::Waiting;
      if (const std::unique_lock turn(turn_, std::try_to_lock); turn) progress = advance(/*is_own_thread=*/false);
      if (progress == Progress::None) break;
      if (progress == Progress::Some)
        polls = -1;
      else if (polls < kBusyPolls)
        sched_yield();
    }
  }
  // The group's thread has to do it.
  std::unique_lock lock(state.mutex);
  const auto is_ended = [&] { return state.is_done; };
  if (until)
    state.changed.wait_until(lock, *until, is_ended);
  else
    state.changed.wait(lock, is_ended);
  return is_done();
}

/** Goes on with the calls as far as it can at once. Of errors the group's thread makes those of all calls. */
GroupWorker::Progress GroupWorker::advance(bool is_own_thread) {
  if (error_) return Progress::None;
  try {
    if (current_) {
      if (current_->operation.is_last && !is_own_thread) return Progress::None;
      if (!exchange_->poll()) return Progress::Waiting;
    } else {
      if (!take_next(is_own_thread)) return Progress::None;
      exchange_->watch();
      exchange_->begin(current_->operation.name, current_->operation.call);
    }
    begin_phase();
    return Progress::Some;
  } catch (...) {
    error_ = std::current_exception();
  }
  wake();
  return Progress::None;
}

bool GroupWorker::take_next(bool is_own_thread) {
  const std::lock_guard lock(mutex_);
  if (queue_.empty() || (queue_.front().operation.is_last && !is_own_thread)) return false;
  current_.emplace(std::move(queue_.front()));
  queue_.pop_front();
  return true;
}

void GroupWorker::begin_phase() {
  if (current_->operation.begin(*exchange_, current_->phase++)) return;
  const std::shared_ptr<Work::State> state = std::move(current_->state);
  has_ended_ = current_->operation.is_last;
  current_.reset();  // its tensors may be freed before the caller goes on
  state->end(nullptr);
}

void GroupWorker::run(const Callable<std::unique_ptr<Transport>()>& connect, const GroupOptions& options) {
  try {
    std::unique_ptr<Transport> transport = connect();
    const std::lock_guard lock(mutex_);
    transport_ = std::move(transport);
    exchange_ = std::make_unique<Exchange>(*transport_, options);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failed_ = std::current_exception();
  }
  changed_.notify_all();
  if (!exchange_) return;
  for (;;) {
    Progress progress = Progress::Waiting;
    if (const std::unique_lock turn(turn_, std::try_to_lock); turn) {
      progress = advance(/*is_own_thread=*/true);
      if (progress == Progress::None && !error_) try {
          exchange_->watch();
        } catch (...) {
          error_ = std::current_exception();
        }
      if (error_) return fail();
      if (has_ended_) return;
    }
    if (progress == Progress::Some)
      pause_ = kLeastPause;
    else
      sleep(progress);
  }
}

/** Of the group's thread, between two polls. */
void GroupWorker::sleep(Progress progress) {
  std::unique_lock lock(mutex_);
  if (progress == Progress::None) {
    pause_ = kLeastPause;
    changed_.wait_for(lock, kIdle, [this] { return is_urgent_ || is_needed_; });
    is_needed_ = false;
    return;
  }
  const microseconds pause = waiting_.load(std::memory_order_relaxed) > 0 ? kPauseOfOther : pause_;
  pause_ = std::min(2 * pause_, kMostPause);
  changed_.wait_for(lock, pause, [this] { return is_urgent_; });
}

/** Ends the sleep of the group's thread. */
void GroupWorker::wake() {
  {
    const std::lock_guard lock(mutex_);
    is_urgent_ = true;
  }
  changed_.notify_all();
}

/** Ends all calls with an error and, unless the program does so, the job. */
void GroupWorker::fail() {
  std::optional<int> end;
  try {
    std::rethrow_exception(error_);
  } catch (const JobEndedError& e) {
    end = static_cast<int>(e.exit_code());
  } catch (...) {
  }
  // Before the program knows, which may end at once.
  if (transport_->size() > 1) exchange_->tell_end(end.value_or(static_cast<int>(ExitCode::Communication)));
  {
    const std::lock_guard lock(mutex_);
    failed_ = error_;
    end_ = end;
    // Which keeps its tensors: another rank may still read from them, or write to them.
    if (current_) current_->state->end(error_);
    for (const Current& queued : queue_) queued.state->end(error_);
    queue_.clear();
  }
  if (transport_->size() == 1) return;
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kGrace, [this] { return exchange_->abort_code.load() >= 0; });
  }
  if (end) std::_Exit(*end);
  int code = exchange_->abort_code.load();
  if (code < 0) {
    code = static_cast<int>(ExitCode::Communication);
    say(error_);
  }
  transport_->abort(code);
}

void GroupWorker::leave() {
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    error = failed_;
  }
  // An error of the program itself is not known here.
  say(error ? error : std::make_exception_ptr(DistributedError("it leaves the group without close()")));
  abort(static_cast<int>(ExitCode::Communication));
}

void GroupWorker::abort(int code) {
  std::fflush(nullptr);
  if (const std::optional<int> end = end_of_job()) {
    std::this_thread::sleep_for(kLastWords);
    std::_Exit(*end);
  }
  if (is_here()) {
    exchange_->abort_code.store(code);
    wake();
    std::this_thread::sleep_for(kGrace);  // the thread ends the process
  }
  std::_Exit(code);
}

/**
 * The exit code of the job, if another rank has ended it: this one has no say any more, and MPI would wait for what
 * starts ranks, which is ending them.
 */
std::optional<int> GroupWorker::end_of_job() {
  if (!is_here()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return end_;
}

void GroupWorker::say(const std::exception_ptr& error) const {
  std::string text = "unknown error";
  try {
    std::rethrow_exception(error);
  } catch (const JobEndedError&) {
    return;  // the rank that ended it says why
  } catch (const std::exception& e) {
    text = e.what();
  } catch (...) {
  }
  std::fprintf(stderr, "tercel: error: rank %d: %s\n", static_cast<int>(transport_->rank()), text.c_str());
}

}  // namespace tercel::distributed
