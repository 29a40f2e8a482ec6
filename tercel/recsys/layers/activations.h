// Elementwise layers.
#pragma once

#include <string>

#include "tercel/recsys/layers/layer.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

/** For layers without options. */
struct NoOptions {
  static constexpr auto fields() { return option_list(); }
};

/** max(x, 0). */
class Relu final : public Layer {
 public:
  using Options = NoOptions;
  Relu(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;
};

/** 1 / (1 + exp(-x)). */
class Sigmoid final : public Layer {
 public:
  using Options = NoOptions;
  Sigmoid(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;
};

struct EluOptions {
  struct Parameters {
    double alpha = 1;

    static constexpr auto fields() {
      return option_list(option_field<&Parameters::alpha>("alpha", "the output falls to -alpha", at_least(0)));
    }
  };
  Parameters elu_param;

  static constexpr auto fields() { return option_list(option_field<&EluOptions::elu_param>("elu_param", "shape")); }
};

/** x where it is positive, else alpha (exp(x) - 1) (Clevert et al., "ELU", 2015). */
class Elu final : public Layer {
 public:
  using Options = EluOptions;
  Elu(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  double alpha_;
};

/** Its input: HugeCTR converts here between dtypes, of which a model has one. */
class Cast final : public Layer {
 public:
  using Options = NoOptions;
  Cast(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;
};

struct DropoutOptions {
  double rate = 0.5;

  static constexpr auto fields() {
    return option_list(option_field<&DropoutOptions::rate>("rate", "probability of 0", at_least(0), below(1)));
  }
};

/** In training each element is 0 with probability `rate`, else x / (1 - rate), by Note [Masks]; in evaluation x. */
class Dropout final : public Layer {
 public:
  using Options = DropoutOptions;
  Dropout(const Options& options, BuildContext& context);
  void forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext& context) override;

 private:
  std::string name_;
  double rate_;
};

}  // namespace tercel::recsys
