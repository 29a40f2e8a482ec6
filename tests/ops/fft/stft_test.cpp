#include "tercel/ops/fft/stft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/factories/windows.h"
#include "tercel/ops/views/pad.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/warning.h"
#include "tests/ops/linalg/linalg_support.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::test {

namespace {

using Complexes = std::vector<std::complex<double>>;

/** Frequency k of the frame that begins at `at`, by its definition. */
std::complex<double> frequency(const Complexes& x, int64_t at, const std::vector<double>& window, int64_t k) {
  std::complex<double> sum = 0;
  const auto n = static_cast<int64_t>(window.size());
  for (int64_t i = 0; i < n; ++i) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(i * k) / static_cast<double>(n);
    sum += x[static_cast<size_t>(at + i)] * window[static_cast<size_t>(i)] * std::polar(1.0, angle);
  }
  return sum;
}

/** The warnings of a call. */
template <class F>
std::vector<std::string> warnings_of(F call) {
  static std::vector<std::string> seen;
  seen.clear();
  const WarningHandler before = set_warning_handler([](const std::string& text) { seen.push_back(text); });
  call();
  set_warning_handler(before);
  return seen;
}

}  // namespace

TEST(Stft, FramesByTheirDefinition) {
  const Tensor x = random({2, 20}, kFloat64, -1, 1, 1), w = random({6}, kFloat64, 0.5, 1, 2);
  for (const bool center : {false, true}) {
    const Tensor got = stft(x, 8, 3, 6, w, center, "reflect", false, {}, true);
    const Tensor signal = center ? select(pad(unsqueeze(x, 0), {4, 4}, "reflect"), 0, 0) : x;
    const int64_t frames = 1 + (signal.size(1) - 8) / 3;
    ASSERT_EQ(got.sizes(), IntSpan({2, 5, frames}));
    std::vector<double> window(8, 0.0);
    for (size_t i = 0; i < 6; ++i) window[i + 1] = values_of(w)[i];
    const Complexes all = complex_values_of(got);
    for (int64_t s = 0; s < 2; ++s)
      for (int64_t k = 0; k < 5; ++k)
        for (int64_t f = 0; f < frames; ++f) {
          const auto want = frequency(complex_values_of(select(signal, 0, s)), 3 * f, window, k);
          EXPECT_LT(std::abs(all[static_cast<size_t>((s * 5 + k) * frames + f)] - want), 1e-12);
        }
  }
}

TEST(Stft, IsUndone) {
  for (const ScalarType type : {kFloat64, kComplex128}) {
    const bool is_complex = type == kComplex128;
    const Tensor x = is_complex ? complex(random({40}, kFloat64, -1, 1, 1), random({40}, kFloat64, -1, 1, 2))
                                : random({40}, kFloat64, -1, 1, 1);
    const Tensor w = hann_window(8, true, kFloat64);
    for (const bool normalized : {false, true}) {
      const Tensor frames = stft(x, 8, 2, {}, w, true, "constant", normalized, {}, true);
      EXPECT_EQ(frames.size(0), is_complex ? 8 : 5);
      expect_close(istft(frames, 8, 2, {}, w, true, normalized, {}, 40, is_complex), x, 1e-12);
    }
    const Tensor all = stft(x, 8, 2, {}, ones({8}, kFloat64), false, "reflect", false, false, true);
    expect_close(istft(all, 8, 2, {}, ones({8}, kFloat64), false, false, false, {}, is_complex), x, 1e-12);
  }
}

TEST(Stft, Gradient) {
  const Tensor x = random({1, 12}, kFloat64, -1, 1, 1), w = random({4}, kFloat64, 0.5, 1, 2);
  EXPECT_TRUE(gradients_agree(
      [](const std::vector<Tensor>& in) {
        return view_as_real(stft(in[0], 4, 2, {}, in[1], true, "reflect", false, {}, true));
      },
      {x, w}));
  const Tensor frames = stft(x.detach(), 4, 2, {}, w.detach(), true, "reflect", false, {}, true);
  EXPECT_TRUE(
      gradients_agree([&](const std::vector<Tensor>& in) { return istft(in[0], 4, 2, {}, in[1]); }, {frames, w}));
}

TEST(Stft, Warnings) {
  const Tensor x = random({20}, kFloat64, -1, 1, 1), w = ones({4}, kFloat64);
  Tensor pairs;
  EXPECT_EQ(warnings_of([&] { pairs = stft(x, 4, {}, {}, w); }).size(), 1U);
  EXPECT_EQ(pairs.sizes(), IntSpan({3, 21, 2}));
  EXPECT_EQ(warnings_of([&] { expect_close(istft(pairs, 4, {}, {}, w), x, 1e-12); }).size(), 1U);
  EXPECT_EQ(warnings_of([&] { static_cast<void>(stft(x, 4, {}, {}, {}, true, "reflect", false, {}, true)); }).size(),
            1U);
  const Tensor frames = view_as_complex(pairs);
  EXPECT_EQ(warnings_of([&] {
              const Tensor longer = istft(frames, 4, {}, {}, w, true, false, {}, 30);
              EXPECT_EQ(values_of(slice(longer, 0, 22)), std::vector<double>(8, 0.0));
            }).size(),
            1U);
}

TEST(Stft, Errors) {
  const Tensor x = ones({20}), w = ones({4});
  const auto call = [&](const Tensor& signal, int64_t n_fft, std::optional<int64_t> hop, std::optional<int64_t> win,
                        const Tensor& window) {
    return stft(signal, n_fft, hop, win, window, false, "reflect", false, {}, true);
  };
  TERCEL_EXPECT_THROW(
      call(x, 30, {}, {}, ones({30})), RuntimeError,
      "stft(tercel.FloatTensor[20], n_fft=30, hop_length=7, win_length=30, window=tercel.FloatTensor{[30]}, "
      "normalized=0, onesided=None, return_complex=1, align_to_window=None) : expected 0 < n_fft < 20, but got "
      "n_fft=30");
  TERCEL_EXPECT_THROW(call(x, 4, 0, {}, w), RuntimeError, "expected hop_length > 0");
  TERCEL_EXPECT_THROW(call(x, 4, {}, 5, w), RuntimeError, "expected 0 < win_length <= n_fft");
  TERCEL_EXPECT_THROW(call(x, 4, {}, {}, ones({3})), RuntimeError,
                      "expected a 1D window tensor of size equal to win_length=4, but got window with size [3]");
  TERCEL_EXPECT_THROW(call(x.view({1, 1, 20}), 4, {}, {}, w), RuntimeError, "expected a 1D or 2D tensor");
  TERCEL_EXPECT_THROW(call(arange(20), 4, {}, {}, w), NotImplementedError, "tensor of floating point or complex");
  TERCEL_EXPECT_THROW(stft(x, 4, {}, {}, w, true, "mirror"), NotImplementedError, "Unrecognised padding mode mirror");
  TERCEL_EXPECT_THROW(stft(x, 4, {}, {}, w, true, "reflect", false, {}, true, true), RuntimeError,
                      "align_to_window should only be set when center = false");
  TERCEL_EXPECT_THROW(stft(to(x, kComplex64), 4, {}, {}, w, true, "reflect", false, true), RuntimeError,
                      "Cannot have onesided output");
  const Tensor frames = ones({3, 5}, kComplex64);
  TERCEL_EXPECT_THROW(istft(frames, 4, 9, {}, w), RuntimeError, "expected 0 < hop_length <= win_length");
  TERCEL_EXPECT_THROW(istft(frames, 4, {}, {}, zeros({4})), RuntimeError, "window overlap add min: 1");
  TERCEL_EXPECT_THROW(istft(frames, 6, {}, {}, w), RuntimeError, "expected the frequency dimension");
  TERCEL_EXPECT_THROW(istft(empty({3, 0}, kComplex64), 4, {}, {}, w), RuntimeError, "input tensor cannot be empty");
  TERCEL_EXPECT_THROW(istft(ones({3, 5}), 4, {}, {}, w), TypeError, "requires a complex-valued input");
  TERCEL_EXPECT_THROW(istft(frames, 4, {}, {}, w, true, false, true, {}, true), RuntimeError, "onesided output");
}

}  // namespace tercel::test
