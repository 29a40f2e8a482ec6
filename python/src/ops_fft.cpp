// Fourier transforms: tercel.fft, stft and istft.
#include "tercel/ops/fft/fft.h"

#include "python/src/factory.h"
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/ops/fft/stft.h"

namespace tercel::python {

namespace {

using Dims = std::optional<DimVector>;
using Answer = std::optional<bool>;
using Norm = std::optional<std::string_view>;

#define TERCEL_FRAMES "int? hop_length=None, int? win_length=None, Tensor? window=None"

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
      entry(
          "fft_fftshift(Tensor input, int[1]? dim=None)",
          [](const Tensor& x, const Dims& dims) { return fft::fftshift(x, dims); }, kFft,
          "Rolls dimensions so that frequency 0 is in the middle."),
      entry(
          "fft_ifftshift(Tensor input, int[1]? dim=None)",
          [](const Tensor& x, const Dims& dims) { return fft::ifftshift(x, dims); }, kFft,
          "The inverse of fftshift()."),
      entry("stft(Tensor input, int n_fft, " TERCEL_FRAMES
            ", bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? "
            "return_complex=None, bool? align_to_window=None)",
            [](const Tensor& x, int64_t n_fft, fft::Length hop, fft::Length frame, const Tensor& window, bool center,
               std::string_view pad_mode, bool normalized, Answer onesided, Answer return_complex, Answer align) {
              return stft(x, n_fft, hop, frame, window, center, pad_mode, normalized, onesided, return_complex, align);
            }),
      entry("istft(Tensor input, int n_fft, " TERCEL_FRAMES
            ", bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool "
            "return_complex=False)",
            [](const Tensor& x, int64_t n_fft, fft::Length hop, fft::Length frame, const Tensor& window, bool center,
               bool normalized, Answer onesided, fft::Length length, bool return_complex) {
              return istft(x, n_fft, hop, frame, window, center, normalized, onesided, length, return_complex);
            }),
  };
  return table;
}

}  // namespace tercel::python
