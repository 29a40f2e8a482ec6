#include "tercel/ops/nn/interpolate.h"

#include <algorithm>
#include <cmath>

#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/nn/pool.h"
#include "tercel/ops/nn/separable_resize_impl.h"
#include "tercel/ops/nn/spatial_impl.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

// Keys' cubic convolution with the parameter that PyTorch and OpenCV use.
constexpr double kCubic = -0.75;
double cubic_near(double t) { return ((kCubic + 2) * t - (kCubic + 3)) * t * t + 1; }
double cubic_far(double t) { return ((kCubic * t - 5 * kCubic) * t + 8 * kCubic) * t - 4 * kCubic; }

// The part of the input that a pixel of the result covers.
template <class T>
T step_of(int64_t in, int64_t out, bool align_corners, double factor) {
  if (align_corners) return out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
  return factor > 0 ? static_cast<T>(1 / factor) : static_cast<T>(in) / static_cast<T>(out);
}

// Filters for shrinking, by distance in pixels of the result. The cubic is Pillow's, with parameter -0.5.
template <class T>
T triangle(T distance) {
  return std::max(T(1) - distance, T(0));
}
template <class T>
T wide_cubic(T distance) {
  constexpr T kA = T(-0.5);
  if (distance < 1) return ((kA + 2) * distance - (kA + 3)) * distance * distance + 1;
  return distance < 2 ? ((kA * distance - 5 * kA) * distance + 8 * kA) * distance - 4 * kA : T(0);
}

// The taps of one dimension, with a filter as wide as a pixel of the result if that is larger than an input pixel.
template <class T>
Taps make_wide_taps(InterpolateMode mode, int64_t in, int64_t out, bool align_corners, double factor) {
  const T step = step_of<T>(in, out, align_corners, factor), width = std::max(step, T(1));
  const bool cubic = mode == InterpolateMode::Bicubic;
  const T reach = (cubic ? T(2) : T(1)) * width;
  Taps taps;
  taps.in = in;
  std::vector<T> weights;
  for (int64_t o = 0; o < out; ++o) {
    const T centre = step * (static_cast<T>(o) + T(0.5));
    const int64_t first = std::clamp<int64_t>(static_cast<int64_t>(centre - reach + T(0.5)), 0, in - 1),
                  last = std::clamp<int64_t>(static_cast<int64_t>(centre + reach + T(0.5)), first + 1, in);
    T total = 0;
    weights.clear();
    for (int64_t i = first; i < last; ++i) {
      const T distance = std::abs(static_cast<T>(i) - centre + T(0.5)) / width;
      weights.push_back(cubic ? wide_cubic(distance) : triangle(distance));
      total += weights.back();
    }
    for (int64_t i = first; i < last; ++i) {
      const T weight = weights[static_cast<size_t>(i - first)];
      taps.add(i, total != 0 ? weight / total : weight);
    }
    taps.end_output();
  }
  return taps;
}

// The taps of one dimension, with positions computed in T, as PyTorch does for elements of that type.
template <class T>
Taps make_taps(InterpolateMode mode, int64_t in, int64_t out, bool align_corners, double factor) {
  const T step = step_of<T>(in, out, align_corners, factor);
  const auto inside = [in](int64_t i) { return std::clamp<int64_t>(i, 0, in - 1); };
  Taps taps;
  taps.in = in;
  for (int64_t o = 0; o < out; ++o) {
    const T plain = static_cast<T>(o) * step, centre = (static_cast<T>(o) + T(0.5)) * step;
    switch (mode) {
      case InterpolateMode::Nearest: taps.add(inside(static_cast<int64_t>(std::floor(plain))), 1); break;
      case InterpolateMode::NearestExact: taps.add(inside(static_cast<int64_t>(std::floor(centre))), 1); break;
      case InterpolateMode::Bicubic: {
        const T at = align_corners ? plain : centre - T(0.5);
        const auto first = static_cast<int64_t>(std::floor(at));
        const double t = at - static_cast<T>(first);
        taps.add(inside(first - 1), cubic_far(t + 1));
        taps.add(inside(first), cubic_near(t));
        taps.add(inside(first + 1), cubic_near(1 - t));
        taps.add(inside(first + 2), cubic_far(2 - t));
        break;
      }
      default: {
        const T at = align_corners ? plain : std::max(centre - T(0.5), T(0));
        const int64_t first = inside(static_cast<int64_t>(at));
        const double t = std::min(at - static_cast<T>(first), T(1));
        taps.add(first, 1 - t);
        if (t > 0) taps.add(inside(first + 1), t);
        break;
      }
    }
    taps.end_output();
  }
  return taps;
}

void check_mode(InterpolateMode mode, int64_t dims) {
  const auto refuse = [&](int64_t want) {
    TERCEL_CHECK(dims == want, NotImplementedError, "Got ", dims + 2, "D input, but ", to_string(mode), " mode needs ",
                 want + 2, "D input");
  };
  if (mode == InterpolateMode::Linear) refuse(1);
  if (mode == InterpolateMode::Bilinear || mode == InterpolateMode::Bicubic) refuse(2);
  if (mode == InterpolateMode::Trilinear) refuse(3);
}

/** Rounds to pixel values, half up; clamped, because a cubic may leave their range. */
Tensor as_whole_pixels(const Tensor& x) { return clamp(floor(add(x, 0.5)), Scalar(0), Scalar(255)); }

/** For uint8: first along lines, rounded to pixel values, then along columns, as in PyTorch. */
Tensor interpolated_pixels(const Tensor& x, const InterpolateOptions& options) {
  const Tensor pixels = to(x, kFloat32);
  const bool smooth = options.mode == InterpolateMode::Bilinear || options.mode == InterpolateMode::Bicubic;
  const bool has_sizes = !options.size.empty() && options.scale_factor.empty();
  if (smooth && x.dim() == 4 && (has_sizes || (options.size.empty() && !options.scale_factor.empty()))) {
    InterpolateOptions lines(options), columns(options);
    if (has_sizes) {
      lines.size = {x.size(2), options.size.back()};
      columns.size = {options.size.front(), options.size.back()};
    } else {
      lines.scale_factor = {1, options.scale_factor.back()};
      columns.scale_factor = {options.scale_factor.front(), 1};
    }
    return to(as_whole_pixels(interpolate(as_whole_pixels(interpolate(pixels, lines)), columns)), kUInt8);
  }
  return to(as_whole_pixels(interpolate(pixels, options)), kUInt8);
}

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& options) {
  constexpr const char* kOp = "interpolate";
  check_strided(kOp, x, "input");
  const int64_t dims = x.dim() - 2;
  TERCEL_CHECK(dims >= 1 && dims <= 3, NotImplementedError,
               "Input Error: Only 3D, 4D and 5D input Tensors supported (got ", x.dim(),
               "D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got ",
               to_string(options.mode), ")");
  if (x.dtype() == kUInt8) return interpolated_pixels(x, options);
  if (!x.is_floating_point()) refuse_dtype(kOp, x.dtype());
  const InterpolateMode mode = options.mode;
  const bool has_corners =
      mode != InterpolateMode::Nearest && mode != InterpolateMode::NearestExact && mode != InterpolateMode::Area;
  TERCEL_CHECK(has_corners || !options.align_corners, ValueError,
               "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
               "trilinear");
  TERCEL_CHECK(options.size.empty() || options.scale_factor.empty(), ValueError,
               "only one of size or scale_factor should be defined");
  TERCEL_CHECK(!options.size.empty() || !options.scale_factor.empty(), ValueError,
               "either size or scale_factor should be defined");
  const size_t given = options.size.empty() ? options.scale_factor.size() : options.size.size();
  const size_t n = static_cast<size_t>(dims);
  TERCEL_CHECK(
      given == 1 || given == n, ValueError,
      "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions ", "of ",
      x.sizes().subspan(2, n), " and output size of ", IntSpan(options.size),
      ". Please provide input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) ", "format.");
  TERCEL_CHECK(!options.recompute_scale_factor || options.size.empty(), ValueError,
               "recompute_scale_factor is not meaningful with an explicit size.");
  TERCEL_CHECK(
      !options.antialias || (dims == 2 && (mode == InterpolateMode::Bilinear || mode == InterpolateMode::Bicubic)),
      ValueError, "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input");
  check_mode(mode, dims);

  const Spatial in = spatial_sizes(x.sizes(), n);
  Spatial out{1, 1, 1};
  std::array<double, 3> factor{};
  for (size_t d = 0; d < n; ++d) {
    const size_t at = 3 - n + d;
    if (!options.size.empty()) {
      out[at] = options.size[given == 1 ? 0 : d];
    } else {
      const double scale = options.scale_factor[given == 1 ? 0 : d];
      const double size = std::floor(static_cast<double>(in[at]) * scale);
      TERCEL_CHECK(size >= 0 && size < 0x1p62, RuntimeError, kOp, ": a size is too large");
      out[at] = static_cast<int64_t>(size);
      if (!options.recompute_scale_factor) factor[at] = scale;
    }
    TERCEL_CHECK(in[at] > 0 && out[at] > 0, RuntimeError,
                 "Input and output sizes should be greater than 0, but got input ", x.sizes().subspan(2, n), " output ",
                 IntSpan(out.data() + 3 - n, n));
  }
  if (mode == InterpolateMode::Area) {
    const IntSpan sizes(out.data() + 3 - n, n);
    return n == 1   ? adaptive_avg_pool1d(x, sizes)
           : n == 2 ? adaptive_avg_pool2d(x, sizes)
                    : adaptive_avg_pool3d(x, sizes);
  }
  check_room(x, n, out);
  const bool align = options.align_corners.value_or(false);
  const auto taps_of = [&]<class T>(size_t d) {
    return options.antialias ? make_wide_taps<T>(mode, in[d], out[d], align, factor[d])
                             : make_taps<T>(mode, in[d], out[d], align, factor[d]);
  };
  SpatialMap map;
  for (size_t d = 0; d < 3; ++d) {
    if (d + n < 3)
      map.taps[d] = Taps::identity(1);
    else
      map.taps[d] =
          x.dtype() == kFloat64 ? taps_of.template operator()<double>(d) : taps_of.template operator()<float>(d);
  }
  return separable_resize("UpsampleBackward0", x, n, std::move(map));
}

Tensor pixel_shuffle(const Tensor& x, int64_t r) {
  check_strided("pixel_shuffle", x, "input");
  TERCEL_CHECK(x.dim() >= 3, RuntimeError,
               "pixel_shuffle expects input to have at least 3 dimensions, but got input with ", x.dim(),
               " dimension(s)");
  TERCEL_CHECK(r > 0, RuntimeError, "pixel_shuffle expects a positive upscale_factor, but got ", r);
  const int64_t block = checked("pixel_shuffle", r, r, 0), c = x.size(-3), h = x.size(-2), w = x.size(-1);
  TERCEL_CHECK(c % block == 0, RuntimeError,
               "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
               "but input.size(-3)=",
               c, " is not divisible by ", block);
  const DimVector lead(x.sizes().subspan(0, x.sizes().size() - 3));
  const auto n = static_cast<int64_t>(lead.size());
  DimVector split(lead), order, sizes(lead);
  for (const int64_t s : {c / block, r, r, h, w}) split.push_back(s);
  for (int64_t d = 0; d < n; ++d) order.push_back(d);
  for (const int64_t d : {n, n + 3, n + 1, n + 4, n + 2}) order.push_back(d);
  for (const int64_t s : {c / block, h * r, w * r}) sizes.push_back(s);
  return reshape(permute(reshape(x, split), order), sizes);
}

Tensor pixel_unshuffle(const Tensor& x, int64_t r) {
  check_strided("pixel_unshuffle", x, "input");
  TERCEL_CHECK(x.dim() >= 3, RuntimeError,
               "pixel_unshuffle expects input to have at least 3 dimensions, but got input with ", x.dim(),
               " dimension(s)");
  TERCEL_CHECK(r > 0, RuntimeError, "pixel_unshuffle expects a positive downscale_factor, but got ", r);
  const int64_t c = x.size(-3), h = x.size(-2), w = x.size(-1);
  TERCEL_CHECK(h % r == 0, RuntimeError,
               "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=", h,
               " is not divisible by ", r);
  TERCEL_CHECK(w % r == 0, RuntimeError,
               "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=", w,
               " is not divisible by ", r);
  const int64_t channels = checked("pixel_unshuffle", checked("pixel_unshuffle", c, r, 0), r, 0);
  const DimVector lead(x.sizes().subspan(0, x.sizes().size() - 3));
  const auto n = static_cast<int64_t>(lead.size());
  DimVector split(lead), order, sizes(lead);
  for (const int64_t s : {c, h / r, r, w / r, r}) split.push_back(s);
  for (int64_t d = 0; d < n; ++d) order.push_back(d);
  for (const int64_t d : {n, n + 2, n + 4, n + 1, n + 3}) order.push_back(d);
  for (const int64_t s : {channels, h / r, w / r}) sizes.push_back(s);
  return reshape(permute(reshape(x, split), order), sizes);
}

}  // namespace tercel
