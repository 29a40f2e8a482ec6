// A fully connected layer.
#pragma once

#include <tuple>

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
      return std::tuple(Field{"num_output", &Parameters::num_output, "width of the output", at_least(1),
                              at_most(1 << 24), required()},
                        Field{"weight_init", &Parameters::weight_init, "initial weights"},
                        Field{"bias_init", &Parameters::bias_init, "initial bias"});
    }
  };
  Parameters fc_param;

  static constexpr auto fields() {
    return std::tuple(Field{"fc_param", &InnerProductOptions::fc_param, "size and initial values", required()});
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
