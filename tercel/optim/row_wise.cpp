#include "tercel/optim/row_wise.h"

#include <atomic>

#include "tercel/core/launch.h"
#include "tercel/optim/apply_rule.h"
#include "tercel/optim/row_wise_kernels.h"
#include "tercel/util/ceil_div.h"

namespace tercel::optim {

namespace {

constinit const KernelTable<RowWiseUpdateFn> update_row_wise_kernels = TERCEL_CPU_KERNELS(update_row_wise);

constexpr int64_t kGrainElements = 1 << 14;

}  // namespace

bool apply_row_wise_adagrad(const char* name, const Step<double>& step, const Tensor& weight, const Tensor& accumulator,
                            const Gradient& gradient) {
  const Tensor& values = gradient.values;
  const int64_t all = weight.size(0), count = gradient.is_rows() ? gradient.rows.numel() : all;
  TERCEL_CHECK(values.size(0) == count && row_stride(values) >= 0 && row_stride(weight) >= 0 &&
                   row_stride(accumulator) >= 0 && accumulator.numel() == all &&
                   accumulator.dtype() == weight.dtype() && values.dtype() == weight.dtype() &&
                   (weight.dtype() == kFloat32 || weight.dtype() == kFloat64),
               RuntimeError, name, ": expected rows of one dtype and a number for each, got ", describe(weight), ", ",
               describe(accumulator), " and gradient ", describe(values));
  if (count == 0 || weight.numel() == 0) return true;
  if (gradient.is_rows()) check_ascending_rows(name, gradient.rows, weight);
  RowWiseUpdate whole{};
  whole.dtype = weight.dtype();
  whole.weight = weight.data_ptr();
  whole.accumulator = accumulator.data_ptr();
  whole.gradient = values.data_ptr();
  whole.weight_stride = row_stride(weight);
  whole.accumulator_stride = row_stride(accumulator);
  whole.gradient_stride = row_stride(values);
  whole.rows = gradient.is_rows() ? gradient.rows.data<int64_t>() : nullptr;
  whole.dim = weight.numel() / all;
  whole.step = step;
  const Device device = weight.device();
  const auto kernel = update_row_wise_kernels[device];
  const auto item = static_cast<int64_t>(item_size(weight.dtype()));
  const auto from = [item](void* data, int64_t elements) { return static_cast<std::byte*>(data) + elements * item; };
  std::atomic<bool> finite = true;
  launch(device, 0, count, ceil_div(kGrainElements, whole.dim), [&](int64_t begin, int64_t end) {
    RowWiseUpdate part = whole;
    part.n = end - begin;
    part.gradient = static_cast<const std::byte*>(whole.gradient) + begin * whole.gradient_stride * item;
    if (whole.rows) {
      part.rows = whole.rows + begin;
    } else {
      part.weight = from(whole.weight, begin * whole.weight_stride);
      part.accumulator = from(whole.accumulator, begin * whole.accumulator_stride);
    }
    if (!kernel(part)) finite = false;
  });
  weight.impl().bump_version();
  accumulator.impl().bump_version();
  return finite;
}

}  // namespace tercel::optim
