// Conformance rows of packed weights; see Note [Conformance rows].
#pragma once

#include <string>
#include <vector>

#include "tercel/ops/linalg/packed_weight.h"
#include "tests/ops/nn/linear_rows.h"

namespace tercel::test {

/** linear() by a weight that is packed in the row: the weight has no gradient. */
inline Row packed_linear_row(const std::string& name, const Sizes& x, const Sizes& weight, bool has_bias) {
  Row row = layer_row(name, x, weight, has_bias, true, Activation::None);
  row.inputs[1].differentiable = false;
  row.run = [](const std::vector<Tensor>& in) {
    return linear(in[0], to_mkldnn(in[1]), in.size() > 2 ? in[2] : Tensor());
  };
  return row;
}

inline Row unpack_weight_row() {
  Row row;
  row.name = "unpack_weight";
  row.inputs = {{{37, 5}}};
  row.run = [](const std::vector<Tensor>& in) { return unpack_weight(to_mkldnn(in[0].detach())); };
  row.reference = [](const std::vector<Tensor>& in) { return in[0]; };
  row.dtypes = {kFloat32, kFloat64};
  row.differentiable = false;
  return row;
}

inline std::vector<Row> packed_weight_rows() {
  return {
      packed_linear_row("packed_linear", {5, 7}, {4, 7}, true),
      packed_linear_row("packed_linear_panels", {6, 20}, {70, 20}, true),
      packed_linear_row("packed_linear_without_bias", {5, 7}, {4, 7}, false),
      packed_linear_row("packed_linear_vector", {7}, {4, 7}, true),
      packed_linear_row("packed_linear_3d", {2, 3, 7}, {4, 7}, true),
      unpack_weight_row(),
  };
}

}  // namespace tercel::test
