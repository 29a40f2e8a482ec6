// Conformance rows of index_put, index_add, index_copy and index_fill; see Note [Conformance rows].
#pragma once

#include <vector>

#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/index_put.h"
#include "tests/ops/index/gather_rows.h"

namespace tercel::test {

/** For x [3, 4, 2] and source [3, n, 2]: change(element of x, element of source) at x[:, index[i]], source[:, i]. */
template <class Change>
Function slices_reference(Change change) {
  return [change](const std::vector<Tensor>& in) {
    std::vector<double> out = values_of(in[0]);
    const std::vector<double> index = values_of(in[1]), source = values_of(in[2]);
    for (size_t b = 0; b < 3; ++b)
      for (size_t i = 0; i < index.size(); ++i)
        for (size_t a = 0; a < 2; ++a)
          change(out[(b * 4 + static_cast<size_t>(index[i])) * 2 + a], source[(b * index.size() + i) * 2 + a]);
    return make({3, 4, 2}, kFloat64, out);
  };
}

inline std::vector<Row> index_put_rows() {
  using Tensors = std::vector<Tensor>;
  std::vector<Row> rows;
  const Input x = {{3, 4, 2}}, five = {{5}, 0, 3, kInt64, false};
  Row row = index_row(
      "index_add", {x, five, {{3, 5, 2}}}, [](const Tensors& in) { return index_add(in[0], 1, in[1], in[2], 2); },
      slices_reference([](double& to, double from) { to += 2 * from; }));
  row.inplace = [](const Tensors& in) { index_add_(in[0], 1, in[1], in[2], 2); };
  row.ulps = 4;
  row.scale = 60;
  rows.push_back(row);
  // One index: among duplicates the last value remains, and the others have no gradient.
  row = index_row(
      "index_copy", {x, {{1}, 0, 3, kInt32, false}, {{3, 1, 2}}},
      [](const Tensors& in) { return index_copy(in[0], -2, in[1], in[2]); },
      slices_reference([](double& to, double from) { to = from; }));
  row.inplace = [](const Tensors& in) { index_copy_(in[0], 1, in[1], in[2]); };
  rows.push_back(row);
  row = index_row(
      "index_fill", {x, five}, [](const Tensors& in) { return index_fill(in[0], 1, in[1], 3); },
      [](const Tensors& in) {
        return slices_reference([](double& to, double) { to = 3; })({in[0], in[1], zeros({3, 5, 2}, kFloat64)});
      });
  row.inplace = [](const Tensors& in) { index_fill_(in[0], 1, in[1], 3); };
  rows.push_back(row);
  row = index_row(
      "put", {{{4, 5}}, {{2, 3}, -20, 19, kInt64, false}, {{6}}},
      [](const Tensors& in) { return put(in[0], in[1], in[2], true); },
      [](const Tensors& in) {
        std::vector<double> out = values_of(in[0]);
        const std::vector<double> index = values_of(in[1]), source = values_of(in[2]);
        for (size_t i = 0; i < 6; ++i) out[static_cast<size_t>(index[i] < 0 ? index[i] + 20 : index[i])] += source[i];
        return make({4, 5}, kFloat64, out);
      });
  row.inplace = [](const Tensors& in) { put_(in[0], in[1], in[2], true); };
  row.ulps = 4;
  row.scale = 40;
  rows.push_back(row);
  rows.push_back(index_row(
      "take_along_dim", {{{3, 1, 4}}, {{1, 2, 5}, 0, 3, kInt64, false}},
      [](const Tensors& in) { return take_along_dim(in[0], in[1], -1); },
      [](const Tensors& in) {
        std::vector<double> out;
        const std::vector<double> values = values_of(in[0]), index = values_of(in[1]);
        for (size_t i = 0; i < 3; ++i)
          for (size_t j = 0; j < 2; ++j)
            for (size_t k = 0; k < 5; ++k) out.push_back(values[i * 4 + static_cast<size_t>(index[j * 5 + k])]);
        return make({3, 2, 5}, kFloat64, out);
      }));
  row = index_row(
      "masked_scatter", {{{3, 4}}, {{4}, 0, 1, kBool, false}, {{14}}},
      [](const Tensors& in) { return masked_scatter(in[0], in[1], in[2]); },
      [](const Tensors& in) {
        std::vector<double> out = values_of(in[0]);
        const std::vector<double> mask = values_of(in[1]), source = values_of(in[2]);
        size_t next = 0;
        for (size_t i = 0; i < 12; ++i)
          if (mask[i % 4] != 0) out[i] = source[next++];
        return make({3, 4}, kFloat64, out);
      });
  row.inplace = [](const Tensors& in) { masked_scatter_(in[0], in[1], in[2]); };
  rows.push_back(row);
  return rows;
}

}  // namespace tercel::test
