// Profiler: nested, named ranges with their begin and end, on all threads.
//
// Note [Profiles]
// A ProfileRange is a scope with a name. Without a profile it costs a load and a branch; ops from Python, nodes of the
// backward graph and the trainer's parts have one each. While a profile runs, a range adds an event to a list of its
// thread when it ends, under a lock that only stop_profile() contends for. Ranges that begin before the profile or end
// after it are left out. Names are copied once and never freed, so the caller's may have any lifetime.
//
// An op opens its range where its name is known and its work begins: calls from Python in the binding, elementwise ops
// where they build their iterator, families such as reductions and products where the computation starts. An op
// directly inside one of the same name is the same op and opens no range.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tercel/util/export.h"
#include "tercel/util/span.h"

namespace tercel {

enum class RangeKind : uint8_t { Op, Backward, Annotation };

/** A completed range. Times are nanoseconds since the profile began. */
struct ProfileEvent {
  const char* name;  ///< lives as long as the process
  RangeKind kind;
  int32_t thread;  ///< 0, 1, ... of the threads with events, in the order of their first range in the process
  int32_t depth;   ///< how many ranges of the thread are around it
  int64_t begin;
  int64_t end;
  int64_t self;  ///< without the ranges inside
};

namespace detail {
/** Number of the running profile; 0 if none. */
TERCEL_API extern std::atomic<uint32_t> g_profile;
}  // namespace detail

/** Whether a profile runs. */
inline bool profiling() { return detail::g_profile.load(std::memory_order_relaxed) != 0; }

/** Begins a profile that holds the first `max_events` ranges of each thread. RuntimeError if one runs already. */
TERCEL_API void start_profile(int64_t max_events = INT64_MAX);

/** Ends it; returns the events by thread and begin, outer before inner. RuntimeError if none runs. */
TERCEL_API std::vector<ProfileEvent> stop_profile();

/** Stops and continues recording of the running profile; ranges that begin or end in between are left out. RuntimeError
 * if none runs. */
TERCEL_API void pause_profile(bool pause);

/** A named scope. */
class ProfileRange {
 public:
  ProfileRange(const char* name, RangeKind kind) {
    if (profiling()) [[unlikely]]
      begin(name, kind);
  }
  ~ProfileRange() {
    if (profile_ != 0) [[unlikely]]
      end();
  }
  ProfileRange(const ProfileRange&) = delete;
  ProfileRange& operator=(const ProfileRange&) = delete;

 private:
  TERCEL_API void begin(const char* name, RangeKind kind) noexcept;
  TERCEL_API void end() noexcept;

  uint32_t profile_ = 0;
  RangeKind kind_;
  const char* name_;
  const char* outer_op_;
  uint64_t begin_tick_;
  int64_t begin_;
};

/** The events in the Chrome trace format, which chrome://tracing and ui.perfetto.dev show. */
TERCEL_API std::string chrome_trace(Span<ProfileEvent> events);

/** All events of one name and kind. */
struct ProfileRow {
  const char* name;
  RangeKind kind;
  int64_t calls = 0;
  int64_t total = 0;  ///< nanoseconds
  int64_t self = 0;
};

/** A row for each name and kind, sorted by descending self time. */
TERCEL_API std::vector<ProfileRow> profile_rows(Span<ProfileEvent> events);

/** The first rows as text: name, self time and its share, total time, calls. */
TERCEL_API std::string profile_table(Span<ProfileEvent> events, size_t most_rows);

}  // namespace tercel
