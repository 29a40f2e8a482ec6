// Recurrent networks as modules. Names, shapes and initial values are torch.nn's: weight_ih_l0, weight_hh_l0_reverse
// ...
#pragma once

#include <string>
#include <vector>

#include "tercel/nn/module.h"
#include "tercel/ops/nn/recurrent.h"

namespace tercel::nn {

/** Options of an RNN, LSTM or GRU besides its sizes. */
struct RecurrentLayerOptions {
  int64_t num_layers = 1;
  bool bias = true;
  /** Sequences are [n, time, ...], not [time, n, ...]. */
  bool batch_first = false;
  /** Dropout probability between layers while training. */
  double dropout = 0;
  bool bidirectional = false;
  /** The size of an LSTM's projections; 0 for none. */
  int64_t proj_size = 0;
};

/** Layers of cells over sequences, forward and, if bidirectional, backward as well. */
class TERCEL_API RecurrentLayers : public Module {
 public:
  /** The output for x [time, n, in] or, of one sequence, [time, in], from states of zeros. */
  Tensor forward(const Tensor& x) override { return run(x, {}, {}).output; }
  int64_t input_size() const { return input_size_; }
  int64_t hidden_size() const { return hidden_size_; }
  const RecurrentLayerOptions& options() const { return options_; }

 protected:
  enum class Mode : uint8_t { Tanh, Relu, Gru, Lstm };
  /** ValueError for invalid sizes. */
  RecurrentLayers(Mode mode, int64_t input_size, int64_t hidden_size, RecurrentLayerOptions options);
  /** Undefined states are zeros. RuntimeError for sizes that do not match. */
  OutputAndStates run(const Tensor& x, const Tensor& h, const Tensor& c) const;

 private:
  Mode mode_;
  int64_t input_size_, hidden_size_;
  RecurrentLayerOptions options_;
};

/** h' = tanh(W x + b + U h + c), or with a ReLU. */
class TERCEL_API RNN final : public RecurrentLayers {
 public:
  enum class Nonlinearity : uint8_t { Tanh, Relu };
  RNN(int64_t input_size, int64_t hidden_size, RecurrentLayerOptions options = {},
      Nonlinearity nonlinearity = Nonlinearity::Tanh)
      : RecurrentLayers(nonlinearity == Nonlinearity::Tanh ? Mode::Tanh : Mode::Relu, input_size, hidden_size,
                        options) {}
  using RecurrentLayers::forward;
  /** With the initial states h [layers * directions, n, hidden]. */
  OutputAndStates forward(const Tensor& x, const Tensor& h) { return run(x, h, {}); }
  const char* name() const override { return "RNN"; }
};

/** gru() as a module. */
class TERCEL_API GRU final : public RecurrentLayers {
 public:
  GRU(int64_t input_size, int64_t hidden_size, RecurrentLayerOptions options = {})
      : RecurrentLayers(Mode::Gru, input_size, hidden_size, options) {}
  using RecurrentLayers::forward;
  OutputAndStates forward(const Tensor& x, const Tensor& h) { return run(x, h, {}); }
  const char* name() const override { return "GRU"; }
};

/** lstm() as a module. */
class TERCEL_API LSTM final : public RecurrentLayers {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, RecurrentLayerOptions options = {})
      : RecurrentLayers(Mode::Lstm, input_size, hidden_size, options) {}
  using RecurrentLayers::forward;
  OutputAndStates forward(const Tensor& x, const Tensor& h, const Tensor& c) { return run(x, h, c); }
  const char* name() const override { return "LSTM"; }
};

/** One step: weight_ih [gates * hidden, in], weight_hh [gates * hidden, hidden], bias_ih and bias_hh. */
class TERCEL_API RecurrentCell : public Module {
 public:
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  RecurrentCell(int64_t gates, int64_t input_size, int64_t hidden_size, bool bias);
  CellWeights weights() const { return {weight_ih, weight_hh, bias_ih, bias_hh}; }
  /** h, or zeros for x. */
  Tensor state_for(const Tensor& x, const Tensor& h) const;
};
/** rnn_tanh_cell(); without an h from zeros. */
class TERCEL_API RNNCell final : public RecurrentCell {
 public:
  RNNCell(int64_t input_size, int64_t hidden_size, bool bias = true)
      : RecurrentCell(1, input_size, hidden_size, bias) {}
  Tensor forward(const Tensor& x) override { return forward(x, {}); }
  Tensor forward(const Tensor& x, const Tensor& h) { return rnn_tanh_cell(x, state_for(x, h), weights()); }
  const char* name() const override { return "RNNCell"; }
};
/** gru_cell(). */
class TERCEL_API GRUCell final : public RecurrentCell {
 public:
  GRUCell(int64_t input_size, int64_t hidden_size, bool bias = true)
      : RecurrentCell(3, input_size, hidden_size, bias) {}
  Tensor forward(const Tensor& x) override { return forward(x, {}); }
  Tensor forward(const Tensor& x, const Tensor& h) { return gru_cell(x, state_for(x, h), weights()); }
  const char* name() const override { return "GRUCell"; }
};
/** lstm_cell(); of one tensor, the new h. */
class TERCEL_API LSTMCell final : public RecurrentCell {
 public:
  LSTMCell(int64_t input_size, int64_t hidden_size, bool bias = true)
      : RecurrentCell(4, input_size, hidden_size, bias) {}
  Tensor forward(const Tensor& x) override { return forward(x, {}, {}).h; }
  HiddenAndCell forward(const Tensor& x, const Tensor& h, const Tensor& c) {
    return lstm_cell(x, state_for(x, h), state_for(x, c), weights());
  }
  const char* name() const override { return "LSTMCell"; }
};

}  // namespace tercel::nn
