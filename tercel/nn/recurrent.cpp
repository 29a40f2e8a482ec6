#include "tercel/nn/recurrent.h"

#include <cmath>

#include "tercel/nn/init_functions.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"

namespace tercel::nn {

namespace {

// Uniform in +-1 / sqrt(hidden_size), biases too, as in PyTorch.
Tensor start(IntSpan sizes, int64_t hidden_size) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  return init::uniform_(empty(sizes), -bound, bound);
}

void check_states(const char* what, const Tensor& state, IntSpan sizes) {
  TERCEL_CHECK(state.sizes() == sizes, RuntimeError, "Expected ", what, " size ", sizes, ", got ", state.sizes());
}

}  // namespace

RecurrentLayers::RecurrentLayers(Mode mode, int64_t input_size, int64_t hidden_size, RecurrentLayerOptions options)
    : mode_(mode), input_size_(input_size), hidden_size_(hidden_size), options_(options) {
  const RecurrentLayerOptions& o = options_;
  TERCEL_CHECK(o.dropout >= 0 && o.dropout <= 1, ValueError,
               "dropout should be a number in range [0, 1] representing the probability of an element being zeroed");
  TERCEL_CHECK(hidden_size > 0, ValueError, "hidden_size must be greater than zero");
  TERCEL_CHECK(o.num_layers > 0, ValueError, "num_layers must be greater than zero");
  TERCEL_CHECK(o.proj_size >= 0, ValueError, "proj_size should be a positive integer or zero to disable projections");
  TERCEL_CHECK(o.proj_size < hidden_size, ValueError, "proj_size has to be smaller than hidden_size");
  TERCEL_CHECK(o.proj_size == 0 || mode == Mode::Lstm, ValueError, "proj_size: only an LSTM has projections");
  const int64_t gates = (mode == Mode::Lstm ? 4 : mode == Mode::Gru ? 3 : 1) * hidden_size;
  const int64_t out = o.proj_size > 0 ? o.proj_size : hidden_size, directions = o.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < o.num_layers; ++layer)
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string suffix = "_l" + std::to_string(layer) + (direction == 1 ? "_reverse" : "");
      const auto add = [&](const char* name, IntSpan sizes) {
        register_parameter(name + suffix, start(sizes, hidden_size));
      };
      add("weight_ih", {gates, layer == 0 ? input_size : out * directions});
      add("weight_hh", {gates, out});
      if (o.bias) {
        add("bias_ih", {gates});
        add("bias_hh", {gates});
      }
      if (o.proj_size > 0) add("weight_hr", {o.proj_size, hidden_size});
    }
}

OutputAndStates RecurrentLayers::run(const Tensor& x, const Tensor& h, const Tensor& c) const {
  const RecurrentLayerOptions& o = options_;
  const std::vector<Tensor> weights = parameters();
  TERCEL_CHECK(x.dim() == 2 || x.dim() == 3, RuntimeError, name(), ": Expected input to be 2-D or 3-D but received ",
               x.dim(), "-D tensor");
  TERCEL_CHECK(x.dtype() == weights[0].dtype(), ValueError, name(), ": input dtype (", to_string(x.dtype()),
               ") does not match weight dtype (", to_string(weights[0].dtype()), ")");
  TERCEL_CHECK(x.size(-1) == input_size_, RuntimeError, "input.size(-1) must be equal to input_size. Expected ",
               input_size_, ", got ", x.size(-1));
  if (x.dim() == 2) {
    const int64_t batch = o.batch_first ? 0 : 1;
    const auto batched = [](const Tensor& state) { return state.defined() ? unsqueeze(state, 1) : state; };
    const OutputAndStates result = run(unsqueeze(x, batch), batched(h), batched(c));
    return {squeeze(result.output, batch), squeeze(result.h, 1), result.c.defined() ? squeeze(result.c, 1) : Tensor()};
  }
  const int64_t count = o.num_layers * (o.bidirectional ? 2 : 1), n = x.size(o.batch_first ? 0 : 1);
  const DimVector h_sizes{count, n, o.proj_size > 0 ? o.proj_size : hidden_size_}, c_sizes{count, n, hidden_size_};
  const TensorOptions like(x.dtype(), x.device());
  const Tensor first_h = h.defined() ? h : zeros(h_sizes, like);
  check_states(mode_ == Mode::Lstm ? "hidden[0]" : "hidden", first_h, h_sizes);
  const RecurrentOptions options{.has_biases = o.bias,
                                 .num_layers = o.num_layers,
                                 .dropout = o.dropout,
                                 .train = is_training(),
                                 .bidirectional = o.bidirectional,
                                 .batch_first = o.batch_first};
  switch (mode_) {
    case Mode::Tanh: return rnn_tanh(x, first_h, weights, options);
    case Mode::Relu: return rnn_relu(x, first_h, weights, options);
    case Mode::Gru: return gru(x, first_h, weights, options);
    case Mode::Lstm: break;
  }
  const Tensor first_c = c.defined() ? c : zeros(c_sizes, like);
  check_states("hidden[1]", first_c, c_sizes);
  return lstm(x, first_h, first_c, weights, options);
}

RecurrentCell::RecurrentCell(int64_t gates, int64_t input_size, int64_t hidden_size, bool bias) {
  TERCEL_CHECK(hidden_size > 0, ValueError, "hidden_size must be greater than zero");
  weight_ih = register_parameter("weight_ih", start({gates * hidden_size, input_size}, hidden_size));
  weight_hh = register_parameter("weight_hh", start({gates * hidden_size, hidden_size}, hidden_size));
  bias_ih = register_parameter("bias_ih", bias ? start({gates * hidden_size}, hidden_size) : Tensor());
  bias_hh = register_parameter("bias_hh", bias ? start({gates * hidden_size}, hidden_size) : Tensor());
}

Tensor RecurrentCell::state_for(const Tensor& x, const Tensor& h) const {
  if (h.defined()) return h;
  DimVector sizes(x.sizes());
  if (!sizes.empty()) sizes.back() = weight_hh.size(1);
  return zeros(sizes, TensorOptions(x.dtype(), x.device()));
}

}  // namespace tercel::nn
