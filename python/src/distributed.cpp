// Bindings of tercel/distributed: what python/tercel/distributed is made of.
#include "python/src/distributed.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/src/convert.h"
#include "tercel/distributed/mpi_transport.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/array_reduction.h"
#include "tercel/util/enum_names.h"

namespace tercel::python {

namespace {

using distributed::ProcessGroup;
using distributed::ReduceFunction;
using distributed::Work;

/** How long a wait goes on before Python looks for Ctrl-C. */
constexpr double kPatience = 0.05;

/** A call of a group. A child that was forked meanwhile may not use it: the lock inside may be held for ever there. */
class WorkObject {
 public:
  explicit WorkObject(Work work) : work_(std::move(work)) {}

  bool is_completed() const {
    check_here();
    return released([&] { return work_.is_done(); });
  }
  /** Waits for its end, or for so many seconds; whether it is done. */
  bool wait(std::optional<double> seconds) const {
    check_here();
    const auto begin = Clock::now();
    for (;;) {
      const double left = seconds ? *seconds - std::chrono::duration<double>(Clock::now() - begin).count() : kPatience;
      if (released([&] { return work_.wait_for(std::clamp(left, 0.0, kPatience)); })) return true;
      if (PyErr_CheckSignals() != 0) raise_pending();
      if (left <= 0) return false;
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  void check_here() const {
    TERCEL_CHECK(::getpid() == process_, RuntimeError, "work: it is that of the process that was forked");
  }

  Work work_;
  const pid_t process_ = ::getpid();
};

/** A reduction of elements of a dtype; RuntimeError if there is none. */
ReduceFunction reduction(const std::string& name, const Tensor& x) {
  const auto how = parse_enum_or_throw<ArrayReduction>("reduction", name);
  const TensorOptions like(x.dtype(), x.device());
  // An error of the group's thread would end the job.
  reduce_arrays(how, empty({0}, like), {empty({0}, like)});
  return [how, like](void* out, Span<const void*> parts, int64_t count) {
    std::vector<Tensor> arrays;
    // from_blob() takes memory that may be written to; these are only read.
    for (const void* part : parts) arrays.push_back(from_blob(const_cast<void*>(part), {count}, like));
    reduce_arrays(how, from_blob(out, {count}, like), arrays);
  };
}

/** A tensor that a call reads. */
Tensor read(nb::handle x) { return to_tensor(x, "collective").detach(); }
/** One that it writes to, which backward passes learn. */
Tensor written(nb::handle x) {
  const Tensor& t = to_tensor(x, "collective");
  t.impl_ptr()->bump_version();
  return t.detach();
}

}  // namespace

GroupObject::~GroupObject() {
  ProcessGroup* const last = group_.release();
  // In a child that was forked its thread does not exist, but may hold locks; so the memory is left.
  if (::getpid() == process_) released([&] { delete last; });
}

void register_distributed(nb::module_& m) {
  m.def("_has_mpi_module", distributed::has_mpi_module);
  m.def("_is_started_by_mpi", distributed::is_started_by_mpi);
  m.def("_unconnected_tasks", distributed::unconnected_tasks);
  m.def("_mpi_group", [](double timeout_seconds) {
    return new GroupObject(released([&] { return distributed::mpi_group({.timeout_seconds = timeout_seconds}); }));
  });
  m.def("_single_group", [] { return new GroupObject(distributed::single_group()); });
  nb::class_<WorkObject>(m, "_Work")
      .def("is_completed", &WorkObject::is_completed)
      .def(
          "wait",
          [](const WorkObject& self, nb::handle seconds) {
            return self.wait(seconds.is_none() ? std::nullopt : std::optional(to_float(seconds.ptr())));
          },
          nb::arg("seconds").none());
  nb::class_<GroupObject>(m, "_ProcessGroup")
      .def("rank", [](const GroupObject& self) { return self.rank(); })
      .def("size", [](const GroupObject& self) { return self.size(); })
      .def("barrier",
           [](GroupObject& self) { return WorkObject(self.use([](ProcessGroup& g) { return g.barrier(); })); })
      .def("broadcast",
           [](GroupObject& self, nb::handle x, int64_t root) {
             const Tensor own = self.rank() == root ? read(x) : written(x);
             return WorkObject(self.use([&](ProcessGroup& g) { return g.broadcast(own, root); }));
           })
      .def("all_reduce",
           [](GroupObject& self, nb::handle x, const std::string& how) {
             const ReduceFunction reduce = reduction(how, to_tensor(x, "collective"));
             const Tensor own = written(x);
             return WorkObject(self.use([&](ProcessGroup& g) { return g.all_reduce(own, reduce); }));
           })
      .def("reduce_scatter",
           [](GroupObject& self, nb::handle out, nb::handle x, const std::string& how) {
             const ReduceFunction reduce = reduction(how, to_tensor(x, "collective"));
             const Tensor to = written(out), own = read(x);
             return WorkObject(self.use([&](ProcessGroup& g) { return g.reduce_scatter(to, own, reduce); }));
           })
      .def("all_gather",
           [](GroupObject& self, nb::handle out, nb::handle x, nb::handle counts) {
             const Tensor to = written(out), own = read(x);
             const DimVector all = to_ints(counts.ptr());
             return WorkObject(self.use([&](ProcessGroup& g) { return g.all_gather(to, own, all); }));
           })
      .def("all_to_all",
           [](GroupObject& self, nb::handle out, nb::handle x, nb::handle out_counts, nb::handle counts) {
             const Tensor to = written(out), own = read(x);
             const DimVector of_out = to_ints(out_counts.ptr()), of_x = to_ints(counts.ptr());
             return WorkObject(self.use([&](ProcessGroup& g) { return g.all_to_all(to, own, of_out, of_x); }));
           })
      .def("close", [](GroupObject& self) { self.use([](ProcessGroup& g) { g.close(); }); })
      .def("abort", [](GroupObject& self, int code) { self.use([&](ProcessGroup& g) { g.abort(code); }); });
}

}  // namespace tercel::python
