#include "tercel/recsys/model/config.h"
#include "tercel/recsys/model/presets_impl.h"
#include "tercel/util/suggest.h"

namespace tercel::recsys {

Span<std::string_view> preset_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Preset& preset : shipped_presets()) all.push_back(preset.name);
    return all;
  }();
  return names;
}

std::string_view preset(std::string_view name) {
  for (const Preset& preset : shipped_presets())
    if (preset.name == name) return preset.text;
  throw_error<ConfigError>({"unknown model '", name, "'", known_names(name, preset_names())});
}

}  // namespace tercel::recsys
