// The state of a session, for comparisons.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tercel/io/safetensors.h"
#include "tercel/recsys/session.h"
#include "tests/support/tensors.h"

namespace tercel::recsys::test {

/** Values by the names of tensors. */
using State = std::map<std::string, std::vector<double>>;

/** Weights, states of optimizers and buffers, as they are in a checkpoint in `folder`. */
inline State saved_state(Session& session, const std::string& folder) {
  CheckpointStore store(folder, 1);
  session.save(store);
  State state;
  for (const std::string& file : list_dir(*store.latest())) {
    if (!file.ends_with(".safetensors")) continue;
    const io::SafetensorsReader reader(*store.latest() + "/" + file);
    for (const io::TensorEntry& entry : reader.entries())
      state[entry.name] = tercel::test::values_of(reader.read(entry));
  }
  return state;
}

}  // namespace tercel::recsys::test
