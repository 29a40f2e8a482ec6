// Conformance rows of recurrent networks; see Note [Conformance rows].
#pragma once

#include <cmath>
#include <vector>

#include "tercel/ops/nn/recurrent.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** The recurrence of one sequence at a time, by loops over doubles. */
class RecurrentReference {
 public:
  using Vector = std::vector<double>;
  struct State {
    Vector h, c;
  };

  /** gates: 1 (tanh, or ReLU), 3 (GRU) or 4 (LSTM). */
  RecurrentReference(int64_t gates, bool relu) : gates_(gates), relu_(relu) {}

  static Vector product(const Tensor& weight, const Vector& x, const Tensor& bias) {
    const Vector w = values_of(weight);
    Vector out = bias.defined() ? values_of(bias) : Vector(static_cast<size_t>(weight.size(0)), 0);
    for (size_t o = 0; o < out.size(); ++o)
      for (size_t i = 0; i < x.size(); ++i) out[o] += w[o * x.size() + i] * x[i];
    return out;
  }

  State step(const Vector& x, const State& s, const CellWeights& weights) const {
    const Vector a = product(weights.weight_ih, x, weights.bias_ih),
                 b = product(weights.weight_hh, s.h, weights.bias_hh);
    const size_t n = a.size() / static_cast<size_t>(gates_);
    const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    State next{Vector(n), Vector(s.c.size())};
    for (size_t i = 0; i < n; ++i) {
      const auto gate = [&](size_t g) { return a[g * n + i] + b[g * n + i]; };
      if (gates_ == 4) {
        next.c[i] = sigmoid(gate(1)) * s.c[i] + sigmoid(gate(0)) * std::tanh(gate(2));
        next.h[i] = sigmoid(gate(3)) * std::tanh(next.c[i]);
      } else if (gates_ == 3) {
        const double z = sigmoid(gate(1)), fresh = std::tanh(a[2 * n + i] + sigmoid(gate(0)) * b[2 * n + i]);
        next.h[i] = z * s.h[i] + (1 - z) * fresh;
      } else {
        next.h[i] = relu_ ? std::max(gate(0), 0.0) : std::tanh(gate(0));
      }
    }
    if (weights.weight_hr.defined()) next.h = product(weights.weight_hr, next.h, {});
    return next;
  }

 private:
  int64_t gates_;
  bool relu_;
};

struct RecurrentCase {
  int64_t gates = 4;
  bool relu = false;
  RecurrentOptions options = {};
  /** The length of each sequence, descending; packed, unless passed as one tensor. */
  Sizes lengths = {3, 3};
  bool packed = false;
  int64_t projection = 0;
};

constexpr int64_t kRecurrentIn = 3, kRecurrentHidden = 2;

inline OutputAndStates run_recurrent(const RecurrentCase& c, const Tensor& x, const Tensor& h, const Tensor& cell,
                                     Span<Tensor> weights) {
  if (!c.packed) {
    if (c.gates == 4) return lstm(x, h, cell, weights, c.options);
    if (c.gates == 3) return gru(x, h, weights, c.options);
    return c.relu ? rnn_relu(x, h, weights, c.options) : rnn_tanh(x, h, weights, c.options);
  }
  DimVector sizes;
  for (int64_t t = 0; t < c.lengths[0]; ++t) {
    sizes.push_back(0);
    for (const int64_t length : c.lengths) sizes.back() += length > t ? 1 : 0;
  }
  if (c.gates == 4) return lstm(x, sizes, h, cell, weights, c.options);
  if (c.gates == 3) return gru(x, sizes, h, weights, c.options);
  return c.relu ? rnn_relu(x, sizes, h, weights, c.options) : rnn_tanh(x, sizes, h, weights, c.options);
}

/** Output, last h and last c, concatenated. */
inline Tensor recurrent_reference(const RecurrentCase& c, const std::vector<Tensor>& in) {
  using Vector = RecurrentReference::Vector;
  const RecurrentReference cell(c.gates, c.relu);
  const size_t n = c.lengths.size(), directions = c.options.bidirectional ? 2 : 1,
               time = static_cast<size_t>(c.lengths[0]);
  const size_t first_weight = c.gates == 4 ? 3 : 2, biases = c.options.has_biases ? 2 : 0,
               each = 2 + biases + (c.projection > 0 ? 1 : 0);
  // The row of x with step t of sequence i.
  const auto row = [&](size_t i, size_t t) {
    if (c.options.batch_first) return i * time + t;
    size_t at = 0;
    for (size_t before = 0; before < t; ++before)
      for (const int64_t length : c.lengths) at += static_cast<size_t>(length) > before ? 1 : 0;
    return at + i;
  };
  const auto part = [](const Tensor& from, size_t index, size_t size) {
    const Vector all = values_of(from);
    return Vector(all.begin() + static_cast<int64_t>(index * size),
                  all.begin() + static_cast<int64_t>((index + 1) * size));
  };
  const auto hidden = static_cast<size_t>(kRecurrentHidden), out = static_cast<size_t>(in[1].size(-1));
  size_t width = static_cast<size_t>(kRecurrentIn);
  std::vector<Vector> rows;
  for (size_t r = 0; r < static_cast<size_t>(in[0].numel()) / width; ++r) rows.push_back(part(in[0], r, width));
  Vector last_h, last_c;
  for (size_t layer = 0; layer < static_cast<size_t>(c.options.num_layers); ++layer) {
    std::vector<Vector> outs(rows.size());
    for (size_t d = 0; d < directions; ++d) {
      const size_t at = layer * directions + d, w = first_weight + at * each;
      CellWeights weights{in[w], in[w + 1]};
      if (biases > 0) weights.bias_ih = in[w + 2], weights.bias_hh = in[w + 3];
      if (c.projection > 0) weights.weight_hr = in[w + each - 1];
      for (size_t i = 0; i < n; ++i) {
        RecurrentReference::State s{part(in[1], at * n + i, out),
                                    c.gates == 4 ? part(in[2], at * n + i, hidden) : Vector()};
        const auto length = static_cast<size_t>(c.lengths[i]);
        for (size_t k = 0; k < length; ++k) {
          const size_t r = row(i, d == 0 ? k : length - 1 - k);
          s = cell.step(rows[r], s, weights);
          outs[r].insert(outs[r].end(), s.h.begin(), s.h.end());
        }
        last_h.insert(last_h.end(), s.h.begin(), s.h.end());
        last_c.insert(last_c.end(), s.c.begin(), s.c.end());
      }
    }
    rows = outs;
  }
  Vector all;
  for (const Vector& r : rows) all.insert(all.end(), r.begin(), r.end());
  all.insert(all.end(), last_h.begin(), last_h.end());
  all.insert(all.end(), last_c.begin(), last_c.end());
  return make({static_cast<int64_t>(all.size())}, kFloat64, all);
}

inline void add_cell_inputs(Row& row, int64_t gates, int64_t in, int64_t out, bool biases, int64_t projection) {
  const int64_t hidden = kRecurrentHidden;
  row.inputs.push_back({{gates * hidden, in}, -1, 1});
  row.inputs.push_back({{gates * hidden, out}, -1, 1});
  for (int i = 0; i < (biases ? 2 : 0); ++i) row.inputs.push_back({{gates * hidden}, -1, 1});
  if (projection > 0) row.inputs.push_back({{projection, hidden}, -1, 1});
}

inline Row recurrent_row(const std::string& name, const RecurrentCase& c) {
  const int64_t directions = c.options.bidirectional ? 2 : 1, n = static_cast<int64_t>(c.lengths.size()),
                out = c.projection > 0 ? c.projection : kRecurrentHidden, states = c.options.num_layers * directions;
  int64_t steps = 0;
  for (const int64_t length : c.lengths) steps += length;
  Row row;
  row.name = name;
  Sizes x = {steps, kRecurrentIn};
  if (!c.packed)
    x = c.options.batch_first ? Sizes{n, c.lengths[0], kRecurrentIn} : Sizes{c.lengths[0], n, kRecurrentIn};
  row.inputs = {{x, -1, 1}, {{states, n, out}, -1, 1}};
  if (c.gates == 4) row.inputs.push_back({{states, n, kRecurrentHidden}, -1, 1});
  const size_t first_weight = row.inputs.size();
  for (int64_t s = 0; s < states; ++s)
    add_cell_inputs(row, c.gates, s < directions ? kRecurrentIn : directions * out, out, c.options.has_biases,
                    c.projection);
  row.run = [c, first_weight](const std::vector<Tensor>& in) {
    const Span<Tensor> weights(in.data() + first_weight, in.size() - first_weight);
    const OutputAndStates got = run_recurrent(c, in[0], in[1], c.gates == 4 ? in[2] : Tensor(), weights);
    std::vector<Tensor> all = {reshape(got.output, {-1}), flatten(got.h)};
    if (c.gates == 4) all.push_back(flatten(got.c));
    return cat(all);
  };
  row.reference = [c](const std::vector<Tensor>& in) { return recurrent_reference(c, in); };
  row.dtypes = {kFloat32, kFloat64};  // linear()'s
  row.ulps = 16;
  row.scale = 64;
  row.bitwise = false;
  return row;
}

inline Row cell_row(const std::string& name, int64_t gates, bool relu, bool biases, bool vectors) {
  Row row;
  row.name = name;
  const auto batched = [vectors](int64_t size) { return vectors ? Sizes{size} : Sizes{4, size}; };
  row.inputs = {{batched(kRecurrentIn), -1, 1}, {batched(kRecurrentHidden), -1, 1}};
  if (gates == 4) row.inputs.push_back({batched(kRecurrentHidden), -1, 1});
  const size_t first_weight = row.inputs.size();
  add_cell_inputs(row, gates, kRecurrentIn, kRecurrentHidden, biases, 0);
  const auto weights_of = [first_weight, biases](const std::vector<Tensor>& in) {
    CellWeights w{in[first_weight], in[first_weight + 1]};
    if (biases) w.bias_ih = in[first_weight + 2], w.bias_hh = in[first_weight + 3];
    return w;
  };
  row.run = [gates, relu, weights_of](const std::vector<Tensor>& in) {
    const CellWeights w = weights_of(in);
    if (gates == 4) {
      const HiddenAndCell next = lstm_cell(in[0], in[1], in[2], w);
      return cat({{next.h, next.c}}, -1);
    }
    if (gates == 3) return gru_cell(in[0], in[1], w);
    return relu ? rnn_relu_cell(in[0], in[1], w) : rnn_tanh_cell(in[0], in[1], w);
  };
  row.reference = [gates, relu, weights_of](const std::vector<Tensor>& in) {
    using Vector = RecurrentReference::Vector;
    const RecurrentReference cell(gates, relu);
    const Vector x = values_of(in[0]), h = values_of(in[1]), c = gates == 4 ? values_of(in[2]) : Vector();
    const size_t width = static_cast<size_t>(kRecurrentIn), hidden = static_cast<size_t>(kRecurrentHidden);
    const auto part = [](const Vector& from, size_t i, size_t size) {
      if (from.empty()) return Vector();
      return Vector(from.begin() + static_cast<int64_t>(i * size), from.begin() + static_cast<int64_t>((i + 1) * size));
    };
    Vector out;
    for (size_t i = 0; i < x.size() / width; ++i) {
      const auto next = cell.step(part(x, i, width), {part(h, i, hidden), part(c, i, hidden)}, weights_of(in));
      out.insert(out.end(), next.h.begin(), next.h.end());
      out.insert(out.end(), next.c.begin(), next.c.end());
    }
    Sizes sizes = in[1].sizes().to_vector();
    if (gates == 4) sizes.back() *= 2;
    return make(sizes, kFloat64, out);
  };
  row.dtypes = {kFloat32, kFloat64};
  row.ulps = 16;
  row.scale = 32;
  row.bitwise = false;
  return row;
}

inline std::vector<Row> recurrent_rows() {
  RecurrentOptions plain, deep, bare, first;
  deep.num_layers = 2;
  deep.bidirectional = true;
  bare.has_biases = false;
  first.batch_first = true;
  return {
      cell_row("rnn_tanh_cell", 1, false, true, false),
      cell_row("rnn_relu_cell", 1, true, true, false),
      cell_row("gru_cell", 3, false, true, false),
      cell_row("gru_cell_of_vectors", 3, false, false, true),
      cell_row("lstm_cell", 4, false, true, false),
      cell_row("lstm_cell_of_vectors", 4, false, false, true),
      recurrent_row("rnn_tanh", {1, false, plain}),
      recurrent_row("rnn_relu", {1, true, deep}),
      recurrent_row("gru", {3, false, deep}),
      recurrent_row("gru_without_bias", {3, false, bare}),
      recurrent_row("lstm", {4, false, plain}),
      recurrent_row("lstm_batch_first", {4, false, first}),
      recurrent_row("lstm_projected", {4, false, deep, {2, 2}, false, 1}),
      recurrent_row("rnn_tanh_packed", {1, false, deep, {4, 2, 2, 1}, true}),
      recurrent_row("gru_packed", {3, false, plain, {3, 1}, true}),
      recurrent_row("lstm_packed", {4, false, deep, {3, 2, 1}, true}),
  };
}

}  // namespace tercel::test
