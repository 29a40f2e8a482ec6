#include "tercel/recsys/layers/gru.h"

#include <cmath>

#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/recurrent.h"
#include "tercel/ops/views/views.h"

namespace tercel::recsys {

Gru::Gru(const Options& options, BuildContext& context)
    : Layer(context),
      parameters_(context.parameters),
      hidden_(options.gru_param.num_output),
      sequence_(options.gru_param.sequence) {
  const GruOptions::Parameters& p = options.gru_param;
  const size_t dims = context.bottoms.size() == 1 ? context.bottoms[0].sizes.size() : 0;
  if (dims != 1 && dims != 2) refuse_inputs(context, "one input [batch, steps, n] or [batch, steps * n]");
  const DimVector& sizes = context.bottoms[0].sizes;
  TERCEL_CHECK(dims == 2 || p.SeqLength > 0 || p.vector_size > 0, ConfigError, "[GRU ", context.name,
               "] SeqLength or vector_size is needed to divide ", shape_text(context.bottoms[0]), " into steps");
  const int64_t all = numel_of(sizes);
  steps_ = dims == 2 ? sizes[0] : p.SeqLength > 0 ? p.SeqLength : all / p.vector_size;
  width_ = dims == 2 ? sizes[1] : p.vector_size > 0 ? p.vector_size : all / p.SeqLength;
  // In this order nothing overflows.
  if (steps_ < 1 || width_ != all / steps_ || all % steps_ != 0 || (p.SeqLength > 0 && p.SeqLength != steps_) ||
      (p.vector_size > 0 && p.vector_size != width_))
    refuse_inputs(context, str_cat({"an input of SeqLength ", p.SeqLength > 0 ? p.SeqLength : steps_,
                                    " steps of vector_size ", p.vector_size > 0 ? p.vector_size : width_}));
  const std::string name(context.name);
  const nn::Init range = nn::Init::uniform(1 / std::sqrt(static_cast<double>(hidden_)));
  weight_ih_ = parameters_.reserve(name + ".weight_ih", {3 * hidden_, width_},
                                   resolve(p.weight_init, width_, hidden_, range, range));
  weight_hh_ = parameters_.reserve(name + ".weight_hh", {3 * hidden_, hidden_},
                                   resolve(p.weight_init, hidden_, hidden_, range, range));
  bias_ = parameters_.reserve(name + ".bias", {3 * hidden_}, resolve(p.bias_init, hidden_, hidden_, range, range));
  add_top(sequence_ ? DimVector{steps_, hidden_} : DimVector{hidden_});
}

void Gru::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const Tensor& x = bottoms[0];
  const int64_t rows = x.size(0);
  const Tensor state = zeros({1, rows, hidden_}, x.options());
  RecurrentOptions options;
  options.batch_first = true;
  // The state has no bias of its own.
  const Tensor weights[] = {parameters_[weight_ih_], parameters_[weight_hh_], parameters_[bias_], Tensor()};
  const OutputAndStates result = gru(reshape(x, {rows, steps_, width_}), state, weights, options);
  tops[0] = sequence_ ? result.output : squeeze(result.h, 0);
}

}  // namespace tercel::recsys
