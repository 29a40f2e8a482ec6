// A fully connected layer.
#pragma once

#include "tercel/recsys/layers/initializer.h"
#include "tercel/recsys/layers/layer.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

struct InnerProductOptions {
  struct Parameters {
    int64_t num_output = 1;
    Initializer weight_init = Initializer::Default;
    Initializer bias_init = Initializer::Default;

    static constexpr auto fields() {
      return option_list(option_field<&Parameters::num_output>("num_output", "width of the output", at_least(1),
                                                               at_most(1 << 24), required()),
                         option_field<&Parameters::weight_init>("weight_init", "initial weights"),
                         option_field<&Parameters::bias_init>("bias_init", "initial bias"));
    }
  };
  Parameters fc_param;

  static constexpr auto fields() {
    return option_list(option_field<&InnerProductOptions::fc_param>("fc_param", "size and initial values", required()));
  }
};

/** The initial weights of `in` inputs. */
nn::Init initial_weight(const InnerProductOptions::Parameters& options, int64_t in);
/** The initial bias. */
nn::Init initial_bias(const InnerProductOptions::Parameters& options);

/** [B, ..., n] -> [B, ..., num_output]: x W + b. Parameters weight [n, num_output], bias [num_output]. */
class InnerProduct final : public Layer {
 public:
  using Options = InnerProductOptions;
  InnerProduct(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  nn::ParameterArena& parameters_;
  size_t weight_, bias_;
};

}  // namespace tercel::recsys
