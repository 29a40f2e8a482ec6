#include "tercel/recsys/layers/shaping.h"

#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel::recsys {

Concat::Concat(const Options& options, BuildContext& context) : Layer(context), axis_(options.axis) {
  if (context.bottoms.empty() || static_cast<size_t>(axis_) > context.bottoms[0].sizes.size())
    refuse_inputs(context, str_cat({"inputs with an axis ", axis_}));
  const auto d = static_cast<size_t>(axis_ - 1);
  DimVector top = context.bottoms[0].sizes;
  top[d] = 0;
  for (const TensorShape& bottom : context.bottoms) {
    const DimVector& shape = bottom.sizes;
    bool fits = shape.size() == top.size();
    for (size_t i = 0; fits && i < shape.size(); ++i) fits = i == d || shape[i] == top[i];
    if (!fits) refuse_inputs(context, str_cat({"inputs that differ in axis ", axis_, " only"}));
    top[d] += shape[d];
  }
  add_top(std::move(top));
}

void Concat::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  tops[0] = cat(bottoms, axis_);
}

Reshape::Reshape(const Options& options, BuildContext& context) : Layer(context), selected_(options.selected) {
  if (context.bottoms.size() != 1) refuse_inputs(context, "one input");
  const DimVector& bottom = context.bottoms[0].sizes;
  int64_t row = numel_of(bottom);
  DimVector top;
  if (!selected_.empty()) {
    if (bottom.size() != 2) refuse_inputs(context, "an input [batch, slots, n] to select slots from");
    for (const int64_t slot : selected_)
      TERCEL_CHECK(slot < bottom[0], ConfigError, "[Reshape ", context.name, "] slot ", slot, " of an input of ",
                   bottom[0], " slots");
    row = static_cast<int64_t>(selected_.size()) * bottom[1];
  }
  const int64_t sample = rows_per_sample() * row;
  if (!options.shape.empty()) {
    const IntSpan wanted(options.shape);
    const IntSpan rest = wanted.subspan(1, wanted.size() - 1);
    bool fits = wanted[0] == -1 && !rest.empty();
    for (const int64_t size : rest) fits = fits && size >= 1;
    if (!fits || sample % numel_of(rest) != 0)
      refuse_inputs(context, str_cat({"an input whose samples can be divided into rows of the shape ", wanted}));
    top.assign(rest);
  } else if (options.leading_dim > 0) {
    if (options.time_step > 0) top.push_back(options.time_step);
    top.push_back(options.leading_dim);
    if (sample % numel_of(top) != 0)
      refuse_inputs(context,
                    str_cat({"an input whose samples can be divided into rows of ", numel_of(top), " elements"}));
  } else {
    top.push_back(row);
  }
  const int64_t rows = sample / numel_of(top);
  add_top(TensorShape(std::move(top), rows));
}

void Reshape::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  Tensor x = bottoms[0];
  if (!selected_.empty()) {
    std::vector<Tensor> slots;
    for (const int64_t slot : selected_) slots.push_back(narrow(x, 1, slot, 1));
    x = cat(slots, 1);
  }
  const TensorShape& shape = Layer::tops()[0];
  DimVector sizes{x.size(0) / rows_per_sample() * shape.rows_per_sample};
  for (const int64_t size : shape.sizes) sizes.push_back(size);
  tops[0] = reshape(x, sizes);
}

Slice::Slice(const Options& options, BuildContext& context) : Layer(context), ranges_(options.ranges) {
  if (context.bottoms.size() != 1 || context.bottoms[0].sizes.empty())
    refuse_inputs(context, "one input [batch, ..., n]");
  const int64_t width = context.bottoms[0].sizes.back();
  for (const auto& range : ranges_) {
    TERCEL_CHECK(range.size() == 2 && range[0] < range[1] && range[1] <= width, ConfigError, "[Slice ", context.name,
                 "] range ", IntSpan(range), " is not a valid [first, end) within the ", width, " columns of ",
                 shape_text(context.bottoms[0]));
    DimVector top = context.bottoms[0].sizes;
    top.back() = range[1] - range[0];
    add_top(std::move(top));
  }
}

void Slice::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  for (size_t i = 0; i < ranges_.size(); ++i)
    tops[i] = narrow(bottoms[0], -1, ranges_[i][0], ranges_[i][1] - ranges_[i][0]);
}

}  // namespace tercel::recsys
