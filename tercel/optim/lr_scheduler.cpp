#include "tercel/optim/lr_scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tercel::optim {

namespace {

constexpr double kPi = 3.14159265358979323846;

double cosine_between(double from, double to, double share) {
  return to + (from - to) / 2 * (1 + std::cos(kPi * share));
}

}  // namespace

LRScheduler::~LRScheduler() = default;

LRScheduler::LRScheduler(GroupOptimizer& optimizer) : optimizer_(optimizer) {
  for (const ParameterGroup& group : optimizer.param_groups()) base_.push_back(group.options.lr);
}

void LRScheduler::set_rates() {
  for (size_t i = 0; i < base_.size(); ++i) optimizer_.param_groups()[i].options.lr = rate(epoch_, base_[i]);
}

void LRScheduler::step() {
  ++epoch_;
  set_rates();
}

std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> out;
  for (const ParameterGroup& group : optimizer_.param_groups()) out.push_back(group.options.lr);
  return out;
}

StepLR::StepLR(GroupOptimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  TERCEL_CHECK(step_size > 0, ValueError, "StepLR: expected a positive step_size but got ", step_size);
  start();
}
double StepLR::rate(int64_t epoch, double base) const {
  const int64_t times = epoch / step_size_;
  return base * std::pow(gamma_, static_cast<double>(times));
}

MultiStepLR::MultiStepLR(GroupOptimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  start();
}
double MultiStepLR::rate(int64_t epoch, double base) const {
  const auto past = std::count_if(milestones_.begin(), milestones_.end(), [&](int64_t m) { return m <= epoch; });
  return base * std::pow(gamma_, static_cast<double>(past));
}

ExponentialLR::ExponentialLR(GroupOptimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) {
  start();
}
double ExponentialLR::rate(int64_t epoch, double base) const {
  return base * std::pow(gamma_, static_cast<double>(epoch));
}

CosineAnnealingLR::CosineAnnealingLR(GroupOptimizer& optimizer, int64_t t_max, double eta_min)
    : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  TERCEL_CHECK(t_max > 0, ValueError, "CosineAnnealingLR: expected a positive T_max but got ", t_max);
  start();
}
double CosineAnnealingLR::rate(int64_t epoch, double base) const {
  return cosine_between(base, eta_min_, static_cast<double>(epoch) / static_cast<double>(t_max_));
}

LinearLR::LinearLR(GroupOptimizer& optimizer, double start_factor, double end_factor, int64_t total_iters)
    : LRScheduler(optimizer), start_(start_factor), end_(end_factor), total_(total_iters) {
  TERCEL_CHECK(start_factor > 0 && start_factor <= 1, ValueError,
               "Starting multiplicative factor expected to be greater than 0 and less or equal to 1.");
  TERCEL_CHECK(end_factor >= 0 && end_factor <= 1, ValueError,
               "Ending multiplicative factor expected to be between 0 and 1.");
  TERCEL_CHECK(total_iters > 0, ValueError, "LinearLR: expected a positive total_iters but got ", total_iters);
  start();
}
double LinearLR::rate(int64_t epoch, double base) const {
  const double share = static_cast<double>(std::min(epoch, total_)) / static_cast<double>(total_);
  return base * (start_ + (end_ - start_) * share);
}

OneCycleLR::OneCycleLR(GroupOptimizer& optimizer, double max_lr, int64_t total_steps, double pct_start,
                       double div_factor, double final_div_factor)
    : LRScheduler(optimizer),
      max_(max_lr),
      start_(max_lr / div_factor),
      end_(start_ / final_div_factor),
      total_(total_steps),
      peak_(pct_start * static_cast<double>(total_steps) - 1) {
  TERCEL_CHECK(total_steps > 0, ValueError, "Expected positive integer total_steps, but got ", total_steps);
  TERCEL_CHECK(pct_start >= 0 && pct_start <= 1, ValueError, "Expected float between 0 and 1 pct_start, but got ",
               pct_start);
  start();
}
double OneCycleLR::rate(int64_t epoch, double /*base*/) const {
  TERCEL_CHECK(epoch < total_, ValueError, "Tried to step ", epoch, " times. The total number of steps is ", total_);
  const auto at = static_cast<double>(epoch), last = static_cast<double>(total_ - 1);
  if (at <= peak_) return cosine_between(start_, max_, peak_ > 0 ? at / peak_ : 1);
  return cosine_between(max_, end_, (at - peak_) / (last - peak_));
}

ReduceLROnPlateau::ReduceLROnPlateau(GroupOptimizer& optimizer, double factor, int64_t patience, double threshold,
                                     int64_t cooldown, double min_lr)
    : optimizer_(optimizer),
      factor_(factor),
      threshold_(threshold),
      min_lr_(min_lr),
      best_(std::numeric_limits<double>::infinity()),
      patience_(patience),
      cooldown_(cooldown) {
  TERCEL_CHECK(factor < 1, ValueError, "Factor should be < 1.0.");
}

void ReduceLROnPlateau::step(double metric) {
  if (metric < best_ * (1 - threshold_) || (std::isinf(best_) && metric < best_)) {
    best_ = metric;
    bad_ = 0;
  } else {
    ++bad_;
  }
  if (cooling_ > 0) {
    --cooling_;
    bad_ = 0;
  }
  if (bad_ <= patience_) return;
  for (ParameterGroup& group : optimizer_.param_groups())
    group.options.lr = std::max(group.options.lr * factor_, min_lr_);
  cooling_ = cooldown_;
  bad_ = 0;
}

}  // namespace tercel::optim
