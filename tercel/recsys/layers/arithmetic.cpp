#include "tercel/recsys/layers/arithmetic.h"

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"

namespace tercel::recsys {

namespace {

DimVector common_sizes(const BuildContext& context, size_t fewest, std::string_view expected) {
  bool same = context.bottoms.size() >= fewest;
  for (const TensorShape& shape : context.bottoms) same = same && shape == context.bottoms[0];
  if (!same) refuse_inputs(context, expected);
  return context.bottoms[0].sizes;
}

}  // namespace

Add::Add(const Options&, BuildContext& context) : Layer(context) {
  add_top(common_sizes(context, 1, "inputs of one shape"));
}
void Add::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  Tensor sum = bottoms[0];
  for (size_t i = 1; i < bottoms.size(); ++i) sum = add(sum, bottoms[i]);
  tops[0] = std::move(sum);
}

ElementwiseMultiply::ElementwiseMultiply(const Options&, BuildContext& context) : Layer(context) {
  add_top(common_sizes(context, 2, "two or more inputs of one shape"));
}
void ElementwiseMultiply::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  Tensor product = mul(bottoms[0], bottoms[1]);
  for (size_t i = 2; i < bottoms.size(); ++i) product = mul(product, bottoms[i]);
  tops[0] = std::move(product);
}

Sub::Sub(const Options&, BuildContext& context) : Layer(context) {
  constexpr std::string_view expected = "two inputs of one shape";
  DimVector sizes = common_sizes(context, 2, expected);
  if (context.bottoms.size() != 2) refuse_inputs(context, expected);
  add_top(std::move(sizes));
}
void Sub::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  tops[0] = sub(bottoms[0], bottoms[1]);
}

ReductionLayer::ReductionLayer(const ReductionOptions& options, const BuildContext& context)
    : Layer(context), axis_(options.axis) {
  if (context.bottoms.size() != 1 || static_cast<size_t>(axis_) > context.bottoms[0].sizes.size())
    refuse_inputs(context, str_cat({"one input with an axis ", axis_}));
  DimVector top = context.bottoms[0].sizes;
  top[static_cast<size_t>(axis_ - 1)] = 1;
  add_top(std::move(top));
}

void ReduceSum::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  tops[0] = sum(bottoms[0], {axis()}, /*keepdim=*/true);
}

void ReduceMean::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  tops[0] = mean(bottoms[0], {axis()}, /*keepdim=*/true);
}

WeightMultiply::WeightMultiply(const Options& options, BuildContext& context)
    : Layer(context), parameters_(context.parameters) {
  const std::vector<int64_t>& dims = options.weight_dims;
  TERCEL_CHECK(dims.size() == 2 && dims[1] > 0, ConfigError, "[WeightMultiply ", context.name,
               "] weight_dims is [slots, d], not ", IntSpan(dims));
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.size() != 1 || context.bottoms[0].sizes[0] != dims[0])
    refuse_inputs(context, str_cat({"one input [batch, ", dims[0], "]"}));
  weight_ =
      parameters_.reserve(std::string(context.name) + ".weight", dims,
                          resolve(options.weight_init, dims[0], dims[1], nn::Init::xavier_uniform(dims[0], dims[1]),
                                  nn::Init::uniform(1 / static_cast<double>(dims[0] + dims[1]))));
  add_top(DimVector{dims[0] * dims[1]});
}
void WeightMultiply::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const Tensor& x = bottoms[0];
  tops[0] = flatten(mul(unsqueeze(x, 2), parameters_[weight_]), 1);
}

}  // namespace tercel::recsys
