#include "tercel/recsys/metrics/accuracy.h"
#include "tercel/recsys/metrics/auc.h"
#include "tercel/recsys/metrics/calibration.h"
#include "tercel/recsys/metrics/log_loss.h"
#include "tercel/recsys/metrics/metric.h"
#include "tercel/recsys/metrics/state_impl.h"
#include "tercel/util/checksum.h"
#include "tercel/util/cursor.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::recsys {

Metric::~Metric() = default;

void Metric::add(Span<float> logits, Span<float> labels) {
  TERCEL_CHECK(logits.size() == labels.size(), ValueError, name(), ": ", logits.size(), " logits for ", labels.size(),
               " labels");
  add_rows(logits, labels);
}

std::string Metric::state() const {
  std::string bytes;
  put(bytes, static_cast<uint64_t>(name().size()));
  bytes += name();
  write_state(bytes);
  put(bytes, checksum(bytes.data(), bytes.size()));
  return bytes;
}

void Metric::merge(std::string_view state) {
  const std::string place = "state of metric '" + std::string(name()) + "'";
  ByteCursor whole(state, {place});
  const size_t size = state.size() < sizeof(uint64_t) ? 0 : state.size() - sizeof(uint64_t);
  ByteCursor bytes = whole.sub(size, "content");
  if (const auto sum = whole.read<uint64_t>("checksum"); sum != checksum(state.data(), size))
    whole.fail_at(static_cast<int64_t>(size), "the checksum " + checksum_to_hex(checksum(state.data(), size)),
                  checksum_to_hex(sum));
  const std::string_view found =
      bytes.text(bytes.check_count(bytes.read<uint64_t>("length of the name"), 1, "name"), "name");
  if (found != name())
    bytes.fail_at(sizeof(uint64_t), str_cat({"the state of '", name(), "'"}), str_cat({"'", printable(found), "'"}));
  merge_state(bytes);
}

std::vector<std::unique_ptr<Metric>> make_metrics() {
  std::vector<std::unique_ptr<Metric>> all;
  all.push_back(std::make_unique<Auc>());
  all.push_back(std::make_unique<LogLoss>());
  all.push_back(std::make_unique<Accuracy>());
  all.push_back(std::make_unique<Calibration>());
  return all;
}

}  // namespace tercel::recsys
