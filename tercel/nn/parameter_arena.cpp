#include "tercel/nn/parameter_arena.h"

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"

namespace tercel::nn {

namespace {
constexpr int64_t kAlignment = 16;  // elements: a cache line of float32
}  // namespace

size_t ParameterArena::reserve(std::string name, IntSpan sizes, Init init) {
  TERCEL_CHECK(!weights_.defined(), RuntimeError, "parameter '", name, "': the arena is already allocated");
  for (const Entry& entry : entries_)
    TERCEL_CHECK(entry.name != name, RuntimeError, "parameter '", name, "' exists already");
  const auto item = static_cast<int64_t>(item_size(dtype_));
  try {
    const size_t index = block_.reserve(sizes, dtype_, kAlignment * item);
    gradient_block_.reserve(sizes, dtype_, kAlignment * item);
    entries_.push_back({std::move(name), DimVector(sizes), init, block_.offset(index) / item, Tensor()});
    return index;
  } catch (const RuntimeError& e) {
    throw_error<RuntimeError>({"parameter '", name, "': ", e.what()});
  }
}

void ParameterArena::allocate(Generator& generator) {
  allocate();
  const NoGradGuard guard;
  for (Entry& entry : entries_) initialize(entry.tensor, entry.init, generator);
}

void ParameterArena::allocate() {
  TERCEL_CHECK(!weights_.defined(), RuntimeError, "the arena is already allocated");
  block_.allocate();
  gradient_block_.allocate();
  weights_ = block_.whole(dtype_);
  gradients_ = gradient_block_.whole(dtype_);
  zero_(weights_);
  zero_(gradients_);
  for (size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].tensor = block_[i];
    entries_[i].tensor.requires_grad_();
    set_gradient(entries_[i].tensor, {gradient_block_[i], {}});
  }
}

void ParameterArena::zero_gradients() { zero_(gradients_); }

}  // namespace tercel::nn
