#include "tercel/autograd/strided_region.h"

#include <algorithm>
#include <cstring>

#include "tercel/autograd/record.h"

namespace tercel {

namespace {

// Note [Regions of another dtype]
// A view may see a storage of complex numbers as real ones, and the other way round. Both are then laid out as real
// numbers: a complex region is one of twice the offset and strides with a last dimension of 2 more.

bool differ_in_kind(const StridedRegion& a, const StridedRegion& b) {
  const bool known = a.dtype != ScalarType::Undefined && b.dtype != ScalarType::Undefined;
  return known && is_complex(a.dtype) != is_complex(b.dtype);
}

StridedRegion parts_of(StridedRegion r) {
  if (!is_complex(r.dtype)) return r;
  for (int64_t& stride : r.strides) stride *= 2;
  r.sizes.push_back(2);
  r.strides.push_back(1);
  r.offset *= 2;
  r.dtype = real_dtype(r.dtype);
  return r;
}

/** A tensor of another geometry and dtype over the same storage. */
Tensor seen_as(const Tensor& t, const StridedRegion& r) {
  return Tensor(make_intrusive<TensorImpl>(t.storage(), r.dtype, r.sizes, r.strides, r.offset));
}
Tensor parts_of(const Tensor& t) { return seen_as(t, parts_of(StridedRegion(t))); }

/** The complex tensor with these real and imaginary parts. */
Tensor whole_of(const Tensor& parts) {
  StridedRegion r(parts);
  r.sizes.pop_back();
  r.strides.pop_back();
  for (int64_t& stride : r.strides) stride /= 2;
  r.offset /= 2;
  r.dtype = complex_dtype(r.dtype);
  return seen_as(parts, r);
}

/** The range of a storage that the regions use. */
struct Range {
  bool whole_numbers = false;  ///< begin with the first part of a complex number
  int64_t first = INT64_MAX, last = INT64_MIN;

  void cover(const StridedRegion& r) {
    if (numel_of(r.sizes) == 0) return;
    const Extent extent = extent_of(r.sizes, r.strides);
    first = std::min(first, r.offset + extent.lowest);
    if (whole_numbers) first -= first % 2;
    last = std::max(last, r.offset + extent.highest);
  }
  Tensor zeros(TensorOptions options, ScalarType dtype) const {
    options.requires_grad = false;
    options.dtype = dtype;
    Tensor flat = empty({last < first ? 0 : last - first + 1}, options);
    if (flat.numel() > 0) std::memset(flat.data_ptr(), 0, flat.nbytes());
    return flat;
  }
  Tensor at(const Tensor& flat, const StridedRegion& r) const {
    const int64_t offset = numel_of(r.sizes) == 0 ? 0 : r.offset - first;
    return Tensor(make_intrusive<TensorImpl>(flat.storage(), flat.dtype(), r.sizes, r.strides, offset));
  }
};

/** Divides each position by the number of elements of the base at it. */
void share_among_elements(const Tensor& flat, const Range& range, const StridedRegion& base) {
  visit_differentiable_types("as_strided", flat.dtype(), [&]<class T> {
    const Tensor one = empty({1}, TensorOptions(flat.dtype(), flat.device()));
    *one.data<T>() = T(1.0f);
    const DimVector nowhere(base.sizes.size(), 0);
    const Tensor counts = range.zeros(one.options(), one.dtype());
    accumulate_dense(range.at(counts, base),
                     Tensor(make_intrusive<TensorImpl>(one.storage(), one.dtype(), base.sizes, nowhere, 0)));
    T* values = flat.data<T>();
    const T* count = counts.data<T>();
    for (int64_t i = 0; i < flat.numel(); ++i)
      if (count[i] != T(0.0f)) values[i] = static_cast<T>(values[i] / count[i]);
  });
}

Tensor gathered(const Tensor& g, const StridedRegion& from, const StridedRegion& to, bool from_is_base,
                bool whole_numbers) {
  Range range{whole_numbers};
  range.cover(from);
  range.cover(to);
  const Tensor flat = range.zeros(g.options(), g.dtype());
  accumulate_dense(range.at(flat, from), g);
  const StridedRegion& base = from_is_base ? from : to;
  if (has_internal_overlap(base.sizes, base.strides)) share_among_elements(flat, range, base);
  const Tensor out = range.at(flat, to);
  // A kept gradient must not keep a larger buffer alive.
  return out.impl().is_non_overlapping_and_dense() && out.numel() == flat.numel() ? out : dense_copy(out);
}

Tensor replaced(const Tensor& g, const StridedRegion& base, const StridedRegion& view, const Tensor& elements) {
  Range range;
  range.cover(base);
  const Tensor flat = range.zeros(g.options(), g.dtype());
  const Tensor out = range.at(flat, base);
  copy_elements(out, g);
  const Tensor part = range.at(flat, view);
  if (elements.defined()) {
    copy_elements(part, elements);
  } else {
    Range own;
    own.cover(view);
    copy_elements(part, own.at(own.zeros(g.options(), g.dtype()), view));
  }
  return out;
}

}  // namespace

Tensor as_strided_backward(const Tensor& g, const StridedRegion& from, const StridedRegion& to, bool from_is_base) {
  Tensor out;
  if (differ_in_kind(from, to)) {
    out = gathered(is_complex(from.dtype) ? parts_of(g) : g, parts_of(from), parts_of(to), from_is_base, true);
    if (is_complex(to.dtype)) out = whole_of(out);
  } else {
    out = gathered(g, from, to, from_is_base, false);
  }
  if (should_record(g))
    record("AsStridedBackwardBackward0", out, {g}, [from, to, from_is_base](BackwardCall& call) {
      call.set(0, as_strided_backward(call.grad(), to, from, !from_is_base));
    });
  return out;
}

Tensor replace_strided_region(const Tensor& g, const StridedRegion& base, const StridedRegion& view,
                              const Tensor& elements) {
  Tensor out;
  if (differ_in_kind(base, view)) {
    const bool complex_base = is_complex(base.dtype);
    const Tensor parts = elements.defined() && !complex_base ? parts_of(elements) : elements;
    out = replaced(complex_base ? parts_of(g) : g, parts_of(base), parts_of(view), parts);
    if (complex_base) out = whole_of(out);
  } else {
    out = replaced(g, base, view, elements);
  }
  if (should_record(g, elements))
    record("CopySlicesBackward0", out, {g, elements}, [base, view](BackwardCall& call) {
      if (call.needs(0)) call.set(0, replace_strided_region(call.grad(), base, view, {}));
      if (call.needs(1)) call.set(1, as_strided_backward(call.grad(), base, view, true));
    });
  return out;
}

}  // namespace tercel
