#include "tercel/recsys/layers/compressed_interaction.h"

#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/permute.h"
#include "tercel/ops/views/views.h"

namespace tercel::recsys {

CompressedInteraction::CompressedInteraction(const Options& options, BuildContext& context)
    : Layer(context), parameters_(context.parameters) {
  TERCEL_CHECK(!options.num_outputs.empty(), ConfigError, "[CompressedInteraction ", context.name,
               "] num_outputs is empty");
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.size() != 2)
    refuse_inputs(context, "one input [batch, fields, d]");
  const int64_t fields = context.bottoms[0].sizes[0];
  int64_t before = fields, total = 0;
  for (size_t l = 0; l < options.num_outputs.size(); ++l) {
    const int64_t vectors = options.num_outputs[l];
    const int64_t pairs = before * fields;
    layers_.push_back({parameters_.reserve(
                           std::string(context.name) + "." + std::to_string(l) + ".weight", {before, vectors * fields},
                           resolve(options.weight_init, pairs, vectors, nn::Init::xavier_normal(pairs, vectors),
                                   nn::Init::uniform(1 / static_cast<double>(pairs + vectors)))),
                       vectors});
    before = vectors;
    total += vectors;
  }
  add_top(DimVector{total});
}

// The weights meet the vectors before, then those of the input: [B * d, before] -> [B * d, vectors, fields] ->
// [B * d, vectors]. The products of pairs, of which there are more, are never stored.
void CompressedInteraction::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const int64_t rows = bottoms[0].size(0), fields = bottoms[0].size(1), d = bottoms[0].size(2);
  const Tensor x0 = reshape(transpose(bottoms[0], 1, 2), {rows * d, fields});
  const Tensor columns = view(x0, {rows * d, fields, 1});
  Tensor x = x0;
  sums_.clear();  // also after a step that failed
  for (const Sublayer& layer : layers_) {
    const Tensor weighted = view(mm(x, parameters_[layer.weight]), {rows * d, layer.vectors, fields});
    x = view(bmm(weighted, columns), {rows * d, layer.vectors});
    sums_.push_back(sum(view(x, {rows, d, layer.vectors}), {1}));
  }
  tops[0] = sums_.size() == 1 ? sums_[0] : cat(sums_, 1);
  sums_.clear();
}

}  // namespace tercel::recsys
