// Random numbers for ops: a seed and a position in one Philox stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tercel/util/export.h"
#include "tercel/util/philox.h"

namespace tercel {

/** Position in a generator's sequence; saved and restored to continue it. */
struct GeneratorState {
  uint64_t seed = 0;
  uint64_t offset = 0;  ///< in Philox blocks
  friend bool operator==(const GeneratorState&, const GeneratorState&) = default;
};

/** Gives each op its own range of a counter-based stream, so that numbers do not depend on threads. Any thread may use
 * it. */
class TERCEL_API Generator {
 public:
  constexpr explicit Generator(uint64_t seed = 0) : state_{seed, 0} {}

  /** Restarts the sequence at its beginning. */
  void set_seed(uint64_t seed);
  GeneratorState state() const;
  void set_state(GeneratorState state);
  /** Reserves the next `blocks` blocks (four 32-bit words each) of the stream; returns their first position. */
  GeneratorState reserve(uint64_t blocks);

 private:
  friend class ReplayDraws;

  GeneratorState state_;
  const std::vector<GeneratorState>* replayed_ = nullptr;  // returned by reserve() before new ranges
  size_t next_replayed_ = 0;
};

/**
 * The generator of random ops that are called without one: that of the process or, in a scope of ReplayDraws, of this
 * thread.
 */
TERCEL_API Generator& default_generator();
/** Seeds the default generator. */
TERCEL_API void manual_seed(uint64_t seed);

/** The ranges that a thread took from the default generator, for drawing them again. */
struct Draws {
  GeneratorState start = {};                ///< where the generator was
  std::vector<GeneratorState> ranges = {};  ///< where each range that was taken begins
};

// Note [Drawing again]
// A recomputation must draw the same numbers. Resetting the process's generator would give other threads numbers a
// second time, and would be wrong: between two draws of one thread another thread may have drawn. So one scope records
// the ranges that its thread takes, and a later scope gives its thread a separate generator that returns those ranges
// again.

/** Records what this thread takes from the default generator in the scope. Scopes on a thread are nested. */
class TERCEL_API RecordDraws {
 public:
  explicit RecordDraws(Draws& into);
  ~RecordDraws();
  RecordDraws(const RecordDraws&) = delete;
  RecordDraws& operator=(const RecordDraws&) = delete;

 private:
  friend class Generator;
  Draws& into_;
  RecordDraws* outer_;
};

namespace detail {
/** The scopes that a thread is in; a thread that continues another's work inherits them. */
struct DrawScopes {
  Generator* generator = nullptr;
  RecordDraws* recorder = nullptr;
};
TERCEL_API extern constinit thread_local DrawScopes t_draw_scopes [[gnu::tls_model("initial-exec")]];
}  // namespace detail

/** In the scope, this thread's default generator repeats the recorded draws and then continues after them. */
class TERCEL_API ReplayDraws {
 public:
  explicit ReplayDraws(const Draws& draws);
  ~ReplayDraws();
  ReplayDraws(const ReplayDraws&) = delete;
  ReplayDraws& operator=(const ReplayDraws&) = delete;

 private:
  Generator generator_;
  detail::DrawScopes outer_;
};

}  // namespace tercel
