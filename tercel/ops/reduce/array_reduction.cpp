#include "tercel/ops/reduce/array_reduction.h"

#include <algorithm>
#include <vector>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/error.h"

namespace tercel {

namespace {

bool is_bitwise(ArrayReduction how) {
  return how == ArrayReduction::BitwiseAnd || how == ArrayReduction::BitwiseOr || how == ArrayReduction::BitwiseXor;
}

void check_dtype(ArrayReduction how, ScalarType dtype) {
  const bool is_float = is_floating(dtype), is_other = is_complex(dtype);
  const bool fits = is_bitwise(how)                                            ? !is_float && !is_other
                    : how == ArrayReduction::Mean                              ? is_float || is_other
                    : how == ArrayReduction::Min || how == ArrayReduction::Max ? !is_other
                                                                               : true;
  TERCEL_CHECK(fits, RuntimeError, "reduction of arrays: ", to_string(how), " is not defined for ", to_string(dtype));
}

Tensor join(ArrayReduction how, const Tensor& a, const Tensor& b) {
  switch (how) {
    case ArrayReduction::Sum:
    case ArrayReduction::Mean: return add(a, b);
    case ArrayReduction::Product: return mul(a, b);
    case ArrayReduction::Min: return minimum(a, b);
    case ArrayReduction::Max: return maximum(a, b);
    case ArrayReduction::BitwiseAnd: return bitwise_and(a, b);
    case ArrayReduction::BitwiseOr: return bitwise_or(a, b);
    case ArrayReduction::BitwiseXor: return bitwise_xor(a, b);
  }
  throw_error<InternalError>({"unknown reduction"});
}

}  // namespace

void reduce_arrays(ArrayReduction how, const Tensor& out, Span<Tensor> parts) {
  TERCEL_CHECK(!parts.empty(), RuntimeError, "reduction of arrays: expected at least one");
  for (const Tensor& part : parts)
    TERCEL_CHECK(part.dtype() == out.dtype() && part.sizes() == out.sizes(), RuntimeError,
                 "reduction of arrays: expected arrays of ", to_string(out.dtype()), " and sizes ", out.sizes(),
                 ", found ", to_string(part.dtype()), " and ", part.sizes());
  check_dtype(how, out.dtype());
  const NoGradGuard no_grad;
  // Blocks that stay in the cache, so that each array is read once.
  constexpr int64_t kBlock = int64_t{32} << 10;
  const bool is_narrow = out.itemsize() == 2 && out.is_floating_point();
  const Tensor to_flat = out.flatten();
  std::vector<Tensor> flat;
  for (const Tensor& part : parts) flat.push_back(part.flatten());
  for (int64_t begin = 0; begin < to_flat.numel(); begin += kBlock) {
    const auto block = [&](const Tensor& x) { return x.narrow(0, begin, std::min(kBlock, x.numel() - begin)); };
    const auto wide_block = [&](const Tensor& x) { return is_narrow ? to(block(x), kFloat32) : block(x); };
    Tensor joined = wide_block(flat[0]);
    for (size_t p = 1; p < flat.size(); ++p) joined = join(how, joined, wide_block(flat[p]));
    if (how == ArrayReduction::Mean) joined = div(joined, static_cast<int64_t>(parts.size()));
    copy_(block(to_flat), joined);
  }
}

}  // namespace tercel
