// Recurrent networks, with the arguments of PyTorch's functions of these names.
#include "python/src/op.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/nn/recurrent.h"

namespace tercel::python {

namespace {

using List = const std::vector<Tensor>&;

RecurrentOptions options_of(bool biases, int64_t layers, double dropout, bool train, bool bidirectional,
                            bool batch_first = false) {
  return {biases, layers, dropout, train, bidirectional, batch_first};
}
std::vector<Tensor> output_and_h(OutputAndStates result) { return {std::move(result.output), std::move(result.h)}; }
std::vector<Tensor> all_of(OutputAndStates result) {
  return {std::move(result.output), std::move(result.h), std::move(result.c)};
}
DimVector numbers_of(const Tensor& batch_sizes) {
  TERCEL_CHECK(batch_sizes.dtype() == kInt64 && batch_sizes.dim() == 1, RuntimeError,
               "batch_sizes tensor should be 1-dimensional and of int64, but got ", describe(batch_sizes));
  const Tensor row = contiguous(batch_sizes);
  return DimVector(IntSpan(row.data<int64_t>(), static_cast<size_t>(row.numel())));
}
void check_states(const char* op, List states) {
  TERCEL_CHECK(states.size() == 2, RuntimeError, op, " expects two hidden states");
}

#define TERCEL_LAYERS "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
#define TERCEL_RECURRENT_ENTRIES(name)                                                                              \
  entry(                                                                                                            \
      #name "(Tensor input, Tensor hx, Tensor[] params, " TERCEL_LAYERS ", bool batch_first)",                      \
      [](const Tensor& x, const Tensor& h, List weights, bool biases, int64_t layers, double dropout, bool train,   \
         bool bidirectional, bool batch_first) {                                                                    \
        return output_and_h(                                                                                        \
            name(x, h, weights, options_of(biases, layers, dropout, train, bidirectional, batch_first)));           \
      },                                                                                                            \
      kFunction),                                                                                                   \
      entry(                                                                                                        \
          #name "(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, " TERCEL_LAYERS ")",                 \
          [](const Tensor& x, const Tensor& sizes, const Tensor& h, List weights, bool biases, int64_t layers,      \
             double dropout, bool train, bool bidirectional) {                                                      \
            return output_and_h(                                                                                    \
                name(x, numbers_of(sizes), h, weights, options_of(biases, layers, dropout, train, bidirectional))); \
          },                                                                                                        \
          kFunction),                                                                                               \
      TERCEL_CELL_ENTRY(name)
#define TERCEL_CELL_ENTRY(name)                                                                               \
  entry(                                                                                                      \
      #name "_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None)", \
      [](const Tensor& x, const Tensor& h, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,        \
         const Tensor& b_hh) {                                                                                \
        return name##_cell(x, h, {w_ih, w_hh, b_ih, b_hh});                                                   \
      },                                                                                                      \
      kFunction)

}  // namespace

Span<Entry> recurrent_ops() {
  static const Entry table[] = {
      TERCEL_RECURRENT_ENTRIES(rnn_tanh),
      TERCEL_RECURRENT_ENTRIES(rnn_relu),
      TERCEL_RECURRENT_ENTRIES(gru),
      entry(
          "lstm(Tensor input, Tensor[] hx, Tensor[] params, " TERCEL_LAYERS ", bool batch_first)",
          [](const Tensor& x, List states, List weights, bool biases, int64_t layers, double dropout, bool train,
             bool bidirectional, bool batch_first) {
            check_states("lstm", states);
            return all_of(lstm(x, states[0], states[1], weights,
                               options_of(biases, layers, dropout, train, bidirectional, batch_first)));
          },
          kFunction),
      entry(
          "lstm(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, " TERCEL_LAYERS ")",
          [](const Tensor& x, const Tensor& sizes, List states, List weights, bool biases, int64_t layers,
             double dropout, bool train, bool bidirectional) {
            check_states("lstm", states);
            return all_of(lstm(x, numbers_of(sizes), states[0], states[1], weights,
                               options_of(biases, layers, dropout, train, bidirectional)));
          },
          kFunction),
      entry(
          "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None)",
          [](const Tensor& x, List states, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
             const Tensor& b_hh) -> std::vector<Tensor> {
            check_states("lstm_cell", states);
            const HiddenAndCell next = lstm_cell(x, states[0], states[1], {w_ih, w_hh, b_ih, b_hh});
            return {next.h, next.c};
          },
          kFunction),
  };
  return table;
}

}  // namespace tercel::python
