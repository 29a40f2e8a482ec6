// Unrecorded Fourier transforms of one dimension; see Note [Fourier transforms].
#include <algorithm>
#include <vector>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/fft/fft_impl.h"
#include "tercel/ops/views/flip_roll_repeat.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/parallel.h"

namespace tercel::fft {

namespace {

constinit const KernelTable<FftLinesFn> lines_kernels = TERCEL_CPU_KERNELS(fft_lines);
constinit const KernelTable<FftHalvesFn> halves_kernels = TERCEL_CPU_KERNELS(fft_halves);

constexpr int64_t kGrainPoints = 16384;

/** Whether splitting the lines is faster. */
bool is_long(int64_t points, int64_t lines) { return points > kFftMaxPoints || (points > 128 && lines < 4); }
bool is_long_along(const Tensor& x, int64_t dim, int64_t points) {
  return x.numel() > 0 && is_long(points, x.numel() / x.size(dim));
}

/** Lines along one dimension of x and of out; strides in real numbers. */
struct Lines {
  DimVector sizes, x_strides, out_strides;
  int64_t count = 1, x_step = 0, out_step = 0;

  Lines(const Tensor& x, const Tensor& out, int64_t dim) {
    const int64_t x_unit = x.is_complex() ? 2 : 1, out_unit = out.is_complex() ? 2 : 1;
    for (int64_t d = 0; d < x.dim(); ++d) {
      if (d == dim) {
        x_step = x_unit * x.stride(d);
        out_step = out_unit * out.stride(d);
      } else if (x.size(d) != 1) {
        sizes.push_back(x.size(d));
        x_strides.push_back(x_unit * x.stride(d));
        out_strides.push_back(out_unit * out.stride(d));
        count *= x.size(d);
      }
    }
  }
  Lines(int64_t n, int64_t x_stride, int64_t out_stride, int64_t step_of_x, int64_t step_of_out)
      : sizes({n}),
        x_strides({x_stride}),
        out_strides({out_stride}),
        count(n),
        x_step(step_of_x),
        out_step(step_of_out) {}

  /** The kernel's arguments that are determined by the lines. */
  FftLines loop(Compute compute, const void* x, void* out) const {
    FftLines l{};
    l.compute = compute;
    l.scale = 1;
    l.rank = static_cast<int>(sizes.size());
    l.sizes = sizes.data();
    l.x_strides = x_strides.data();
    l.out_strides = out_strides.data();
    l.lines = count;
    l.x_step = x_step;
    l.out_step = out_step;
    l.x = x;
    l.out = out;
    return l;
  }
  /** Offsets of a line in x and in out. */
  std::pair<int64_t, int64_t> start(int64_t line) const {
    int64_t x_at = 0, out_at = 0;
    for (size_t d = sizes.size(); d-- > 0; line /= sizes[d]) {
      x_at += line % sizes[d] * x_strides[d];
      out_at += line % sizes[d] * out_strides[d];
    }
    return {x_at, out_at};
  }
};

void run_short(const FftLines& loop) {
  const int64_t n = loop.plan->n, tasks = ceil_div(loop.lines, kFftLanes);
  FftLinesFn* const kernel = lines_kernels[kCpu];
  parallel_for(0, tasks, std::max<int64_t>(1, kGrainPoints / (n * kFftLanes)), [&](int64_t begin, int64_t end) {
    const Tensor work = empty({fft_work_bytes(n)}, kUInt8);
    kernel(loop, work.data_ptr(), begin, end);
  });
}

template <class T>
void run_complex(const Lines& lines, int64_t n, const T* x, T* out, bool inverse, double scale);

/** Transforms long lines one by one, short lines in parallel. */
template <class T>
void run_long(const Lines& lines, int64_t n, const T* x, T* out, bool inverse, double scale) {
  const Compute compute = sizeof(T) == sizeof(float) ? Compute::F32 : Compute::F64;
  const std::shared_ptr<const FftSplit> split = split_of(n, compute);
  const std::shared_ptr<const FftPlan> plan = plan_of(split->n1, compute);
  const int64_t n1 = split->n1, n2 = split->n2;
  parallel_for(0, lines.count, lines.count < num_threads() ? lines.count : 1, [&](int64_t begin, int64_t end) {
    const Tensor work = empty({2 * n}, scalar_type_of<T>());
    T* const between = work.data<T>();
    for (int64_t line = begin; line < end; ++line) {
      const auto [x_at, out_at] = lines.start(line);
      const Lines columns(n2, lines.x_step, 2, n2 * lines.x_step, 2 * n2);
      FftLines loop = columns.loop(compute, x + x_at, between);
      loop.inverse = inverse;
      loop.plan = plan.get();
      loop.near = split->near;
      loop.far = split->far;
      loop.far_count = split->far_count;
      run_short(loop);
      const Lines rows(n1, 2 * n2, lines.out_step, 2, n1 * lines.out_step);
      run_complex<T>(rows, n2, between, out + out_at, inverse, scale);
    }
  });
}

template <class T>
void run_complex(const Lines& lines, int64_t n, const T* x, T* out, bool inverse, double scale) {
  if (is_long(n, lines.count)) return run_long(lines, n, x, out, inverse, scale);
  const Compute compute = sizeof(T) == sizeof(float) ? Compute::F32 : Compute::F64;
  const std::shared_ptr<const FftPlan> plan = plan_of(n, compute);
  FftLines loop = lines.loop(compute, x, out);
  loop.inverse = inverse;
  loop.scale = scale;
  loop.plan = plan.get();
  run_short(loop);
}

/** Transforms n complex points whose parts have x's real type. */
void run_complex(ScalarType real, const Lines& lines, int64_t n, const void* x, void* out, bool inverse, double scale) {
  if (real == kFloat32)
    run_complex<float>(lines, n, static_cast<const float*>(x), static_cast<float*>(out), inverse, scale);
  else
    run_complex<double>(lines, n, static_cast<const double*>(x), static_cast<double*>(out), inverse, scale);
}

/** exp(-+ pi i k^2 / n) for k < n. */
Tensor chirp(int64_t n, bool inverse, ScalarType dtype) {
  const Tensor angle = empty({n}, kFloat64);
  double* const p = angle.data<double>();
  // k^2 modulo 2 n, so that the angle is small.
  int64_t square = 0;
  for (int64_t k = 0; k < n; ++k) {
    p[k] = (inverse ? 1 : -1) * M_PI * static_cast<double>(square) / static_cast<double>(n);
    square = (square + 2 * k + 1) % (2 * n);
  }
  return to(polar(ones({n}, kFloat64), angle), dtype);
}

/**
 * Bluestein's algorithm: j k = (j^2 + k^2 - (j - k)^2) / 2 turns the transform of the last dimension into a convolution
 * with a chirp, whose length can be a product of small factors.
 */
Tensor by_convolution(const Tensor& x, bool inverse, double scale) {
  const int64_t n = x.size(-1);
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  const Tensor factors = chirp(n, inverse, x.dtype());
  const Tensor conjugates = conj(chirp(n, inverse, x.dtype()));
  Tensor filter = zeros({m}, x.options());
  copy_(filter.narrow(0, 0, n), conjugates);
  // The chirp is even: point -k is at index m - k.
  copy_(filter.narrow(0, m - n + 1, n - 1), flip(conjugates.narrow(0, 1, n - 1), {0}));
  filter = complex_to_complex(filter, 0, false, 1);
  DimVector sizes(x.sizes());
  sizes[sizes.size() - 1] = m;
  const Tensor padded = zeros(sizes, x.options());
  copy_(padded.narrow(-1, 0, n), mul(x, factors));
  const Tensor product = mul(complex_to_complex(padded, x.dim() - 1, false, 1), filter);
  const Tensor result = complex_to_complex(product, x.dim() - 1, true, scale / static_cast<double>(m));
  return mul(result.narrow(-1, 0, n), factors);
}

Tensor with_size(const Tensor& x, int64_t dim, int64_t n, ScalarType dtype) {
  DimVector sizes(x.sizes());
  sizes[static_cast<size_t>(dim)] = n;
  return empty(sizes, TensorOptions(dtype, x.device()));
}

/** Completes a half spectrum to n points. */
Tensor whole_spectrum(const Tensor& x, int64_t dim, int64_t n) {
  const int64_t points = n / 2 + 1;
  const Tensor whole = with_size(x, dim, n, x.dtype());
  copy_(whole.narrow(dim, 0, points), x);
  copy_(whole.narrow(dim, points, n - points), conj(flip(x.narrow(dim, 1, n - points), {dim})));
  return whole;
}

/** Applies the half-spectrum step to lines of h + 1 points, the last dimension of a contiguous tensor. */
void run_halves(const Tensor& x, bool to_real_line, bool conjugate) {
  const int64_t h = x.size(-1) - 1;
  const Compute compute = compute_of(real_dtype(x.dtype()));
  const std::shared_ptr<const void> roots = half_roots_of(h, compute);
  FftHalvesFn* const kernel = halves_kernels[kCpu];
  parallel_for(0, x.numel() / (h + 1), std::max<int64_t>(1, kGrainPoints / h), [&](int64_t begin, int64_t end) {
    kernel(compute, to_real_line, conjugate, x.data_ptr(), h, roots.get(), begin, end);
  });
}

/** Transforms lines of n real numbers from x, or to out, along a dimension, in one pass each. */
void run_short_real(FftKind kind, const Tensor& x, const Tensor& out, int64_t dim, int64_t n, bool inverse,
                    double scale) {
  const Compute compute = compute_of(real_dtype(x.dtype()));
  const bool odd = n % 2 == 1;
  const Lines lines(x, out, dim);
  const std::shared_ptr<const FftPlan> plan = plan_of(odd ? n : n / 2, compute);
  FftLines loop = lines.loop(compute, x.data_ptr(), out.data_ptr());
  loop.kind = kind;
  loop.inverse = inverse;
  loop.odd = odd;
  loop.scale = scale;
  loop.plan = plan.get();
  run_short(loop);
}

}  // namespace

Tensor complex_to_complex(const Tensor& x, int64_t dim, bool inverse, double scale) {
  const NoRecordGuard no_record;
  const int64_t n = x.size(dim);
  if (!is_smooth(n) && x.numel() > 0)
    return contiguous(by_convolution(x.transpose(dim, -1), inverse, scale).transpose(dim, -1));
  // Reading a column would use only one element of each cache line.
  if (is_long_along(x, dim, n) && x.stride(dim) != 1 && x.numel() > n)
    return contiguous(
        complex_to_complex(contiguous(x.transpose(dim, -1)), x.dim() - 1, inverse, scale).transpose(dim, -1));
  Tensor out = with_size(x, dim, n, x.dtype());
  if (out.numel() == 0) return out;
  run_complex(real_dtype(x.dtype()), Lines(x, out, dim), n, x.data_ptr(), out.data_ptr(), inverse, scale);
  return out;
}

Tensor real_to_half(const Tensor& x, int64_t dim, bool conjugate, double scale) {
  const NoRecordGuard no_record;
  const int64_t n = x.size(dim), points = n / 2 + 1;
  const bool odd = n % 2 == 1;
  if ((!is_smooth(n) || (odd && is_long_along(x, dim, n))) && x.numel() > 0) {
    const Tensor whole = complex_to_complex(to(x, complex_dtype(x.dtype())), dim, conjugate, scale);
    return contiguous(whole.narrow(dim, 0, points));
  }
  if (is_long_along(x, dim, n / 2)) {
    const Tensor in = contiguous(x.transpose(dim, -1));
    const Tensor out = with_size(in, in.dim() - 1, points, complex_dtype(x.dtype()));
    Lines lines(in, out, in.dim() - 1);
    lines.x_step = 2;
    run_complex(x.dtype(), lines, n / 2, in.data_ptr(), out.data_ptr(), false, scale);
    run_halves(out, false, conjugate);
    return contiguous(out.transpose(dim, -1));
  }
  Tensor out = with_size(x, dim, points, complex_dtype(x.dtype()));
  if (out.numel() == 0) return out;
  run_short_real(FftKind::RealToHalf, x, out, dim, n, conjugate, scale);
  return out;
}

Tensor half_to_real(const Tensor& x, int64_t dim, int64_t n, bool conjugate, double scale) {
  const NoRecordGuard no_record;
  const bool odd = n % 2 == 1;
  const ScalarType dtype = real_dtype(x.dtype());
  if ((!is_smooth(n) || (odd && is_long_along(x, dim, n))) && x.numel() > 0) {
    Tensor half = clone(conjugate ? conj(x) : x, MemoryFormat::Contiguous);
    // Points that are their own mirrors have a zero imaginary part.
    for (const int64_t k : {int64_t{0}, n / 2})
      if (k == 0 || !odd) zero_(imag(half.select(dim, k)));
    return clone(real(complex_to_complex(whole_spectrum(half, dim, n), dim, true, scale)));
  }
  if (is_long_along(x, dim, n / 2)) {
    const Tensor half = clone(x.transpose(dim, -1), MemoryFormat::Contiguous);
    const Tensor out = with_size(half, half.dim() - 1, n, dtype);
    run_halves(half, true, conjugate);
    Lines lines(half, out, half.dim() - 1);
    lines.out_step = 2;
    run_complex(dtype, lines, n / 2, half.data_ptr(), out.data_ptr(), true, scale);
    return contiguous(out.transpose(dim, -1));
  }
  Tensor out = with_size(x, dim, n, dtype);
  if (out.numel() == 0) return out;
  run_short_real(FftKind::HalfToReal, x, out, dim, n, conjugate, scale);
  return out;
}

}  // namespace tercel::fft
