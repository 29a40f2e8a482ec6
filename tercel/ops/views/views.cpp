#include "tercel/ops/views/views.h"

#include <algorithm>

#include "tercel/core/alignment.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views_impl.h"

namespace tercel {

Tensor same_elements(const char* name, const Tensor& x, Tensor out) {
  make_view(name, out, x, [&x] {
    return [old = DimVector(x.sizes())](BackwardCall& call) { call.set(0, reshape(call.grad(), old)); };
  });
  return out;
}
Tensor same_elements(const char* name, const Tensor& x, IntSpan sizes, IntSpan strides) {
  return same_elements(name, x, alias(x, sizes, strides, x.storage_offset()));
}

namespace {

/** The given sizes if they fit as they are, else the result of infer_size(), stored in `room`. */
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

/** View of a contiguous tensor with sizes that fit. */
Tensor contiguous_view(const Tensor& x, IntSpan sizes) {
  return same_elements("ViewBackward0", x, Tensor(make_intrusive<TensorImpl>(x.impl(), sizes)));
}

}  // namespace

Tensor view(const Tensor& x, IntSpan size) {
  check_strided("view", x);
  DimVector room;
  const IntSpan full = fitting(size, x.numel(), room);
  if (x.is_contiguous() && x.numel() > 0) [[likely]]
    return contiguous_view(x, full);
  const auto strides = view_strides(x.sizes(), x.strides(), full);
  TERCEL_CHECK(strides, RuntimeError,
               "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
               "two contiguous subspaces). Use .reshape(...) instead.");
  return same_elements("ViewBackward0", x, full, *strides);
}

Tensor detail::view_as_dtype(const Tensor& x, ScalarType dtype) {
  check_strided("view", x);
  TERCEL_CHECK(dtype != ScalarType::Undefined, RuntimeError, "view: expected a dtype but got an undefined one");
  if (dtype == x.dtype()) return x;
  check_aligned("view", *x.storage(), dtype);
  const auto from = static_cast<int64_t>(x.itemsize()), to = static_cast<int64_t>(item_size(dtype));
  Geometry g(x);
  const auto what = [&] {
    return str_cat(
        {" to view ", scalar_type_word(x.dtype()), " as ", scalar_type_word(dtype), " (different element sizes)"});
  };
  if (from != to) {
    TERCEL_CHECK(x.dim() > 0, RuntimeError, "self.dim() cannot be 0", what());
    const size_t last = g.sizes.size() - 1;
    const int64_t ratio = std::max(from, to) / std::min(from, to);
    TERCEL_CHECK(from > to || g.sizes[last] % ratio == 0, RuntimeError, "self.size(-1) must be divisible by ", ratio,
                 what(), ", but got ", g.sizes[last]);
    TERCEL_CHECK(from > to || g.offset % ratio == 0, RuntimeError, "self.storage_offset() must be divisible by ", ratio,
                 what(), ", but got ", g.offset);
    TERCEL_CHECK(g.strides[last] == 1, RuntimeError, "self.stride(-1) must be 1", what(), ", but got ",
                 g.strides[last]);
    for (size_t d = 0; d < last; ++d) {
      TERCEL_CHECK(from > to || g.strides[d] % ratio == 0, RuntimeError, "self.stride(", d, ") must be divisible by ",
                   ratio, what(), ", but got ", g.strides[d]);
      g.strides[d] = from > to ? g.strides[d] * ratio : g.strides[d] / ratio;
    }
    g.sizes[last] = from > to ? g.sizes[last] * ratio : g.sizes[last] / ratio;
    g.offset = from > to ? g.offset * ratio : g.offset / ratio;
    numel_of(g.sizes);
  }
  Tensor out = g.of(x);
  out.impl().set_dtype(dtype);
  return out;
}

Tensor reshape(const Tensor& x, IntSpan shape) {
  check_strided("reshape", x);
  DimVector room;
  const IntSpan full = fitting(shape, x.numel(), room);
  if (x.is_contiguous() && x.numel() > 0) [[likely]]
    return contiguous_view(x, full);
  if (const auto strides = view_strides(x.sizes(), x.strides(), full))
    return same_elements("ViewBackward0", x, full, *strides);
  Tensor out;
  {
    // The copy has no other owner, so the result is not a view of it.
    const NoRecordGuard no_record;
    const Tensor copy = clone(x, MemoryFormat::Contiguous);
    out = Tensor(make_intrusive<TensorImpl>(copy.impl(), full));
  }
  if (should_record(x))
    record("UnsafeViewBackward0", out, {x},
           [old = DimVector(x.sizes())](BackwardCall& call) { call.set(0, reshape(call.grad(), old)); });
  return out;
}

Tensor view_as(const Tensor& x, const Tensor& other) {
  check_strided("view_as", other, "other");
  return view(x, other.sizes());
}
Tensor reshape_as(const Tensor& x, const Tensor& other) {
  check_strided("reshape_as", other, "other");
  return reshape(x, other.sizes());
}

Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  check_strided("flatten", x);
  const auto first = static_cast<size_t>(wrap_dim(start_dim, x.dim()));
  const auto last = static_cast<size_t>(wrap_dim(end_dim, x.dim()));
  TERCEL_CHECK(first <= last, RuntimeError, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (x.dim() == 0) return reshape(x, {1});
  if (first == last) return x;
  DimVector sizes;
  int64_t joined = 1;
  for (size_t d = 0; d < x.sizes().size(); ++d) {
    if (d >= first && d <= last) joined *= x.sizes()[d];
    if (d < first || d > last) sizes.push_back(x.sizes()[d]);
    if (d == last) sizes.push_back(joined);
  }
  return reshape(x, sizes);
}

Tensor unflatten(const Tensor& x, int64_t dim, IntSpan sizes) {
  check_strided("unflatten", x);
  const auto d = static_cast<size_t>(wrap_dim(dim, x.dim(), false));
  TERCEL_CHECK(!sizes.empty(), RuntimeError, "unflatten: sizes must be non-empty");
  const int64_t size = x.sizes()[d];
  int64_t product = 1, inferred = 0;
  bool fits = true;
  for (const int64_t s : sizes) {
    inferred += s == -1;
    fits &= s >= -1 && (s == -1 || !__builtin_mul_overflow(product, s, &product));
  }
  TERCEL_CHECK(inferred <= 1, RuntimeError, "only one dimension can be inferred");
  fits = fits && (inferred == 0 ? product == size : product != 0 && size % product == 0);
  TERCEL_CHECK(fits, RuntimeError, "unflatten: Provided sizes ", sizes, " don't multiply up to the size of dim ", d,
               " (", size, ") in the input tensor");
  DimVector all(x.sizes().subspan(0, d));
  for (const int64_t s : sizes) all.push_back(s == -1 ? size / product : s);
  for (const int64_t s : x.sizes().subspan(d + 1, x.sizes().size() - d - 1)) all.push_back(s);
  return view(x, all);
}

Tensor ravel(const Tensor& x) {
  check_strided("ravel", x);
  return view(contiguous(x), {-1});
}

// ---- dimensions of size 1

DimMarks marked_dims(IntSpan dims, int64_t ndim) {
  DimMarks marks(static_cast<size_t>(std::max<int64_t>(ndim, 1)), false);
  for (const int64_t dim : dims) {
    const auto d = static_cast<size_t>(wrap_dim(dim, ndim));
    TERCEL_CHECK(!marks[d], RuntimeError, "dim ", d, " appears multiple times in the list of dims");
    marks[d] = true;
  }
  return marks;
}

Geometry squeezed(const Tensor& x, const DimMarks& dims) {
  Geometry g;
  g.offset = x.storage_offset();
  for (size_t d = 0; d < x.sizes().size(); ++d) {
    if (dims[d] && x.sizes()[d] == 1) continue;
    g.sizes.push_back(x.sizes()[d]);
    g.strides.push_back(x.strides()[d]);
  }
  return g;
}

Geometry unsqueezed(const Tensor& x, int64_t dim) {
  const auto d = static_cast<size_t>(wrap_dim(dim, x.dim() + 1));
  const IntSpan sizes = x.sizes(), strides = x.strides();
  Geometry g;
  g.offset = x.storage_offset();
  g.sizes.resize(sizes.size() + 1, 1);
  g.strides.resize(sizes.size() + 1, 1);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t to = i < d ? i : i + 1;
    g.sizes[to] = sizes[i];
    g.strides[to] = strides[i];
  }
  if (d < sizes.size()) g.strides[d] = sizes[d] * strides[d];
  return g;
}

namespace {

Tensor without(const Tensor& x, const DimMarks& dims) {
  const Geometry g = squeezed(x, dims);
  return same_elements("SqueezeBackward0", x, g.sizes, g.strides);
}

}  // namespace

Tensor squeeze(const Tensor& x) {
  if (has_sparse(x)) [[unlikely]] {
    DimVector dims;
    for (int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
    return sparse_squeeze(x, dims);
  }
  check_strided("squeeze", x);
  return without(x, DimMarks(x.sizes().size(), true));
}
Tensor squeeze(const Tensor& x, int64_t dim) { return squeeze(x, IntSpan(&dim, 1)); }
Tensor squeeze(const Tensor& x, IntSpan dim) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_squeeze(x, dim);
  check_strided("squeeze", x);
  return without(x, marked_dims(dim, x.dim()));
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_unsqueeze(x, dim);
  check_strided("unsqueeze", x);
  const Geometry g = unsqueezed(x, dim);
  return same_elements("UnsqueezeBackward0", x, g.sizes, g.strides);
}

Tensor atleast_1d(const Tensor& x) {
  if (!has_sparse(x)) check_strided("atleast_1d", x);
  return x.dim() == 0 ? reshape(x, {1}) : x;
}
Tensor atleast_2d(const Tensor& x) {
  if (!has_sparse(x)) check_strided("atleast_2d", x);
  if (x.dim() == 0) return reshape(x, {1, 1});
  return x.dim() == 1 ? unsqueeze(x, 0) : x;
}
Tensor atleast_3d(const Tensor& x) {
  if (!has_sparse(x)) check_strided("atleast_3d", x);
  if (x.dim() == 0) return reshape(x, {1, 1, 1});
  if (x.dim() == 1) return unsqueeze(unsqueeze(x, 0), -1);
  return x.dim() == 2 ? unsqueeze(x, -1) : x;
}

namespace {

template <class F>
std::vector<Tensor> each(Span<Tensor> tensors, F function) {
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (const Tensor& tensor : tensors) out.push_back(function(tensor));
  return out;
}

}  // namespace

std::vector<Tensor> atleast_1d(Span<Tensor> tensors) {
  return each(tensors, [](const Tensor& x) { return atleast_1d(x); });
}
std::vector<Tensor> atleast_2d(Span<Tensor> tensors) {
  return each(tensors, [](const Tensor& x) { return atleast_2d(x); });
}
std::vector<Tensor> atleast_3d(Span<Tensor> tensors) {
  return each(tensors, [](const Tensor& x) { return atleast_3d(x); });
}

// ---- repeated dimensions

Tensor expand(const Tensor& x, IntSpan sizes) {
  if (has_sparse(x)) [[unlikely]]
    sparse_refuse_expand(x);
  check_strided("expand", x);
  const size_t old = x.sizes().size();
  TERCEL_CHECK(sizes.size() >= old, RuntimeError, "the number of sizes provided (", sizes.size(),
               ") must be greater or equal to the number of dimensions in the tensor (", old, ")");
  DimVector out_sizes(sizes), strides(sizes.size(), 0);
  const size_t lead = sizes.size() - old;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (d < lead) {
      TERCEL_CHECK(sizes[d] >= 0, RuntimeError, "The expanded size of the tensor (", sizes[d],
                   ") isn't allowed in a leading, non-existing dimension ", d);
      continue;
    }
    const int64_t size = x.sizes()[d - lead];
    if (sizes[d] == -1) out_sizes[d] = size;
    TERCEL_CHECK(out_sizes[d] == size || (size == 1 && out_sizes[d] >= 0), RuntimeError,
                 "The expanded size of the tensor (", sizes[d], ") must match the existing size (", size,
                 ") at non-singleton dimension ", d, ".  Target sizes: ", sizes, ".  Tensor sizes: ", x.sizes());
    strides[d] = out_sizes[d] == size ? x.strides()[d - lead] : 0;
  }
  // A new dimension of size 1 has the stride that unsqueeze() would give it.
  for (size_t d = old == 0 ? 0 : lead; d-- > 0;)
    if (out_sizes[d] == 1) strides[d] = out_sizes[d + 1] * strides[d + 1];
  Tensor out = alias(x, out_sizes, strides, x.storage_offset());
  make_view("ExpandBackward0", out, x, [&x] {
    return [shape = DimVector(x.sizes())](BackwardCall& call) { call.set(0, sum_to_size(call.grad(), shape)); };
  });
  return out;
}

Tensor expand_as(const Tensor& x, const Tensor& other) {
  if (!has_sparse(other)) check_strided("expand_as", other, "other");
  return expand(x, other.sizes());
}
Tensor broadcast_to(const Tensor& x, IntSpan size) { return expand(x, size); }

std::vector<Tensor> broadcast_tensors(Span<Tensor> tensors) {
  DimVector sizes;
  for (const Tensor& tensor : tensors) {
    check_strided("broadcast_tensors", tensor, "tensors");
    sizes = broadcast_sizes(sizes, tensor.sizes());
  }
  return each(tensors, [&sizes](const Tensor& x) { return expand(x, sizes); });
}

DimVector broadcast_shapes(Span<IntSpan> shapes) {
  DimVector out;
  for (const IntSpan shape : shapes) {
    for (const int64_t size : shape)
      TERCEL_CHECK(size >= 0, RuntimeError, "Trying to create tensor with negative dimension (", size, "): ", shape);
    for (size_t d = 0; d < std::min(shape.size(), out.size()); ++d) {
      const int64_t a = shape[shape.size() - 1 - d], b = out[out.size() - 1 - d];
      TERCEL_CHECK(a == b || a == 1 || b == 1, RuntimeError,
                   "Shape mismatch: objects cannot be broadcast to a single shape: ", IntSpan(out), " and ", shape);
    }
    out = broadcast_sizes(out, shape);
  }
  return out;
}

}  // namespace tercel
