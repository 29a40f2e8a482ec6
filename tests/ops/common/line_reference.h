// References for ops that work on lines of elements along a dimension.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/ops/rows.h"

namespace tercel::test {

using Line = std::vector<double>;

/** Applies f to each line along `dim`; the results, all of one length, replace the lines. */
inline Tensor map_lines(const Tensor& x, int64_t dim, const std::function<Line(const Line&)>& f) {
  const std::vector<double> v = values_of(x);
  Sizes sizes = x.sizes().to_vector();
  const size_t d = static_cast<size_t>(wrap_dim(dim, x.dim()));
  size_t outer = 1, inner = 1;
  const size_t n = static_cast<size_t>(sizes[d]);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i < d) outer *= static_cast<size_t>(sizes[i]);
    if (i > d) inner *= static_cast<size_t>(sizes[i]);
  }
  std::vector<double> out;
  size_t m = 0;
  for (size_t o = 0; o < outer; ++o) {
    for (size_t c = 0; c < inner; ++c) {
      Line line(n);
      for (size_t i = 0; i < n; ++i) line[i] = v[(o * n + i) * inner + c];
      const Line result = f(line);
      m = result.size();
      out.resize(outer * m * inner);
      for (size_t i = 0; i < m; ++i) out[(o * m + i) * inner + c] = result[i];
    }
  }
  sizes[d] = static_cast<int64_t>(m);
  return make(sizes, kFloat64, out);
}

/** A row of an op of one tensor that works on lines along `dim`; with `drop`, results of length 1 lose the dimension.
 */
inline Row line_row(const std::string& name, const Sizes& sizes, int64_t dim, Function run,
                    const std::function<Line(const Line&)>& f, bool drop = false) {
  Row row;
  row.name = name;
  row.inputs = {{sizes}};
  row.run = std::move(run);
  row.reference = [dim, f, drop](const std::vector<Tensor>& in) {
    const Tensor out = map_lines(in[0], dim, f);
    if (!drop) return out;
    Sizes left = out.sizes().to_vector();
    left.erase(left.begin() + wrap_dim(dim, out.dim()));
    return make(left, kFloat64, values_of(out));
  };
  row.dtypes = all_types();
  row.ulps = 0;
  return row;
}

}  // namespace tercel::test
