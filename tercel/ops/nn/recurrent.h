// Recurrent networks: cells, and multi-layer networks over sequences.
//
// Weights have PyTorch's layout: weight_ih [gates * hidden, in], weight_hh [gates * hidden, hidden (or proj)], bias_ih
// and bias_hh [gates * hidden]; the order of gates is input, forget, cell, output (LSTM) and reset, update, new (GRU).
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** The weights of one layer in one direction. Biases, and an LSTM's projection [proj, hidden], may be undefined. */
struct CellWeights {
  Tensor weight_ih, weight_hh, bias_ih = {}, bias_hh = {}, weight_hr = {};
};

/** tanh(weight_ih x + bias_ih + weight_hh h + bias_hh) for x [n, in] and h [n, hidden]; or for vectors. */
TERCEL_OP_API(autocast_lower) Tensor rnn_tanh_cell(const Tensor& x, const Tensor& h, const CellWeights& weights);
/** The same with ReLU instead of tanh. */
TERCEL_OP_API(autocast_lower) Tensor rnn_relu_cell(const Tensor& x, const Tensor& h, const CellWeights& weights);
/** z h + (1 - z) tanh(W_n x + r (U_n h)) with sigmoid gates r and z; biases as above. */
TERCEL_OP_API(autocast_first) Tensor gru_cell(const Tensor& x, const Tensor& h, const CellWeights& weights);

/** The state of an LSTM: hidden and cell state. */
struct HiddenAndCell {
  Tensor h, c;
};
/** c' = f c + i tanh(g), h' = o tanh(c') with sigmoid gates i, f, o; h' is projected if there is a projection weight.
 */
TERCEL_OP_API(autocast_first)
HiddenAndCell lstm_cell(const Tensor& x, const Tensor& h, const Tensor& c, const CellWeights& weights);

struct RecurrentOptions {
  bool has_biases = true;
  int64_t num_layers = 1;
  /** Dropout probability between layers in training. */
  double dropout = 0;
  bool train = false;
  bool bidirectional = false;
  /** Sequences are [n, time, ...] instead of [time, n, ...]; not for packed sequences. */
  bool batch_first = false;
};

/** output [time, n, directions * hidden] of the last layer; final states [layers * directions, n, hidden]. */
struct OutputAndStates {
  Tensor output;
  Tensor h;
  Tensor c = {};  ///< LSTM only
};

/**
 * Layers over x [time, n, in], starting from h [layers * directions, n, hidden]. `weights` lists the defined members of
 * CellWeights, in their order, for layer 0 forward, layer 0 backward (if bidirectional), layer 1 forward and so on.
 * RuntimeError for a wrong number or wrong sizes of weights.
 */
TERCEL_OP_API(autocast_lower)
OutputAndStates rnn_tanh(const Tensor& x, const Tensor& h, Span<Tensor> weights, const RecurrentOptions& options = {});
TERCEL_OP_API(autocast_lower)
OutputAndStates rnn_relu(const Tensor& x, const Tensor& h, Span<Tensor> weights, const RecurrentOptions& options = {});
TERCEL_OP_API(autocast_first)
OutputAndStates gru(const Tensor& x, const Tensor& h, Span<Tensor> weights, const RecurrentOptions& options = {});
/** If the last size of h differs from c's, it is the size of projections. */
TERCEL_OP_API(autocast_lower)
OutputAndStates lstm(const Tensor& x, const Tensor& h, const Tensor& c, Span<Tensor> weights,
                     const RecurrentOptions& options = {});

// The same over packed sequences, the longest first: x [sum of batch_sizes, in] holds, step after step, the inputs of
// all sequences that are not finished; the output has the same layout.
TERCEL_OP_API(autocast_lower)
OutputAndStates rnn_tanh(const Tensor& x, IntSpan batch_sizes, const Tensor& h, Span<Tensor> weights,
                         const RecurrentOptions& options = {});
TERCEL_OP_API(autocast_lower)
OutputAndStates rnn_relu(const Tensor& x, IntSpan batch_sizes, const Tensor& h, Span<Tensor> weights,
                         const RecurrentOptions& options = {});
TERCEL_OP_API(autocast_first)
OutputAndStates gru(const Tensor& x, IntSpan batch_sizes, const Tensor& h, Span<Tensor> weights,
                    const RecurrentOptions& options = {});
TERCEL_OP_API(autocast_lower)
OutputAndStates lstm(const Tensor& x, IntSpan batch_sizes, const Tensor& h, const Tensor& c, Span<Tensor> weights,
                     const RecurrentOptions& options = {});

}  // namespace tercel
