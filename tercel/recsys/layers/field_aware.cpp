#include "tercel/recsys/layers/field_aware.h"

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"

namespace tercel::recsys {

FieldAwareInteraction::FieldAwareInteraction(const Options&, BuildContext& context) : Layer(context) {
  constexpr std::string_view expected = "one input [batch, fields, fields * k]";
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.size() != 2) refuse_inputs(context, expected);
  fields_ = context.bottoms[0].sizes[0];
  if (fields_ < 1 || context.bottoms[0].sizes[1] % fields_ != 0) refuse_inputs(context, expected);
  width_ = context.bottoms[0].sizes[1] / fields_;
  add_top(DimVector{1});
}

void FieldAwareInteraction::allocate(const TensorOptions& place) {
  const Tensor upper = zeros({fields_, fields_, 1}, kFloat32);
  auto* const values = upper.data<float>();
  for (int64_t i = 0; i < fields_; ++i)
    for (int64_t j = i + 1; j < fields_; ++j) values[i * fields_ + j] = 1;
  upper_ = empty({fields_, fields_, 1}, place);
  copy_(upper_, upper);
}

void FieldAwareInteraction::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const int64_t batch = bottoms[0].size(0);
  const Tensor vectors = reshape(bottoms[0], {batch, fields_, fields_, width_});
  // Each pair stands at [i, j] and at [j, i]: half of the products is not used, but nothing is gathered.
  const Tensor products = mul(mul(vectors, transpose(vectors, 1, 2)), upper_);
  tops[0] = view(sum(products, {1, 2, 3}), {batch, 1});
}

}  // namespace tercel::recsys
