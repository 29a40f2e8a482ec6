#include "tercel/optim/gradient_norm.h"

#include <algorithm>
#include <cmath>

#include "tercel/core/launch.h"
#include "tercel/optim/gradient_norm_kernels.h"
#include "tercel/util/ceil_div.h"

namespace tercel::optim {

namespace {

constinit const KernelTable<SumSquaresFn> sum_squares_kernels = TERCEL_CPU_KERNELS(sum_squares);

constexpr int64_t kBlock = 1 << 14;  // elements
constexpr int64_t kGrainBlocks = 4;

}  // namespace

void GradientNorm::clear(double limit) {
  limit_ = limit;
  squares_ = 0;
}

void GradientNorm::add(const Tensor& gradient) {
  TERCEL_CHECK(
      gradient.defined() && gradient.is_contiguous() && (gradient.dtype() == kFloat32 || gradient.dtype() == kFloat64),
      RuntimeError, "norm of gradients: expected contiguous float32 or float64, got ", describe(gradient));
  const int64_t n = gradient.numel(), blocks = ceil_div(n, kBlock);
  if (n == 0) return;
  parts_.resize(static_cast<size_t>(blocks));
  const auto* const data = static_cast<const std::byte*>(gradient.data_ptr());
  const auto item = static_cast<int64_t>(item_size(gradient.dtype()));
  const auto kernel = sum_squares_kernels[gradient.device()];
  parallel_for(0, blocks, kGrainBlocks, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      parts_[static_cast<size_t>(b)] =
          kernel({gradient.dtype(), data + b * kBlock * item, std::min(kBlock, n - b * kBlock), limit_});
  });
  for (const double part : parts_) squares_ += part;
}

void GradientNorm::add_rows(const Gradient& gradient, UniqueRows& unique_rows, int64_t first_row) {
  unique_rows.reduce_in_blocks(gradient, [&](const Gradient& rows) {
    const auto* const begin = rows.rows.data<int64_t>();
    const int64_t count = rows.rows.numel(), skipped = std::lower_bound(begin, begin + count, first_row) - begin;
    add(skipped == 0 ? rows.values : rows.values.narrow(0, skipped, count - skipped));
  });
}

double GradientNorm::value() const { return std::sqrt(squares_); }

double clip_scale(double norm, double most) { return norm > most ? most / norm : 1; }

}  // namespace tercel::optim
