// Any bytes as the state of a metric are merged or a DataError that changes nothing. The first byte chooses the metric;
// if it is odd, the rest gets a correct checksum, which mutation would not find.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tercel/recsys/metrics/metric.h"
#include "tercel/util/checksum.h"
#include "tercel/util/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const tercel::Span<std::string_view> names = tercel::recsys::metric_names();
  std::string name(names[data[0] / 2 % names.size()]);
  if (name.ends_with("@K")) name.back() = '3';
  if (name.ends_with("@P")) name.replace(name.size() - 1, 1, "0.8");
  const auto made = tercel::recsys::make_metric(name, "fuzz");
  tercel::recsys::Metric& metric = *made;
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 2 == 1) {
    const uint64_t sum = tercel::checksum(bytes.data(), bytes.size());
    bytes.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  }
  const float logits[] = {-1, 2, 1}, labels[] = {0, 0, 1};
  const int64_t groups[] = {4, 4, 5};
  metric.add({logits, labels, {}, groups});
  const std::string before = metric.state();
  try {
    metric.merge(bytes);
  } catch (const tercel::DataError&) {
    if (metric.state() != before) std::abort();
    return 0;
  }
  const double value = metric.value();
  if (std::bit_cast<uint64_t>(metric.value()) != std::bit_cast<uint64_t>(value)) std::abort();
  return 0;
}
