// Who works on the calls of a group. Private.
//
// Note [Turns]
// The calls of a group are worked on one after the other, and each is advanced by whoever has the turn, a lock: the
// thread of the group, so that calls go on while the program computes, or a thread of the program that waits for one.
// That one polls without a pause, so that a call which is awaited takes no wake-up of another thread; meanwhile the
// thread of the group sleeps. While nobody waits it polls rarely: it would take a processor from the computation, as
// two ranks on two cores have four threads.
//
// The thread alone connects, finishes, and ends the job after an error, whoever had that: MPI wants to be finished by
// the thread that initialized it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tercel/distributed/exchange_impl.h"
#include "tercel/distributed/process_group.h"
#include "tercel/util/thread_impl.h"

namespace tercel::distributed {

/** A call of a group. */
struct Operation {
  const char* name;
  /** What must be the same on all ranks, besides the sizes: "broadcast(float32, root 1)". */
  std::string call;
  /** Begins a phase, as the functions of collectives_impl.h do. */
  Callable<bool(Exchange&, int64_t phase)> begin;
  /** The one that ends the work of the group. */
  bool is_last = false;
};

struct Work::State {
  std::weak_ptr<GroupWorker> worker;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  std::exception_ptr error;

  void end(std::exception_ptr with);
};

/** See Note [Turns]. */
class GroupWorker : public std::enable_shared_from_this<GroupWorker> {
 public:
  using Clock = std::chrono::steady_clock;

  /** Errors of `connect`. */
  GroupWorker(const Callable<std::unique_ptr<Transport>()>& connect, const GroupOptions& options);
  ~GroupWorker();
  GroupWorker(const GroupWorker&) = delete;
  GroupWorker& operator=(const GroupWorker&) = delete;

  Transport& transport() { return *transport_; }
  int64_t bytes_sent() const { return exchange_->bytes_sent.load(std::memory_order_relaxed); }
  /** False in a child that was forked. */
  bool is_here() const { return thread_.is_here(); }
  bool is_closed() const { return is_closed_; }
  bool has_failed();

  /**
   * Begins a call, or puts it behind those that are being worked on. DistributedError in a child, and after the last.
   * `is_awaited`: the caller waits for it next, so that the group's thread is not needed.
   */
  Work post(Operation operation, bool is_awaited);
  /** Works on calls until one is done, or until a time; whether it is done. The error of the call. */
  bool wait(Work::State& state, std::optional<Clock::time_point> until);

  /** Ends the job, and says why. */
  [[noreturn]] void leave();
  [[noreturn]] void abort(int code);

 private:
  enum class Progress : uint8_t {
    None,     ///< there is no call that this thread can work on
    Waiting,  ///< for other ranks
    Some,
  };
  struct Current {
    Operation operation;
    std::shared_ptr<Work::State> state;
    int64_t phase = 0;
  };

  // With the turn:
  Progress advance(bool is_own_thread);
  bool take_next(bool is_own_thread);
  void begin_phase();
  void fail();

  void run(const Callable<std::unique_ptr<Transport>()>& connect, const GroupOptions& options);
  void sleep(Progress progress);
  void wake();
  std::optional<int> end_of_job();
  void say(const std::exception_ptr& error) const;

  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Exchange> exchange_;

  std::mutex turn_;                 // whose owner alone uses the transport, the exchange and what follows
  std::optional<Current> current_;  // that is being worked on
  std::exception_ptr error_;        // which the thread has yet to make that of all calls
  bool has_ended_ = false;          // the last call

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Current> queue_;
  std::exception_ptr failed_;
  std::optional<int> end_;  // the job's exit code, where failed_ is a JobEndedError
  bool is_needed_ = false;  // the group's thread, for a call
  bool is_urgent_ = false;  // it is, for an error or a request to abort

  std::atomic<int> waiting_ = 0;        // threads of the program that work on calls
  std::chrono::microseconds pause_{0};  // of the group's thread
  bool is_closed_ = false;              // of the caller's thread
  Thread thread_;
};

}  // namespace tercel::distributed
