#include "tercel/nn/parameter_arena.h"

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/factories/huge_pages_impl.h"
#include "tercel/util/ceil_div.h"

namespace tercel::nn {

namespace {
constexpr int64_t kAlignment = 16;  // elements: a cache line of float32
/** Elements, of more bytes than any memory has; sums of sizes do not overflow. */
constexpr int64_t kMaxSize = int64_t{1} << 47;
}  // namespace

size_t ParameterArena::reserve(std::string name, IntSpan sizes, Init init) {
  TERCEL_CHECK(!weights_.defined(), RuntimeError, "parameter '", name, "': the arena is already allocated");
  for (const Entry& entry : entries_)
    TERCEL_CHECK(entry.name != name, RuntimeError, "parameter '", name, "' exists already");
  int64_t numel = 0;
  try {
    numel = numel_of(sizes);
  } catch (const RuntimeError& e) {
    throw_error<RuntimeError>({"parameter '", name, "': ", e.what()});
  }
  TERCEL_CHECK(numel <= kMaxSize - kAlignment - size_, RuntimeError, "parameter '", name, "': with ", sizes,
               " there would be more than ", kMaxSize, " elements");
  entries_.push_back({std::move(name), DimVector(sizes), init, size_, Tensor()});
  size_ += round_up(numel, kAlignment);
  return entries_.size() - 1;
}

void ParameterArena::allocate(Generator& generator, const TensorOptions& place) {
  allocate(place);
  const NoGradGuard guard;
  for (Entry& entry : entries_) initialize(entry.tensor, entry.init, generator);
}

void ParameterArena::allocate(const TensorOptions& place) {
  TERCEL_CHECK(!weights_.defined(), RuntimeError, "the arena is already allocated");
  const TensorOptions options(place.dtype, place.device);
  Tensor gradients = empty_in_huge_pages({size_}, options);  // other ranks read them
  zero_(gradients);
  weights_ = zeros({size_}, options);
  gradients_ = std::move(gradients);
  for (Entry& entry : entries_) {
    const auto part_of = [&entry](const Tensor& all) {
      return Tensor(make_intrusive<TensorImpl>(all.storage(), all.dtype(), IntSpan(entry.sizes),
                                               contiguous_strides(entry.sizes), entry.offset));
    };
    entry.tensor = part_of(weights_);
    entry.tensor.requires_grad_();
    set_gradient(entry.tensor, {part_of(gradients_), {}});
  }
}

void ParameterArena::zero_gradients() { zero_(gradients_); }

}  // namespace tercel::nn
