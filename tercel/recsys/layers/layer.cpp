#include "tercel/recsys/layers/layer.h"

namespace tercel::recsys {

Layer::Layer(const BuildContext& context) : Layer(context, AnyRows{}) {
  for (const TensorShape& shape : context.bottoms)
    if (shape.rows_per_sample != rows_per_sample_) refuse_inputs(context, "inputs with the same number of rows");
}

Layer::Layer(const BuildContext& context, AnyRows) {
  if (!context.bottoms.empty()) rows_per_sample_ = context.bottoms[0].rows_per_sample;
}

Layer::~Layer() = default;

std::string shape_text(const TensorShape& shape) {
  if (shape.rows_per_sample == 0) return "scalar";
  std::string text = "[batch";
  if (shape.rows_per_sample != 1) text += " * " + std::to_string(shape.rows_per_sample);
  for (const int64_t size : shape.sizes) text += ", " + std::to_string(size);
  return text + "]";
}

void refuse_inputs(const BuildContext& context, std::string_view expected) {
  std::string found;
  for (const TensorShape& shape : context.bottoms) found += (found.empty() ? "" : ", ") + shape_text(shape);
  throw_error<ConfigError>({"[", context.type, " ", context.name, "] expected ", expected, " but got ", found});
}

}  // namespace tercel::recsys
