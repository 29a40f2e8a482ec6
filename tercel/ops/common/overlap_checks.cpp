#include "tercel/ops/common/overlap_checks_impl.h"

#include <cstdint>

#include "tercel/core/geometry.h"

namespace tercel {

namespace {

struct ByteRange {
  uintptr_t begin, end;
};

ByteRange storage_range(const Tensor& t) {
  const auto begin = reinterpret_cast<uintptr_t>(t.storage()->data());
  return {begin, begin + t.storage()->nbytes()};
}

bool disjoint(ByteRange a, ByteRange b) { return a.end <= b.begin || b.end <= a.begin; }

ByteLayout byte_layout(const Tensor& t) {
  return {static_cast<int64_t>(reinterpret_cast<uintptr_t>(t.data_ptr())), static_cast<int64_t>(t.itemsize()),
          t.sizes(), t.strides()};
}

Overlap share_elements(const char* op, const Tensor& out, const Tensor& in) {
  for (const Tensor* t : {&out, &in})
    if (t->layout() != Layout::Strided) [[unlikely]]
      refuse_layout(op, t->layout());
  if (out.numel() == 0 || in.numel() == 0) return Overlap::None;
  if (out.is_same(in)) return Overlap::Full;
  if (!out.is_alias_of(in) && disjoint(storage_range(out), storage_range(in))) return Overlap::None;
  return overlap_of(byte_layout(out), byte_layout(in));
}

[[noreturn, gnu::cold]] void refuse_shared(const char* op) {
  throw_error<RuntimeError>({op,
                             ": unsupported operation: some elements of the input tensor and the written-to tensor "
                             "refer to a single memory location. Please clone() the tensor before performing the "
                             "operation."});
}

}  // namespace

void check_overlap(const char* op, const Tensor& out, const Tensor& in) {
  if (share_elements(op, out, in) == Overlap::Partial) refuse_shared(op);
}

void check_apart(const char* op, const Tensor& out, const Tensor& in) {
  if (share_elements(op, out, in) != Overlap::None) refuse_shared(op);
}

void check_no_internal_overlap(const char* op, const Tensor& out) {
  if (out.impl().is_non_overlapping_and_dense()) return;
  TERCEL_CHECK(!has_internal_overlap(out.sizes(), out.strides()), RuntimeError, op,
               ": unsupported operation: more than one element of the written-to tensor refers to a single memory "
               "location. Please clone() the tensor before performing the operation.");
}

}  // namespace tercel
