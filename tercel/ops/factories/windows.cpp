#include "tercel/ops/factories/windows.h"

#include <cmath>

#include "tercel/core/convert.h"
#include "tercel/ops/common/new_tensor_impl.h"
#include "tercel/ops/special/special_math_impl.h"

namespace tercel {

namespace {

/** value(x) for x from 0 to 1 along the window. */
template <class Value>
Tensor make_window(const char* op, int64_t length, bool periodic, TensorOptions options, Value value) {
  TERCEL_CHECK(is_floating(options.dtype), RuntimeError, op,
               " expects floating point dtypes, got: ", to_string(options.dtype));
  TERCEL_CHECK(length >= 0, RuntimeError, op, " requires non-negative window_length, got window_length=", length);
  return detail::made({length}, options, [&](Tensor& out) {
    visit_floating_types(op, out.dtype(), [&]<class T> {
      T* values = out.data<T>();
      const auto last = static_cast<double>(periodic ? length : length - 1);
      for (int64_t i = 0; i < length; ++i)
        values[i] = convert<T>(length == 1 ? 1.0 : value(static_cast<double>(i) / last));
    });
  });
}

constexpr double kTurn = 6.283185307179586477;

}  // namespace

Tensor bartlett_window(int64_t window_length, bool periodic, TensorOptions options) {
  return make_window("bartlett_window", window_length, periodic, options,
                     [](double x) { return 1 - std::abs(2 * x - 1); });
}

Tensor blackman_window(int64_t window_length, bool periodic, TensorOptions options) {
  return make_window("blackman_window", window_length, periodic, options,
                     [](double x) { return 0.42 - 0.5 * std::cos(kTurn * x) + 0.08 * std::cos(2 * kTurn * x); });
}

Tensor hamming_window(int64_t window_length, bool periodic, double alpha, double beta, TensorOptions options) {
  return make_window("hamming_window", window_length, periodic, options,
                     [=](double x) { return alpha - beta * std::cos(kTurn * x); });
}

Tensor hann_window(int64_t window_length, bool periodic, TensorOptions options) {
  return make_window("hann_window", window_length, periodic, options,
                     [](double x) { return 0.5 - 0.5 * std::cos(kTurn * x); });
}

Tensor kaiser_window(int64_t window_length, bool periodic, double beta, TensorOptions options) {
  const double top = special::i0(beta);
  return make_window("kaiser_window", window_length, periodic, options, [=](double x) {
    const double t = 2 * x - 1;
    return special::i0(beta * std::sqrt(std::max(0.0, 1 - t * t))) / top;
  });
}

}  // namespace tercel
