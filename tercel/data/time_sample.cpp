#include <algorithm>

#include "tercel/data/time_sample_impl.h"

namespace tercel::data {

namespace {

constexpr size_t kMostTimes = size_t{1} << 22;

}  // namespace

void TimeSample::add(double time) {
  if (next_++ % stride_ != 0) return;
  if (times_.size() == kMostTimes) {
    for (size_t i = 0; i < times_.size() / 2; ++i) times_[i] = times_[2 * i];
    times_.resize(times_.size() / 2);
    stride_ *= 2;
    if ((next_ - 1) % stride_ != 0) return;
  }
  times_.push_back(time);
}

std::optional<double> TimeSample::start_of_last(double share) {
  std::sort(times_.begin(), times_.end());
  const auto most = static_cast<size_t>(share * static_cast<double>(times_.size()));
  if (most == 0) return std::nullopt;
  const size_t first = times_.size() - most;
  // Rows of one time stay together.
  auto start = times_.begin() + static_cast<int64_t>(first);
  if (*(start - 1) == *start) start = std::upper_bound(start, times_.end(), *start);
  if (start == times_.end()) return std::nullopt;
  return *start;
}

}  // namespace tercel::data
