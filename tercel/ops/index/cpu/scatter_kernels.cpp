// Writes elements at indices:  for line, i:  indexed[line, index[line, i]] = kind(itself, other[line, i])
#include "tercel/ops/index/scatter_kernels.h"

#include "tercel/ops/common/cpu/wrapping.h"
#include "tercel/ops/index/cpu/gather_scatter_loop.h"

namespace tercel::TERCEL_ISA {

namespace {

template <class I, size_t kItem>
bool set_items(const GatherLoop& loop, int64_t begin, int64_t end) {
  return for_each_element<I, kItem>(loop, begin, end,
                                    [](char* indexed, const char* other) { std::memcpy(indexed, other, kItem); });
}

template <class I>
bool set_lines(const GatherLoop& loop, int64_t begin, int64_t end) {
  switch (item_size(loop.dtype)) {
    case 1: return set_items<I, 1>(loop, begin, end);
    case 2: return set_items<I, 2>(loop, begin, end);
    case 4: return set_items<I, 4>(loop, begin, end);
    case 8: return set_items<I, 8>(loop, begin, end);
    default: return set_items<I, 16>(loop, begin, end);
  }
}

template <class I, class T, class Combine>
bool combine_items(const GatherLoop& loop, int64_t begin, int64_t end, Combine combine) {
  return for_each_element<I, sizeof(T)>(loop, begin, end, [combine](char* indexed, const char* other) {
    const T result = combine(load_unaligned<T>(indexed), load_unaligned<T>(other));
    std::memcpy(indexed, &result, sizeof(T));
  });
}

template <class I, class T>
bool combine_lines(ScatterKind kind, const GatherLoop& loop, int64_t begin, int64_t end) {
  switch (kind) {
    case ScatterKind::Multiply: return combine_items<I, T>(loop, begin, end, &times<T>);
    case ScatterKind::Maximum: return combine_items<I, T>(loop, begin, end, &larger<T>);
    case ScatterKind::Minimum: return combine_items<I, T>(loop, begin, end, &smaller<T>);
    default: return combine_items<I, T>(loop, begin, end, [](T a, T b) { return plus(a, b); });
  }
}

/** For types without an order; the op has rejected reductions that compare. */
template <class I, class T>
bool combine_complex_lines(ScatterKind kind, const GatherLoop& loop, int64_t begin, int64_t end) {
  if (kind == ScatterKind::Multiply) return combine_items<I, T>(loop, begin, end, &times<T>);
  return combine_items<I, T>(loop, begin, end, &plus<T>);
}

template <class I>
bool scatter_lines(ScatterKind kind, const GatherLoop& loop, int64_t begin, int64_t end) {
  if (kind == ScatterKind::Set) return set_lines<I>(loop, begin, end);
  switch (loop.dtype) {
    case ScalarType::Float32: return combine_lines<I, float>(kind, loop, begin, end);
    case ScalarType::Float64: return combine_lines<I, double>(kind, loop, begin, end);
    case ScalarType::Int64: return combine_lines<I, int64_t>(kind, loop, begin, end);
    case ScalarType::Int32: return combine_lines<I, int32_t>(kind, loop, begin, end);
    case ScalarType::Int16: return combine_lines<I, int16_t>(kind, loop, begin, end);
    case ScalarType::Int8: return combine_lines<I, int8_t>(kind, loop, begin, end);
    case ScalarType::UInt8: return combine_lines<I, uint8_t>(kind, loop, begin, end);
    case ScalarType::Bool: return combine_lines<I, bool>(kind, loop, begin, end);
    case ScalarType::Float16: return combine_lines<I, Half>(kind, loop, begin, end);
    case ScalarType::BFloat16: return combine_lines<I, BFloat16>(kind, loop, begin, end);
    case ScalarType::UInt16: return combine_lines<I, uint16_t>(kind, loop, begin, end);
    case ScalarType::UInt32: return combine_lines<I, uint32_t>(kind, loop, begin, end);
    case ScalarType::UInt64: return combine_lines<I, uint64_t>(kind, loop, begin, end);
    case ScalarType::Complex64: return combine_complex_lines<I, Complex<float>>(kind, loop, begin, end);
    case ScalarType::Complex128: return combine_complex_lines<I, Complex<double>>(kind, loop, begin, end);
    case ScalarType::Undefined: break;
  }
  return true;
}

}  // namespace

bool scatter(ScatterKind kind, const GatherLoop& loop, int64_t begin, int64_t end) {
  return loop.wide ? scatter_lines<int64_t>(kind, loop, begin, end) : scatter_lines<int32_t>(kind, loop, begin, end);
}

}  // namespace tercel::TERCEL_ISA
