// Random numbers for ops: a seed and a position in one Philox stream.
#pragma once

#include <atomic>
#include <cstdint>

#include "tercel/util/export.h"
#include "tercel/util/philox.h"

namespace tercel {

/** What to save to continue a generator's sequence. */
struct GeneratorState {
  uint64_t seed = 0;
  uint64_t offset = 0;  ///< in Philox blocks
  friend bool operator==(const GeneratorState&, const GeneratorState&) = default;
};

/** Gives each op its own range of a counter-based stream, so that numbers do not depend on threads. Any thread may use
 * it. */
class TERCEL_API Generator {
 public:
  explicit Generator(uint64_t seed = 0) : state_{seed, 0} {}

  /** Restarts the sequence at its beginning. */
  void set_seed(uint64_t seed);
  GeneratorState state() const;
  void set_state(GeneratorState state);
  /** Takes the next `blocks` blocks (four 32-bit words each) of the stream; returns where they begin. */
  GeneratorState reserve(uint64_t blocks);

 private:
  mutable std::atomic_flag busy_;  // held for a few instructions
  GeneratorState state_;
};

/** The generator that random ops use unless they are given one. */
TERCEL_API Generator& default_generator();
/** Seeds the default generator. */
TERCEL_API void manual_seed(uint64_t seed);

}  // namespace tercel
