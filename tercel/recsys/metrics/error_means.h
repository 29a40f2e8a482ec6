// Means of the distance between prediction and label: for labels that are amounts or probabilities.
#pragma once

#include "tercel/recsys/metrics/metric.h"

namespace tercel::recsys {

/** The mean of an error of each row, of which a metric may be a function. NaN without rows. */
class TERCEL_API ErrorMean : public Metric {
 public:
  Better better() const final { return Better::Lower; }
  double value() final;
  void reset() final;

 private:
  /** The error of a row with this prediction, a probability, and label. */
  virtual double error(double prediction, double label) const = 0;
  /** The metric, of the mean error. */
  virtual double of_mean(double mean) const { return mean; }
  void add_rows(const MetricRows& rows) final;
  void write_state(std::string& bytes) const final;
  void merge_state(ByteCursor& bytes) final;

  double sum_ = 0, weights_ = 0;
};

/** Mean absolute error. */
class TERCEL_API MeanAbsoluteError final : public ErrorMean {
 public:
  std::string_view name() const override { return "mae"; }

 private:
  double error(double prediction, double label) const override;
};

/** Square root of the mean squared error. */
class TERCEL_API RootMeanSquaredError final : public ErrorMean {
 public:
  std::string_view name() const override { return "rmse"; }

 private:
  double error(double prediction, double label) const override;
  double of_mean(double mean) const override;
};

/**
 * Symmetric mean absolute percentage error as HugeCTR defines it: the mean of |p - y| / ((p + y) / 2), from 0 to 2. A
 * row whose prediction and label are both 0 has no error.
 */
class TERCEL_API Smape final : public ErrorMean {
 public:
  std::string_view name() const override { return "smape"; }

 private:
  double error(double prediction, double label) const override;
};

}  // namespace tercel::recsys
