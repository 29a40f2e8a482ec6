#include <limits>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/sort/order_statistics.h"
#include "tercel/ops/sort/sort.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

enum class Interpolation : uint8_t { Linear, Lower, Higher, Midpoint, Nearest };

Interpolation parse_interpolation(std::string_view name) {
  if (name == "linear") return Interpolation::Linear;
  if (name == "lower") return Interpolation::Lower;
  if (name == "higher") return Interpolation::Higher;
  if (name == "midpoint") return Interpolation::Midpoint;
  if (name == "nearest") return Interpolation::Nearest;
  throw_error<RuntimeError>(
      {"quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got ", name});
}

void check_operands(const Tensor& x, const Tensor& q) {
  check_strided("quantile", x, "x");
  check_strided("quantile", q, "q");
  TERCEL_CHECK(x.numel() > 0, RuntimeError, "quantile() input tensor must be non-empty");
  TERCEL_CHECK(q.dim() <= 1, RuntimeError, "quantile() q must be a scalar or 1D tensor");
  TERCEL_CHECK(x.dtype() == kFloat32 || x.dtype() == kFloat64, RuntimeError,
               "quantile() input tensor must be either float or double dtype");
  TERCEL_CHECK(q.dtype() == x.dtype(), RuntimeError, "quantile() q tensor must be same dtype as the input tensor");
  const NoRecordGuard no_record;
  TERCEL_CHECK(all(logical_and(ge(q, 0), le(q, 1))).item<bool>(), RuntimeError,
               "quantile() q values must be in the range [0, 1]");
}

/** Ranks [..., q] in sorted lines [..., n]; if an output must be NaN, the rank of a NaN. */
Tensor ranks_in(const Tensor& sorted, const Tensor& q, bool ignore_nan) {
  const int64_t n = sorted.size(-1);
  // In x's dtype if that represents all ranks exactly.
  const bool wide = sorted.dtype() == kFloat32 && n > (int64_t{1} << 24);
  const Tensor wanted = reshape(wide ? to(q, kFloat64) : q, {-1});
  const Tensor missing = isnan(sorted);
  if (!ignore_nan) return where(any(missing, {-1}, true), static_cast<double>(n - 1), mul(wanted, n - 1));
  const Tensor last = clamp_min(sub(n - 1, sum(missing, {-1}, true)), 0);
  return mul(wanted, to(last, wanted.dtype()));
}

Tensor element_at(const Tensor& sorted, const Tensor& ranks) { return gather(sorted, -1, to(ranks, kInt64)); }

Tensor interpolated(const Tensor& sorted, const Tensor& ranks, Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::Lower: return element_at(sorted, floor(ranks));
    case Interpolation::Higher: return element_at(sorted, ceil(ranks));
    case Interpolation::Nearest: return element_at(sorted, round(ranks));
    default: break;
  }
  const Tensor low = floor(ranks.detach());
  const Tensor below = element_at(sorted, low), above = element_at(sorted, ceil(ranks));
  if (interpolation == Interpolation::Midpoint) return lerp(below, above, 0.5);
  return lerp(below, above, to(sub(ranks, low), sorted.dtype()));
}

Tensor quantile_of(const Tensor& given, const Tensor& q, std::optional<int64_t> d, bool keepdim,
                   std::string_view interpolation_name, bool ignore_nan) {
  check_operands(given, q);
  const Interpolation interpolation = parse_interpolation(interpolation_name);
  const Tensor x = d && given.dim() > 0 ? given : reshape(given, {-1});
  const int64_t dim = d ? wrap_dim(*d, given.dim()) : 0;
  const Tensor sorted = sort(transpose(x, dim, -1), -1).values;
  DimVector rank_sizes(sorted.sizes());
  rank_sizes.back() = q.numel();
  const Tensor ranks = expand(ranks_in(sorted.detach(), q, ignore_nan), rank_sizes);
  // Moves the dimension, which now has q's size, back; or q's dimension to the front, leaving size 1 in its place.
  Tensor out = transpose(interpolated(sorted, ranks, interpolation), dim, -1);
  out = transpose(unsqueeze(out, 0), 0, dim + 1);
  const bool flat = !d || given.dim() == 0;
  if (flat) {
    DimVector sizes(1, q.numel());
    if (keepdim) sizes.resize(1 + static_cast<size_t>(given.dim()), 1);
    out = reshape(out, sizes);
  } else if (!keepdim) {
    out = squeeze(out, dim + 1);
  }
  return q.dim() == 0 ? squeeze(out, 0) : out;
}

Tensor number_like(const Tensor& x, double q) {
  check_strided("quantile", x, "x");
  TERCEL_CHECK(q >= 0 && q <= 1, RuntimeError, "quantile() q must be in the range [0, 1] but got ", q);
  return scalar_tensor(q, TensorOptions(x.is_floating_point() ? x.dtype() : kFloat32));
}

}  // namespace

Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
  return quantile_of(x, q, dim, keepdim, interpolation, false);
}
Tensor quantile(const Tensor& x, double q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation) {
  return quantile_of(x, number_like(x, q), dim, keepdim, interpolation, false);
}
Tensor nanquantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return quantile_of(x, q, dim, keepdim, interpolation, true);
}
Tensor nanquantile(const Tensor& x, double q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return quantile_of(x, number_like(x, q), dim, keepdim, interpolation, true);
}

}  // namespace tercel
