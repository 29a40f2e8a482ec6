// Conformance rows of reductions of segments; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tercel/ops/reduce/segment_reduce.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** Segments of lengths 2, 0, 4 of [6, 3]. */
inline Row segment_reduce_row(const std::string& reduce, double start, double (*combine)(double, double)) {
  Row row;
  row.name = "segment_" + reduce;
  row.inputs = {{{6, 3}}};
  row.run = [reduce](const std::vector<Tensor>& in) {
    return segment_reduce(in[0], reduce, make({3}, kInt64, {2, 0, 4}), {}, {}, 0, false, 0.5);
  };
  row.reference = [start, combine](const std::vector<Tensor>& in) {
    const std::vector<double> x = values_of(in[0]);
    std::vector<double> out(9, start);
    for (size_t i = 0; i < x.size(); ++i) {
      double& to = out[(i / 3 < 2 ? 0 : 6) + i % 3];
      to = combine(to, x[i]);
    }
    return make({3, 3}, kFloat64, out);
  };
  row.ulps = 8;
  row.scale = 16;
  return row;
}

inline std::vector<Row> segment_reduce_rows() {
  return {
      segment_reduce_row("sum", 0.5, [](double a, double b) { return a + b; }),
      segment_reduce_row("max", 0.5, [](double a, double b) { return std::max(a, b); }),
      segment_reduce_row("prod", 0.5, [](double a, double b) { return a * b; }),
  };
}

}  // namespace tercel::test
