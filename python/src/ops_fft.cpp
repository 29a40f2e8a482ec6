// Fourier transforms: tercel.fft.
#include "tercel/ops/fft/fft.h"

#include "python/src/factory.h"
#include "python/src/op.h"
#include "python/src/out.h"

namespace tercel::python {

namespace {

using Dims = std::optional<DimVector>;
using Norm = std::optional<std::string_view>;

std::string_view mode(Norm norm) { return norm.value_or("backward"); }

/** A transform of one dimension, of two, and of several. */
#define TERCEL_FFT_ENTRIES(name, doc)                                                                              \
  entry(                                                                                                           \
      "fft_" #name "(Tensor input, int n=None, int dim=-1, str norm=None, *, Tensor out=None)",                    \
      [](const Tensor& x, fft::Length n, int64_t dim, Norm norm, const Tensor& out) {                              \
        return into("fft_" #name, out, fft::name(x, n, dim, mode(norm)));                                          \
      },                                                                                                           \
      kFft, doc),                                                                                                  \
      entry(                                                                                                       \
          "fft_" #name "2(Tensor input, int[1]? s=None, int[1]? dim=(-2, -1), str norm=None, *, Tensor out=None)", \
          [](const Tensor& x, const Dims& s, const Dims& dim, Norm norm, const Tensor& out) {                      \
            return into("fft_" #name "2", out, fft::name##2(x, {s, dim}, mode(norm)));                             \
          },                                                                                                       \
          kFft, #name "() of two dimensions."),                                                                    \
      entry(                                                                                                       \
          "fft_" #name "n(Tensor input, int[1]? s=None, int[1]? dim=None, str norm=None, *, Tensor out=None)",     \
          [](const Tensor& x, const Dims& s, const Dims& dim, Norm norm, const Tensor& out) {                      \
            return into("fft_" #name "n", out, fft::name##n(x, {s, dim}, mode(norm)));                             \
          },                                                                                                       \
          kFft, #name "() of several dimensions.")

}  // namespace

Span<Entry> fft_ops() {
  static const Entry table[] = {
      TERCEL_FFT_ENTRIES(fft, "The discrete Fourier transform along a dimension."),
      TERCEL_FFT_ENTRIES(ifft, "The inverse of fft()."),
      TERCEL_FFT_ENTRIES(rfft, "The first half of the discrete Fourier transform of a real signal."),
      TERCEL_FFT_ENTRIES(irfft, "The inverse of rfft()."),
      TERCEL_FFT_ENTRIES(
          hfft, "The discrete Fourier transform, which is real, of a Hermitian signal given by its first half."),
      TERCEL_FFT_ENTRIES(ihfft, "The inverse of hfft()."),
      entry(
          "fft_fftfreq(int n, float d=1.0, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](int64_t n, double d, const Tensor& out, FactoryOptions o) {
            return made("fft_fftfreq", out, o, default_dtype(), [&](TensorOptions t) { return fft::fftfreq(n, d, t); });
          },
          kFft, "The sample frequencies of fft()."),
      entry(
          "fft_rfftfreq(int n, float d=1.0, *, Tensor out=None, " TERCEL_FACTORY_OPTIONS ")",
          [](int64_t n, double d, const Tensor& out, FactoryOptions o) {
            return made("fft_rfftfreq", out, o, default_dtype(),
                        [&](TensorOptions t) { return fft::rfftfreq(n, d, t); });
          },
          kFft, "The sample frequencies of rfft()."),
  };
  return table;
}

}  // namespace tercel::python
