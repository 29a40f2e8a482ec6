#include "tercel/recsys/layers/field_aware.h"

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
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
  const int64_t pairs = fields_ * (fields_ - 1) / 2;
  const Tensor left = empty({pairs}, kInt64), right = empty({pairs}, kInt64);
  int64_t* const l = left.data<int64_t>();
  int64_t* const r = right.data<int64_t>();
  int64_t pair = 0;
  for (int64_t i = 0; i < fields_; ++i)
    for (int64_t j = i + 1; j < fields_; ++j, ++pair) {
      l[pair] = i * fields_ + j;
      r[pair] = j * fields_ + i;
    }
  left_ = empty({pairs}, TensorOptions(kInt64, place.device));
  right_ = empty({pairs}, TensorOptions(kInt64, place.device));
  copy_(left_, left);
  copy_(right_, right);
}

void FieldAwareInteraction::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const Tensor vectors = reshape(bottoms[0], {bottoms[0].size(0), fields_ * fields_, width_});
  const Tensor products = mul(index_select(vectors, 1, left_), index_select(vectors, 1, right_));
  tops[0] = view(sum(products, {1, 2}), {bottoms[0].size(0), 1});
}

}  // namespace tercel::recsys
