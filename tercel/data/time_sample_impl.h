// Times of rows, to find the last of them. Private.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tercel::data {

/** Every n-th of the times that are added, with the n that keeps their number below 2^22: 32 MiB. */
class TimeSample {
 public:
  void add(double time);
  /**
   * The earliest time such that at most `share` of the times lie at or after it; none if already the last time is more
   * frequent.
   */
  std::optional<double> start_of_last(double share);

 private:
  std::vector<double> times_;
  int64_t stride_ = 1, next_ = 0;
};

}  // namespace tercel::data
