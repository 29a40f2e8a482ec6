// Conformance rows of dropout; see Note [Conformance rows].
#pragma once

#include <cmath>
#include <vector>

#include "tercel/ops/nn/dropout.h"
#include "tercel/util/philox.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** Element i has word i of the mask at these positions. */
constexpr DropoutMask kDropoutMask{42, 5, 3 * 64 + 17};

using DropoutOp = Tensor (*)(const Tensor& x, double p, Generator& generator);
#define DROPOUT_OP(call) [](const Tensor& x, double p, Generator& g) { return call; }

/** channels: drops slices [i, c]. alpha: dropped elements become selu()'s limit, and all are scaled. */
inline Row dropout_row(const std::string& name, const Sizes& sizes, double p, DropoutOp op, bool channels = false,
                       bool alpha = false, DropoutMask mask = {42, 0, 0}) {
  Row row;
  row.name = name;
  row.inputs = {{sizes}};
  // Dropped elements are shifted back by nearly as much as they were shifted down.
  if (alpha) row.scale = 8;
  row.run = [p, op](const std::vector<Tensor>& in) {
    Generator generator(42);
    return op(in[0], p, generator);
  };
  // Element 64 g + 16 w + b uses word w of Philox block 16 g + b.
  row.reference = [p, channels, alpha, mask](const std::vector<Tensor>& in) {
    const Philox philox{mask.seed, mask.stream};
    const double limit = alpha ? -1.7580993408473766 : 0;
    const double scale = alpha ? 1 / std::sqrt((1 - p) * (1 + p * limit * limit)) : 1 / (1 - p);
    const size_t slice = channels ? static_cast<size_t>(in[0].numel() / in[0].size(0) / in[0].size(1)) : 1;
    std::vector<double> values = values_of(in[0]);
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t k = i / slice + static_cast<size_t>(mask.first);
      const uint32_t word = philox(k / 64 * 16 + k % 16).word[k % 64 / 16];
      const bool kept = static_cast<double>(word) >= std::nearbyint(p * 0x1p32);
      values[i] = scale * ((kept ? values[i] : limit) - p * limit);
    }
    return make(in[0].sizes().to_vector(), kFloat64, values);
  };
  return row;
}

inline std::vector<Row> dropout_rows() {
  const DropoutOp plain = DROPOUT_OP(dropout(x, p, true, g));
  const DropoutOp by_mask = [](const Tensor& x, double p, Generator&) { return dropout(x, p, kDropoutMask); };
  return {dropout_row("dropout", {9, 37}, 0.5, plain),
          dropout_row("dropout_few", {130}, 0.1, plain),
          dropout_row("dropout_most", {3, 5, 7}, 0.9, plain),
          dropout_row("dropout_mask", {9, 37}, 0.5, by_mask, false, false, kDropoutMask),
          dropout_row("feature_dropout", {5, 7, 3}, 0.4, DROPOUT_OP(feature_dropout(x, p, true, g)), true),
          dropout_row("alpha_dropout", {9, 37}, 0.3, DROPOUT_OP(alpha_dropout(x, p, true, g)), false, true),
          dropout_row("feature_alpha_dropout", {5, 7, 3, 2}, 0.4, DROPOUT_OP(feature_alpha_dropout(x, p, true, g)),
                      true, true)};
}
#undef DROPOUT_OP

}  // namespace tercel::test
