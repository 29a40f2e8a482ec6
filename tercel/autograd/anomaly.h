// Anomaly mode: finds the op whose backward fails or gives NaN.
#pragma once

#include <atomic>
#include <string>

#include "tercel/autograd/node.h"
#include "tercel/util/callable.h"

namespace tercel {

/** Callbacks of anomaly mode, for a language binding that knows the source line that recorded an op. */
struct AnomalyHooks {
  /** Returns the current source position; stored in every recorded node. */
  Callable<std::string()> trace;
  /** Called with the failed node (its trace is in extras()) before backward throws. */
  Callable<void(const Node& node)> report;
};

/** Sets the callbacks for all threads. Must not be called while another thread records. */
TERCEL_API void set_anomaly_hooks(AnomalyHooks hooks);

namespace detail {
TERCEL_API extern std::atomic<bool> g_anomaly_enabled;
}

/** Whether anomaly mode is on, and whether it checks for NaN; both for all threads. */
inline bool anomaly_enabled() { return detail::g_anomaly_enabled.load(std::memory_order_relaxed); }
TERCEL_API bool anomaly_checks_nan();
TERCEL_API void set_detect_anomaly(bool enabled, bool check_nan = true);

/**
 * In the scope, nodes remember where they were recorded, and backward throws RuntimeError "Function 'MulBackward0'
 * returned nan values in its 0th output." for the first node that makes a NaN.
 */
class DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true)
      : enabled_before_(anomaly_enabled()), check_before_(anomaly_checks_nan()) {
    set_detect_anomaly(true, check_nan);
  }
  ~DetectAnomalyGuard() { set_detect_anomaly(enabled_before_, check_before_); }
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;
  DetectAnomalyGuard& operator=(const DetectAnomalyGuard&) = delete;

 private:
  bool enabled_before_, check_before_;
};

namespace detail {
/** Stores the trace in a node that is being recorded. */
void remember_trace(Node& node);
/** Calls the report callback for a failed node. */
void report_anomaly(const Node& node);
/** Throws if a gradient has a NaN. */
void check_nan(const Node& node, Span<Gradient> gradients);
}  // namespace detail

}  // namespace tercel
