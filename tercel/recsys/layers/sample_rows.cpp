#include "tercel/recsys/layers/sample_rows.h"

#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel::recsys {

Scale::Scale(const Options& options, BuildContext& context)
    : Layer(context), axis_(options.scale_param.axis), factor_(options.scale_param.factor) {
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.size() != 1)
    refuse_inputs(context, "one input [batch, n]");
  const int64_t n = context.bottoms[0].sizes[0], rows = rows_per_sample();
  int64_t grown = 0;
  TERCEL_CHECK(!__builtin_mul_overflow(axis_ == 0 ? n : rows, factor_, &grown), ConfigError, "[Scale ", context.name,
               "] factor ", factor_, " is too large for ", shape_text(context.bottoms[0]));
  add_top(axis_ == 0 ? TensorShape::with_rows({grown}, rows) : TensorShape::with_rows({n}, grown));
}

void Scale::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const Tensor& x = bottoms[0];
  const int64_t rows = x.size(0), n = x.size(1);
  tops[0] = axis_ == 0 ? reshape(expand(unsqueeze(x, 2), {rows, n, factor_}), {rows, n * factor_})
                       : reshape(expand(unsqueeze(x, 1), {rows, factor_, n}), {rows * factor_, n});
}

namespace {

/** Width of all inputs [batch, slots, d_i] side by side; refuses others. */
int64_t joint_width(const BuildContext& context, int64_t fewest_slots, std::string_view expected) {
  int64_t width = 0;
  for (const TensorShape& bottom : context.bottoms) {
    if (bottom.sizes.size() != 2 || bottom.sizes[0] < fewest_slots || bottom.sizes[0] != context.bottoms[0].sizes[0])
      refuse_inputs(context, expected);
    width += bottom.sizes[1];
  }
  return width;
}

Tensor side_by_side(Span<Tensor> bottoms) { return bottoms.size() == 1 ? bottoms[0] : cat(bottoms, 2); }

}  // namespace

FusedReshapeConcat::FusedReshapeConcat(const Options&, BuildContext& context) : Layer(context) {
  width_ =
      joint_width(context, 2, "inputs [batch, slots, d] of equally many slots, at least 2: a history and a target");
  slots_ = context.bottoms[0].sizes[0];
  add_top(TensorShape::with_rows({width_}, rows_per_sample() * (slots_ - 1)));
  add_top(DimVector{width_});
}

void FusedReshapeConcat::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const Tensor all = side_by_side(bottoms);
  const int64_t rows = all.size(0);
  tops[0] = reshape(narrow(all, 1, 0, slots_ - 1), {rows * (slots_ - 1), width_});
  tops[1] = reshape(narrow(all, 1, slots_ - 1, 1), {rows, width_});
}

FusedReshapeConcatGeneral::FusedReshapeConcatGeneral(const Options&, BuildContext& context) : Layer(context) {
  width_ = joint_width(context, 1, "inputs [batch, slots, d] of equally many slots");
  add_top(TensorShape::with_rows({width_}, rows_per_sample() * context.bottoms[0].sizes[0]));
}

void FusedReshapeConcatGeneral::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  const Tensor all = side_by_side(bottoms);
  tops[0] = reshape(all, {all.size(0) * all.size(1), width_});
}

}  // namespace tercel::recsys
