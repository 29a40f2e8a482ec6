#include "tercel/autograd/region.h"

#include <algorithm>
#include <cstring>

#include "tercel/autograd/record.h"

namespace tercel {

namespace {

/** The places of a storage that some regions use. */
struct Range {
  int64_t first = INT64_MAX, last = INT64_MIN;

  void cover(const Region& r) {
    if (numel_of(r.sizes) == 0) return;
    const Extent extent = extent_of(r.sizes, r.strides);
    first = std::min(first, r.offset + extent.lowest);
    last = std::max(last, r.offset + extent.highest);
  }
  Tensor zeros(TensorOptions options) const {
    options.requires_grad = false;
    Tensor flat = empty({last < first ? 0 : last - first + 1}, options);
    if (flat.numel() > 0) std::memset(flat.data_ptr(), 0, flat.nbytes());
    return flat;
  }
  Tensor at(const Tensor& flat, const Region& r) const {
    const int64_t offset = numel_of(r.sizes) == 0 ? 0 : r.offset - first;
    return Tensor(make_intrusive<TensorImpl>(flat.storage(), flat.dtype(), r.sizes, r.strides, offset));
  }
};

/** Divides each place by the number of elements of the base that lie there. */
void share_among_elements(const Tensor& flat, const Range& range, const Region& base) {
  visit_differentiable_types("as_strided", flat.dtype(), [&]<class T> {
    const Tensor one = empty({1}, TensorOptions(flat.dtype(), flat.device()));
    *one.data<T>() = T(1.0f);
    const DimVector nowhere(base.sizes.size(), 0);
    const Tensor counts = range.zeros(one.options());
    accumulate_dense(range.at(counts, base),
                     Tensor(make_intrusive<TensorImpl>(one.storage(), one.dtype(), base.sizes, nowhere, 0)));
    T* values = flat.data<T>();
    const T* count = counts.data<T>();
    for (int64_t i = 0; i < flat.numel(); ++i)
      if (count[i] != T(0.0f)) values[i] = static_cast<T>(values[i] / count[i]);
  });
}

}  // namespace

Tensor regather(const Tensor& g, const Region& from, const Region& to, bool from_is_base) {
  Range range;
  range.cover(from);
  range.cover(to);
  const Tensor flat = range.zeros(g.options());
  accumulate_dense(range.at(flat, from), g);
  const Region& base = from_is_base ? from : to;
  if (has_internal_overlap(base.sizes, base.strides)) share_among_elements(flat, range, base);
  Tensor out = range.at(flat, to);
  // Whoever keeps the gradient is not to keep more than that.
  if (!out.impl().is_non_overlapping_and_dense() || out.numel() != flat.numel()) out = dense_copy(out);
  if (should_record(g))
    record("AsStridedBackwardBackward0", out, {g}, [from, to, from_is_base](BackwardCall& call) {
      call.set(0, regather(call.grad(), to, from, !from_is_base));
    });
  return out;
}

Tensor replace_region(const Tensor& g, const Region& base, const Region& view, const Tensor& elements) {
  Range range;
  range.cover(base);
  const Tensor flat = range.zeros(g.options());
  Tensor out = range.at(flat, base);
  copy_elements(out, g);
  const Tensor part = range.at(flat, view);
  if (elements.defined()) {
    copy_elements(part, elements);
  } else {
    Range own;
    own.cover(view);
    copy_elements(part, own.at(own.zeros(g.options()), view));
  }
  if (should_record(g, elements))
    record("CopySlicesBackward0", out, {g, elements}, [base, view](BackwardCall& call) {
      if (call.needs(0)) call.set(0, replace_region(call.grad(), base, view, {}));
      if (call.needs(1)) call.set(1, regather(call.grad(), base, view, true));
    });
  return out;
}

}  // namespace tercel
