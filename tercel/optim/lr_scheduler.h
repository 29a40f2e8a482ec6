// Learning rate schedulers by epoch (or step), as in torch.optim.lr_scheduler.
//
// A scheduler saves the initial rate of each group, and sets the groups' rates when it is constructed and at every
// step(). The optimizer must outlive it.
#pragma once

#include <utility>
#include <vector>

#include "tercel/optim/group_optimizer.h"

namespace tercel::optim {

class TERCEL_API LRScheduler {
 public:
  virtual ~LRScheduler();
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  /** Advances by one epoch. */
  void step();
  int64_t last_epoch() const { return epoch_; }
  std::vector<double> get_last_lr() const;

 protected:
  explicit LRScheduler(GroupOptimizer& optimizer);
  /** The rate of an epoch, from 0, for a group whose initial rate is `base`. */
  virtual double rate(int64_t epoch, double base) const = 0;
  /** Constructors must call this last. */
  void start() { set_rates(); }

 private:
  void set_rates();

  GroupOptimizer& optimizer_;
  std::vector<double> base_;
  int64_t epoch_ = 0;
};

/** base * factor(epoch), for any function of an int64_t. */
template <class F>
class LambdaLR final : public LRScheduler {
 public:
  LambdaLR(GroupOptimizer& optimizer, F factor) : LRScheduler(optimizer), factor_(std::move(factor)) { start(); }

 private:
  double rate(int64_t epoch, double base) const override { return base * factor_(epoch); }
  F factor_;
};
/** base * gamma^(epoch / step_size). */
class TERCEL_API StepLR final : public LRScheduler {
 public:
  StepLR(GroupOptimizer& optimizer, int64_t step_size, double gamma = 0.1);

 private:
  double rate(int64_t epoch, double base) const override;
  int64_t step_size_;
  double gamma_;
};
/** base * gamma^(number of milestones passed). */
class TERCEL_API MultiStepLR final : public LRScheduler {
 public:
  MultiStepLR(GroupOptimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);

 private:
  double rate(int64_t epoch, double base) const override;
  std::vector<int64_t> milestones_;
  double gamma_;
};
/** base * gamma^epoch. */
class TERCEL_API ExponentialLR final : public LRScheduler {
 public:
  ExponentialLR(GroupOptimizer& optimizer, double gamma);

 private:
  double rate(int64_t epoch, double base) const override;
  double gamma_;
};
/** eta_min + (base - eta_min) (1 + cos(pi epoch / t_max)) / 2. */
class TERCEL_API CosineAnnealingLR final : public LRScheduler {
 public:
  CosineAnnealingLR(GroupOptimizer& optimizer, int64_t t_max, double eta_min = 0);

 private:
  double rate(int64_t epoch, double base) const override;
  int64_t t_max_;
  double eta_min_;
};
/** base times a factor that changes linearly from start_factor to end_factor in total_iters epochs. */
class TERCEL_API LinearLR final : public LRScheduler {
 public:
  LinearLR(GroupOptimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1, int64_t total_iters = 5);

 private:
  double rate(int64_t epoch, double base) const override;
  double start_, end_;
  int64_t total_;
};
/** Smith's 1cycle policy: cosine from max_lr / div_factor to max_lr, then to max_lr / div_factor / final_div_factor. */
class TERCEL_API OneCycleLR final : public LRScheduler {
 public:
  OneCycleLR(GroupOptimizer& optimizer, double max_lr, int64_t total_steps, double pct_start = 0.3,
             double div_factor = 25, double final_div_factor = 1e4);

 private:
  double rate(int64_t epoch, double base) const override;
  double max_, start_, end_;
  int64_t total_;
  double peak_;  // step with the rate max_lr
};

/** Multiplies the rates by `factor` if a metric has not decreased (by the fraction `threshold`) for `patience` steps.
 */
class TERCEL_API ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(GroupOptimizer& optimizer, double factor = 0.1, int64_t patience = 10,
                             double threshold = 1e-4, int64_t cooldown = 0, double min_lr = 0);
  void step(double metric);

 private:
  GroupOptimizer& optimizer_;
  double factor_, threshold_, min_lr_, best_;
  int64_t patience_, cooldown_, bad_ = 0, cooling_ = 0;
};

}  // namespace tercel::optim
