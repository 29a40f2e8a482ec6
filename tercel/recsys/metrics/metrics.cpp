#include "tercel/recsys/metrics/accuracy.h"
#include "tercel/recsys/metrics/auc.h"
#include "tercel/recsys/metrics/calibration.h"
#include "tercel/recsys/metrics/log_loss.h"
#include "tercel/recsys/metrics/metric.h"
#include "tercel/util/error.h"

namespace tercel::recsys {

Metric::~Metric() = default;

void Metric::add(Span<float> logits, Span<float> labels) {
  TERCEL_CHECK(logits.size() == labels.size(), ValueError, name(), ": ", logits.size(), " logits for ", labels.size(),
               " labels");
  add_rows(logits, labels);
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
