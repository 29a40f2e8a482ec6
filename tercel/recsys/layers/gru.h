// Gated recurrent units.
#pragma once

#include "tercel/recsys/layers/initializer.h"
#include "tercel/recsys/layers/layer.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

struct GruOptions {
  struct Parameters {
    int64_t num_output = 1;
    int64_t batchsize = 0;
    // The names are HugeCTR's.
    int64_t SeqLength = 0;  // NOLINT(readability-identifier-naming)
    int64_t vector_size = 0;
    bool sequence = false;
    Initializer weight_init = Initializer::Default;
    Initializer bias_init = Initializer::Default;

    static constexpr auto fields() {
      return option_list(
          option_field<&Parameters::num_output>("num_output", "size of the state", at_least(1), at_most(1 << 20),
                                                required()),
          option_field<&Parameters::batchsize>("batchsize", "accepted, not needed: any number of rows", at_least(0)),
          option_field<&Parameters::SeqLength>("SeqLength", "number of steps; 0: as the input has it", at_least(0)),
          option_field<&Parameters::vector_size>("vector_size", "width of a step; 0: as the input has it", at_least(0)),
          option_field<&Parameters::sequence>("sequence",
                                              "whether the output has the states of all steps, else the last"),
          option_field<&Parameters::weight_init>("weight_init", "initial weights"),
          option_field<&Parameters::bias_init>("bias_init", "initial bias"));
    }
  };
  Parameters gru_param;

  static constexpr auto fields() {
    return option_list(option_field<&GruOptions::gru_param>("gru_param", "sizes and initial values", required()));
  }
};

/**
 * A GRU (Cho et al., 2014, in the form of cuDNN) over the steps of a sequence, from a state of zeros: [B, T, V], or
 * [B, T * V] -> the last state [B, k], or with `sequence` those of all steps [B, T, k]:
 *
 *     r = sigmoid(W_r x + R_r h + b_r),  z = sigmoid(W_z x + R_z h + b_z),
 *     n = tanh(W_n x + b_n + r (R_n h)),  h' = (1 - z) n + z h.
 *
 * Parameters, in the order of cuDNN's weight space with one bias: weight_ih [3 k, V], weight_hh [3 k, k], bias [3 k],
 * each with the rows of r, z and n.
 */
class Gru final : public Layer {
 public:
  using Options = GruOptions;
  Gru(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  nn::ParameterArena& parameters_;
  int64_t steps_ = 0, width_ = 0, hidden_;
  bool sequence_;
  size_t weight_ih_, weight_hh_, bias_;
};

}  // namespace tercel::recsys
