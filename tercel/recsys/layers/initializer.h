// Initializers of a graph, by HugeCTR's names.
#pragma once

#include <array>

#include "tercel/nn/init.h"
#include "tercel/util/enum_names.h"

namespace tercel::recsys {

enum class Initializer : uint8_t { Default, Uniform, XavierNorm, XavierUniform, Zero };

constexpr auto enum_names(Initializer) {
  return std::to_array<EnumName<Initializer>>({{Initializer::Default, "Default"},
                                               {Initializer::Uniform, "Uniform"},
                                               {Initializer::XavierNorm, "XavierNorm"},
                                               {Initializer::XavierUniform, "XavierUniform"},
                                               {Initializer::Zero, "Zero"}});
}

/** The named distribution for these fans; Default and Uniform depend on the layer and are arguments. */
inline nn::Init resolve(Initializer initializer, int64_t fan_in, int64_t fan_out, const nn::Init& layer_default,
                        const nn::Init& layer_uniform) {
  switch (initializer) {
    case Initializer::Default: return layer_default;
    case Initializer::Uniform: return layer_uniform;
    case Initializer::XavierNorm: return nn::Init::xavier_normal(fan_in, fan_out);
    case Initializer::XavierUniform: return nn::Init::xavier_uniform(fan_in, fan_out);
    case Initializer::Zero: return nn::Init::zero();
  }
  return layer_default;
}

}  // namespace tercel::recsys
