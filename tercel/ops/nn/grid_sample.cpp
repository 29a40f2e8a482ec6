#include "tercel/ops/nn/grid_sample.h"

#include <vector>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

/** A pixel's index along one dimension, for each position, as a whole number in floating point, and its weight. */
struct Tap {
  Tensor index, weight;
};

/** Converts positions from -1 to 1 to pixel coordinates. */
Tensor as_pixels(const Tensor& at, int64_t size, bool align_corners) {
  const auto n = static_cast<double>(size);
  if (align_corners) return mul(add(at, 1), (n - 1) / 2);
  return div(sub(mul(add(at, 1), n), 1), 2);
}

Tensor mirrored(const Tensor& pixels, double low, double high) {
  if (low == high) return mul(pixels, 0);
  const double span = high - low;
  const Tensor distance = abs(sub(pixels, low));
  const Tensor turns = floor(div(distance, span)).detach();
  const Tensor rest = sub(distance, mul(turns, span));
  const Tensor even = eq(sub(turns, mul(floor(div(turns, 2)), 2)), 0);
  return where(even, add(rest, low), sub(high, rest));
}

/** Interpolation and padding of positions. Volumes and images treat NaN differently. */
struct GridRule {
  GridMode mode;
  GridPadding padding;
  bool align_corners, volume;
};

/** Moves pixels inside the image, by the padding mode; with zeros they are unchanged. */
Tensor padded(const Tensor& pixels, int64_t size, const GridRule& rule) {
  if (rule.padding == GridPadding::Zeros) return pixels;
  const auto last = static_cast<double>(size - 1);
  Tensor inside = pixels;
  if (rule.padding == GridPadding::Reflection)
    inside = rule.align_corners ? mirrored(pixels, 0, last) : mirrored(pixels, -0.5, last + 0.5);
  inside = clamp(inside, 0, last);
  // The result of PyTorch's comparisons for NaN.
  return where(isnan(inside), rule.volume ? last : 0, inside);
}

/** The weight of a pixel at a distance, by Keys' cubic with a = -0.75. */
Tensor cubic(const Tensor& distance, bool near) {
  constexpr double a = -0.75;
  if (near) return add(mul(mul(sub(mul(distance, a + 2), a + 3), distance), distance), 1);
  return sub(mul(add(mul(sub(mul(distance, a), 5 * a), distance), 8 * a), distance), 4 * a);
}

std::vector<Tap> taps_of(const Tensor& at, int64_t size, const GridRule& rule) {
  const Tensor pixels = as_pixels(at, size, rule.align_corners);
  if (rule.mode == GridMode::Bicubic) {
    const Tensor first = floor(pixels).detach(), t = sub(pixels, first);
    const auto index = [&](double offset) { return padded(add(first, offset), size, rule); };
    return {{index(-1), cubic(add(t, 1), false)},
            {index(0), cubic(t, true)},
            {index(1), cubic(sub(1, t), true)},
            {index(2), cubic(sub(2, t), false)}};
  }
  const Tensor inside = padded(pixels, size, rule);
  if (rule.mode == GridMode::Nearest) return {{round(inside).detach(), {}}};
  const Tensor first = floor(inside).detach(), t = sub(inside, first);
  return {{first, sub(1, t)}, {add(first, 1), t}};
}

void check_grid(const Tensor& x, const Tensor& grid, GridMode mode) {
  constexpr const char* kOp = "grid_sampler(): ";
  check_strided("grid_sample", x, "input");
  check_strided("grid_sample", grid, "grid");
  TERCEL_CHECK((x.dim() == 4 || x.dim() == 5) && x.dim() == grid.dim(), RuntimeError, kOp,
               "expected 4D or 5D input and grid with same number of dimensions, but got input with sizes ", x.sizes(),
               " and grid with sizes ", grid.sizes());
  TERCEL_CHECK(x.size(0) == grid.size(0), RuntimeError, kOp,
               "expected grid and input to have same batch size, but got input with sizes ", x.sizes(),
               " and grid with sizes ", grid.sizes());
  TERCEL_CHECK(grid.size(-1) == x.dim() - 2, RuntimeError, kOp, "expected grid to have size ", x.dim() - 2,
               " in last dimension, but got grid with sizes ", grid.sizes());
  TERCEL_CHECK(x.is_floating_point() && x.dtype() == grid.dtype(), RuntimeError, kOp,
               "expected input and grid to have same dtype, but input has ", to_string(x.dtype()), " and grid has ",
               to_string(grid.dtype()));
  for (int64_t d = 2; d < x.dim(); ++d)
    TERCEL_CHECK(x.size(d) > 0, RuntimeError, kOp,
                 "expected input to have non-empty spatial dimensions, but input has sizes ", x.sizes(),
                 " with dimension ", d, " being empty");
  TERCEL_CHECK(mode != GridMode::Bicubic || x.dim() == 4, RuntimeError, kOp,
               "bicubic interpolation only supports 4D input");
}

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, GridMode mode, GridPadding padding, bool align_corners) {
  check_grid(x, grid, mode);
  const int64_t n = x.size(0), channels = x.size(1), dims = x.dim() - 2;
  DimVector out_sizes = {n, channels};
  int64_t points = 1;
  for (int64_t d = 1; d <= dims; ++d) {
    out_sizes.push_back(grid.size(d));
    points *= grid.size(d);
  }
  const Tensor flat = reshape(x, {n, channels, -1});
  const GridRule rule{mode, padding, align_corners, dims == 3};
  // All combinations of taps, dimension by dimension, the last one changing fastest.
  std::vector<Tap> corners = {{}};
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t size = x.size(d + 2);
    const Tensor at = reshape(select(grid, -1, dims - 1 - d), {n, 1, points});
    std::vector<Tap> next;
    for (Tap tap : taps_of(at, size, rule)) {
      Tensor index, outside;
      {
        const NoRecordGuard no_record;
        const Tensor inside = logical_and(ge(tap.index, 0), le(tap.index, static_cast<double>(size - 1)));
        index = to(clamp(where(inside, tap.index, 0), 0, static_cast<double>(size - 1)), kInt64);
        if (!tap.weight.defined()) tap.weight = to(inside, x.dtype());
        outside = logical_not(inside);
        // For images, NaN positions keep NaN weights.
        if (!rule.volume) outside = logical_and(outside, logical_not(isnan(tap.weight)));
      }
      tap.weight = masked_fill(tap.weight, outside, 0);
      for (const Tap& before : corners) {
        if (before.index.defined())
          next.push_back({add(mul(before.index, size), index), mul(before.weight, tap.weight)});
        else
          next.push_back({index, tap.weight});
      }
    }
    corners = std::move(next);
  }
  Tensor out;
  for (const Tap& corner : corners) {
    const Tensor term = mul(gather(flat, 2, expand(corner.index, {n, channels, points})), corner.weight);
    out = out.defined() ? add(out, term) : term;
  }
  return view(out, out_sizes);
}

Tensor affine_grid(const Tensor& theta, IntSpan size, bool align_corners) {
  check_strided("affine_grid", theta, "theta");
  TERCEL_CHECK(theta.is_floating_point(), ValueError, "Expected theta to have floating point type, but got ",
               to_string(theta.dtype()));
  TERCEL_CHECK(size.size() == 4 || size.size() == 5, NotImplementedError,
               "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size ",
               size);
  const auto dims = static_cast<int64_t>(size.size()) - 2;
  TERCEL_CHECK(theta.dim() == 3 && theta.size(0) == size[0] && theta.size(1) == dims && theta.size(2) == dims + 1,
               ValueError, "Expected a batch of ", dims, "D affine matrices of shape Nx", dims, "x", dims + 1,
               " for size ", size, ". Got ", theta.sizes(), ".");
  for (const int64_t s : size) TERCEL_CHECK(s > 0, ValueError, "Expected non-zero, positive output size. Got ", size);
  DimVector spatial(size.subspan(2, size.size() - 2));
  std::vector<Tensor> columns;  // x comes first: the last dimension
  for (int64_t d = dims - 1; d >= 0; --d) {
    const int64_t count = spatial[static_cast<size_t>(d)];
    const auto steps = static_cast<double>(count);
    const Tensor line = empty({count}, kFloat64);
    for (int64_t i = 0; i < count; ++i) {
      const auto step = static_cast<double>(i);
      if (align_corners)
        line.data<double>()[i] = count == 1 ? 0 : -1 + 2 * step / (steps - 1);
      else
        line.data<double>()[i] = (2 * step + 1) / steps - 1;
    }
    DimVector sizes(spatial.size(), 1);
    sizes[static_cast<size_t>(d)] = count;
    columns.push_back(flatten(contiguous(expand(view(to(line, theta.dtype()), sizes), spatial))));
  }
  columns.push_back(ones({columns[0].numel()}, theta.options()));
  DimVector out = {size[0]};
  for (const int64_t s : spatial) out.push_back(s);
  out.push_back(dims);
  return view(matmul(stack(columns, 1), transpose(theta, 1, 2)), out);
}

}  // namespace tercel
