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

namespace {

/** The sizes of a row that the options give; empty if they give none. */
DimVector wanted_row(const ReshapeOptions& options, std::string_view name) {
  DimVector row;
  TERCEL_CHECK(options.time_step == 0 || options.leading_dim > 0, ConfigError, "[Reshape ", name,
               "] time_step needs a leading_dim");
  if (options.leading_dim > 0) {
    TERCEL_CHECK(options.shape.empty(), ConfigError, "[Reshape ", name, "] expected leading_dim or shape, not both");
    if (options.time_step > 0) row.push_back(options.time_step);
    row.push_back(options.leading_dim);
  }
  for (size_t d = 0; d < options.shape.size(); ++d) {
    const int64_t size = options.shape[d];
    TERCEL_CHECK(options.shape.size() > 1 && (d == 0 ? size == -1 : size >= 1), ConfigError, "[Reshape ", name,
                 "] shape starts with -1, followed by sizes of at least 1, but is ", IntSpan(options.shape));
    if (d > 0) row.push_back(size);
  }
  return row;
}

}  // namespace

Reshape::Reshape(const Options& options, BuildContext& context) : Layer(context), selected_(options.selected) {
  if (context.bottoms.size() != 1) refuse_inputs(context, "one input");
  const DimVector& bottom = context.bottoms[0].sizes;
  int64_t row = numel_of(bottom);
  if (!selected_.empty()) {
    if (bottom.size() != 2) refuse_inputs(context, "an input [batch, slots, n] to select slots from");
    for (const int64_t slot : selected_)
      TERCEL_CHECK(slot < bottom[0], ConfigError, "[Reshape ", context.name, "] slot ", slot, " of an input of ",
                   bottom[0], " slots");
    row = static_cast<int64_t>(selected_.size()) * bottom[1];
  }
  const int64_t sample = rows_per_sample() * row;
  DimVector top = wanted_row(options, context.name);
  if (top.empty()) top.push_back(row);
  int64_t elements = 1;
  bool fits = true;
  for (const int64_t size : top) fits = fits && !__builtin_mul_overflow(elements, size, &elements);
  if (!fits || sample % elements != 0)
    refuse_inputs(context, str_cat({"an input whose samples can be divided into rows of the shape ", IntSpan(top)}));
  add_top(TensorShape::with_rows(std::move(top), sample / elements));
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
