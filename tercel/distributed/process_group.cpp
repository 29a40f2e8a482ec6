#include "tercel/distributed/process_group.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tercel/distributed/collectives_impl.h"
#include "tercel/distributed/error.h"
#include "tercel/distributed/exchange_impl.h"
#include "tercel/util/thread_impl.h"

namespace tercel::distributed {

namespace {

using std::chrono::milliseconds;

// Between two signs of life of a group without work.
constexpr milliseconds kIdle(200);
// For a program to end the job itself once the group has failed.
constexpr milliseconds kGrace(5000);
// For the rank that ends the job to say why: once a process has ended with an error, mpirun may drop what others print.
constexpr milliseconds kLastWords(1000);

class SingleTransport final : public Transport {
 public:
  SingleTransport() : Transport(0, 1) {}
  std::string_view name() const override { return "single"; }
  Ticket send(int64_t, int32_t, const void*, int64_t) override { refuse(); }
  Ticket receive(int64_t, int32_t, void*, int64_t) override { refuse(); }
  bool is_done(Ticket) override { refuse(); }
  void finish() override {}
  void abort(int code) noexcept override { std::_Exit(code); }

 private:
  [[noreturn]] static void refuse() { throw_error<InternalError>({"a group of one rank has nobody to talk to"}); }
};

void check_tensor(const char* name, const char* what, const Tensor& x) {
  TERCEL_CHECK(x.defined() && x.has_storage() && x.device().is_cpu() && x.is_contiguous(), ValueError, name,
               ": expected ", what, " to be a contiguous tensor on the CPU");
  const size_t end = static_cast<size_t>(x.storage_offset()) * x.itemsize() + x.nbytes();
  TERCEL_CHECK(x.numel() == 0 || end <= x.storage()->nbytes(), ValueError, name, ": expected a storage of at least ",
               end, " bytes of ", what, ", found ", x.storage()->nbytes());
}

/** A call with what must be the same on all ranks, besides the sizes: "broadcast(float32, root 1)". */
std::string call_of(const char* name, const Tensor& x, int64_t root = -1) {
  std::string call = str_cat({name, "(", to_string(x.dtype())});
  if (root >= 0) call += str_cat({", root ", root});
  return call + ")";
}

void check_root(const char* name, int64_t root, int64_t size) {
  TERCEL_CHECK(root >= 0 && root < size, ValueError, name, ": expected a rank from 0 to ", size - 1, ", found ", root);
}

void check_same_dtype(const char* name, const Tensor& out, const Tensor& x) {
  TERCEL_CHECK(out.dtype() == x.dtype(), ValueError, name, ": expected tensors of one dtype, found ",
               to_string(out.dtype()), " and ", to_string(x.dtype()));
}

void check_numel(const char* name, const char* what, const Tensor& x, int64_t expected) {
  TERCEL_CHECK(x.numel() == expected, ValueError, name, ": expected ", expected, " elements in ", what, ", found ",
               x.numel());
}

/** Bounds in bytes of parts of so many elements. */
PartBounds bounds_of(const char* name, IntSpan counts, const Tensor& x, int64_t size) {
  TERCEL_CHECK(static_cast<int64_t>(counts.size()) == size, ValueError, name, ": expected ", size,
               " counts, one for each rank, found ", counts.size());
  PartBounds bounds{0};
  for (const int64_t count : counts) {
    TERCEL_CHECK(count >= 0 && count <= x.numel(), ValueError, name, ": expected counts from 0 to ", x.numel(),
                 ", found ", count);
    bounds.push_back(bounds.back() + count * static_cast<int64_t>(x.itemsize()));
  }
  TERCEL_CHECK(bounds.back() == static_cast<int64_t>(x.nbytes()), ValueError, name, ": expected counts of ", x.numel(),
               " elements together, found ", bounds.back() / static_cast<int64_t>(x.itemsize()));
  return bounds;
}

}  // namespace

struct Work::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  std::exception_ptr error;
  /** Of the group's Exchange, while it works on this. */
  std::atomic<bool> is_awaited = false;

  void end(std::exception_ptr with) {
    {
      const std::lock_guard lock(mutex);
      is_done = true;
      error = std::move(with);
    }
    changed.notify_all();
  }
};

bool Work::is_done() const {
  const std::lock_guard lock(state_->mutex);
  return state_->is_done;
}

void Work::wait() const {
  state_->is_awaited.store(true, std::memory_order_relaxed);
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->is_done; });
  if (state_->error) std::rethrow_exception(state_->error);
}

bool Work::wait_for(double seconds) const {
  state_->is_awaited.store(true, std::memory_order_relaxed);
  std::unique_lock lock(state_->mutex);
  if (!state_->changed.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return state_->is_done; }))
    return false;
  if (state_->error) std::rethrow_exception(state_->error);
  return true;
}

struct ProcessGroup::Operation {
  const char* name;
  std::string call;
  Callable<void(Exchange&)> run;
  bool is_last = false;
  std::shared_ptr<Work::State> state = std::make_shared<Work::State>();
};

/** The thread of a group, and the calls that it works on. */
class ProcessGroup::Worker {
 public:
  Worker(const Callable<std::unique_ptr<Transport>()>& connect, const GroupOptions& options)
      : thread_([this, connect, options] { run(connect, options); }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return exchange_ || failed_; });
    if (!failed_) return;
    lock.unlock();
    thread_.join();
    std::rethrow_exception(failed_);
  }
  ~Worker() {
    if (thread_.joinable()) thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Transport& transport() { return *transport_; }
  int64_t bytes_sent() const { return exchange_->bytes_sent.load(std::memory_order_relaxed); }
  /** False in a child that was forked. */
  bool is_here() const { return thread_.is_here(); }
  bool is_closed() const { return is_closed_; }
  bool has_failed() {
    const std::lock_guard lock(mutex_);
    return failed_ != nullptr;
  }

  void post(Operation operation) {
    TERCEL_CHECK(is_here(), DistributedError, operation.name, ": the group is that of the process that was forked");
    TERCEL_CHECK(!is_closed_, DistributedError, operation.name, ": the group is closed");
    is_closed_ = operation.is_last;
    {
      const std::lock_guard lock(mutex_);
      if (failed_)
        operation.state->end(failed_);
      else
        queue_.push_back(std::move(operation));
    }
    changed_.notify_all();
  }

  /** Ends the job, and says why. */
  [[noreturn]] void leave() {
    std::exception_ptr error;
    {
      const std::lock_guard lock(mutex_);
      error = failed_;
    }
    // An error of the program itself is not known here.
    say(error ? error : std::make_exception_ptr(DistributedError("it leaves the group without close()")));
    abort(static_cast<int>(ExitCode::Communication));
  }

  [[noreturn]] void abort(int code) {
    std::fflush(nullptr);
    if (const std::optional<int> end = end_of_job()) {
      std::this_thread::sleep_for(kLastWords);
      std::_Exit(*end);
    }
    if (is_here()) {
      exchange_->abort_code.store(code);
      changed_.notify_all();
      std::this_thread::sleep_for(kGrace);  // the thread ends the process
    }
    std::_Exit(code);
  }

 private:
  /**
   * The exit code of the job, if another rank has ended it: this one has no say any more, and MPI would wait for what
   * starts ranks, which is ending them.
   */
  std::optional<int> end_of_job() {
    if (!is_here()) return std::nullopt;
    const std::lock_guard lock(mutex_);
    return end_;
  }

  void run(const Callable<std::unique_ptr<Transport>()>& connect, const GroupOptions& options) {
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
    while (work_on_next()) {
    }
  }

  /** False after the last one. */
  bool work_on_next() {
    std::optional<Operation> operation;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kIdle, [this] { return !queue_.empty() || exchange_->abort_code.load() >= 0; });
      if (!queue_.empty()) {
        operation.emplace(std::move(queue_.front()));
        queue_.pop_front();
      }
    }
    try {
      exchange_->watch();
      if (!operation) return true;
      exchange_->begin(operation->name, operation->call, operation->state->is_awaited);
      operation->run(*exchange_);
    } catch (...) {
      fail(operation, std::current_exception());
      return false;
    }
    operation->run = {};  // its tensors may be freed before the caller goes on
    operation->state->end(nullptr);
    return !operation->is_last;
  }

  /** Ends all calls with an error and, unless the program does so, the job. */
  void fail(const std::optional<Operation>& operation, const std::exception_ptr& error) {
    std::optional<int> end;
    try {
      std::rethrow_exception(error);
    } catch (const JobEndedError& e) {
      end = static_cast<int>(e.exit_code());
    } catch (...) {
    }
    // Before the program knows, which may end at once.
    if (transport_->size() > 1) exchange_->tell_end(end.value_or(static_cast<int>(ExitCode::Communication)));
    {
      const std::lock_guard lock(mutex_);
      failed_ = error;
      end_ = end;
      if (operation) operation->state->end(error);
      for (const Operation& queued : queue_) queued.state->end(error);
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
      say(error);
    }
    transport_->abort(code);
  }

  void say(const std::exception_ptr& error) const {
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

  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Exchange> exchange_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Operation> queue_;
  std::exception_ptr failed_;
  std::optional<int> end_;  // the job's exit code, where failed_ is a JobEndedError
  bool is_closed_ = false;  // of the caller's thread
  Thread thread_;
};

ProcessGroup::ProcessGroup(const Callable<std::unique_ptr<Transport>()>& connect, const GroupOptions& options) {
  check_options(options, "distributed");
  worker_ = std::make_unique<Worker>(connect, options);
  rank_ = worker_->transport().rank();
  size_ = worker_->transport().size();
}

ProcessGroup::~ProcessGroup() {
  if (!worker_->is_here() || (worker_->is_closed() && (size_ == 1 || !worker_->has_failed()))) return;
  if (size_ > 1) worker_->leave();
  try {
    close();
  } catch (...) {  // nobody is left to hear of it
  }
}

std::string_view ProcessGroup::backend() const { return worker_->transport().name(); }

int64_t ProcessGroup::bytes_sent() const { return worker_->bytes_sent(); }

Work ProcessGroup::start(Operation operation) {
  Work work(operation.state);
  worker_->post(std::move(operation));
  return work;
}

Work ProcessGroup::barrier() {
  return start({"barrier", "barrier", [](Exchange& exchange) { distributed::barrier(exchange); }});
}

Work ProcessGroup::broadcast(const Tensor& x, int64_t root) {
  check_tensor("broadcast", "x", x);
  check_root("broadcast", root, size_);
  return start({"broadcast", call_of("broadcast", x, root), [x, root](Exchange& exchange) {
                  distributed::broadcast(exchange, x.data_ptr(), static_cast<int64_t>(x.nbytes()), root);
                }});
}

Work ProcessGroup::all_reduce(const Tensor& x, const ReduceFunction& reduce) {
  check_tensor("all_reduce", "x", x);
  return start(
      {"all_reduce", call_of("all_reduce", x), [x, reduce](Exchange& exchange) {
         distributed::all_reduce(exchange, x.data_ptr(), {x.numel(), static_cast<int64_t>(x.itemsize()), reduce});
       }});
}

Work ProcessGroup::reduce_scatter(const Tensor& out, const Tensor& x, const ReduceFunction& reduce) {
  check_tensor("reduce_scatter", "out", out);
  check_tensor("reduce_scatter", "x", x);
  check_same_dtype("reduce_scatter", out, x);
  check_numel("reduce_scatter", "x", x, out.numel() * size_);
  return start({"reduce_scatter", call_of("reduce_scatter", x), [out, x, reduce](Exchange& exchange) {
                  distributed::reduce_scatter(exchange, out.data_ptr(), x.data_ptr(),
                                              {out.numel(), static_cast<int64_t>(x.itemsize()), reduce});
                }});
}

Work ProcessGroup::all_gather(const Tensor& out, const Tensor& x) {
  return all_gather(out, x, std::vector<int64_t>(static_cast<size_t>(size_), x.defined() ? x.numel() : 0));
}

Work ProcessGroup::all_gather(const Tensor& out, const Tensor& x, IntSpan counts) {
  check_tensor("all_gather", "out", out);
  check_tensor("all_gather", "x", x);
  check_same_dtype("all_gather", out, x);
  const PartBounds bounds = bounds_of("all_gather", counts, out, size_);
  check_numel("all_gather", "x", x, counts[static_cast<size_t>(rank_)]);
  return start({"all_gather", call_of("all_gather", x), [out, x, bounds](Exchange& exchange) {
                  distributed::all_gather(exchange, out.data_ptr(), bounds, x.data_ptr());
                }});
}

Work ProcessGroup::all_to_all(const Tensor& out, const Tensor& x) {
  check_tensor("all_to_all", "out", out);
  check_tensor("all_to_all", "x", x);
  check_numel("all_to_all", "out", out, x.numel());
  TERCEL_CHECK(x.numel() % size_ == 0, ValueError, "all_to_all: expected a multiple of ", size_,
               " elements in x, one part for each rank, found ", x.numel());
  const std::vector<int64_t> counts(static_cast<size_t>(size_), x.numel() / size_);
  return all_to_all(out, x, counts, counts);
}

Work ProcessGroup::all_to_all(const Tensor& out, const Tensor& x, IntSpan out_counts, IntSpan counts) {
  check_tensor("all_to_all", "out", out);
  check_tensor("all_to_all", "x", x);
  check_same_dtype("all_to_all", out, x);
  TERCEL_CHECK(out.numel() == 0 || !out.is_alias_of(x), ValueError,
               "all_to_all: expected out and x to be different memory");
  const PartBounds out_bounds = bounds_of("all_to_all", out_counts, out, size_),
                   bounds = bounds_of("all_to_all", counts, x, size_);
  const auto me = static_cast<size_t>(rank_);
  TERCEL_CHECK(out_counts[me] == counts[me], ValueError,
               "all_to_all: expected as many elements from this rank as to it", ", found ", out_counts[me], " and ",
               counts[me]);
  return start({"all_to_all", call_of("all_to_all", x), [out, x, out_bounds, bounds](Exchange& exchange) {
                  distributed::all_to_all(exchange, out.data_ptr(), out_bounds, x.data_ptr(), bounds);
                }});
}

void ProcessGroup::close() {
  Operation last{"close", "close", [this](Exchange& exchange) {
                   distributed::barrier(exchange);
                   exchange.end_watch();
                   worker_->transport().finish();
                 }};
  last.is_last = true;
  start(std::move(last)).wait();
}

void ProcessGroup::abort(int code) { worker_->abort(code); }

std::unique_ptr<ProcessGroup> single_group() {
  return std::make_unique<ProcessGroup>(
      []() -> std::unique_ptr<Transport> { return std::make_unique<SingleTransport>(); });
}

}  // namespace tercel::distributed
