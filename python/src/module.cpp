// The module tercel._C: types, then the tables of their methods.
#include <nanobind/stl/string.h>

#include "python/src/autograd.h"
#include "python/src/datasets.h"
#include "python/src/distributed.h"
#include "python/src/exchange.h"
#include "python/src/models.h"
#include "python/src/op.h"
#include "python/src/out.h"
#include "python/src/package_name.h"
#include "tercel/core/allocator.h"
#include "tercel/core/dispatch.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/util/parallel.h"
#include "tercel/util/version.h"
#include "tercel/util/warning.h"

namespace tercel::python {

void register_legacy(nb::module_& m);
void register_return_types(nb::module_& m);
void register_profile(nb::module_& m);

namespace {

std::string g_package_name = "tercel";

/** ImportError if the extension is loaded already: its types would be registered twice. */
void refuse_second_load(const nb::module_& m) {
  const char* key = "tercel._C";  // stored in the interpreter, since a copy of the file has its own variables
  const nb::dict state = nb::borrow<nb::dict>(PyInterpreterState_GetDict(PyInterpreterState_Get()));
  if (state.contains(key))
    throw std::runtime_error(str_cat({"the extension of tercel is already loaded, as ", nb::str(state[key]).c_str(),
                                      ": a process can load it only once, under one name"}));
  state[key] = m.attr("__name__");
}

}  // namespace

const std::string& package_name() { return g_package_name; }

NB_MODULE(_C, m) {
  refuse_second_load(m);
  nb::set_leak_warnings(false);  // tensors intentionally outlive the end of the process
  register_errors(m);
  register_dtype(m);
  register_size(m);
  register_tensor(m);
  register_storage(m);
  register_device(m);
  register_op_type(m);
  register_autograd(m);
  register_autocast(m);
  register_legacy(m);
  register_dlpack(m);
  register_arrow(m);
  register_files(m);
  register_datasets(m);
  register_batches(m);
  register_stores(m);
  register_models(m);
  register_sessions(m);
  register_tuning(m);
  register_distributed(m);
  register_return_types(m);
  register_profile(m);
  set_warning_handler(warn);
  // Overloads are tried in this order.
  for (const Span<Entry>& table :
       {elementwise_ops(),    composite_ops(), derived_ops(), activation_ops(), factories_ops(), views_ops(),
        reduce_ops(),         sort_ops(),      copy_ops(),    data_ops(),       complex_ops(),   matmul_ops(),
        linear_algebra_ops(), fft_ops(),       index_ops(),   random_ops(),     nn_ops(),        loss_ops(),
        recurrent_ops(),      autograd_ops(),  optim_ops(),   sparse_ops()})
    add_ops(m, table);
  finish_ops(m);
  register_item();
  m.def("_package_name", [] { return g_package_name; });
  m.def("_set_package_name", [](const std::string& name) { g_package_name = name; });
  m.def("_version", [] { return std::string(version()); });
  m.def("_allocated_bytes", [] { return cpu_allocator_stats().allocated_bytes; });
  m.def("_sparse_check_invariants", sparse::check_invariants);
  m.def("_sparse_set_check_invariants", sparse::set_check_invariants);
  // For tests: no op makes a tensor of such a layout.
  m.def("_opaque_tensor", [](nb::handle sizes) {
    return nb::steal(wrap(Tensor(make_intrusive<TensorImpl>(kFloat32, kCpu, to_ints(sizes.ptr()), Layout::Opaque))));
  });
  m.def("_cpu_capability", [] {
    return cpu_isa() == CpuIsa::Avx512 ? "AVX512" : cpu_isa() == CpuIsa::Avx2 ? "AVX2" : "DEFAULT";
  });
  m.def(
      "get_num_threads", [] { return num_threads(); }, "The maximum number of threads of an operation.");
  m.def(
      "set_num_threads",
      [](int64_t n) {
        TERCEL_CHECK(n > 0, RuntimeError, "set_num_threads expects a positive integer");
        set_num_threads(n);
      },
      "Sets the maximum number of threads of an operation; RuntimeError unless positive.");
}

}  // namespace tercel::python
