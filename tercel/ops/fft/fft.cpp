#include "tercel/ops/fft/fft.h"

#include <algorithm>
#include <cmath>

#include "tercel/autograd/record.h"
#include "tercel/core/default_dtype.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/fft/fft_impl.h"
#include "tercel/ops/views/flip_roll_repeat.h"
#include "tercel/ops/views/pad.h"
#include "tercel/ops/views/views.h"

namespace tercel::fft {

namespace {

/** The scale factor of a transform of n points. */
double scale_of(std::string_view norm, double n, bool forward) {
  if (norm == "ortho") return 1 / std::sqrt(n);
  const bool divides_forward = norm == "forward";
  TERCEL_CHECK(divides_forward || norm == "backward", RuntimeError, "Invalid normalization mode: \"", norm, "\"");
  return divides_forward == forward ? 1 / n : 1.0;
}

ScalarType checked_dtype(const Tensor& x, bool complex) {
  const ScalarType real = x.is_differentiable() ? x.dtype() : default_dtype();
  TERCEL_CHECK(real != kFloat16 && real != kBFloat16, NotImplementedError, "Unsupported dtype ",
               scalar_type_word(real));
  return complex ? complex_dtype(real) : real;
}
Tensor in_complex(const Tensor& x) { return to(x, checked_dtype(x, true)); }

void check_length(int64_t n) {
  TERCEL_CHECK(n >= 1, RuntimeError, "Invalid number of data points (", n, ") specified");
}

int64_t dim_of(const Tensor& x, int64_t dim) {
  TERCEL_CHECK(x.dim() > 0, IndexError, "Dimension specified as ", dim, " but tensor has no dimensions");
  return wrap_dim(dim, x.dim());
}

/** x truncated or zero-padded to n along a dimension. */
Tensor resized(const Tensor& x, int64_t dim, int64_t n) {
  const int64_t size = x.size(dim);
  if (n == size) return x;
  if (n < size) return narrow(x, dim, 0, n);
  DimVector border(static_cast<size_t>(2 * (x.dim() - dim)), 0);
  border[border.size() - 1] = n - size;
  return constant_pad_nd(x, border);
}

// The three transforms are linear: the gradient of each is the transform with the opposite sign, conjugated.

Tensor c2c(const Tensor& x, int64_t dim, bool inverse, double scale) {
  const Tensor out = complex_to_complex(x, dim, inverse, scale);
  if (should_record(x))
    record("FftC2CBackward0", out, {x},
           [dim, inverse, scale](BackwardCall& call) { call.set(0, c2c(call.grad(), dim, !inverse, scale)); });
  return out;
}

Tensor r2c(const Tensor& x, int64_t dim, bool inverse, double scale) {
  const Tensor out = real_to_half(x, dim, inverse, scale);
  if (should_record(x))
    record("FftR2CBackward0", out, {x}, [dim, inverse, scale, n = x.size(dim)](BackwardCall& call) {
      // Only the stored half has a gradient.
      call.set(0, real(c2c(resized(call.grad(), dim, n), dim, !inverse, scale)));
    });
  return out;
}

Tensor c2r(const Tensor& x, int64_t dim, int64_t n, bool inverse, double scale) {
  const Tensor out = half_to_real(x, dim, n, !inverse, scale);
  if (should_record(x))
    record("FftC2RBackward0", out, {x}, [dim, n, inverse, scale](BackwardCall& call) {
      const Tensor grad = r2c(call.grad(), dim, !inverse, scale);
      // Points that also represent their conjugates count twice.
      const int64_t twice = (n - 1) / 2;
      if (twice == 0) return call.set(0, grad);
      Tensor factors = ones({n / 2 + 1}, TensorOptions(real_dtype(grad.dtype()), grad.device()));
      fill_(factors.narrow(0, 1, twice), 2);
      DimVector sizes(static_cast<size_t>(grad.dim()), 1);
      sizes[static_cast<size_t>(dim)] = n / 2 + 1;
      call.set(0, mul(grad, view(factors, sizes)));
    });
  return out;
}

/** Dimensions to transform, and the lengths to trim or pad to. */
struct TransformDims {
  DimVector dims, sizes;

  TransformDims(const Tensor& x, const Axes& axes) {
    const int64_t rank = x.dim();
    if (axes.dim) {
      for (const int64_t d : *axes.dim) dims.push_back(wrap_dim(d, rank));
      DimVector sorted(dims);
      std::sort(sorted.begin(), sorted.end());
      TERCEL_CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), RuntimeError,
                   "FFT dims must be unique");
    }
    if (axes.s) {
      const auto count = static_cast<int64_t>(axes.s->size());
      TERCEL_CHECK(!axes.dim || axes.dim->size() == axes.s->size(), RuntimeError,
                   "When given, dim and shape arguments must have the same length");
      TERCEL_CHECK(count <= rank, RuntimeError, "Got shape with ", count, " values but input tensor only has ", rank,
                   " dimensions.");
      if (!axes.dim)
        for (int64_t d = rank - count; d < rank; ++d) dims.push_back(d);
      // A length of -1 means the dimension's size.
      for (size_t i = 0; i < dims.size(); ++i) {
        const int64_t n = (*axes.s)[i];
        sizes.push_back(n == -1 ? x.size(dims[i]) : n);
      }
    } else {
      if (!axes.dim)
        for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
      for (const int64_t d : dims) sizes.push_back(x.size(d));
    }
    for (const int64_t n : sizes) check_length(n);
  }

  /** Converts the sizes to those of real results: the last one is 2 (n - 1) unless given. */
  void make_real(const Tensor& x, const Axes& axes) {
    const size_t last = sizes.size() - 1;
    if (!axes.s || (*axes.s)[last] == -1) sizes[last] = 2 * (x.size(dims[last]) - 1);
    check_length(sizes[last]);
  }
  double points() const {
    double n = 1;
    for (const int64_t size : sizes) n *= static_cast<double>(size);
    return n;
  }
};

/** c2c() along the first `count` of the dimensions. */
Tensor along(Tensor x, const TransformDims& shape, size_t count, bool inverse) {
  for (size_t i = count; i-- > 0;) x = c2c(resized(x, shape.dims[i], shape.sizes[i]), shape.dims[i], inverse, 1);
  return x;
}

Tensor complex_n(const char* op, const Tensor& x, const Axes& axes, std::string_view norm, bool inverse) {
  check_strided(op, x, "input");
  const Tensor in = in_complex(x);
  const TransformDims shape(x, axes);
  const double scale = scale_of(norm, shape.points(), !inverse);
  const size_t count = shape.dims.size();
  if (count == 0) return clone(in);
  const int64_t last = shape.dims[count - 1];
  return along(c2c(resized(in, last, shape.sizes[count - 1]), last, inverse, scale), shape, count - 1, inverse);
}

Tensor half_n(const char* op, const Tensor& x, const Axes& axes, std::string_view norm, bool inverse) {
  check_strided(op, x, "input");
  TERCEL_CHECK(!x.is_complex(), TypeError, op, " expects a real-valued input tensor, but got ",
               scalar_type_word(x.dtype()));
  const Tensor in = to(x, checked_dtype(x, false));
  const TransformDims shape(x, axes);
  const size_t count = shape.dims.size();
  TERCEL_CHECK(count > 0, RuntimeError, op, " must transform at least one axis");
  const double scale = scale_of(norm, shape.points(), !inverse);
  const int64_t last = shape.dims[count - 1];
  return along(r2c(resized(in, last, shape.sizes[count - 1]), last, inverse, scale), shape, count - 1, inverse);
}

Tensor real_n(const char* op, const Tensor& x, const Axes& axes, std::string_view norm, bool inverse) {
  check_strided(op, x, "input");
  const Tensor in = in_complex(x);
  TransformDims shape(x, axes);
  const size_t count = shape.dims.size();
  TERCEL_CHECK(count > 0, RuntimeError, op, " must transform at least one axis");
  shape.make_real(x, axes);
  const double scale = scale_of(norm, shape.points(), !inverse);
  const int64_t last = shape.dims[count - 1], n = shape.sizes[count - 1];
  return c2r(resized(along(in, shape, count - 1, inverse), last, n / 2 + 1), last, n, inverse, scale);
}

Tensor complex_1(const char* op, const Tensor& x, Length length, int64_t d, std::string_view norm, bool inverse) {
  check_strided(op, x, "input");
  const Tensor in = in_complex(x);
  const int64_t dim = dim_of(x, d), n = length.value_or(x.size(dim));
  check_length(n);
  return c2c(resized(in, dim, n), dim, inverse, scale_of(norm, static_cast<double>(n), !inverse));
}

Tensor half_1(const char* op, const Tensor& x, Length length, int64_t d, std::string_view norm, bool inverse) {
  check_strided(op, x, "input");
  TERCEL_CHECK(!x.is_complex(), TypeError, op, " expects a real input tensor, but got ", scalar_type_word(x.dtype()));
  const Tensor in = to(x, checked_dtype(x, false));
  const int64_t dim = dim_of(x, d), n = length.value_or(x.size(dim));
  check_length(n);
  return r2c(resized(in, dim, n), dim, inverse, scale_of(norm, static_cast<double>(n), !inverse));
}

Tensor real_1(const char* op, const Tensor& x, Length length, int64_t d, std::string_view norm, bool inverse) {
  check_strided(op, x, "input");
  const Tensor in = in_complex(x);
  const int64_t dim = dim_of(x, d), n = length.value_or(2 * (x.size(dim) - 1));
  check_length(n);
  return c2r(resized(in, dim, n / 2 + 1), dim, n, inverse, scale_of(norm, static_cast<double>(n), !inverse));
}

/** 0, 1, ... count - 1 divided by n d; from index `turned` on, n is subtracted first. */
Tensor frequencies(const char* op, int64_t count, int64_t n, double d, TensorOptions options, int64_t turned) {
  TERCEL_CHECK(is_differentiable(options.dtype), RuntimeError, op, " requires a floating point or complex dtype");
  TERCEL_CHECK(n >= 0, RuntimeError, "Trying to create tensor with negative dimension ", n, ": [", n, "]");
  const bool requires_grad = options.requires_grad;
  options.requires_grad = false;
  const NoRecordGuard no_record;
  Tensor k = arange(0, count, 1, options);
  if (turned < count) sub_(k.narrow(0, turned, count - turned), n);
  Tensor out = mul(k, 1 / (static_cast<double>(n) * d));
  if (requires_grad) out.requires_grad_();
  return out;
}

Tensor shifted(const Tensor& x, const std::optional<DimVector>& given, const char* op, bool back) {
  check_strided(op, x, "input");
  DimVector dims, shifts;
  if (given) {
    for (const int64_t d : *given) dims.push_back(wrap_dim(d, x.dim()));
  } else {
    for (int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
  }
  for (const int64_t d : dims) shifts.push_back(back ? (x.size(d) + 1) / 2 : x.size(d) / 2);
  return dims.empty() ? clone(x) : roll(x, shifts, dims);
}

}  // namespace

#define TERCEL_FFT(name, of, inverse)                                          \
  Tensor name(const Tensor& x, Length n, int64_t dim, std::string_view norm) { \
    return of##_1(#name, x, n, dim, norm, inverse);                            \
  }                                                                            \
  Tensor name##n(const Tensor& x, const Axes& axes, std::string_view norm) {   \
    return of##_n(#name "n", x, axes, norm, inverse);                          \
  }                                                                            \
  Tensor name##2(const Tensor& x, const Axes& axes, std::string_view norm) { return name##n(x, axes, norm); }
TERCEL_FFT(fft, complex, false)
TERCEL_FFT(ifft, complex, true)
TERCEL_FFT(rfft, half, false)
TERCEL_FFT(irfft, real, true)
TERCEL_FFT(hfft, real, false)
TERCEL_FFT(ihfft, half, true)
#undef TERCEL_FFT

Axes last_two() { return {std::nullopt, DimVector{-2, -1}}; }

Tensor fftfreq(int64_t n, double d, TensorOptions options) {
  return frequencies("fftfreq", n, n, d, options, (n + 1) / 2);
}
Tensor rfftfreq(int64_t n, double d, TensorOptions options) {
  return frequencies("rfftfreq", n / 2 + 1, n, d, options, n / 2 + 1);
}
Tensor fftshift(const Tensor& x, const std::optional<DimVector>& dim) { return shifted(x, dim, "fftshift", false); }
Tensor ifftshift(const Tensor& x, const std::optional<DimVector>& dim) { return shifted(x, dim, "ifftshift", true); }

}  // namespace tercel::fft
