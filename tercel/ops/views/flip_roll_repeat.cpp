#include "tercel/ops/views/flip_roll_repeat.h"

#include <algorithm>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tercel/ops/views/views_impl.h"

namespace tercel {

// ---- flip

namespace {

Tensor mirrored(const Tensor& x, const DimMarks& marks) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    Geometry g(x);
    for (size_t d = 0; d < g.sizes.size(); ++d)
      if (marks[d] && g.sizes[d] > 0) {
        g.offset += (g.sizes[d] - 1) * g.strides[d];
        g.strides[d] = -g.strides[d];
      }
    out = empty_like(x);
    copy_elements_out(out, g.of(x));
  }
  if (should_record(x))
    record("FlipBackward0", out, {x}, [marks](BackwardCall& call) { call.set(0, mirrored(call.grad(), marks)); });
  return out;
}

}  // namespace

Tensor flip(const Tensor& x, IntSpan dims) {
  check_strided("flip", x);
  return mirrored(x, marked_dims(dims, x.dim()));
}
Tensor fliplr(const Tensor& x) {
  check_strided("fliplr", x);
  TERCEL_CHECK(x.dim() >= 2, RuntimeError, "Input must be >= 2-d.");
  return flip(x, {1});
}
Tensor flipud(const Tensor& x) {
  check_strided("flipud", x);
  TERCEL_CHECK(x.dim() >= 1, RuntimeError, "Input must be >= 1-d.");
  return flip(x, {0});
}

Tensor rot90(const Tensor& x, int64_t k, IntSpan dims) {
  check_strided("rot90", x);
  TERCEL_CHECK(dims.size() == 2, RuntimeError, "expected total rotation dims == 2, but got dims = ", dims.size());
  const int64_t n = x.dim();
  TERCEL_CHECK(n >= 2, RuntimeError, "expected total dims >= 2, but got total dims = ", n);
  for (size_t i = 0; i < 2; ++i)
    TERCEL_CHECK(dims[i] >= -n && dims[i] < n, RuntimeError, "Rotation dim", i, " out of range, dim", i, " = ",
                 dims[i]);
  const int64_t a = wrap_dim(dims[0], n), b = wrap_dim(dims[1], n);
  TERCEL_CHECK(a != b, RuntimeError, "expected rotation dims to be different, but got dim0 = ", dims[0],
               " and dim1 = ", dims[1]);
  switch ((k % 4 + 4) % 4) {
    case 1: return transpose(flip(x, {b}), a, b);
    case 2: return flip(x, {a, b});
    case 3: return transpose(flip(x, {a}), a, b);
    default: return clone(x, MemoryFormat::Contiguous);
  }
}

// ---- roll

namespace {

/** Copies the two pieces into which each dimension from `dim` on is split. */
void copy_rolled(const Tensor& out, const Tensor& x, const DimVector& shifts, size_t dim) {
  while (dim < shifts.size() && shifts[dim] == 0) ++dim;
  if (dim == shifts.size()) return copy_elements_out(out, x);
  const auto d = static_cast<int64_t>(dim);
  const int64_t size = x.sizes()[dim], shift = shifts[dim];
  copy_rolled(narrow(out, d, shift, size - shift), narrow(x, d, 0, size - shift), shifts, dim + 1);
  copy_rolled(narrow(out, d, 0, shift), narrow(x, d, size - shift, shift), shifts, dim + 1);
}

/** Shifts are in [0, size). */
Tensor rolled(const Tensor& x, const DimVector& shifts, MemoryFormat format) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = empty_like(x, format);
    copy_rolled(out, x, shifts, 0);
  }
  if (should_record(x))
    record("RollBackward0", out, {x}, [shifts](BackwardCall& call) {
      DimVector back(shifts);
      for (size_t d = 0; d < back.size(); ++d)
        if (back[d] != 0) back[d] = call.grad().sizes()[d] - back[d];
      call.set(0, rolled(call.grad(), back, call.grad().suggest_memory_format()));
    });
  return out;
}

}  // namespace

Tensor roll(const Tensor& x, IntSpan shifts, IntSpan dims) {
  check_strided("roll", x);
  TERCEL_CHECK(!shifts.empty(), RuntimeError, "`shifts` required");
  if (dims.empty() && shifts.size() == 1) {
    const int64_t first = 0;
    return view(roll(view(contiguous(x), {-1 * (x.numel() != 0)}), shifts, IntSpan(&first, 1)), x.sizes());
  }
  TERCEL_CHECK(shifts.size() == dims.size(), RuntimeError, "shifts and dimensions must align. shifts: ", shifts.size(),
               ", dims:", dims.size());
  DimVector moves(x.sizes().size(), 0);
  // As in PyTorch, which concatenates two pieces: channels-last is kept, unless a piece is empty.
  MemoryFormat format = x.suggest_memory_format();
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto d = static_cast<size_t>(wrap_dim(dims[i], x.dim(), false));
    const int64_t size = std::max<int64_t>(x.sizes()[d], 1);
    // Both are below the size, which may be near INT64_MAX, so the sum avoids overflow.
    const int64_t move = (shifts[i] % size + size) % size;
    if (move == 0) format = MemoryFormat::Contiguous;
    moves[d] = moves[d] >= size - move ? moves[d] - (size - move) : moves[d] + move;
  }
  return rolled(x, moves, format);
}

// ---- repeat

Tensor repeat(const Tensor& x, IntSpan repeats) {
  check_strided("repeat", x);
  const size_t n = repeats.size(), old = x.sizes().size();
  TERCEL_CHECK(n >= old, RuntimeError,
               "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  // View x as [times, size, times, size, ...], expanded.
  DimVector pairs, padded, sizes;
  for (size_t d = 0; d < n; ++d) {
    const int64_t size = d < n - old ? 1 : x.sizes()[d - (n - old)];
    int64_t product = 0;
    TERCEL_CHECK(repeats[d] >= 0, RuntimeError, "Trying to create tensor with negative dimension ", repeats[d],
                 ": repeats ", repeats);
    TERCEL_CHECK(!__builtin_mul_overflow(size, repeats[d], &product), RuntimeError, "repeat: ", repeats,
                 " times sizes ", x.sizes(), " does not fit 64 bits");
    pairs.push_back(repeats[d]);
    pairs.push_back(size);
    padded.push_back(1);
    padded.push_back(size);
    sizes.push_back(product);
  }
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = empty(sizes, x.options());
    if (out.numel() > 0) copy_elements_out(view(out, pairs), expand(reshape(x, padded), pairs));
  }
  if (should_record(x))
    record("RepeatBackward0", out, {x}, [pairs, old = DimVector(x.sizes())](BackwardCall& call) {
      DimVector times;
      for (size_t d = 0; d < pairs.size(); d += 2) times.push_back(static_cast<int64_t>(d));
      const Tensor grad = reshape(call.grad(), pairs);
      call.set(0, reshape(times.empty() ? grad : sum(grad, times), old));
    });
  return out;
}

Tensor tile(const Tensor& x, IntSpan dims) {
  check_strided("tile", x);
  DimVector repeats(dims);
  while (repeats.size() < x.sizes().size()) repeats.insert(repeats.begin(), 1);
  return repeat(x, repeats);
}

Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size) {
  check_strided("repeat_interleave", repeats);
  TERCEL_CHECK(repeats.dim() == 1, RuntimeError, "repeat_interleave only accept 1D vector as repeat");
  TERCEL_CHECK(is_integral(repeats.dtype(), false), RuntimeError, "repeats has to be Long or Int tensor");
  const Tensor list = contiguous(to(repeats, kInt64));
  const IntSpan times(static_cast<const int64_t*>(list.data_ptr()), static_cast<size_t>(list.numel()));
  int64_t total = 0;
  for (const int64_t n : times) {
    TERCEL_CHECK(n >= 0, RuntimeError, "repeats can not be negative");
    TERCEL_CHECK(!__builtin_add_overflow(total, n, &total), RuntimeError,
                 "repeat_interleave: the sum of repeats does not fit 64 bits");
  }
  TERCEL_CHECK(!output_size || *output_size == total, RuntimeError, "allocated size does not match required size");
  Tensor out = empty({total}, TensorOptions(kInt64, repeats.device()));
  auto* at = static_cast<int64_t*>(out.data_ptr());
  for (size_t i = 0; i < times.size(); ++i) at = std::fill_n(at, times[i], static_cast<int64_t>(i));
  return to(out, repeats.dtype());
}

Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  check_strided("repeat_interleave", x);
  TERCEL_CHECK(repeats >= 0, RuntimeError, "Repeats must be non-negative");
  if (!dim) return repeat_interleave(reshape(x, {-1 * (x.numel() != 0)}), repeats, 0, output_size);
  const Tensor source = atleast_1d(x);
  const int64_t d = wrap_dim(*dim, source.dim());
  int64_t size = 0;
  TERCEL_CHECK(!__builtin_mul_overflow(source.size(d), repeats, &size), RuntimeError, "repeat_interleave: ", repeats,
               " times size ", source.size(d), " does not fit 64 bits");
  TERCEL_CHECK(!output_size || *output_size == size, RuntimeError, "allocated size does not match required size");
  DimVector spread(source.sizes()), sizes(source.sizes());
  spread.insert(spread.begin() + d + 1, repeats);
  sizes[static_cast<size_t>(d)] = size;
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = empty(sizes, source.options());
    const Tensor places = view(out, spread);
    // Copying a few elements at a time is slower than several strided copies of all elements.
    constexpr int64_t kFew = 16;
    const auto inner = static_cast<size_t>(d) + 1;
    const int64_t slice_size = numel_of(source.sizes().subspan(inner, source.sizes().size() - inner));
    if (repeats <= kFew && slice_size < kFew)
      for (int64_t i = 0; i < repeats; ++i) copy_elements_out(select(places, d + 1, i), source);
    else
      copy_elements_out(places, unsqueeze(source, d + 1));
  }
  if (should_record(source))
    record("RepeatInterleaveBackward0", out, {source},
           [d, spread](BackwardCall& call) { call.set(0, sum(view(contiguous(call.grad()), spread), {d + 1})); });
  return out;
}

Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  check_strided("repeat_interleave", x);
  check_strided("repeat_interleave", repeats, "repeats");
  if (!dim) return repeat_interleave(reshape(x, {-1 * (x.numel() != 0)}), repeats, 0, output_size);
  const Tensor source = atleast_1d(x);
  const int64_t d = wrap_dim(*dim, source.dim()), size = source.size(d);
  TERCEL_CHECK(repeats.dim() <= 1, RuntimeError, "repeats must be 0-dim or 1-dim tensor");
  if (repeats.numel() == 1 && size != 1) {
    TERCEL_CHECK(is_integral(repeats.dtype(), false), RuntimeError, "repeats has to be Long or Int tensor");
    const int64_t times = item(repeats).to_int64();
    TERCEL_CHECK(times >= 0, RuntimeError, "repeats can not be negative");
    return repeat_interleave(source, times, d, output_size);
  }
  TERCEL_CHECK(repeats.numel() == size, RuntimeError, "repeats must have the same size as input along dim");
  return index_select(source, d, repeat_interleave(reshape(repeats, {size}), output_size));
}

Tensor channel_shuffle(const Tensor& x, int64_t groups) {
  check_strided("channel_shuffle", x);
  TERCEL_CHECK(x.dim() > 2, RuntimeError, "channel_shuffle expects input with > 2 dims, but got input with sizes ",
               x.sizes());
  TERCEL_CHECK(groups > 0, RuntimeError,
               "Number of groups to divide channels in must be positive. Value of groups:", groups);
  const int64_t channels = x.size(1);
  TERCEL_CHECK(channels % groups == 0, RuntimeError, "Number of channels must be divisible by groups. Got ", channels,
               " channels and ", groups, " groups.");
  return reshape(transpose(unflatten(x, 1, {groups, channels / groups}), 1, 2), x.sizes());
}

}  // namespace tercel
