// The list of layers, and how one is built from JSON. Private.
#pragma once

#include "tercel/recsys/layers/layer.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

/** Makes a layer from its JSON object, in which the keys type, bottom and top belong to the graph. */
using MakeLayer = std::unique_ptr<Layer> (*)(const Json& options, BuildContext& context);

struct LayerEntry {
  std::string_view type;  ///< HugeCTR's name
  MakeLayer make;
  /** Shows its options and their defaults. */
  void (*show_options)(FunctionRef<void(OptionTable table, const void* defaults)> viewer);
};

/** Every layer but Data and the embeddings. */
Span<LayerEntry> layer_entries();

}  // namespace tercel::recsys
