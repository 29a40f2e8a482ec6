// What dropout is held to; see Note [Conformance rows].
#pragma once

#include <cmath>
#include <vector>

#include "tercel/ops/dropout.h"
#include "tercel/util/philox.h"
#include "tests/ops/rows.h"

namespace tercel::test {

inline Row dropout_row(const std::string& name, const Sizes& sizes, double p) {
  Row row;
  row.name = name;
  row.inputs = {{sizes}};
  row.run = [p](const std::vector<Tensor>& in) {
    Generator generator(42);
    return dropout(in[0], p, true, generator);
  };
  // Element 64 g + 16 w + b goes by word w of Philox block 16 g + b.
  row.reference = [p](const std::vector<Tensor>& in) {
    const Philox philox{42, 0};
    std::vector<double> values = values_of(in[0]);
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t word = philox(i / 64 * 16 + i % 16).word[i % 64 / 16];
      values[i] = static_cast<double>(word) < std::nearbyint(p * 0x1p32) ? 0 : values[i] / (1 - p);
    }
    return make(in[0].sizes().to_vector(), kFloat64, values);
  };
  return row;
}

inline std::vector<Row> dropout_rows() {
  return {dropout_row("dropout", {9, 37}, 0.5), dropout_row("dropout_few", {130}, 0.1),
          dropout_row("dropout_most", {3, 5, 7}, 0.9)};
}

}  // namespace tercel::test
