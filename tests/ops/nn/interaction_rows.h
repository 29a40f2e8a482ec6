// Conformance rows of interactions; see Note [Conformance rows].
#pragma once

#include <vector>

#include "tercel/ops/nn/interaction.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** mlp may be undefined. */
inline Tensor dot_reference(const Tensor& mlp, const Tensor& emb, bool pad) {
  const auto batch = static_cast<size_t>(emb.size(0)), slots = static_cast<size_t>(emb.size(1)),
             d = static_cast<size_t>(emb.size(2));
  const size_t before = mlp.defined() ? 1 : 0, n = slots + before, passed = mlp.defined() ? d : slots * d;
  const std::vector<double> first = mlp.defined() ? values_of(mlp) : std::vector<double>(), others = values_of(emb);
  std::vector<double> out;
  for (size_t b = 0; b < batch; ++b) {
    const auto z = [&](size_t i, size_t k) {
      return i < before ? first[b * d + k] : others[(b * slots + i - before) * d + k];
    };
    for (size_t i = 0; i < passed; ++i) out.push_back(z(i / d, i % d));
    for (size_t i = 1; i < n; ++i) {
      for (size_t j = 0; j < i; ++j) {
        double sum = 0;
        for (size_t k = 0; k < d; ++k) sum += z(i, k) * z(j, k);
        out.push_back(sum);
      }
    }
    if (pad) out.push_back(0);
  }
  return make({emb.size(0), static_cast<int64_t>(passed + n * (n - 1) / 2 + (pad ? 1 : 0))}, kFloat64, out);
}

inline Row dot_row(const std::string& name, int64_t slots, int64_t dim, bool pad, int64_t batch = 3) {
  Row row;
  row.name = name;
  row.twice_differentiable = false;
  row.inputs = {{{batch, dim}}, {{batch, slots, dim}}};
  row.run = [pad](const std::vector<Tensor>& in) { return dot_interaction(in[0], in[1], pad); };
  row.reference = [pad](const std::vector<Tensor>& in) { return dot_reference(in[0], in[1], pad); };
  row.scale = static_cast<double>(10 * dim);
  if (slots * dim > 100) row.gradient_sizes = {{2, dim}, {2, 4, dim}};
  return row;
}

inline Row dot_row_without_mlp(const std::string& name, int64_t slots, int64_t dim, bool pad) {
  Row row;
  row.name = name;
  row.twice_differentiable = false;
  row.inputs = {{{3, slots, dim}}};
  row.run = [pad](const std::vector<Tensor>& in) { return dot_interaction(Tensor(), in[0], pad); };
  row.reference = [pad](const std::vector<Tensor>& in) { return dot_reference(Tensor(), in[0], pad); };
  row.scale = static_cast<double>(10 * dim);
  if (slots * dim > 100) row.gradient_sizes = {{2, 4, dim}};
  return row;
}

inline Row fm_row(const std::string& name, int64_t slots, int64_t dim) {
  Row row;
  row.name = name;
  row.twice_differentiable = false;
  row.inputs = {{{3, slots * dim}}};
  row.run = [dim](const std::vector<Tensor>& in) { return fm_order2(in[0], dim); };
  row.reference = [slots, dim](const std::vector<Tensor>& in) {
    const std::vector<double> x = values_of(in[0]);
    std::vector<double> out;
    for (int64_t b = 0; b < in[0].size(0); ++b) {
      for (int64_t k = 0; k < dim; ++k) {
        double sum = 0, squares = 0;
        for (int64_t s = 0; s < slots; ++s) {
          const double v = x[static_cast<size_t>((b * slots + s) * dim + k)];
          sum += v;
          squares += v * v;
        }
        out.push_back((sum * sum - squares) / 2);
      }
    }
    return make({in[0].size(0), dim}, kFloat64, out);
  };
  row.scale = 200;
  return row;
}

inline std::vector<Row> interaction_rows() {
  return {
      dot_row("dot_interaction_26x16", 26, 16, true),
      dot_row("dot_interaction_1x5", 1, 5, false),
      dot_row("dot_interaction_7x3", 7, 3, true),
      dot_row("dot_interaction_40x64", 40, 64, false),
      dot_row("dot_interaction_8x33", 8, 33, false),
      dot_row("dot_interaction_0x4", 0, 4, true),
      dot_row("dot_interaction_of_one_sample", 1, 5, false, 1),
      dot_row("dot_interaction_5x1", 5, 1, true),
      dot_row_without_mlp("dot_interaction_alone_26x16", 26, 16, true),
      dot_row_without_mlp("dot_interaction_alone_2x3", 2, 3, false),
      dot_row_without_mlp("dot_interaction_alone_1x5", 1, 5, true),
      fm_row("fm_order2", 5, 16),
      fm_row("fm_order2_odd", 3, 7),
  };
}

}  // namespace tercel::test
