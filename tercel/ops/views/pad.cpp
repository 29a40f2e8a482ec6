#include "tercel/ops/views/pad.h"

#include <algorithm>
#include <utility>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tercel/ops/views/views_impl.h"

namespace tercel {

namespace {

enum class PadMode : uint8_t { Constant, Reflect, Replicate, Circular };
constexpr std::pair<PadMode, std::string_view> kModes[] = {{PadMode::Constant, "constant"},
                                                           {PadMode::Reflect, "reflect"},
                                                           {PadMode::Replicate, "replicate"},
                                                           {PadMode::Circular, "circular"}};

/** Numbers of elements before and after each dimension; none is negative. */
struct Border {
  PadMode mode = PadMode::Constant;
  DimVector before, after;
};

int64_t as_dim(size_t d) { return static_cast<int64_t>(d); }

/** The part of `out` without the border in dimensions [first, ...). */
Tensor inside(Tensor out, const Border& border, size_t first) {
  for (size_t d = first; d < border.before.size(); ++d)
    if (border.before[d] != 0 || border.after[d] != 0)
      out = narrow(out, as_dim(d), border.before[d], out.sizes()[d] - border.before[d] - border.after[d]);
  return out;
}

/**
 * Calls visit(edge, source) for both edges of a dimension: the edge is a part of `whole`, and source the part inside
 * that it repeats or mirrors. If the edge repeats a single slice, that slice is not expanded.
 */
template <class Visit>
void visit_edges(const Tensor& whole, const Border& border, size_t d, Visit visit) {
  const int64_t before = border.before[d], after = border.after[d], dim = as_dim(d);
  const int64_t size = whole.sizes()[d] - before - after;
  const auto part = [&](int64_t start, int64_t length) { return narrow(whole, dim, start, length); };
  const auto mirror = [&](const Tensor& t) {
    Geometry g(t);
    g.offset += (g.sizes[d] - 1) * g.strides[d];
    g.strides[d] = -g.strides[d];
    return g.of(t);
  };
  const auto edge = [&](int64_t at, int64_t length, int64_t reflected, int64_t nearest, int64_t opposite) {
    if (length == 0) return;
    switch (border.mode) {
      case PadMode::Reflect: return visit(part(at, length), mirror(part(reflected, length)));
      case PadMode::Replicate: return visit(part(at, length), part(nearest, 1));
      default: return visit(part(at, length), part(opposite, length));
    }
  };
  edge(0, before, before + 1, before, size);
  edge(before + size, after, before + size - 1 - after, before + size - 1, before);
}

Tensor without_border(const Tensor& grad, const Border& border);

Tensor with_border(const Tensor& x, const Border& border, Scalar value) {
  DimVector sizes(x.sizes());
  for (size_t d = 0; d < sizes.size(); ++d)
    TERCEL_CHECK(!__builtin_add_overflow(sizes[d], border.before[d], &sizes[d]) &&
                     !__builtin_add_overflow(sizes[d], border.after[d], &sizes[d]),
                 RuntimeError, "pad: dimension ", d, " of sizes ", x.sizes(), " does not fit 64 bits when padded");
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = empty(sizes, x.options());
    if (border.mode == PadMode::Constant) {
      // Slabs: each border element belongs to the first dimension in which it is outside.
      Tensor left = out;
      for (size_t d = 0; d < sizes.size(); ++d) {
        const int64_t before = border.before[d], after = border.after[d], size = x.sizes()[d];
        if (before > 0) fill_(narrow(left, as_dim(d), 0, before), value);
        if (after > 0) fill_(narrow(left, as_dim(d), before + size, after), value);
        left = narrow(left, as_dim(d), before, size);
      }
      copy_elements_out(left, x);
    } else {
      copy_elements_out(inside(out, border, 0), x);
      for (size_t d = 0; d < sizes.size(); ++d)
        visit_edges(inside(out, border, d + 1), border, d,
                    [](const Tensor& edge, const Tensor& source) { copy_elements_out(edge, source); });
    }
  }
  if (should_record(x))
    record(border.mode == PadMode::Constant ? "ConstantPadNdBackward0" : "PadBackward0", out, {x},
           [border](BackwardCall& call) { call.set(0, without_border(call.grad(), border)); });
  return out;
}

/** The gradient of with_border(): gradients of the border are added to those of the elements that it repeats. */
Tensor without_border(const Tensor& grad, const Border& border) {
  if (border.mode == PadMode::Constant) return inside(grad, border, 0);
  Tensor out;
  {
    const NoRecordGuard no_record;
    const Tensor whole = clone(grad, MemoryFormat::Contiguous);
    for (size_t d = border.before.size(); d-- > 0;)
      visit_edges(inside(whole, border, d + 1), border, d, [d](const Tensor& edge, const Tensor& source) {
        add_(source, edge.sizes() == source.sizes() ? edge : sum(edge, {as_dim(d)}, /*keepdim=*/true));
      });
    out = clone(inside(whole, border, 0), MemoryFormat::Contiguous);
  }
  if (should_record(grad))
    record("PadBackwardBackward0", out, {grad},
           [border](BackwardCall& call) { call.set(0, with_border(call.grad(), border, 0)); });
  return out;
}

/** Pads. Negative numbers of `pad` narrow x (constant, circular) or the result (others); the rest is the border. */
Tensor padded(const Tensor& x, IntSpan pad, PadMode mode, Scalar value) {
  const size_t ndim = x.sizes().size();
  Border border{mode, DimVector(ndim, 0), DimVector(ndim, 0)};
  Border removed = border;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const size_t d = ndim - 1 - i;
    border.before[d] = std::max<int64_t>(pad[2 * i], 0);
    border.after[d] = std::max<int64_t>(pad[2 * i + 1], 0);
    removed.before[d] = border.before[d] - pad[2 * i];
    removed.after[d] = border.after[d] - pad[2 * i + 1];
  }
  const bool narrows = std::any_of(pad.begin(), pad.end(), [](int64_t p) { return p < 0; });
  if (!narrows) return with_border(x, border, value);
  // Reflected and replicated elements are those of the entire x, so the result is narrowed afterwards.
  if (mode == PadMode::Reflect || mode == PadMode::Replicate)
    return clone(inside(with_border(x, border, value), removed, 0), MemoryFormat::Contiguous);
  Tensor part = x;
  for (size_t d = 0; d < ndim; ++d) {
    // One side may remove more elements than there are, if the other side adds them back.
    const int64_t size = x.sizes()[d], before = std::min(removed.before[d], size);
    const int64_t after = std::min(removed.after[d], size - before);
    border.after[d] -= removed.before[d] - before;
    border.before[d] -= removed.after[d] - after;
    part = narrow(part, as_dim(d), before, size - before - after);
    TERCEL_CHECK(mode == PadMode::Constant || std::max(border.before[d], border.after[d]) <= part.sizes()[d],
                 RuntimeError, "Padding value causes wrapping around more than once.");
  }
  return with_border(part, border, value);
}

void check_modes(const Tensor& x, IntSpan pad, PadMode mode) {
  const int64_t spatial = static_cast<int64_t>(pad.size() / 2), ndim = x.dim();
  TERCEL_CHECK(spatial >= 1 && spatial <= 3 && (ndim == spatial + 1 || ndim == spatial + 2), NotImplementedError,
               "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t before = pad[static_cast<size_t>(2 * i)], after = pad[static_cast<size_t>(2 * i + 1)];
    const int64_t dim = ndim - 1 - i, size = x.size(dim);
    if (mode == PadMode::Reflect)
      TERCEL_CHECK(before < size && after < size, RuntimeError, "Argument #", 4 + 2 * i,
                   ": Padding size should be less than the corresponding input dimension, but got: padding (", before,
                   ", ", after, ") at dimension ", dim, " of input ", x.sizes());
    if (mode == PadMode::Replicate)
      TERCEL_CHECK(size > 0 || (before <= 0 && after <= 0), RuntimeError, "pad: expected a dimension ", dim,
                   " with elements to replicate but got input ", x.sizes());
    if (mode == PadMode::Circular)
      TERCEL_CHECK(before <= size && after <= size, RuntimeError,
                   "Padding value causes wrapping around more than once.");
  }
}

}  // namespace

Tensor constant_pad_nd(const Tensor& x, IntSpan pad, Scalar value) {
  check_strided("constant_pad_nd", x);
  TERCEL_CHECK(pad.size() % 2 == 0, RuntimeError, "Length of pad must be even but instead it equals ", pad.size());
  const size_t ndim = x.sizes().size();
  TERCEL_CHECK(pad.size() / 2 <= ndim, RuntimeError,
               "Length of pad should be no more than twice the number of dimensions of the input. Pad length is ",
               pad.size(), "while the input has ", ndim, "dimensions.");
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t size = x.sizes()[ndim - 1 - i], before = pad[2 * i], after = pad[2 * i + 1];
    int64_t sum = 0;
    const bool fits = before != INT64_MIN && after != INT64_MIN && !__builtin_add_overflow(before, after, &sum) &&
                      !__builtin_add_overflow(size, sum, &sum);
    TERCEL_CHECK(fits && sum >= 0, RuntimeError, "The input size ", size, ", plus negative padding ", before, " and ",
                 after, " resulted in a negative output size, which is invalid. Check dimension ", ndim - 1 - i,
                 " of your input.");
  }
  return padded(x, pad, PadMode::Constant, value);
}

Tensor pad(const Tensor& x, IntSpan pad, std::string_view mode, std::optional<Scalar> value) {
  check_strided("pad", x);
  TERCEL_CHECK(pad.size() % 2 == 0, RuntimeError, "Padding length must be divisible by 2");
  TERCEL_CHECK(pad.size() / 2 <= x.sizes().size(), RuntimeError, "Padding length too large");
  const auto* found = std::find_if(std::begin(kModes), std::end(kModes), [&](auto& m) { return m.second == mode; });
  TERCEL_CHECK(found != std::end(kModes), NotImplementedError, "Unrecognised padding mode ", mode);
  if (found->first == PadMode::Constant) return constant_pad_nd(x, pad, value.value_or(0));
  TERCEL_CHECK(!value || value->to_double() == 0, RuntimeError, "Padding mode \"", mode,
               "\" doesn't take in value argument");
  check_modes(x, pad, found->first);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const size_t d = x.sizes().size() - 1 - i;
    int64_t sum = 0;
    const bool fits = pad[2 * i] >= -x.sizes()[d] && pad[2 * i + 1] >= -x.sizes()[d] &&
                      (__builtin_add_overflow(pad[2 * i], pad[2 * i + 1], &sum) || sum >= -x.sizes()[d]);
    TERCEL_CHECK(fits, RuntimeError, "Negative padding value is resulting in an empty dimension");
  }
  return padded(x, pad, found->first, 0);
}

}  // namespace tercel
