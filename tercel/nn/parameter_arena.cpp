#include "tercel/nn/parameter_arena.h"

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/ceil_div.h"

namespace tercel::nn {

namespace {
/** One cache line of floats, so that no two parameters share one. */
constexpr int64_t kAlignment = 16;
/** Larger than any memory; sizes in bytes do not overflow. */
constexpr int64_t kMaxSize = int64_t{1} << 48;
}  // namespace

size_t ParameterArena::reserve(std::string name, IntSpan sizes, Init init) {
  TERCEL_CHECK(!weights_.defined(), RuntimeError, "parameter '", name, "': the arena is already allocated");
  for (const Entry& entry : entries_)
    TERCEL_CHECK(entry.name != name, RuntimeError, "parameter '", name, "' exists already");
  const int64_t numel = numel_of(sizes);
  TERCEL_CHECK(numel <= kMaxSize - size_, RuntimeError, "parameter '", name, "' ", sizes, ": there would be more than ",
               kMaxSize, " parameters");
  entries_.push_back({std::move(name), DimVector(sizes), init, size_, Tensor()});
  size_ += round_up(numel, kAlignment);
  return entries_.size() - 1;
}

void ParameterArena::allocate(ScalarType dtype, Generator& generator) {
  allocate(dtype);
  const NoGradGuard guard;
  for (Entry& entry : entries_) initialize(entry.tensor, entry.init, generator);
}

void ParameterArena::allocate(ScalarType dtype) {
  TERCEL_CHECK(!weights_.defined(), RuntimeError, "the arena is already allocated");
  weights_ = zeros({size_}, dtype);
  gradients_ = zeros({size_}, dtype);
  for (Entry& entry : entries_) {
    const auto part = [&](const Tensor& whole) {
      return view(narrow(whole, 0, entry.offset, numel_of(entry.sizes)), entry.sizes).detach();
    };
    entry.tensor = part(weights_);
    entry.tensor.requires_grad_();
    set_gradient(entry.tensor, {part(gradients_), {}});
  }
}

void ParameterArena::zero_gradients() { zero_(gradients_); }

}  // namespace tercel::nn
