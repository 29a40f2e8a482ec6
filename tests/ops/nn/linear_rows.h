// Conformance rows of linear layers; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <vector>

#include "tercel/ops/nn/linear.h"
#include "tests/ops/linalg/matmul_rows.h"

namespace tercel::test {

/** activation(x w + bias), w [in, out], or [out, in] where it is transposed; the bias may be undefined. */
inline Tensor layer_reference(const Tensor& x, const Tensor& w, const Tensor& bias, bool transposed, bool relu) {
  const size_t in = static_cast<size_t>(x.size(-1)), out = static_cast<size_t>(w.numel()) / in;
  const std::vector<double> left = values_of(x), right = values_of(w),
                            shift = bias.defined() ? values_of(bias) : std::vector<double>(out, 0);
  std::vector<double> y;
  for (size_t r = 0; r < left.size() / in; ++r) {
    for (size_t c = 0; c < out; ++c) {
      double sum = shift[c];
      for (size_t p = 0; p < in; ++p) sum += left[r * in + p] * right[transposed ? c * in + p : p * out + c];
      y.push_back(relu ? std::max(sum, 0.0) : sum);
    }
  }
  Sizes sizes = x.sizes().to_vector();
  sizes.back() = static_cast<int64_t>(out);
  return make(sizes, kFloat64, y);
}

inline Row layer_row(const std::string& name, const Sizes& x, const Sizes& weight, bool has_bias, bool transposed,
                     Activation activation) {
  Row row;
  row.name = name;
  row.twice_differentiable = transposed;  // linear() is differentiable twice; inner_product() is fused
  row.inputs = {{x}, {weight}};
  if (has_bias) row.inputs.push_back({{weight[transposed ? 0 : 1]}});
  const auto bias_of = [](const std::vector<Tensor>& in) { return in.size() > 2 ? in[2] : Tensor(); };
  row.run = [=](const std::vector<Tensor>& in) {
    return transposed ? linear(in[0], in[1], bias_of(in)) : inner_product(in[0], in[1], bias_of(in), activation);
  };
  row.reference = [=](const std::vector<Tensor>& in) {
    return layer_reference(in[0], in[1], bias_of(in), transposed, activation == Activation::Relu);
  };
  allow_for_products(row, x.back());
  if (x.back() > 20) row.gradient_sizes = {{3, 9}, {9, 4}, {4}};
  return row;
}

/** Layers of the given widths, with a ReLU after all but perhaps the last; every second one has a bias. */
inline Row mlp_row(const std::string& name, int64_t n, const Sizes& widths, bool relu_at_end) {
  const size_t layers = widths.size() - 1;
  const auto has_bias = [](size_t layer) { return layer % 2 == 0; };
  const auto activation = [=](size_t layer) {
    return layer + 1 < layers || relu_at_end ? Activation::Relu : Activation::None;
  };
  Row row;
  row.name = name;
  row.twice_differentiable = false;
  row.inputs = {{{n, widths[0]}}};
  double largest = 3;
  for (size_t i = 0; i < layers; ++i) {
    row.inputs.push_back({{widths[i], widths[i + 1]}, -1, 1});
    if (has_bias(i)) row.inputs.push_back({{widths[i + 1]}, -1, 1});
    largest = largest * static_cast<double>(widths[i]) + 1;
  }
  row.run = [=](const std::vector<Tensor>& in) {
    std::vector<Tensor> weights, biases;
    std::vector<Activation> activations;
    size_t at = 1;
    for (size_t i = 0; i < layers; ++i) {
      weights.push_back(in[at++]);
      biases.push_back(has_bias(i) ? in[at++] : Tensor());
      activations.push_back(activation(i));
    }
    return mlp(in[0], weights, biases, activations);
  };
  row.reference = [=](const std::vector<Tensor>& in) {
    Tensor h = in[0];
    size_t at = 1;
    for (size_t i = 0; i < layers; ++i) {
      const Tensor& w = in[at++];
      h = layer_reference(h, w, has_bias(i) ? in[at++] : Tensor(), false, activation(i) == Activation::Relu);
    }
    return h;
  };
  allow_for_products(row, 1);
  row.scale = largest;
  return row;
}

inline std::vector<Row> linear_rows() {
  return {
      layer_row("linear", {5, 7}, {4, 7}, true, true, Activation::None),
      layer_row("linear_without_bias", {5, 7}, {4, 7}, false, true, Activation::None),
      layer_row("linear_vector", {7}, {4, 7}, true, true, Activation::None),
      layer_row("linear_3d", {2, 3, 7}, {4, 7}, true, true, Activation::None),
      layer_row("inner_product", {5, 7}, {7, 4}, true, false, Activation::None),
      layer_row("inner_product_without_bias", {5, 7}, {7, 4}, false, false, Activation::None),
      layer_row("inner_product_relu", {6, 33}, {33, 20}, true, false, Activation::Relu),
      mlp_row("mlp", 6, {9, 8, 5, 3}, false),
      mlp_row("mlp_relu_at_end", 4, {5, 18, 3}, true),
      mlp_row("mlp_of_ones", 1, {1, 6, 1, 3}, false),
  };
}

}  // namespace tercel::test
