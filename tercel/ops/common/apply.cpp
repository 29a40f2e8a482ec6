#include "tercel/ops/common/apply.h"

namespace tercel::detail {

ElementCursor::ElementCursor(const Tensor& t) : position_(static_cast<std::byte*>(t.data_ptr())) {
  const auto item = static_cast<int64_t>(t.itemsize());
  for (size_t d = t.sizes().size(); d-- > 0;) {
    const int64_t size = t.sizes()[d], step = t.strides()[d] * item;
    if (size == 1) continue;
    if (!sizes_.empty() && step == sizes_.back() * steps_.back()) {
      sizes_.back() *= size;
      continue;
    }
    sizes_.push_back(size);
    steps_.push_back(step);
    index_.push_back(0);
  }
}

void ElementCursor::advance(int64_t count) {
  if (sizes_.empty()) return;
  position_ += count * steps_[0];
  index_[0] += count;
  for (size_t d = 0; index_[d] == sizes_[d] && d + 1 < sizes_.size(); ++d) {
    position_ += steps_[d + 1] - sizes_[d] * steps_[d];
    index_[d] = 0;
    ++index_[d + 1];
  }
}

void check_apply(const char* op, const Tensor& t, ScalarType dtype, size_t alignment, bool writes, int64_t numel) {
  check_strided(op, t, "tensor");
  TERCEL_CHECK(t.device().is_cpu(), NotImplementedError, op, ": expected a tensor on the CPU, got ", describe(t));
  TERCEL_CHECK(t.dtype() == dtype, RuntimeError, op, ": Tensor type mismatch, caller expects elements to be ",
               to_string(dtype), ", while tensor contains ", to_string(t.dtype()), ". ");
  TERCEL_CHECK(t.numel() == numel, RuntimeError, op,
               ": inconsistent tensor size, expected as many elements in each, got ", numel, " and ", t.numel());
  TERCEL_CHECK(reinterpret_cast<uintptr_t>(t.data_ptr()) % alignment == 0, RuntimeError, op,
               ": expected elements aligned to ", alignment, " bytes");
  if (!writes) return;
  check_inplace(t, should_record(t));
  TERCEL_CHECK(!should_record(t), RuntimeError, op, ": writing to a tensor that requires grad would not be recorded");
}

}  // namespace tercel::detail
