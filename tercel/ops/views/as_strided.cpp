// Views with arbitrary sizes and strides.
#include <algorithm>
#include <bit>

#include "tercel/core/tensor.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/views/views.h"
#include "tercel/ops/views/views_impl.h"

namespace tercel {

namespace {

/** Fast check for common cases: true if certainly inside, false if unknown. Needs no overflow checks. */
bool plainly_inside(const Tensor& x, IntSpan sizes, IntSpan strides, int64_t storage_offset) {
  // Sizes and strides below 2^28 keep the sum over 64 dimensions below 2^62.
  constexpr int kBits = 28;
  if (sizes.size() != strides.size() || sizes.size() > 64) return false;
  int64_t highest = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0 || static_cast<uint64_t>(sizes[d] | strides[d]) >> kBits != 0) return false;
    highest += (sizes[d] - 1) * strides[d];
  }
  const size_t items = x.storage()->nbytes() >> std::countr_zero(x.itemsize());
  return storage_offset >= 0 && highest < static_cast<int64_t>(items) - storage_offset;
}

/** RuntimeError if the position after the last element overflows 64 bits. Elements before the offset are possible too.
 */
void check_reach(IntSpan sizes, IntSpan strides, int64_t storage_offset, size_t itemsize) {
  int64_t reach = 1, step = 0;
  bool overflows = __builtin_add_overflow(storage_offset, 1, &reach);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] <= 0) return;
    overflows = overflows || __builtin_mul_overflow(sizes[d] - 1, strides[d], &step) ||
                __builtin_add_overflow(reach, std::max<int64_t>(step, 0), &reach);
  }
  TERCEL_CHECK(!overflows && !__builtin_mul_overflow(reach, static_cast<int64_t>(itemsize), &step), RuntimeError,
               "Storage size calculation overflowed with sizes=", sizes, " and strides=", strides);
}

[[gnu::noinline]] void check_thoroughly(const Tensor& x, IntSpan sizes, IntSpan strides, int64_t storage_offset) {
  TERCEL_CHECK(sizes.size() == strides.size(), RuntimeError, "mismatch in length of strides and shape");
  TERCEL_CHECK(storage_offset >= 0, RuntimeError, "Tensor: invalid storage offset ", storage_offset);
  check_reach(sizes, strides, storage_offset, x.itemsize());
  if (numel_of(sizes) > 0) {
    const Extent extent = extent_of(sizes, strides);
    const auto items = static_cast<int64_t>(x.storage()->nbytes() / x.itemsize());
    TERCEL_CHECK(storage_offset + extent.lowest >= 0 && extent.highest < items - storage_offset, RuntimeError,
                 "setStorage: sizes ", sizes, ", strides ", strides, ", storage offset ", storage_offset,
                 ", and itemsize ", x.itemsize(), " requiring a storage size of ",
                 (static_cast<size_t>(storage_offset) + static_cast<size_t>(extent.highest) + 1) * x.itemsize(),
                 " are out of bounds for storage of size ", x.storage()->nbytes());
  }
}

}  // namespace

void check_restrided(const Tensor& x, IntSpan sizes, IntSpan strides, int64_t storage_offset) {
  if (!plainly_inside(x, sizes, strides, storage_offset)) [[unlikely]]
    check_thoroughly(x, sizes, strides, storage_offset);
}

Tensor as_strided(const Tensor& x, IntSpan size, IntSpan stride, std::optional<int64_t> storage_offset) {
  check_strided("as_strided", x);
  const int64_t offset = storage_offset.value_or(x.storage_offset());
  check_restrided(x, size, stride, offset);
  Tensor out = alias(x, size, stride, offset);
  make_view("AsStridedBackward0", out, x, [&] {
    return [base = Geometry(x), g = Geometry(out)](BackwardCall& call) {
      call.set(0, as_strided_backward(call.grad(), g, base, false));
    };
  });
  return out;
}

}  // namespace tercel
