#include "tercel/util/profile.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/process_mutex.h"

namespace tercel {

namespace detail {
std::atomic<uint32_t> g_profile{0};
}

namespace {

/** A range with its order among the begins and ends of its thread, since a coarse clock may not distinguish them. */
struct ThreadEvent {
  ProfileEvent event;
  uint64_t begin_tick;
  uint64_t end_tick;
};

struct ThreadEvents {
  std::vector<ThreadEvent> events;  ///< under `mutex()`
  size_t number = 0;

  std::mutex& mutex() const { return process_mutex(ProcessMutex::ProfileEvents, number % kProfileEventsMutexes); }
};

/** Guarded by ProcessMutex::Profiles. */
struct Profiles {
  std::vector<std::shared_ptr<ThreadEvents>> threads;
  std::unordered_set<std::string> names;
  std::atomic<int64_t> start{0};
  std::atomic<int64_t> max_events{0};
  uint32_t last = 0;
  uint32_t paused = 0;  ///< number of the profile that is paused, 0 if none
  size_t threads_made = 0;
};

/** Lives as long as the process: threads may end after everything else. */
Profiles& profiles() {
  static auto* all = new Profiles;
  return *all;
}

ThreadEvents& own_events() {
  thread_local const std::shared_ptr<ThreadEvents> own = [] {
    auto made = std::make_shared<ThreadEvents>();
    const std::lock_guard lock(process_mutex(ProcessMutex::Profiles));
    made->number = profiles().threads_made++;
    profiles().threads.push_back(made);
    return made;
  }();
  return *own;
}

const char* lasting_name(const char* name) {
  const std::lock_guard lock(process_mutex(ProcessMutex::Profiles));
  return profiles().names.emplace(name).first->c_str();
}

/** Name of the thread's innermost range if it is an op; null otherwise. */
thread_local const char* t_op = nullptr;

/** Counts the begins and ends of the thread's ranges. */
thread_local uint64_t t_tick = 0;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/** Sorts a thread's events by their begin and fills in the fields that follow from their nesting. */
void nest(std::vector<ThreadEvent>& events) {
  std::sort(events.begin(), events.end(),
            [](const ThreadEvent& a, const ThreadEvent& b) { return a.begin_tick < b.begin_tick; });
  std::vector<ThreadEvent*> open;
  for (ThreadEvent& e : events) {
    while (!open.empty() && open.back()->end_tick < e.begin_tick) open.pop_back();
    ProfileEvent& event = e.event;
    event.depth = static_cast<int32_t>(open.size());
    event.self = event.end - event.begin;
    if (!open.empty()) open.back()->event.self -= event.self;
    open.push_back(&e);
  }
}

const char* category(RangeKind kind) {
  switch (kind) {
    case RangeKind::Op: return "cpu_op";
    case RangeKind::Backward: return "backward";
    default: return "user_annotation";
  }
}

}  // namespace

void ProfileRange::begin(const char* name, RangeKind kind) noexcept {
  try {
    own_events();  // registered before the clock is read
    name_ = lasting_name(name);
    if (kind == RangeKind::Op && name_ == t_op) return;
    kind_ = kind;
    profile_ = detail::g_profile.load(std::memory_order_relaxed);
    if (profile_ == 0) return;
    outer_op_ = std::exchange(t_op, kind == RangeKind::Op ? name_ : nullptr);
    begin_tick_ = t_tick++;
    begin_ = now();
  } catch (...) {  // out of memory: the event is dropped
    return;
  }
}

void ProfileRange::end() noexcept {
  const int64_t at = now();
  t_op = outer_op_;
  const uint64_t end_tick = t_tick++;
  try {
    ThreadEvents& own = own_events();
    const std::lock_guard lock(own.mutex());
    const Profiles& all = profiles();
    if (detail::g_profile.load(std::memory_order_acquire) != profile_ ||
        static_cast<int64_t>(own.events.size()) >= all.max_events.load(std::memory_order_relaxed))
      return;
    const int64_t start = all.start.load(std::memory_order_relaxed);
    own.events.push_back({{name_, kind_, 0, 0, begin_ - start, at - start, 0}, begin_tick_, end_tick});
  } catch (...) {  // out of memory: the event is dropped
    return;
  }
}

void start_profile(int64_t max_events) {
  TERCEL_CHECK(max_events > 0, ValueError, "start_profile: expected at least one event, but got ", max_events);
  Profiles& all = profiles();
  const std::lock_guard lock(process_mutex(ProcessMutex::Profiles));
  TERCEL_CHECK(!profiling() && all.paused == 0, RuntimeError,
               "start_profile: a profile is already running; only one profile per process");
  all.max_events = max_events;
  all.start = now();
  all.last += 1;
  detail::g_profile.store(all.last, std::memory_order_release);
}

void pause_profile(bool pause) {
  Profiles& all = profiles();
  const std::lock_guard lock(process_mutex(ProcessMutex::Profiles));
  TERCEL_CHECK(profiling() || all.paused != 0, RuntimeError, "pause_profile: no profile is running");
  if (pause == (all.paused != 0)) return;
  all.paused = detail::g_profile.exchange(all.paused, std::memory_order_acq_rel);
}

std::vector<ProfileEvent> stop_profile() {
  Profiles& all = profiles();
  const std::lock_guard lock(process_mutex(ProcessMutex::Profiles));
  TERCEL_CHECK(profiling() || all.paused != 0, RuntimeError, "stop_profile: no profile is running");
  all.paused = 0;
  detail::g_profile.store(0, std::memory_order_release);
  std::vector<ProfileEvent> found;
  int32_t number = 0;
  for (const std::shared_ptr<ThreadEvents>& thread : all.threads) {
    std::vector<ThreadEvent> events;
    {
      const std::lock_guard own(thread->mutex());
      events.swap(thread->events);
    }
    if (events.empty()) continue;
    nest(events);
    for (ThreadEvent& e : events) {
      e.event.thread = number;
      found.push_back(e.event);
    }
    ++number;
  }
  std::erase_if(all.threads, [](const auto& thread) { return thread.use_count() == 1; });  // of ended threads
  return found;
}

std::string chrome_trace(Span<ProfileEvent> events) {
  const Json process = static_cast<int64_t>(getpid());
  Json list = Json::array();
  int32_t last = -1;
  for (const ProfileEvent& e : events) {
    if (e.thread != last)
      list.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", process},
                      {"tid", e.thread},
                      {"args", {{"name", "thread " + std::to_string(e.thread)}}}});
    last = e.thread;
    // Microseconds, as the format has it.
    list.push_back({{"ph", "X"},
                    {"cat", category(e.kind)},
                    {"name", e.name},
                    {"pid", process},
                    {"tid", e.thread},
                    {"ts", static_cast<double>(e.begin) / 1e3},
                    {"dur", static_cast<double>(e.end - e.begin) / 1e3}});
  }
  return dump_json_line({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(list)}});
}

std::vector<ProfileRow> profile_rows(Span<ProfileEvent> events) {
  std::map<std::pair<const char*, RangeKind>, ProfileRow> rows;  // equal names have one address
  for (const ProfileEvent& e : events) {
    ProfileRow& row = rows.try_emplace({e.name, e.kind}, ProfileRow{e.name, e.kind}).first->second;
    ++row.calls;
    row.total += e.end - e.begin;
    row.self += e.self;
  }
  std::vector<ProfileRow> sorted;
  for (const auto& [key, row] : rows) sorted.push_back(row);
  std::sort(sorted.begin(), sorted.end(), [](const ProfileRow& a, const ProfileRow& b) {
    return std::tuple(-a.self, std::string_view(a.name)) < std::tuple(-b.self, std::string_view(b.name));
  });
  return sorted;
}

std::string profile_table(Span<ProfileEvent> events, size_t most_rows) {
  const std::vector<ProfileRow> rows = profile_rows(events);
  int64_t all = 0;
  for (const ProfileRow& row : rows) all += row.self;
  char line[200];
  std::snprintf(line, sizeof(line), "%-40s %12s %7s %12s %10s\n", "name", "self", "", "total", "calls");
  std::string text = line;
  for (const ProfileRow& row : Span<ProfileRow>(rows).subspan(0, std::min(most_rows, rows.size()))) {
    const double share = all > 0 ? 100.0 * static_cast<double>(row.self) / static_cast<double>(all) : 0;
    const std::string name = printable(row.name), self = format_duration(static_cast<double>(row.self) / 1e9),
                      total = format_duration(static_cast<double>(row.total) / 1e9), calls = format_count(row.calls);
    std::snprintf(line, sizeof(line), "%-40.40s %12s %5.1f %% %12s %10s\n", name.c_str(), self.c_str(), share,
                  total.c_str(), calls.c_str());
    text += line;
  }
  return text;
}

}  // namespace tercel
