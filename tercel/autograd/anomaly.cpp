#include "tercel/autograd/anomaly.h"
#include "tercel/core/sparse_data.h"

#include <cmath>

namespace tercel {

std::atomic<bool> detail::g_anomaly_enabled{false};

namespace {

std::atomic<bool> g_check_nan{true};

AnomalyHooks& anomaly_hooks() {
  // Never destroyed: a thread may still record while the program ends.
  static AnomalyHooks& hooks = *new AnomalyHooks;
  return hooks;
}

bool has_nan(const Tensor& t) {
  if (t.layout() != Layout::Strided) return t.impl().sparse() && has_nan(t.impl().sparse()->values);
  if (t.numel() == 0) return false;
  return visit_differentiable_types("anomaly mode", t.dtype(), [&]<class T> {
    const Tensor dense = t.is_contiguous() ? t.detach() : dense_copy(t);
    const T* first = dense.data<T>();
    for (int64_t i = 0; i < dense.numel(); ++i)
      if constexpr (is_complex_number<T>) {
        if (std::isnan(first[i].re) || std::isnan(first[i].im)) return true;
      } else if (std::isnan(static_cast<double>(first[i]))) {
        return true;
      }
    return false;
  });
}

}  // namespace

void set_anomaly_hooks(AnomalyHooks hooks) { anomaly_hooks() = std::move(hooks); }
bool anomaly_checks_nan() { return g_check_nan.load(std::memory_order_relaxed); }
void set_detect_anomaly(bool enabled, bool check_nan) {
  detail::g_anomaly_enabled = enabled;
  g_check_nan = check_nan;
}

void detail::remember_trace(Node& node) {
  if (Node* running = running_node()) node.extras().induced_by = intrusive_ptr<Node>::reclaim_copy(running);
  if (anomaly_hooks().trace) node.extras().trace = anomaly_hooks().trace();
}

void detail::report_anomaly(const Node& node) {
  if (anomaly_hooks().report) anomaly_hooks().report(node);
}

void detail::check_nan(const Node& node, Span<Gradient> gradients) {
  for (size_t i = 0; i < gradients.size(); ++i)
    TERCEL_CHECK(!gradients[i].defined() || !has_nan(gradients[i].values), RuntimeError, "Function '", node.name(),
                 "' returned nan values in its ", i, "th output.");
}

}  // namespace tercel
