#include "tercel/ops/fft/stft.h"

#include <array>

#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/fft/fft.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/pad.h"
#include "tercel/ops/views/slicing.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/warning.h"

namespace tercel {

namespace {

struct Option {
  const char* name;
  std::optional<int64_t> value;
};

std::string typed(const Tensor& t) { return str_cat({"tercel.", scalar_type_word(t.dtype()), "Tensor"}); }

/** A call's window, and its arguments for error messages. */
struct FrameCall {
  const char* name;
  const Tensor& x;
  int64_t n_fft, hop_length, win_length;
  const Tensor& window;
  std::array<Option, 5> options;

  std::string text() const {
    std::string out = str_cat(
        {name, "(", typed(x), x.sizes(), ", n_fft=", n_fft, ", hop_length=", hop_length, ", win_length=", win_length,
         ", window=", window.defined() ? str_cat({typed(window), "{", window.sizes(), "}"}) : "None"});
    for (const Option& o : options) {
      if (!o.name) break;
      out += str_cat({", ", o.name, "="});
      out += o.value ? str_cat({*o.value}) : "None";
    }
    return out + ")";
  }

  void check(bool fits, std::initializer_list<detail::MessagePart> sentence) const {
    if (!fits) throw_error<RuntimeError>({text(), " : ", str_cat(sentence)});
  }

  /** The window, centred in a frame; ones without a window. */
  Tensor padded_window() const {
    const Tensor w = window.defined() ? window : ones({win_length}, TensorOptions(real_dtype(x.dtype()), x.device()));
    const int64_t left = (n_fft - win_length) / 2;
    return win_length < n_fft ? constant_pad_nd(w, {left, n_fft - win_length - left}) : w;
  }
};

/** x padded on both sides. */
Tensor continued(const Tensor& x, int64_t by, std::string_view mode) {
  TERCEL_CHECK(mode == "constant" || mode == "reflect" || mode == "replicate" || mode == "circular",
               NotImplementedError, "Unrecognised padding mode ", mode);
  DimVector extended, sizes(x.sizes());
  for (size_t d = sizes.size(); d < 3; ++d) extended.push_back(1);
  for (const int64_t size : sizes) extended.push_back(size);
  if (!sizes.empty()) sizes[sizes.size() - 1] += 2 * by;
  return reshape(pad(reshape(x, extended), {by, by}, mode), sizes);
}

/** Overlap-add of frames [..., count, n] at distance `hop`. */
Tensor overlapped(const Tensor& frames, int64_t size, int64_t hop) {
  const int64_t count = frames.size(-2), n = frames.size(-1);
  const Tensor places = flatten(add(mul(unsqueeze(arange(count), -1), hop), arange(n)));
  DimVector sizes(frames.sizes().subspan(0, frames.sizes().size() - 1));
  sizes[sizes.size() - 1] = size;
  return index_add(zeros(sizes, TensorOptions(frames.dtype(), frames.device())), -1, places, flatten(frames, -2));
}

std::string_view norm_of(bool normalized) { return normalized ? "ortho" : "backward"; }

}  // namespace

Tensor stft(const Tensor& given, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
            const Tensor& window, bool center, std::string_view pad_mode, bool normalized, std::optional<bool> onesided,
            std::optional<bool> return_complex, std::optional<bool> align_to_window) {
  check_strided("stft", given, "input");
  if (!window.defined())
    warn(
        "A window was not provided. A rectangular window will be applied, which is known to cause spectral leakage. "
        "Other windows such as hann_window() are recommended.");
  TERCEL_CHECK(!center || !align_to_window, RuntimeError,
               "stft align_to_window should only be set when center = false");
  const Tensor x = center ? continued(given, n_fft / 2, pad_mode) : given;
  const FrameCall call{"stft",
                       x,
                       n_fft,
                       hop_length.value_or(n_fft / 4),
                       win_length.value_or(n_fft),
                       window,
                       {{{"normalized", normalized},
                         {"onesided", onesided},
                         {"return_complex", return_complex},
                         {"align_to_window", align_to_window}}}};
  const bool is_complex = x.is_complex() || (window.defined() && window.is_complex());
  // PyTorch 2 requires return_complex for real signals; older programs rely on the pairs.
  const bool as_complex = return_complex.value_or(is_complex);
  if (!as_complex)
    warn(
        "stft() with return_complex=False is deprecated: use return_complex=True, and view_as_real() of the result "
        "for pairs of real numbers.");
  TERCEL_CHECK(x.is_differentiable(), NotImplementedError, call.text(),
               " : expected a tensor of floating point or complex values");
  call.check(x.dim() == 1 || x.dim() == 2, {"expected a 1D or 2D tensor"});
  const int64_t size = x.size(-1);
  call.check(0 < n_fft && n_fft <= size, {"expected 0 < n_fft < ", size, ", but got n_fft=", n_fft});
  call.check(call.hop_length > 0, {"expected hop_length > 0, but got hop_length=", call.hop_length});
  call.check(0 < call.win_length && call.win_length <= n_fft,
             {"expected 0 < win_length <= n_fft, but got win_length=", call.win_length});
  call.check(!window.defined() || window.sizes() == IntSpan({call.win_length}),
             {"expected a 1D window tensor of size equal to win_length=", call.win_length,
              ", but got window with size ", window.defined() ? window.sizes() : IntSpan()});
  const bool half = onesided.value_or(!is_complex);
  TERCEL_CHECK(!half || !is_complex, RuntimeError, "Cannot have onesided output if window or input is complex");
  Tensor frames = unfold(x, -1, n_fft, call.hop_length);
  if (window.defined() || call.win_length < n_fft) frames = mul(frames, call.padded_window());
  const Tensor out = transpose((half ? fft::rfft : fft::fft)(frames, std::nullopt, -1, norm_of(normalized)), -1, -2);
  return as_complex ? out : view_as_real(contiguous(out));
}

namespace {

/** Checks the arguments of istft(). */
void check_inverse(const FrameCall& call, bool half, bool return_complex) {
  const int64_t count = call.x.size(-2), wanted = half ? call.n_fft / 2 + 1 : call.n_fft;
  call.check(count == wanted,
             {"expected the frequency dimension (3rd to the last) of the input tensor to match ",
              half ? "n_fft / 2 + 1 when onesided=True" : "n_fft when onesided=False", ", but got ", count});
  call.check(0 < call.hop_length && call.hop_length <= call.win_length, {"expected 0 < hop_length <= win_length"});
  call.check(0 < call.win_length && call.win_length <= call.n_fft, {"expected 0 < win_length <= n_fft"});
  call.check(!call.window.defined() || call.window.sizes() == IntSpan({call.win_length}),
             {"Invalid window shape. window has to be 1D and length of `win_length`"});
  TERCEL_CHECK(!return_complex || !half, RuntimeError, "Cannot have onesided output if window or input is complex");
  TERCEL_CHECK(return_complex || !call.window.defined() || !call.window.is_complex(), RuntimeError,
               "Complex windows are incompatible with return_complex=False");
}

}  // namespace

Tensor istft(const Tensor& given, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
             const Tensor& window, bool center, bool normalized, std::optional<bool> onesided,
             std::optional<int64_t> length, bool return_complex) {
  check_strided("istft", given, "input");
  if (!window.defined())
    warn(
        "A window was not provided. A rectangular window will be applied. Please provide the same window used by stft "
        "to make the inversion lossless.");
  const int64_t frame = win_length.value_or(n_fft), hop = hop_length.value_or(frame / 4);
  Tensor x = given;
  const FrameCall call{"istft",
                       x,
                       n_fft,
                       hop,
                       frame,
                       window,
                       {{{"center", center},
                         {"normalized", normalized},
                         {"onesided", onesided},
                         {"length", length},
                         {"return_complex", return_complex}}}};
  const bool pairs = !x.is_complex() && x.dim() > 2 && x.size(-1) == 2;
  TERCEL_CHECK(pairs || x.is_complex(), TypeError,
               "istft requires a complex-valued input tensor matching the output from stft with return_complex=True.");
  call.check(x.numel() > 0, {"input tensor cannot be empty."});
  if (pairs) {
    warn("istft() of pairs of real numbers is deprecated: convert them by view_as_complex().");
    x = view_as_complex(contiguous(x));
  }
  call.check(x.dim() == 2 || x.dim() == 3, {"expected a tensor with 3 or 4 dimensions, but got ", x.dim() + 1});
  const bool half = onesided.value_or(x.size(-2) != n_fft);
  check_inverse(call, half, return_complex);
  Tensor parts = transpose(x, -1, -2);
  if (return_complex)
    parts = fft::ifft(parts, std::nullopt, -1, norm_of(normalized));
  else
    parts = fft::irfft(half ? parts : narrow(parts, -1, 0, n_fft / 2 + 1), n_fft, -1, norm_of(normalized));
  const Tensor padded = call.padded_window();
  const int64_t frames = x.size(-1), size = n_fft + hop * (frames - 1), start = center ? n_fft / 2 : 0;
  const Tensor weights = overlapped(expand(mul(padded, padded), {1, frames, n_fft}), size, hop);
  const int64_t end = length ? start + *length : size - start;
  const Tensor weight = slice(select(weights, 0, 0), 0, start, end);
  call.check(weight.numel() == 0 || min(abs(weight)).item<double>() > 1e-11, {"window overlap add min: 1"});
  Tensor out = div(slice(overlapped(mul(parts, padded), size, hop), -1, start, end), weight);
  if (end > size) {
    warn(
        "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
        "Please check your center and hop_length settings.");
    out = constant_pad_nd(out, {0, end - size});
  }
  return out;
}

}  // namespace tercel
