#include "tercel/core/generator.h"

namespace tercel {

void Generator::set_seed(uint64_t seed) { set_state({seed, 0}); }

namespace {

class SpinLock {
 public:
  explicit SpinLock(std::atomic_flag& flag) : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) flag_.wait(true, std::memory_order_relaxed);
  }
  ~SpinLock() {
    flag_.clear(std::memory_order_release);
    flag_.notify_one();
  }
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

 private:
  std::atomic_flag& flag_;
};

}  // namespace

GeneratorState Generator::state() const {
  const SpinLock lock(busy_);
  return state_;
}

void Generator::set_state(GeneratorState state) {
  const SpinLock lock(busy_);
  state_ = state;
}

GeneratorState Generator::reserve(uint64_t blocks) {
  const SpinLock lock(busy_);
  const GeneratorState begin = state_;
  state_.offset += blocks;
  return begin;
}

Generator& default_generator() {
  static Generator* const generator = new Generator;
  return *generator;
}

void manual_seed(uint64_t seed) { default_generator().set_seed(seed); }

}  // namespace tercel
