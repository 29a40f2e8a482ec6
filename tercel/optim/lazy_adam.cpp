#include "tercel/optim/lazy_adam.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "tercel/core/launch.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/optim/apply_rule.h"
#include "tercel/optim/lazy_adam_kernels.h"
#include "tercel/util/ceil_div.h"

namespace tercel::optim {

namespace {

constinit const KernelTable<SkippedRowsFn> catch_up_rows_kernels = TERCEL_CPU_KERNELS(catch_up_rows);

constexpr int64_t kGrainElements = 1 << 14;

/** The same rows from row `begin` on, if they are consecutive, or from entry `begin` of the list. */
SkippedRows part_of(const SkippedRows& whole, int64_t begin, int64_t end) {
  SkippedRows part = whole;
  part.n = end - begin;
  if (whole.rows) {
    part.rows = whole.rows + begin;
    return part;
  }
  const auto item = static_cast<int64_t>(item_size(whole.dtype));
  const auto move = [&](void*& data, int64_t stride) { data = static_cast<std::byte*>(data) + begin * stride * item; };
  move(part.weight, whole.weight_stride);
  move(part.m, whole.m_stride);
  move(part.v, whole.v_stride);
  move(part.last, whole.last_stride);
  return part;
}

/** All rows, without what the history knows. */
SkippedRows rows_of(const Tensor& weight, Span<Tensor> states) {
  TERCEL_ASSERT(states.size() == 3);
  SkippedRows all{};
  all.dtype = weight.dtype();
  all.weight = weight.data_ptr();
  all.m = states[0].data_ptr();
  all.v = states[1].data_ptr();
  all.last = states[2].data_ptr();
  all.weight_stride = row_stride(weight);
  all.m_stride = row_stride(states[0]);
  all.v_stride = row_stride(states[1]);
  all.last_stride = row_stride(states[2]);
  all.dim = weight.numel() / weight.size(0);
  return all;
}

void bump_versions(const Tensor& weight, Span<Tensor> states) {
  weight.impl().bump_version();
  for (const Tensor& state : states) state.impl().bump_version();
}

}  // namespace

LazyAdam::LazyAdam(double beta1, double beta2, double epsilon)
    : beta1_(beta1),
      ratio_(beta1 == 0 ? 0 : beta1 / std::sqrt(beta2)),
      epsilon_(epsilon),
      history_(zeros({1 + kHistory}, kFloat64)),
      skipped_(static_cast<size_t>(kHistory) + 1) {
  double decay1 = 1, decay2 = 1;
  for (SkippedSteps& s : skipped_) {
    s = {0, 1, decay1, decay2};
    decay1 *= beta1;
    decay2 *= beta2;
  }
}

void LazyAdam::begin_step() {
  const auto* const history = history_.data<double>();
  const double* const rates = history + 1;
  constexpr double kMostSteps = 1e15;
  TERCEL_CHECK(history[0] >= 0 && history[0] < kMostSteps, DataError,
               "optimizer: history: expected the number of steps, found ", history[0]);
  step_ = static_cast<int64_t>(history[0]) + 1;
  known_ = std::min(step_ - 1, kHistory);
  double numerator = 0, scaled = 0;  // of the last n steps
  for (int64_t n = 1; n <= known_; ++n) {
    const double rate = rates[(step_ - n) % kHistory];
    numerator = beta1_ * (rate + numerator);
    scaled = scaled + rate == 0 ? 0 : ratio_ * (rate + scaled);
    SkippedSteps& s = skipped_[static_cast<size_t>(n)];
    s.numerator = numerator;
    s.root = scaled > 0 ? numerator / scaled : 1;
  }
}

void LazyAdam::end_step(double rate) {
  auto* const history = history_.data<double>();
  history[1 + step_ % kHistory] = rate;
  history[0] = static_cast<double>(step_);
}

void LazyAdam::add_history(SkippedRows& rows) const {
  rows.before = (step_ - 1) % kModulus;
  rows.modulus = kModulus;
  rows.skipped = skipped_.data();
  rows.known = known_;
  rows.epsilon = epsilon_;
}

bool LazyAdam::catch_up(const Tensor& weight, Span<Tensor> states, const Tensor& rows) const {
  if (rows.numel() == 0 || weight.numel() == 0) return true;
  SkippedRows all = rows_of(weight, states);
  add_history(all);
  all.rows = rows.data<int64_t>();
  all.stamp = step_ % kModulus;
  const auto kernel = catch_up_rows_kernels[weight.device()];
  std::atomic<bool> finite = true;
  launch(weight.device(), 0, rows.numel(), ceil_div(kGrainElements, all.dim), [&](int64_t begin, int64_t end) {
    if (!kernel(part_of(all, begin, end))) finite = false;
  });
  bump_versions(weight, states);
  return finite;
}

bool LazyAdam::catch_up_some(const Tensor& weight, Span<Tensor> states) const {
  if (weight.numel() == 0) return true;
  SkippedRows all = rows_of(weight, states);
  add_history(all);
  all.stamp = all.before;
  const int64_t rows = weight.size(0), first = step_ % kHistory, blocks = ceil_div(rows, kBlock);
  if (first >= blocks) return true;
  const auto kernel = catch_up_rows_kernels[weight.device()];
  std::atomic<bool> finite = true;
  const int64_t grain = ceil_div(kGrainElements, all.dim * kBlock);
  launch(weight.device(), 0, ceil_div(blocks - first, kHistory), grain, [&](int64_t begin, int64_t end) {
    for (int64_t turn = begin; turn < end; ++turn) {
      const int64_t row = (first + turn * kHistory) * kBlock;
      if (!kernel(part_of(all, row, std::min(row + kBlock, rows)))) finite = false;
    }
  });
  bump_versions(weight, states);
  return finite;
}

}  // namespace tercel::optim
