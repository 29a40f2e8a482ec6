// Activations: functions of tercel.nn.functional, some also of tercel.
#include "python/src/op.h"
#include "python/src/out.h"
#include "tercel/ops/elementwise/activation.h"
#include "tercel/ops/elementwise/unary.h"

namespace tercel::python {

namespace {

#define TERCEL_ACTIVATION_ENTRIES(name, flags)                                                           \
  entry(                                                                                                 \
      #name "(Tensor input, bool inplace=False)",                                                        \
      [](const Tensor& x, bool in_place) -> Tensor { return in_place ? name##_(x) : name(x); }, kNn),    \
      entry(                                                                                             \
          #name "_(Tensor input)", [](const Tensor& x) -> Tensor { return name##_(x); }, kNn | (flags)), \
      entry(                                                                                             \
          #name "(Tensor input)", [](const Tensor& x) { return name(x); }, flags)

// With one number.
#define TERCEL_UNIT_ENTRIES(name, Type, parameter, flags)                                            \
  entry(                                                                                             \
      #name "(Tensor input, " parameter ", bool inplace=False)",                                     \
      [](const Tensor& x, Type number, bool in_place) -> Tensor {                                    \
        return in_place ? name##_(x, number) : name(x, number);                                      \
      },                                                                                             \
      kNn),                                                                                          \
      entry(                                                                                         \
          #name "_(Tensor input, " parameter ")",                                                    \
          [](const Tensor& x, Type number) -> Tensor { return name##_(x, number); }, kNn | (flags)), \
      entry(                                                                                         \
          #name "(Tensor input, " parameter ")", [](const Tensor& x, Type number) { return name(x, number); }, flags)

#define TERCEL_SLOPES ", float lower=0.125, float upper=0.3333333333333333, bool training=False"

void check_bounds(const Scalar& low, const Scalar& high) {
  TERCEL_CHECK(low.to_double() <= high.to_double(), ValueError, "min_val cannot be greater than max_val");
}

}  // namespace

Span<Entry> activation_ops() {
  static const Entry table[] = {
      TERCEL_ACTIVATION_ENTRIES(relu, 0),
      TERCEL_ACTIVATION_ENTRIES(silu, 0),
      TERCEL_ACTIVATION_ENTRIES(relu6, 0),
      TERCEL_ACTIVATION_ENTRIES(hardsigmoid, 0),
      TERCEL_ACTIVATION_ENTRIES(hardswish, 0),
      TERCEL_ACTIVATION_ENTRIES(mish, 0),
      TERCEL_ACTIVATION_ENTRIES(selu, kFunction),
      TERCEL_UNIT_ENTRIES(elu, double, "float alpha=1.0", 0),
      TERCEL_UNIT_ENTRIES(celu, double, "float alpha=1.0", kFunction),
      TERCEL_UNIT_ENTRIES(leaky_relu, Scalar, "Scalar negative_slope=0.01", 0),
      entry(
          "hardtanh(Tensor input, Scalar min_val=-1.0, Scalar max_val=1.0, bool inplace=False)",
          [](const Tensor& x, Scalar low, Scalar high, bool in_place) -> Tensor {
            check_bounds(low, high);
            return in_place ? hardtanh_(x, low, high) : hardtanh(x, low, high);
          },
          kNn),
      entry(
          "hardtanh_(Tensor input, Scalar min_val=-1.0, Scalar max_val=1.0)",
          [](const Tensor& x, Scalar low, Scalar high) -> Tensor {
            check_bounds(low, high);
            return hardtanh_(x, low, high);
          },
          kNn),
      entry(
          "threshold(Tensor input, Scalar threshold, Scalar value, bool inplace=False)",
          [](const Tensor& x, Scalar limit, Scalar value, bool in_place) -> Tensor {
            return in_place ? threshold_(x, limit, value) : threshold(x, limit, value);
          },
          kNn),
      entry(
          "gelu(Tensor input, *, str approximate=\"none\", Tensor out=None)",
          [](const Tensor& x, std::string_view approximate, const Tensor& out) {
            return into("gelu", out, gelu(x, approximate));
          },
          kNn),
      entry(
          "logsigmoid(Tensor input, *, Tensor out=None)",
          [](const Tensor& x, const Tensor& out) { return into("log_sigmoid_forward", out, logsigmoid(x)); }, kNn),
      entry(
          "rrelu(Tensor input" TERCEL_SLOPES ", bool inplace=False)",
          [](const Tensor& x, double lower, double upper, bool training, bool in_place) -> Tensor {
            return in_place ? rrelu_(x, lower, upper, training) : rrelu(x, lower, upper, training);
          },
          kNn),
  };
  return table;
}

}  // namespace tercel::python
