#include "tercel/recsys/layers/layer.h"

namespace tercel::recsys {

Layer::~Layer() = default;

std::string shape_text(const FeatureShape& shape) {
  std::string text = "[batch";
  for (const int64_t size : shape) text += ", " + std::to_string(size);
  return text + "]";
}

void refuse_inputs(const BuildContext& context, std::string_view expected) {
  std::string found;
  for (const FeatureShape& shape : context.bottoms) found += (found.empty() ? "" : ", ") + shape_text(shape);
  throw_error<ConfigError>({"[", context.type, " ", context.name, "] expected ", expected, " but got ", found});
}

}  // namespace tercel::recsys
