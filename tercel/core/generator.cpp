#include "tercel/core/generator.h"

#include <utility>

#include "tercel/util/process_mutex.h"

namespace tercel {

void Generator::set_seed(uint64_t seed) { set_state({seed, 0}); }

GeneratorState Generator::state() const {
  const std::lock_guard lock(process_mutex(ProcessMutex::Generators));
  return state_;
}

void Generator::set_state(GeneratorState state) {
  const std::lock_guard lock(process_mutex(ProcessMutex::Generators));
  state_ = state;
}

GeneratorState Generator::reserve(uint64_t blocks) {
  GeneratorState begin;
  {
    const std::lock_guard lock(process_mutex(ProcessMutex::Generators));
    if (replayed_ && next_replayed_ < replayed_->size()) state_ = (*replayed_)[next_replayed_++];
    begin = state_;
    state_.offset += blocks;
  }
  if (detail::t_draw_scopes.recorder && this == &default_generator()) [[unlikely]]
    for (RecordDraws* r = detail::t_draw_scopes.recorder; r; r = r->outer_) r->into_.ranges.push_back(begin);
  return begin;
}

namespace {
constinit Generator g_default_generator;
}  // namespace

constinit thread_local detail::DrawScopes detail::t_draw_scopes [[gnu::tls_model("initial-exec")]];

Generator& default_generator() {
  Generator* const own = detail::t_draw_scopes.generator;
  return own ? *own : g_default_generator;
}

void manual_seed(uint64_t seed) { default_generator().set_seed(seed); }

RecordDraws::RecordDraws(Draws& into) : into_(into), outer_(std::exchange(detail::t_draw_scopes.recorder, this)) {
  into_ = {default_generator().state(), {}};
}

RecordDraws::~RecordDraws() { detail::t_draw_scopes.recorder = outer_; }

// An outer RecordDraws scope records nothing: repeated draws are not taken from its generator.
ReplayDraws::ReplayDraws(const Draws& draws) : outer_(std::exchange(detail::t_draw_scopes, {&generator_, nullptr})) {
  generator_.state_ = draws.start;
  generator_.replayed_ = &draws.ranges;
}

ReplayDraws::~ReplayDraws() { detail::t_draw_scopes = outer_; }

}  // namespace tercel
