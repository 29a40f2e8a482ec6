// Saved-tensor hooks, checkpoints, and anomaly mode.
#include <nanobind/stl/shared_ptr.h>

#include "python/src/autograd.h"
#include "python/src/tensor_object.h"
#include "tercel/autograd/anomaly.h"
#include "tercel/autograd/checkpoint.h"
#include "tercel/autograd/hooks.h"

namespace tercel::python {

namespace {

/** Scopes that Python has entered and not left yet, innermost last. */
thread_local std::vector<std::shared_ptr<void>> t_scopes;

}  // namespace

SavedTensorHooks python_saved_hooks(nb::handle pack, nb::handle unpack) {
  SavedTensorHooks hooks;
  hooks.pack = [pack = hold(pack)](const Tensor& t) -> std::any {
    const WithGil scope;
    const nb::object argument = own(wrap(t));
    return std::make_shared<const Held>(own(PyObject_CallOneArg(pack->get(), argument.ptr())));
  };
  hooks.unpack = [unpack = hold(unpack)](const std::any& packed) {
    const WithGil scope;
    PyObject* kept = std::any_cast<const std::shared_ptr<const Held>&>(packed)->get();
    const nb::object result = own(PyObject_CallOneArg(unpack->get(), kept));
    TERCEL_CHECK(is_tensor(result.ptr()), TypeError,
                 "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
                 Py_TYPE(result.ptr())->tp_name);
    return tensor_of(result.ptr());
  };
  return hooks;
}

namespace {

void push_saved_tensors_hooks(nb::handle pack, nb::handle unpack) {
  t_scopes.push_back(std::make_shared<SavedTensorHooksGuard>(python_saved_hooks(pack, unpack)));
}

void push_checkpoint(nb::handle recompute, bool preserve_rng_state, bool determinism_check) {
  const CheckpointOptions options{.preserve_rng_state = preserve_rng_state, .determinism_check = determinism_check};
  t_scopes.push_back(std::make_shared<CheckpointScope>(
      [recompute = hold(recompute)] {
        const WithGil scope;
        own(PyObject_CallNoArgs(recompute->get()));
      },
      options));
}

/** A scope and its state. */
template <class Scope>
struct DrawsScope {
  std::shared_ptr<Draws> draws;
  Scope scope{*draws};
};

/** Records random draws until the scope is left. */
std::shared_ptr<Draws> push_draws() {
  auto draws = std::make_shared<Draws>();
  t_scopes.push_back(std::shared_ptr<DrawsScope<RecordDraws>>(new DrawsScope<RecordDraws>{draws}));
  return draws;
}

void push_replay(const std::shared_ptr<Draws>& draws) {
  t_scopes.push_back(std::shared_ptr<DrawsScope<ReplayDraws>>(new DrawsScope<ReplayDraws>{draws}));
}

void pop_scope() {
  TERCEL_CHECK(!t_scopes.empty(), RuntimeError, "there are no saved-tensor hooks to remove");
  t_scopes.pop_back();
}

/** The stack of Python calls, as anomaly mode shows it. */
std::string trace() {
  const WithGil scope;
  const nb::object lines = nb::module_::import_("traceback").attr("format_stack")();
  return nb::str(nb::str("").attr("join")(lines)).c_str();
}

void warn(const std::string& text) {
  // It cannot be thrown here: another error is propagating.
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) PyErr_WriteUnraisable(nullptr);
}

void report(const Node& node) {
  const WithGil scope;
  const NodeExtras* extras = node.extras_or_null();
  if (!extras || extras->trace.empty())
    return warn(str_cat({"Error detected in ", node.name(),
                         ". No forward pass information available. Enable detect anomaly during forward pass for more "
                         "information."}));
  warn(str_cat(
      {"Error detected in ", node.name(), ". Traceback of forward call that caused the error:\n", extras->trace}));
  // For a node recorded by a backward pass: where the node that ran there was recorded, and so on.
  while (extras && extras->induced_by.defined()) {
    const Node& inducing = static_cast<const Node&>(*extras->induced_by);
    extras = inducing.extras_or_null();
    if (!extras || extras->trace.empty())
      return warn(str_cat({"\n\nPrevious calculation was induced by ", inducing.name(),
                           ". No forward pass information available. Enable detect anomaly during forward pass for "
                           "more information."}));
    warn(str_cat({"\n\nPrevious calculation was induced by ", inducing.name(),
                  ". Traceback of forward call that induced the previous calculation:\n", extras->trace}));
  }
}

}  // namespace

void register_saved(nb::module_& m) {
  m.def("_push_saved_tensors_hooks", push_saved_tensors_hooks);
  m.def("_push_checkpoint", push_checkpoint);
  nb::class_<Draws>(m, "_Draws", "Records the random numbers drawn from the default generator.");
  m.def("_push_draws", push_draws);
  m.def("_push_replay", push_replay);
  m.def("_pop_scope", pop_scope);
  m.def("_set_anomaly_enabled", [](bool enabled, bool check_nan) {
    if (enabled) set_anomaly_hooks({trace, report});
    set_detect_anomaly(enabled, check_nan);
  });
  m.def("is_anomaly_enabled", anomaly_enabled, "Whether anomaly mode is on.");
  m.def("is_anomaly_check_nan_enabled", anomaly_checks_nan, "Whether anomaly mode checks for NaN.");
}

}  // namespace tercel::python
