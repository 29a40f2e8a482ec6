#include "tercel/ops/nn/recurrent.h"

#include <algorithm>
#include <vector>

#include "tercel/autograd/record.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/nn/dropout.h"
#include "tercel/ops/nn/linear.h"
#include "tercel/ops/nn/recurrent_layer_impl.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

/** Parts along a dimension. Copies while recording, so that their gradients are concatenated once, not added up. */
std::vector<Tensor> parts(const Tensor& x, IntSpan sizes, int64_t dim) {
  return should_record(x) ? split_copy(x, sizes, dim) : split(x, sizes, dim);
}

/** One step, given the input's part of the gates. */
HiddenAndCell step(CellKind kind, const Tensor& input_gates, const HiddenAndCell& state, const CellWeights& weights) {
  const Tensor hidden_gates = linear(state.h, weights.weight_hh, weights.bias_hh);
  const int64_t size = hidden_gates.size(-1) / gates_of(kind);
  if (kind == CellKind::Lstm) {
    const std::vector<Tensor> gates = parts(add(input_gates, hidden_gates), {size, size, size, size}, 1);
    const Tensor c = addcmul(mul(sigmoid(gates[1]), state.c), sigmoid(gates[0]), tanh(gates[2]));
    const Tensor h = mul(sigmoid(gates[3]), tanh(c));
    return {weights.weight_hr.defined() ? linear(h, weights.weight_hr) : h, c};
  }
  if (kind == CellKind::Gru) {
    const std::vector<Tensor> of_input = parts(input_gates, {2 * size, size}, 1),
                              of_hidden = parts(hidden_gates, {2 * size, size}, 1),
                              gates = parts(sigmoid(add(of_input[0], of_hidden[0])), {size, size}, 1);
    const Tensor fresh = tanh(addcmul(of_input[1], gates[0], of_hidden[1]));
    return {addcmul(fresh, gates[1], sub(state.h, fresh)), {}};
  }
  const Tensor sum = add(input_gates, hidden_gates);
  return {kind == CellKind::Relu ? relu(sum) : tanh(sum), {}};
}

void check_weights(const char* op, CellKind kind, const CellWeights& w, int64_t input, int64_t out, int64_t hidden) {
  const int64_t gates = gates_of(kind) * hidden;
  const auto check = [&](const char* name, const Tensor& weight, IntSpan sizes) {
    check_strided(op, weight, name);
    TERCEL_CHECK(weight.sizes() == sizes, RuntimeError, op, ": expected ", name, " ", sizes, " for a hidden size of ",
                 hidden, " but got ", weight.sizes());
  };
  check("weight_ih", w.weight_ih, {gates, input});
  check("weight_hh", w.weight_hh, {gates, out});
  if (w.bias_ih.defined()) check("bias_ih", w.bias_ih, {gates});
  if (w.bias_hh.defined()) check("bias_hh", w.bias_hh, {gates});
  if (w.weight_hr.defined()) check("weight_hr", w.weight_hr, {out, hidden});
}

// ---- cells

HiddenAndCell cell(const char* op, CellKind kind, const Tensor& x, const HiddenAndCell& state,
                   const CellWeights& weights) {
  check_strided(op, x, "input");
  check_strided(op, state.h, "hx");
  TERCEL_CHECK((x.dim() == 1 || x.dim() == 2) && state.h.dim() == x.dim(), RuntimeError, op,
               ": expected input [n, in] and hx [n, hidden], or vectors, but got ", x.sizes(), " and ",
               state.h.sizes());
  TERCEL_CHECK(x.dim() == 1 || x.size(0) == state.h.size(0), RuntimeError, "Input batch size ", x.size(0),
               " doesn't match hidden0 batch size ", state.h.size(0));
  if (kind == CellKind::Lstm) {
    check_strided(op, state.c, "cx");
    TERCEL_CHECK(state.c.dim() == x.dim() && (x.dim() == 1 || state.c.size(0) == x.size(0)), RuntimeError, op,
                 ": expected one cell state per input ", x.sizes(), " but got ", state.c.sizes());
  }
  check_strided(op, weights.weight_ih, "weight_ih");
  TERCEL_CHECK(weights.weight_ih.dim() == 2 && x.size(-1) == weights.weight_ih.size(1), RuntimeError,
               "input has inconsistent input_size: got ", x.size(-1), " expected ", weights.weight_ih.size(-1));
  check_strided(op, weights.weight_hh, "weight_hh");
  TERCEL_CHECK(weights.weight_hh.dim() == 2 && state.h.size(-1) == weights.weight_hh.size(1), RuntimeError,
               "hidden0 has inconsistent hidden_size: got ", state.h.size(-1), ", expected ",
               weights.weight_hh.size(-1));
  const int64_t hidden = kind == CellKind::Lstm ? state.c.size(-1) : state.h.size(-1);
  check_weights(op, kind, weights, x.size(-1), state.h.size(-1), hidden);
  if (x.dim() == 2) {
    const LayerCall call{kind, x, {x.size(0)}, state, weights, false};
    if (can_fuse(call)) return fused_layer(call).state;
    return step(kind, linear(x, weights.weight_ih, weights.bias_ih), state, weights);
  }
  const auto row = [](const Tensor& vector) { return vector.defined() ? unsqueeze(vector, 0) : vector; };
  const HiddenAndCell next = cell(op, kind, row(x), {row(state.h), row(state.c)}, weights);
  return {squeeze(next.h, 0), next.c.defined() ? squeeze(next.c, 0) : next.c};
}

// ---- sequences

Tensor rows(const Tensor& x, int64_t begin, int64_t end) {
  return !x.defined() || (begin == 0 && end == x.size(0)) ? x : narrow(x, 0, begin, end - begin);
}
HiddenAndCell rows(const HiddenAndCell& state, int64_t begin, int64_t end) {
  return {rows(state.h, begin, end), rows(state.c, begin, end)};
}
HiddenAndCell below(Span<HiddenAndCell> states) {
  if (states.size() == 1) return states[0];
  std::vector<Tensor> h, c;
  for (const HiddenAndCell& s : states) {
    h.push_back(s.h);
    c.push_back(s.c);
  }
  return {cat(h, 0), c[0].defined() ? cat(c, 0) : Tensor()};
}

}  // namespace

LayerResult layer_of_ops(const LayerCall& call) {
  // The input's part of the gates does not depend on the states: it is one product over all steps.
  const std::vector<Tensor> gates =
      parts(linear(call.x, call.weights.weight_ih, call.weights.bias_ih), call.batch_sizes, 0);
  const IntSpan batch_sizes = call.batch_sizes;
  const size_t steps = batch_sizes.size();
  std::vector<Tensor> out(steps);
  if (call.backward) {
    // In the backward direction, shorter sequences start later.
    HiddenAndCell now = rows(call.state, 0, batch_sizes[steps - 1]);
    for (size_t t = steps; t-- > 0;) {
      const int64_t there = now.h.size(0);
      if (batch_sizes[t] > there) now = below({{now, rows(call.state, there, batch_sizes[t])}});
      now = step(call.kind, gates[t], now, call.weights);
      out[t] = now.h;
    }
    return {cat(out, 0), now};
  }
  std::vector<HiddenAndCell> ended;
  HiddenAndCell now = call.state;
  for (size_t t = 0; t < steps; ++t) {
    if (now.h.size(0) > batch_sizes[t]) {
      ended.push_back(rows(now, batch_sizes[t], now.h.size(0)));
      now = rows(now, 0, batch_sizes[t]);
    }
    now = step(call.kind, gates[t], now, call.weights);
    out[t] = now.h;
  }
  ended.push_back(now);
  std::reverse(ended.begin(), ended.end());
  return {cat(out, 0), below(ended)};
}

namespace {

OutputAndStates run_packed(const char* op, CellKind kind, const Tensor& x, IntSpan batch_sizes, const Tensor& h,
                           const Tensor& c, Span<Tensor> weights, const RecurrentOptions& options) {
  const bool is_lstm = kind == CellKind::Lstm;
  const int64_t directions = options.bidirectional ? 2 : 1, states = options.num_layers * directions,
                n = batch_sizes[0], out_size = h.size(-1), hidden = is_lstm ? c.size(-1) : out_size;
  const auto check_state = [&](const char* name, const Tensor& state, int64_t size) {
    TERCEL_CHECK(state.sizes() == IntSpan({states, n, size}), RuntimeError, op, ": expected ", name, " ",
                 IntSpan({states, n, size}), " but got ", state.sizes());
    TERCEL_CHECK(state.dtype() == x.dtype(), RuntimeError, op, ": expected ", name, " of the input's dtype ",
                 to_string(x.dtype()), " but got ", to_string(state.dtype()));
  };
  check_state("h", h, out_size);
  if (is_lstm) check_state("c", c, hidden);
  const bool projects = is_lstm && out_size != hidden;
  const size_t each = (options.has_biases ? 4 : 2) + (projects ? 1 : 0);
  TERCEL_CHECK(weights.size() == each * static_cast<size_t>(states), RuntimeError, op,
               ": got an incorrect number of RNN parameters: expected ", each * static_cast<size_t>(states), " for ",
               options.num_layers, " layers but got ", weights.size());
  OutputAndStates result{x, {}, {}};
  std::vector<Tensor> last_h, last_c;
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    if (layer > 0 && options.train && options.dropout > 0) result.output = dropout(result.output, options.dropout);
    std::vector<Tensor> outs;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const auto at = static_cast<size_t>(layer * directions + direction);
      const Tensor* w = weights.data() + each * at;
      CellWeights of_cell{w[0], w[1]};
      if (options.has_biases) of_cell.bias_ih = w[2], of_cell.bias_hh = w[3];
      if (projects) of_cell.weight_hr = w[each - 1];
      check_weights(op, kind, of_cell, result.output.size(-1), out_size, hidden);
      const HiddenAndCell state{select(h, 0, static_cast<int64_t>(at)),
                                is_lstm ? select(c, 0, static_cast<int64_t>(at)) : Tensor()};
      const LayerCall call{kind, result.output, DimVector(batch_sizes), state, of_cell, direction == 1};
      const LayerResult of_layer = can_fuse(call) ? fused_layer(call) : layer_of_ops(call);
      outs.push_back(of_layer.output);
      last_h.push_back(of_layer.state.h);
      last_c.push_back(of_layer.state.c);
    }
    result.output = outs.size() == 1 ? outs[0] : cat(outs, 1);
  }
  result.h = stack(last_h);
  if (is_lstm) result.c = stack(last_c);
  return result;
}

void check_operands(const char* op, CellKind kind, const Tensor& x, const Tensor& h, const Tensor& c,
                    const RecurrentOptions& options, int64_t dims) {
  check_strided(op, x, "input");
  check_strided(op, h, "hx");
  if (kind == CellKind::Lstm) check_strided(op, c, "cx");
  TERCEL_CHECK(x.dim() == dims && h.dim() == 3 && (kind != CellKind::Lstm || c.dim() == 3), RuntimeError, op,
               ": expected an input of ", dims, " dimensions and states of 3 but got ", x.sizes(), " and ", h.sizes());
  TERCEL_CHECK(x.is_floating_point(), RuntimeError, op, ": expected a floating input but got ", describe(x));
  TERCEL_CHECK(options.num_layers > 0, RuntimeError, op, ": num_layers must be greater than zero");
}

OutputAndStates run_padded(const char* op, CellKind kind, const Tensor& x, const Tensor& h, const Tensor& c,
                           Span<Tensor> weights, const RecurrentOptions& options) {
  check_operands(op, kind, x, h, c, options, 3);
  const Tensor by_time = options.batch_first ? transpose(x, 0, 1) : x;
  const int64_t time = by_time.size(0), n = by_time.size(1);
  TERCEL_CHECK(time > 0, RuntimeError, "Expected sequence length to be larger than 0 in RNN");
  OutputAndStates result = run_packed(op, kind, reshape(by_time, {time * n, by_time.size(2)}),
                                      DimVector(static_cast<size_t>(time), n), h, c, weights, options);
  result.output = view(result.output, {time, n, result.output.size(-1)});
  if (options.batch_first) result.output = transpose(result.output, 0, 1);
  return result;
}

OutputAndStates run_batches(const char* op, CellKind kind, const Tensor& x, IntSpan batch_sizes, const Tensor& h,
                            const Tensor& c, Span<Tensor> weights, const RecurrentOptions& options) {
  check_operands(op, kind, x, h, c, options, 2);
  TERCEL_CHECK(!batch_sizes.empty(), RuntimeError, "Expected sequence length to be larger than 0 in RNN");
  int64_t sum = 0;
  for (size_t t = 0; t < batch_sizes.size(); ++t) {
    TERCEL_CHECK(batch_sizes[t] > 0 && (t == 0 || batch_sizes[t] <= batch_sizes[t - 1]), RuntimeError, op,
                 ": expected batch_sizes that are positive and never rise but got ", batch_sizes);
    sum += batch_sizes[t];
  }
  TERCEL_CHECK(sum == x.size(0), RuntimeError, op, ": expected batch_sizes that add up to the ", x.size(0),
               " rows of the input but got ", batch_sizes);
  return run_packed(op, kind, x, batch_sizes, h, c, weights, options);
}

}  // namespace

Tensor rnn_tanh_cell(const Tensor& x, const Tensor& h, const CellWeights& weights) {
  return cell("rnn_tanh_cell", CellKind::Tanh, x, {h, {}}, weights).h;
}
Tensor rnn_relu_cell(const Tensor& x, const Tensor& h, const CellWeights& weights) {
  return cell("rnn_relu_cell", CellKind::Relu, x, {h, {}}, weights).h;
}
Tensor gru_cell(const Tensor& x, const Tensor& h, const CellWeights& weights) {
  return cell("gru_cell", CellKind::Gru, x, {h, {}}, weights).h;
}
HiddenAndCell lstm_cell(const Tensor& x, const Tensor& h, const Tensor& c, const CellWeights& weights) {
  return cell("lstm_cell", CellKind::Lstm, x, {h, c}, weights);
}

#define TERCEL_RECURRENT(name, Kind)                                                                              \
  OutputAndStates name(const Tensor& x, const Tensor& h, Span<Tensor> weights, const RecurrentOptions& options) { \
    return run_padded(#name, CellKind::Kind, x, h, {}, weights, options);                                         \
  }                                                                                                               \
  OutputAndStates name(const Tensor& x, IntSpan batch_sizes, const Tensor& h, Span<Tensor> weights,               \
                       const RecurrentOptions& options) {                                                         \
    return run_batches(#name, CellKind::Kind, x, batch_sizes, h, {}, weights, options);                           \
  }
TERCEL_RECURRENT(rnn_tanh, Tanh)
TERCEL_RECURRENT(rnn_relu, Relu)
TERCEL_RECURRENT(gru, Gru)
#undef TERCEL_RECURRENT

OutputAndStates lstm(const Tensor& x, const Tensor& h, const Tensor& c, Span<Tensor> weights,
                     const RecurrentOptions& options) {
  return run_padded("lstm", CellKind::Lstm, x, h, c, weights, options);
}
OutputAndStates lstm(const Tensor& x, IntSpan batch_sizes, const Tensor& h, const Tensor& c, Span<Tensor> weights,
                     const RecurrentOptions& options) {
  return run_batches("lstm", CellKind::Lstm, x, batch_sizes, h, c, weights, options);
}

}  // namespace tercel
