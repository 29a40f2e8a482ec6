#include "tercel/distributed/process_group.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tercel/distributed/collectives_impl.h"
#include "tercel/distributed/error.h"
#include "tercel/distributed/group_worker_impl.h"

namespace tercel::distributed {

namespace {

// Of Work::wait_for(): a clock cannot add any more.
constexpr double kMostSeconds = 1e9;

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

bool Work::is_done() const {
  const std::lock_guard lock(state_->mutex);
  return state_->is_done;
}

void Work::wait() const { wait_until(std::nullopt); }

bool Work::wait_for(double seconds) const {
  using Clock = GroupWorker::Clock;
  const std::chrono::duration<double> time(std::clamp(seconds, 0.0, kMostSeconds));
  return wait_until(Clock::now() + std::chrono::duration_cast<Clock::duration>(time));
}

bool Work::wait_until(std::optional<std::chrono::steady_clock::time_point> time) const {
  if (const std::shared_ptr<GroupWorker> worker = state_->worker.lock()) return worker->wait(*state_, time);
  const std::lock_guard lock(state_->mutex);
  if (state_->error) std::rethrow_exception(state_->error);
  // The group is gone, which ends all calls, but for those of the process that was forked.
  TERCEL_CHECK(state_->is_done, DistributedError, "wait: the group is that of the process that was forked");
  return true;
}

ProcessGroup::ProcessGroup(const Callable<std::unique_ptr<Transport>()>& connect, const GroupOptions& options) {
  check_options(options, "distributed");
  worker_ = std::make_shared<GroupWorker>(connect, options);
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

Work ProcessGroup::start(Operation operation) { return worker_->post(std::move(operation), is_awaited_); }

void ProcessGroup::await(FunctionRef<Work()> make) {
  is_awaited_ = true;
  try {
    const Work work = make();
    is_awaited_ = false;
    work.wait();
  } catch (...) {
    is_awaited_ = false;
    throw;
  }
}

Work ProcessGroup::barrier() {
  return start(
      {"barrier", "barrier", [](Exchange& exchange, int64_t phase) { return distributed::barrier(exchange, phase); }});
}

Work ProcessGroup::broadcast(const Tensor& x, int64_t root) {
  check_tensor("broadcast", "x", x);
  check_root("broadcast", root, size_);
  return start({"broadcast", call_of("broadcast", x, root), [x, root](Exchange& exchange, int64_t phase) {
                  return distributed::broadcast(exchange, phase, x.data_ptr(), static_cast<int64_t>(x.nbytes()), root);
                }});
}

Work ProcessGroup::all_reduce(const Tensor& x, const ReduceFunction& reduce) {
  check_tensor("all_reduce", "x", x);
  return start({"all_reduce", call_of("all_reduce", x), [x, reduce](Exchange& exchange, int64_t phase) {
                  return distributed::all_reduce(exchange, phase, x.data_ptr(),
                                                 {x.numel(), static_cast<int64_t>(x.itemsize()), reduce});
                }});
}

Work ProcessGroup::reduce_scatter(const Tensor& out, const Tensor& x, const ReduceFunction& reduce) {
  check_tensor("reduce_scatter", "out", out);
  check_tensor("reduce_scatter", "x", x);
  check_same_dtype("reduce_scatter", out, x);
  check_numel("reduce_scatter", "x", x, out.numel() * size_);
  return start({"reduce_scatter", call_of("reduce_scatter", x), [out, x, reduce](Exchange& exchange, int64_t phase) {
                  return distributed::reduce_scatter(exchange, phase, out.data_ptr(), x.data_ptr(),
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
  return start({"all_gather", call_of("all_gather", x), [out, x, bounds](Exchange& exchange, int64_t phase) {
                  return distributed::all_gather(exchange, phase, out.data_ptr(), bounds, x.data_ptr());
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
  return start(
      {"all_to_all", call_of("all_to_all", x), [out, x, out_bounds, bounds](Exchange& exchange, int64_t phase) {
         return distributed::all_to_all(exchange, phase, out.data_ptr(), out_bounds, x.data_ptr(), bounds);
       }});
}

void ProcessGroup::close() {
  Operation last{"close", "close", [this](Exchange& exchange, int64_t phase) {
                   if (distributed::barrier(exchange, phase)) return true;
                   exchange.end_watch();
                   worker_->transport().finish();
                   return false;
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
