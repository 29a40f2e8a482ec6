// Recurrent networks: cells, and layers of them over sequences.
//
// Weights are PyTorch's: weight_ih [gates * hidden, in], weight_hh [gates * hidden, hidden (or proj)], bias_ih and
// bias_hh [gates * hidden]; gates are in the order input, forget, cell, output (LSTM) and reset, update, new (GRU).
#pragma once

#include "tercel/core/tensor.h"

namespace tercel {

/** The weights of one layer in one direction. Biases, and the projection [proj, hidden] of an LSTM, may be undefined.
 */
struct CellWeights {
  Tensor weight_ih, weight_hh, bias_ih = {}, bias_hh = {}, weight_hr = {};
};

/** tanh(weight_ih x + bias_ih + weight_hh h + bias_hh) for x [n, in] and h [n, hidden]; or for vectors. */
TERCEL_OP_API(autocast_lower) Tensor rnn_tanh_cell(const Tensor& x, const Tensor& h, const CellWeights& weights);
/** The same with a ReLU. */
TERCEL_OP_API(autocast_lower) Tensor rnn_relu_cell(const Tensor& x, const Tensor& h, const CellWeights& weights);
/** z h + (1 - z) tanh(W_n x + r (U_n h)), with gates r and z that are sigmoids; biases as above. */
TERCEL_OP_API(autocast_first) Tensor gru_cell(const Tensor& x, const Tensor& h, const CellWeights& weights);

/** What an LSTM hands on from step to step. */
struct HiddenAndCell {
  Tensor h, c;
};
/** c' = f c + i tanh(g), h' = o tanh(c') (projected, if there is such a weight), with gates i, f, o that are sigmoids.
 */
TERCEL_OP_API(autocast_first)
HiddenAndCell lstm_cell(const Tensor& x, const Tensor& h, const Tensor& c, const CellWeights& weights);

struct RecurrentOptions {
  bool has_biases = true;
  int64_t num_layers = 1;
  /** The share of elements that is left out between layers while training. */
  double dropout = 0;
  bool train = false;
  bool bidirectional = false;
  /** Sequences are [n, time, ...], not [time, n, ...]; not for packed ones. */
  bool batch_first = false;
};

/** output [time, n, directions * hidden] of the last layer; the last states [layers * directions, n, hidden]. */
struct OutputAndStates {
  Tensor output;
  Tensor h;
  Tensor c = {};  ///< of an LSTM
};

/**
 * Layers over x [time, n, in], from h [layers * directions, n, hidden]. `weights` are those of CellWeights that there
 * are, in that order, of layer 0 forward, layer 0 backward (if bidirectional), layer 1 forward and so on. RuntimeError
 * for a wrong number or wrong sizes.
 */
TERCEL_OP_API(autocast_lower)
OutputAndStates rnn_tanh(const Tensor& x, const Tensor& h, Span<Tensor> weights, const RecurrentOptions& options = {});
TERCEL_OP_API(autocast_lower)
OutputAndStates rnn_relu(const Tensor& x, const Tensor& h, Span<Tensor> weights, const RecurrentOptions& options = {});
TERCEL_OP_API(autocast_first)
OutputAndStates gru(const Tensor& x, const Tensor& h, Span<Tensor> weights, const RecurrentOptions& options = {});
/** A last size of h other than c's is that of projections. */
TERCEL_OP_API(autocast_lower)
OutputAndStates lstm(const Tensor& x, const Tensor& h, const Tensor& c, Span<Tensor> weights,
                     const RecurrentOptions& options = {});

// The same over packed sequences, the longest first: x [sum of batch_sizes, in] holds step after step what the
// sequences that last so long have, and so does the output.
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
