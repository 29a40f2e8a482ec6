// Measures the time of a call.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace bench {

inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/** Makes the compiler compute an unused value. */
template <class T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

struct Times {
  double median, least;
};

/** Seconds per call for each of several stretches of calls, of about `stretch` seconds and at least one call. */
template <class F>
Times measure(F&& call, double stretch, int stretches) {
  int64_t calls = 1;
  for (;;) {
    const double start = seconds();
    for (int64_t i = 0; i < calls; ++i) call();
    const double time = seconds() - start;
    if (time > stretch / 2) {
      calls = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(calls) * stretch / time));
      break;
    }
    calls *= 4;
  }
  std::vector<double> times;
  for (int s = 0; s < stretches; ++s) {
    const double start = seconds();
    for (int64_t i = 0; i < calls; ++i) call();
    times.push_back((seconds() - start) / static_cast<double>(calls));
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[0]};
}

}  // namespace bench
