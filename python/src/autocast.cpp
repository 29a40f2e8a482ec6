#include "python/src/autocast.h"

#include <nanobind/stl/string.h>

#include <map>
#include <set>
#include <unordered_map>

#include "python/src/convert.h"
#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/linalg/products.h"

namespace tercel::python {

constinit thread_local bool t_autocast [[gnu::tls_model("initial-exec")]] = false;

namespace {

const std::map<std::string_view, AutocastPolicy>& policies() {
  static const std::map<std::string_view, AutocastPolicy> table = {
#include "python/src/autocast_ops.inc"
  };
  return table;
}

std::set<std::string_view>& asked_policies() {
  static std::set<std::string_view> names;
  return names;
}

/** The state that a context sets, except t_autocast. */
struct State {
  bool cuda = false;  ///< stored only: there are no tensors on a GPU
  ScalarType dtypes[kNumDeviceTypes] = {kBFloat16, kFloat16};
  bool cache = true;
  int64_t nesting = 0;

  ScalarType& dtype(DeviceType device) { return dtypes[static_cast<size_t>(device)]; }
};
thread_local State t_state;

struct Cast {
  Tensor leaf, result;
  uint32_t version;
};
using Casts = std::unordered_map<const TensorImpl*, Cast>;
// Not freed when a thread ends inside a context, since it must not touch Python objects then.
constinit thread_local Casts* t_casts = nullptr;

void clear_casts() {
  // Destroying tensors runs code, which must not find them here any more.
  delete std::exchange(t_casts, nullptr);
}

bool is_16_bit(ScalarType type) { return type == kBFloat16 || type == kFloat16; }
bool takes_part(const Tensor& x) {
  return x.defined() && x.device().is_cpu() && x.layout() == Layout::Strided &&
         (x.dtype() == kFloat32 || is_16_bit(x.dtype()));
}

bool is_kept(const Tensor& x, ScalarType dtype) {
  return t_state.cache && t_state.nesting > 0 && x.dtype() == kFloat32 && is_16_bit(dtype) && x.requires_grad() &&
         x.is_leaf() && !view_base(x).defined() && detail::t_recorded == TensorImpl::kGradient;
}

Tensor cast_to(const Tensor& x, ScalarType dtype) {
  if (!takes_part(x) || x.dtype() == dtype) return x;
  const auto cast = [&] {
    const WithoutGil scope(x.numel() >= kGilGrain);
    return to(x, dtype);
  };
  if (!is_kept(x, dtype)) return cast();
  if (t_casts) {
    const auto found = t_casts->find(&x.impl());
    if (found != t_casts->end() && found->second.version == x.version() && found->second.result.dtype() == dtype)
      return found->second.result;
  }
  const uint32_t version = x.version();
  Cast fresh{x, cast(), version};
  const Tensor result = fresh.result;
  if (!t_casts) t_casts = new Casts;
  std::swap((*t_casts)[&x.impl()], fresh);
  return result;
}

bool may_hold_tensors(Kind kind) {
  return kind == Kind::Tensor || kind == Kind::TensorOrScalar || kind == Kind::TensorList;
}

/** Calls f(tensor) for the tensors among the arguments. */
template <class F>
void for_each_tensor(const Signature& signature, const Arguments& arguments, F&& f) {
  for (size_t i = 0; i < signature.parameters().size(); ++i) {
    PyObject* o = arguments.values[i];
    if (!may_hold_tensors(signature.parameters()[i].kind)) continue;
    if (is_tensor(o)) {
      f(tensor_of(o));
    } else if (PyTuple_Check(o) || PyList_Check(o)) {
      for (const Tensor& x : to_tensors(o)) f(x);
    }
  }
}

/** The dtype that operands are cast to; Undefined if they are not cast. */
ScalarType target(AutocastPolicy policy, const Signature& signature, const Arguments& arguments) {
  if (policy == AutocastPolicy::Lower) return t_state.dtype(DeviceType::Cpu);
  if (policy == AutocastPolicy::Float32) return kFloat32;
  ScalarType type = ScalarType::Undefined;
  bool first = true;
  for_each_tensor(signature, arguments, [&](const Tensor& x) {
    const bool counts = takes_part(x) && (first || policy == AutocastPolicy::Widest);
    first = false;
    if (!counts || type == x.dtype()) return;
    type = type == ScalarType::Undefined ? x.dtype() : kFloat32;
  });
  return type;
}

DeviceType device_type(const std::string& name) { return parse_device(name).type; }
bool is_enabled(DeviceType device) { return device == DeviceType::Cpu ? t_autocast : t_state.cuda; }
void set_enabled(DeviceType device, bool enabled) { (device == DeviceType::Cpu ? t_autocast : t_state.cuda) = enabled; }

int64_t decrement_nesting() {
  const int64_t nesting = --t_state.nesting;
  if (nesting == 0) clear_casts();
  return nesting;
}

void set_state(DeviceType device, bool enabled, ScalarType dtype, bool cache) {
  set_enabled(device, enabled);
  t_state.dtype(device) = dtype;
  t_state.cache = cache;
}

/** Returns what leave() takes to restore the state before. */
nb::tuple enter(const std::string& device, bool enabled, nb::handle dtype, bool cache) {
  const DeviceType type = device_type(device);
  const ScalarType lower = to_dtype(dtype.ptr());
  nb::tuple before =
      nb::make_tuple(device, is_enabled(type), nb::steal(from_dtype(t_state.dtype(type))), t_state.cache);
  set_state(type, enabled, lower, cache);
  ++t_state.nesting;
  return before;
}

void leave(const std::string& device, bool enabled, nb::handle dtype, bool cache) {
  set_state(device_type(device), enabled, to_dtype(dtype.ptr()), cache);
  decrement_nesting();
}

}  // namespace

AutocastPolicy autocast_policy(std::string_view name) {
  const auto& table = policies();
  auto found = table.find(name);
  if (found == table.end() && name.starts_with('_')) found = table.find(name.substr(1));
  if (found == table.end()) return AutocastPolicy::None;
  asked_policies().insert(found->first);
  return found->second;
}

void check_autocast_policies() {
  for (const auto& [name, policy] : policies())
    TERCEL_CHECK(asked_policies().count(name) == 1, RuntimeError, "autocast: the header of ", name,
                 " has a column for it, but there is no op of that name in Python");
}

Tensor autocast_lower(const Tensor& x) { return cast_to(x, t_state.dtype(DeviceType::Cpu)); }

Tensor autocast_float32(const Tensor& x) {
  return t_autocast && takes_part(x) && x.dtype() != kFloat32 ? to(x, kFloat32) : x;
}

Tensor autocast_result(const Tensor& x, const Tensor& out) {
  return t_autocast && !out.defined() ? autocast_lower(x) : x;
}

Tensor autocast_matrix_power(const Tensor& a, int64_t n, const Tensor& out) {
  const Tensor power = matrix_power(n < 0 && !out.defined() ? autocast_float32(a) : a, n);
  return n > 1 || n < -1 ? autocast_result(power, out) : power;
}

AutocastArguments::AutocastArguments(AutocastPolicy policy, const Signature& signature, Arguments& arguments) {
  const ScalarType dtype = target(policy, signature, arguments);
  if (dtype == ScalarType::Undefined) return;
  for (size_t i = 0; i < signature.parameters().size(); ++i) {
    PyObject*& o = arguments.values[i];
    if (!may_hold_tensors(signature.parameters()[i].kind)) continue;
    if (is_tensor(o)) {
      const Tensor x = tensor_of(o);
      if (!takes_part(x) || x.dtype() == dtype) continue;
      held_.push_back(own(wrap(cast_to(x, dtype))));
      o = held_.back().ptr();
    } else if (PyTuple_Check(o) || PyList_Check(o)) {
      std::vector<Tensor> tensors = to_tensors(o);
      for (Tensor& x : tensors) x = cast_to(x, dtype);
      held_.push_back(own(wrap_tuple(tensors)));
      o = held_.back().ptr();
    }
  }
}

void register_autocast(nb::module_& m) {
  m.def("_enter_autocast", enter);
  m.def("_exit_autocast", leave);
  m.def("_is_autocast_enabled", [](const std::string& device) { return is_enabled(device_type(device)); });
  m.def("_set_autocast_enabled",
        [](const std::string& device, bool enabled) { set_enabled(device_type(device), enabled); });
  m.def("_get_autocast_dtype",
        [](const std::string& device) { return nb::steal(from_dtype(t_state.dtype(device_type(device)))); });
  m.def("_set_autocast_dtype", [](const std::string& device, nb::handle dtype) {
    t_state.dtype(device_type(device)) = to_dtype(dtype.ptr());
  });
  m.def("_is_autocast_cache_enabled", [] { return t_state.cache; });
  m.def("_set_autocast_cache_enabled", [](bool enabled) { t_state.cache = enabled; });
  m.def("_clear_autocast_cache", clear_casts);
  m.def("_autocast_increment_nesting", [] { return ++t_state.nesting; });
  m.def("_autocast_decrement_nesting", decrement_nesting);
}

}  // namespace tercel::python
