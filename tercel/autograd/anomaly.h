// Finding the op whose backward went wrong.
#pragma once

#include <atomic>
#include <string>

#include "tercel/autograd/node.h"
#include "tercel/util/callable.h"

namespace tercel {

/** What anomaly mode asks of its surroundings, for a language that can name the line that recorded an op. */
struct AnomalyHooks {
  /** Where the program is; kept with every node that is recorded. */
  Callable<std::string()> trace;
  /** Called before an error leaves backward, with the node that failed (its trace is in extras()). */
  Callable<void(const Node& node)> report;
};

/** Sets what trace and report are, for all threads. Not while another thread records. */
TERCEL_API void set_anomaly_hooks(AnomalyHooks hooks);

namespace detail {
TERCEL_API extern std::atomic<bool> g_anomaly_enabled;
}

/** Whether anomaly mode is on, and whether it looks for NaN; both for all threads. */
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
/** Keeps the trace with a node that is being recorded. */
void remember_trace(Node& node);
/** Tells whoever wants to know that the node failed. */
void report_anomaly(const Node& node);
/** Throws if a gradient has a NaN. */
void check_nan(const Node& node, Span<Gradient> gradients);
}  // namespace detail

}  // namespace tercel
