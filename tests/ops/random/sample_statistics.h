// Statistics for checks of samples.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace tercel::test {

using Values = std::vector<double>;
constexpr int64_t kMany = 200'000;

inline double mean_of(const Values& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}
inline double variance_of(const Values& v) {
  const double mean = mean_of(v);
  double sum = 0;
  for (const double x : v) sum += (x - mean) * (x - mean);
  return sum / static_cast<double>(v.size());
}
/** Allowed error of the mean of kMany numbers with this variance: five standard deviations. */
inline double tolerance(double variance) { return 5 * std::sqrt(variance / static_cast<double>(kMany)); }

}  // namespace tercel::test
