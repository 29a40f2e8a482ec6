// Random seeds of a model's parts.
//
// Note [Seeds of parts]
// A table, and a layer that draws masks, has a Philox seed of its own, made of the run's seed and its name. What it
// draws depends neither on other parts nor on the order in which they are made or run.
#pragma once

#include <cstdint>
#include <string_view>

#include "tercel/util/export.h"

namespace tercel::recsys {

/** The seed of the part of that name. */
TERCEL_API uint64_t seed_of_part(uint64_t seed, std::string_view name);

}  // namespace tercel::recsys
