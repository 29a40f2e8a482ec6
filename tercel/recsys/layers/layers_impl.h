// The list of layers and their construction from JSON. Private.
#pragma once

#include "tercel/recsys/layers/layer.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/json_impl.h"
#include "tercel/util/options.h"

namespace tercel::recsys {

/**
 * Makes a layer from its JSON object, ignoring type, bottom and top, which the graph reads. Adds every option, as
 * given or by default, to `resolved`.
 */
using MakeLayer = std::unique_ptr<Layer> (*)(const Json& options, BuildContext& context, Json& resolved);

struct LayerEntry {
  std::string_view type;  ///< HugeCTR's name
  MakeLayer make;
  /** Throws if make() would reject the names or values of the options. */
  void (*check_options)(const Json& options, std::string_view name);
  /** Whether it combines its inputs, so that it also works with fewer of them. */
  bool joins;
  /** Whether it is a LossLayer: a head of the model. */
  bool is_loss;
  /** Shows its options and their defaults. */
  void (*show_options)(FunctionRef<void(OptionTable table, const void* defaults)> viewer);
};

/** Every layer but Data and the embeddings. */
Span<LayerEntry> layer_entries();

}  // namespace tercel::recsys
