#include "tercel/ops/views.h"

#include <algorithm>

#include "tercel/autograd/record.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/factories.h"
#include "tercel/ops/sum_to_size.h"

namespace tercel {

namespace {

Tensor alias(const Tensor& x, IntSpan sizes, IntSpan strides, int64_t offset) {
  return Tensor(make_intrusive<TensorImpl>(x.impl(), sizes, strides, offset));
}

void check_strided(const Tensor& x, const char* op) {
  check_defined(x, op, "self");
  TERCEL_CHECK(x.layout() == Layout::Strided, NotImplementedError, op, ": not implemented for layout ",
               to_string(x.layout()));
}

/** Makes `out` a view of x whose gradient is the incoming one under the old sizes. */
Tensor same_elements(const char* name, const Tensor& x, Tensor out) {
  make_view(name, out, x, [&x] {
    return [old = DimVector(x.sizes())](BackwardCall& call) { call.set(0, reshape(call.grad(), old)); };
  });
  return out;
}
Tensor same_elements(const char* name, const Tensor& x, IntSpan sizes, IntSpan strides) {
  return same_elements(name, x, alias(x, sizes, strides, x.storage_offset()));
}

/** The sizes themselves where they fit as they are, else what infer_size() makes of them, kept in `room`. */
IntSpan fitting(IntSpan sizes, int64_t numel, DimVector& room) {
  int64_t product = 1;
  for (const int64_t size : sizes) {
    if (size >= 0 && !__builtin_mul_overflow(product, size, &product)) continue;
    product = -1;
    break;
  }
  if (product == numel) [[likely]]
    return sizes;
  room = infer_size(sizes, numel);
  return room;
}

/** A view of a part: the gradient is put where the part was, among zeros. `part` makes the same view of any tensor. */
template <class Part>
Tensor part_of(const char* name, const Tensor& x, Tensor out, Part part, ViewOrigin origin = ViewOrigin::Ordinary) {
  make_view(
      name, out, x,
      [&x, &part] {
        return [sizes = DimVector(x.sizes()), part](BackwardCall& call) {
          Tensor whole = zeros(sizes, call.grad().options());
          part(whole).copy_(call.grad());
          call.set(0, std::move(whole));
        };
      },
      origin);
  return out;
}

}  // namespace

Tensor view(const Tensor& x, IntSpan sizes) {
  check_strided(x, "view");
  DimVector room;
  const IntSpan full = fitting(sizes, x.numel(), room);
  if (x.is_contiguous()) [[likely]]
    return same_elements("ViewBackward0", x, Tensor(make_intrusive<TensorImpl>(x.impl(), full)));
  const auto strides = view_strides(x.sizes(), x.strides(), full);
  TERCEL_CHECK(strides, ValueError,
               "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
               "two contiguous subspaces). Use .reshape(...) instead.");
  return same_elements("ViewBackward0", x, full, *strides);
}

Tensor reshape(const Tensor& x, IntSpan sizes) {
  check_strided(x, "reshape");
  DimVector room;
  const IntSpan full = fitting(sizes, x.numel(), room);
  if (const auto strides = view_strides(x.sizes(), x.strides(), full))
    return same_elements("ViewBackward0", x, full, *strides);
  return view(clone(x, MemoryFormat::Contiguous), full);
}

Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  check_strided(x, "flatten");
  const auto first = static_cast<size_t>(wrap_dim(start_dim, x.dim()));
  const auto last = static_cast<size_t>(wrap_dim(end_dim, x.dim()));
  TERCEL_CHECK(first <= last, ValueError, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (x.dim() == 0) return reshape(x, {1});
  DimVector sizes;
  int64_t joined = 1;
  for (size_t d = 0; d < x.sizes().size(); ++d) {
    if (d >= first && d <= last) joined *= x.sizes()[d];
    if (d < first || d > last) sizes.push_back(x.sizes()[d]);
    if (d == last) sizes.push_back(joined);
  }
  return reshape(x, sizes);
}

Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  check_strided(x, "transpose");
  const auto a = static_cast<size_t>(wrap_dim(dim0, x.dim())), b = static_cast<size_t>(wrap_dim(dim1, x.dim()));
  Tensor out = alias(x, x.sizes(), x.strides(), x.storage_offset());
  out.impl().swap_dims(a, b);
  make_view("TransposeBackward0", out, x, [a, b] {
    return [a, b](BackwardCall& call) {
      call.set(0, transpose(call.grad(), static_cast<int64_t>(a), static_cast<int64_t>(b)));
    };
  });
  return out;
}

Tensor t(const Tensor& x) {
  check_strided(x, "t");
  TERCEL_CHECK(x.dim() <= 2, ValueError, "t() expects a tensor with <= 2 dimensions, but self is ", x.dim(), "D");
  return transpose(x, 0, x.dim() < 2 ? 0 : 1);
}

Tensor permute(const Tensor& x, IntSpan dims) {
  check_strided(x, "permute");
  const size_t n = x.sizes().size();
  TERCEL_CHECK(dims.size() == n, ValueError, "permute(): ", dims.size(), " dimensions given for a tensor of ", n);
  DimVector sizes(n), strides(n), inverse(n, -1);
  for (size_t i = 0; i < n; ++i) {
    const auto d = static_cast<size_t>(wrap_dim(dims[i], x.dim()));
    TERCEL_CHECK(inverse[d] == -1, ValueError, "permute(): duplicate dims are not allowed.");
    inverse[d] = static_cast<int64_t>(i);
    sizes[i] = x.sizes()[d];
    strides[i] = x.strides()[d];
  }
  Tensor out = alias(x, sizes, strides, x.storage_offset());
  make_view("PermuteBackward0", out, x,
            [&inverse] { return [inverse](BackwardCall& call) { call.set(0, permute(call.grad(), inverse)); }; });
  return out;
}

namespace {

/** Every step-th index of a dimension; the caller has brought start and length into range. */
Tensor strided_part(const char* name, const Tensor& x, size_t dim, int64_t start, int64_t length, int64_t step,
                    ViewOrigin origin = ViewOrigin::Ordinary) {
  DimVector sizes(x.sizes()), strides(x.strides());
  const int64_t offset = x.storage_offset() + start * strides[dim];
  sizes[dim] = length;
  strides[dim] *= step;
  return part_of(
      name, x, alias(x, sizes, strides, offset),
      [=](const Tensor& whole) { return strided_part(name, whole, dim, start, length, step); }, origin);
}

}  // namespace

Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  check_strided(x, "narrow");
  TERCEL_CHECK(x.dim() > 0, ValueError, "narrow() cannot be applied to a 0-dim tensor.");
  const auto d = static_cast<size_t>(wrap_dim(dim, x.dim()));
  const int64_t size = x.sizes()[d];
  TERCEL_CHECK(length >= 0, ValueError, "narrow(): length must be non-negative.");
  TERCEL_CHECK(start >= -size && start <= size, IndexError, "start out of range (expected to be in range of [", -size,
               ", ", size, "], but got ", start, ")");
  if (start < 0) start += size;
  TERCEL_CHECK(start <= size - length, ValueError, "start (", start, ") + length (", length,
               ") exceeds dimension size (", size, ").");
  return strided_part("SliceBackward0", x, d, start, length, 1);
}

Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  check_strided(x, "slice");
  TERCEL_CHECK(x.dim() > 0, ValueError, "slice() cannot be applied to a 0-dim tensor.");
  TERCEL_CHECK(step != 0 && step != INT64_MIN, ValueError, "slice step cannot be zero");
  const auto d = static_cast<size_t>(wrap_dim(dim, x.dim()));
  const int64_t size = x.sizes()[d];
  // Python's rule: a bound is counted from the end when negative, then clamped to what the direction can reach.
  const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? size : size - 1;
  const auto clamp = [&](int64_t bound) {
    if (bound < 0) bound = bound < -size ? lowest : bound + size;
    return std::clamp(bound, lowest, highest);
  };
  const int64_t first = clamp(start), stop = clamp(end);
  int64_t length = 0;
  if (step > 0 && stop > first) length = (stop - first - 1) / step + 1;
  if (step < 0 && stop < first) length = (first - stop - 1) / -step + 1;
  return strided_part("SliceBackward0", x, d, length == 0 && step < 0 ? 0 : first, length, step);
}

Tensor select(const Tensor& x, int64_t dim, int64_t index) {
  check_strided(x, "select");
  TERCEL_CHECK(x.dim() > 0, IndexError, "select() cannot be applied to a 0-dim tensor.");
  const auto d = static_cast<size_t>(wrap_dim(dim, x.dim()));
  const int64_t size = x.sizes()[d];
  TERCEL_CHECK(index >= -size && index < size, IndexError, "select(): index ", index,
               " out of range for tensor of size ", x.sizes(), " at dimension ", d);
  if (index < 0) index += size;
  DimVector sizes(x.sizes()), strides(x.strides());
  const int64_t offset = x.storage_offset() + index * strides[d];
  sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(d));
  strides.erase(strides.begin() + static_cast<ptrdiff_t>(d));
  return part_of("SelectBackward0", x, alias(x, sizes, strides, offset),
                 [d, index](const Tensor& whole) { return select(whole, static_cast<int64_t>(d), index); });
}

Tensor squeeze(const Tensor& x) {
  check_strided(x, "squeeze");
  DimVector sizes, strides;
  for (size_t d = 0; d < x.sizes().size(); ++d)
    if (x.sizes()[d] != 1) {
      sizes.push_back(x.sizes()[d]);
      strides.push_back(x.strides()[d]);
    }
  return same_elements("SqueezeBackward0", x, sizes, strides);
}

Tensor squeeze(const Tensor& x, int64_t dim) {
  check_strided(x, "squeeze");
  const auto d = static_cast<size_t>(wrap_dim(dim, x.dim()));
  DimVector sizes(x.sizes()), strides(x.strides());
  if (x.dim() > 0 && sizes[d] == 1) {
    sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(d));
    strides.erase(strides.begin() + static_cast<ptrdiff_t>(d));
  }
  return same_elements("SqueezeBackward0", x, sizes, strides);
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  check_strided(x, "unsqueeze");
  const auto d = static_cast<size_t>(wrap_dim(dim, x.dim() + 1));
  DimVector sizes(x.sizes()), strides(x.strides());
  const int64_t stride = d < sizes.size() ? sizes[d] * strides[d] : 1;
  sizes.insert(sizes.begin() + static_cast<ptrdiff_t>(d), 1);
  strides.insert(strides.begin() + static_cast<ptrdiff_t>(d), stride);
  return same_elements("UnsqueezeBackward0", x, sizes, strides);
}

Tensor expand(const Tensor& x, IntSpan sizes) {
  check_strided(x, "expand");
  const size_t old = x.sizes().size();
  TERCEL_CHECK(sizes.size() >= old, ValueError, "the number of sizes provided (", sizes.size(),
               ") must be greater or equal to the number of dimensions in the tensor (", old, ")");
  DimVector out_sizes(sizes), strides(sizes.size(), 0);
  const size_t lead = sizes.size() - old;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (d < lead) {
      TERCEL_CHECK(sizes[d] >= 0, ValueError, "The expanded size of the tensor (", sizes[d],
                   ") isn't allowed in a leading, non-existing dimension ", d);
      continue;
    }
    const int64_t size = x.sizes()[d - lead];
    if (sizes[d] == -1) out_sizes[d] = size;
    TERCEL_CHECK(out_sizes[d] == size || (size == 1 && out_sizes[d] >= 0), ValueError,
                 "The expanded size of the tensor (", sizes[d], ") must match the existing size (", size,
                 ") at non-singleton dimension ", d, ".  Target sizes: ", sizes, ".  Tensor sizes: ", x.sizes());
    strides[d] = out_sizes[d] == size ? x.strides()[d - lead] : 0;
  }
  Tensor out = alias(x, out_sizes, strides, x.storage_offset());
  make_view("ExpandBackward0", out, x, [&x] {
    return [shape = DimVector(x.sizes())](BackwardCall& call) { call.set(0, sum_to_size(call.grad(), shape)); };
  });
  return out;
}

Tensor as_strided(const Tensor& x, IntSpan sizes, IntSpan strides, int64_t storage_offset) {
  check_strided(x, "as_strided");
  TERCEL_CHECK(sizes.size() == strides.size(), ValueError, "mismatch in length of strides and shape");
  TERCEL_CHECK(storage_offset >= 0, ValueError, "Tensor: invalid storage offset ", storage_offset);
  if (numel_of(sizes) > 0) {
    const Extent extent = extent_of(sizes, strides);
    const auto items = static_cast<int64_t>(x.storage()->nbytes() / x.itemsize());
    TERCEL_CHECK(storage_offset + extent.lowest >= 0 && extent.highest < items - storage_offset, ValueError,
                 "setStorage: sizes ", sizes, ", strides ", strides, ", storage offset ", storage_offset,
                 ", and itemsize ", x.itemsize(), " requiring a storage size of ",
                 (static_cast<size_t>(storage_offset) + static_cast<size_t>(extent.highest) + 1) * x.itemsize(),
                 " are out of bounds for storage of size ", x.storage()->nbytes());
  }
  Tensor out = alias(x, sizes, strides, storage_offset);
  // Elements may be named several times, so the gradient is added up; x's own elements are then read off the storage.
  make_view("AsStridedBackward0", out, x, [&] {
    return [x_sizes = DimVector(x.sizes()), x_strides = DimVector(x.strides()), x_offset = x.storage_offset(),
            v_sizes = DimVector(sizes), v_strides = DimVector(strides), storage_offset,
            items = static_cast<int64_t>(x.storage()->nbytes() / x.itemsize())](BackwardCall& call) {
      const Tensor flat = zeros({items}, call.grad().options());
      accumulate_dense(alias(flat, v_sizes, v_strides, storage_offset), call.grad());
      call.set(0, clone(alias(flat, x_sizes, x_strides, x_offset), MemoryFormat::Contiguous));
    };
  });
  return out;
}

std::vector<Tensor> split(const Tensor& x, IntSpan sizes, int64_t dim) {
  check_strided(x, "split");
  TERCEL_CHECK(x.dim() > 0, ValueError, "split expects at least a 1-dimensional tensor");
  const auto d = static_cast<size_t>(wrap_dim(dim, x.dim()));
  int64_t left = x.sizes()[d];
  for (const int64_t s : sizes) left = s >= 0 && s <= left ? left - s : -1;  // once below zero it stays there
  TERCEL_CHECK(left == 0, ValueError, "split_with_sizes expects split_sizes to sum exactly to ", x.sizes()[d],
               " (input tensor's size at dimension ", d, "), but got split_sizes=", sizes);
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t s : sizes) {
    parts.push_back(strided_part("SplitBackward0", x, d, start, s, 1, ViewOrigin::MultiOutput));
    start += s;
  }
  return parts;
}

std::vector<Tensor> split(const Tensor& x, int64_t split_size, int64_t dim) {
  check_strided(x, "split");
  TERCEL_CHECK(x.dim() > 0, ValueError, "split expects at least a 1-dimensional tensor");
  const int64_t size = x.size(dim);
  TERCEL_CHECK(split_size > 0 || (split_size == 0 && size == 0), ValueError,
               "split_size can only be 0 if dimension size is 0, but got dimension size of ", size);
  DimVector sizes;
  if (size == 0) sizes.push_back(0);
  for (int64_t left = size; left > 0; left -= split_size) sizes.push_back(std::min(left, split_size));
  return split(x, IntSpan(sizes), dim);
}

std::vector<Tensor> unbind(const Tensor& x, int64_t dim) {
  check_strided(x, "unbind");
  std::vector<Tensor> parts;
  for (int64_t i = 0, n = x.size(dim); i < n; ++i) {
    parts.push_back(select(x, dim, i));
    parts.back().impl().set_view_origin(ViewOrigin::MultiOutput);
  }
  return parts;
}

Tensor Tensor::view(IntSpan s) const { return tercel::view(*this, s); }
Tensor Tensor::reshape(IntSpan s) const { return tercel::reshape(*this, s); }
Tensor Tensor::transpose(int64_t dim0, int64_t dim1) const { return tercel::transpose(*this, dim0, dim1); }
Tensor Tensor::t() const { return tercel::t(*this); }
Tensor Tensor::permute(IntSpan dims) const { return tercel::permute(*this, dims); }
Tensor Tensor::narrow(int64_t d, int64_t start, int64_t length) const {
  return tercel::narrow(*this, d, start, length);
}
Tensor Tensor::select(int64_t d, int64_t index) const { return tercel::select(*this, d, index); }
Tensor Tensor::slice(int64_t d, int64_t start, int64_t end, int64_t step) const {
  return tercel::slice(*this, d, start, end, step);
}
Tensor Tensor::squeeze() const { return tercel::squeeze(*this); }
Tensor Tensor::squeeze(int64_t d) const { return tercel::squeeze(*this, d); }
Tensor Tensor::unsqueeze(int64_t d) const { return tercel::unsqueeze(*this, d); }
Tensor Tensor::expand(IntSpan s) const { return tercel::expand(*this, s); }
Tensor Tensor::expand_as(const Tensor& other) const { return tercel::expand(*this, other.sizes()); }
Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim) const { return tercel::flatten(*this, start_dim, end_dim); }
Tensor Tensor::as_strided(IntSpan s, IntSpan st) const { return tercel::as_strided(*this, s, st, storage_offset()); }
Tensor Tensor::as_strided(IntSpan s, IntSpan st, int64_t offset) const {
  return tercel::as_strided(*this, s, st, offset);
}
Tensor Tensor::operator[](int64_t index) const { return tercel::select(*this, 0, index); }

}  // namespace tercel
