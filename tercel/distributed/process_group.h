// The processes of a job, and what they do together: PyTorch's ProcessGroup.
//
// Note [Collectives]
// All ranks call the same functions in the same order with tensors of the same sizes. A call returns at once; a thread
// of the group does the work, one call after the other, while the caller computes, and the caller itself when it waits.
// The tensors must neither be changed nor, where they are results, read until the work is done.
//
// Sums and other reductions are computed element by element in the order of the ranks, ((x0 + x1) + x2) + ...: so the
// result has the same bits on all ranks, and in every run with that number of ranks. An all-reduce of n bytes sends
// 2 n (size - 1) / size of each rank, as few as there can be (Rabenseifner, Optimization of collective reduction
// operations, 2004): each rank reduces a part for all. With two ranks, or few bytes, every rank gets all elements at
// once and reduces them itself.
//
// Note [Lost ranks]
// Each rank sends its successor a sign of life every second, also while its program computes. A rank that is silent for
// `silence_seconds`, as it is stopped or its machine is, and one that does not come to a collective for
// `timeout_seconds`, is an error that names it; so is a rank that makes another call than its successor, which the
// signs of life tell. From then on every call of the group fails, and five seconds later the group ends the job, on all
// ranks, unless the program has done so (abort()). A rank that ends without close() takes the job with it. A rank whose
// group fails, or that ends the job, tells its successor so, and that one its own: calls of the others fail at once,
// with a JobEndedError that names the first one.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "tercel/core/tensor.h"
#include "tercel/distributed/transport.h"
#include "tercel/util/callable.h"
#include "tercel/util/export.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/options.h"
#include "tercel/util/span.h"

namespace tercel::distributed {

struct GroupOptions {
  double timeout_seconds = 1800;
  double silence_seconds = 20;

  static constexpr auto fields() {
    return option_list(
        option_field<&GroupOptions::timeout_seconds>("timeout_seconds", "a rank that comes so much later is an error",
                                                     above(0)),
        option_field<&GroupOptions::silence_seconds>(
            "silence_seconds", "a rank without a sign of life for so long is lost; at least 3", at_least(3)));
  }
};

/**
 * Makes one array of those of several ranks: `count` elements of the tensor's dtype, in the order of the ranks. `out`
 * may be one of the parts. Called by the thread of the group, or by one that makes or awaits a call.
 */
using ReduceFunction = Callable<void(void* out, Span<const void*> parts, int64_t count)>;

class GroupWorker;
struct Operation;

/** A call that is being worked on. Copies are the same one. */
class TERCEL_API Work {
 public:
  bool is_done() const;
  /** Waits for its end; DistributedError, or the error of a ReduceFunction, if it failed. */
  void wait() const;
  /** The same, for at most so many seconds; whether it is done. */
  bool wait_for(double seconds) const;

 private:
  friend class GroupWorker;
  struct Operation;
  friend class ProcessGroup;
  struct State;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  bool wait_until(std::optional<std::chrono::steady_clock::time_point> time) const;

  std::shared_ptr<State> state_;
};

/** A member of a group of processes. All functions are of one thread. See Note [Collectives] and Note [Lost ranks]. */
class TERCEL_API ProcessGroup {
 public:
  /**
   * `connect`, and finish() of the transport, are called by the thread of the group; other functions by one thread at a
   * time. Errors of connect.
   */
  ProcessGroup(const Callable<std::unique_ptr<Transport>()>& connect, const GroupOptions& options = {});
  /** Ends the job if close() was not called and there are other ranks. */
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int64_t rank() const { return rank_; }
  int64_t size() const { return size_; }
  /** Bytes that this rank has sent to others in collectives. */
  int64_t bytes_sent() const;
  /** Of the transport: "single", "mpi". */
  std::string_view backend() const;

  /** Done when all ranks have called it. */
  [[nodiscard]] Work barrier();
  /** Gives x the values of a rank. */
  [[nodiscard]] Work broadcast(const Tensor& x, int64_t root);
  /** Gives x the reduction of all ranks' x. */
  [[nodiscard]] Work all_reduce(const Tensor& x, const ReduceFunction& reduce);
  /** Gives `out` the part of the reduction of all ranks' x that is the rank's: x has size() times its elements. */
  [[nodiscard]] Work reduce_scatter(const Tensor& out, const Tensor& x, const ReduceFunction& reduce);
  /** Gives `out` all ranks' x, one after the other. */
  [[nodiscard]] Work all_gather(const Tensor& out, const Tensor& x);
  /** The same where rank r has counts[r] elements. */
  [[nodiscard]] Work all_gather(const Tensor& out, const Tensor& x, IntSpan counts);
  /** Sends part r of x to rank r, and gives `out` the parts for this rank, by rank; all have the same size. */
  [[nodiscard]] Work all_to_all(const Tensor& out, const Tensor& x);
  /** The same where parts have other numbers of elements: counts[r] to rank r, out_counts[r] of it. */
  [[nodiscard]] Work all_to_all(const Tensor& out, const Tensor& x, IntSpan out_counts, IntSpan counts);

  /**
   * Waits for the call that `make` makes, and spares the wake-up of the group's thread, which is not needed for it.
   * Errors of Work::wait().
   */
  void await(FunctionRef<Work()> make);

  /** Ends the work together, when all ranks have called it; no other call is allowed then. */
  void close();
  /** Ends all processes of the job with an exit code. */
  [[noreturn]] void abort(int code);

 private:
  Work start(Operation operation);

  int64_t rank_ = 0, size_ = 1;
  bool is_awaited_ = false;  // what is called now
  std::shared_ptr<GroupWorker> worker_;
};

/** A group of this process alone. */
TERCEL_API std::unique_ptr<ProcessGroup> single_group();

}  // namespace tercel::distributed
