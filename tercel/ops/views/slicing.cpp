#include "tercel/ops/views/slicing.h"

#include <algorithm>

#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"
#include "tercel/ops/views/views_impl.h"

namespace tercel {

namespace {

/** stride * step, or stride if that overflows, since there is then no second element. */
int64_t steps_apart(int64_t stride, int64_t step) {
  int64_t product = 0;
  return __builtin_mul_overflow(stride, step, &product) ? stride : product;
}

/** Every step-th index of a dimension; the caller has checked the range of start and length. */
Tensor strided_alias(const Tensor& x, size_t dim, int64_t start, int64_t length, int64_t step) {
  Geometry g(x);
  g.offset += start * g.strides[dim];
  g.sizes[dim] = length;
  g.strides[dim] = steps_apart(g.strides[dim], step);
  return g.of(x);
}

/** The same as a view. */
Tensor strided_part(const char* name, const Tensor& x, size_t dim, int64_t start, int64_t length, int64_t step,
                    ViewOrigin origin = ViewOrigin::Ordinary) {
  return part_of(
      name, x, strided_alias(x, dim, start, length, step),
      [=](const Tensor& whole) { return strided_part(name, whole, dim, start, length, step); }, origin);
}

/** Gradients of the views of one op; zeros of these sizes for those without a gradient. */
template <class SizesOf>
std::vector<Tensor> gradients_of_views(const BackwardCall& call, SizesOf sizes_of) {
  const uint32_t count = call.node().num_outputs();
  Tensor zero;
  for (uint32_t i = 0; i < count && !zero.defined(); ++i)
    if (call.grad(i).defined()) zero = zeros({}, call.grad(i).options());
  std::vector<Tensor> gradients;
  for (uint32_t i = 0; i < count; ++i)
    gradients.push_back(call.grad(i).defined() ? call.grad(i) : expand(zero, sizes_of(i)));
  return gradients;
}

}  // namespace

Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  if (!has_sparse(x)) check_strided("narrow", x);
  TERCEL_CHECK(x.dim() > 0, RuntimeError, "narrow() cannot be applied to a 0-dim tensor.");
  const auto d = static_cast<size_t>(wrap_dim(dim, x.dim()));
  const int64_t size = x.sizes()[d];
  TERCEL_CHECK(length >= 0, RuntimeError, "narrow(): length must be non-negative.");
  TERCEL_CHECK(start >= -size && start <= size, IndexError, "start out of range (expected to be in range of [", -size,
               ", ", size, "], but got ", start, ")");
  if (start < 0) start += size;
  TERCEL_CHECK(start <= size - length, RuntimeError, "start (", start, ") + length (", length,
               ") exceeds dimension size (", size, ").");
  if (has_sparse(x)) [[unlikely]]
    return sparse_narrow(x, static_cast<int64_t>(d), start, length);
  return strided_part("SliceBackward0", x, d, start, length, 1);
}

Tensor narrow(const Tensor& x, int64_t dim, const Tensor& start, int64_t length) {
  check_strided("narrow", start, "start");
  TERCEL_CHECK(start.dim() == 0 && is_integral(start.dtype(), false), RuntimeError,
               "start must be an 0-dim integral Tensor.");
  return narrow(x, dim, item(start).to_int64(), length);
}

Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step) {
  check_strided("slice", x);
  TERCEL_CHECK(x.dim() > 0, RuntimeError, "slice() cannot be applied to a 0-dim tensor.");
  TERCEL_CHECK(step != 0 && step != INT64_MIN, ValueError, "slice step cannot be zero");
  const auto d = static_cast<size_t>(wrap_dim(dim, x.dim()));
  const int64_t size = x.sizes()[d];
  // Python's rule: negative bounds count from the end, then bounds are clamped to the range of the direction.
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

namespace {

Tensor select_alias(const Tensor& x, size_t dim, int64_t index) {
  Geometry g(x);
  g.offset += index * g.strides[dim];
  g.sizes.erase(g.sizes.begin() + dim);
  g.strides.erase(g.strides.begin() + dim);
  return g.of(x);
}

Tensor selected(const Tensor& x, size_t dim, int64_t index) {
  return part_of("SelectBackward0", x, select_alias(x, dim, index),
                 [=](const Tensor& whole) { return selected(whole, dim, index); });
}

}  // namespace

Tensor select(const Tensor& x, int64_t dim, int64_t index) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_select(x, dim, index);
  check_strided("select", x);
  TERCEL_CHECK(x.dim() > 0, IndexError, "select() cannot be applied to a 0-dim tensor.");
  const auto d = static_cast<size_t>(wrap_dim(dim, x.dim()));
  const int64_t size = x.sizes()[d];
  TERCEL_CHECK(index >= -size && index < size, IndexError, "select(): index ", index,
               " out of range for tensor of size ", x.sizes(), " at dimension ", d);
  return selected(x, d, index < 0 ? index + size : index);
}

namespace {

/** Adds windows up at their original positions; the reverse of unfold(), and its gradient. */
Tensor fold(const Tensor& windows, IntSpan sizes, int64_t dim, int64_t size, int64_t step) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = zeros(sizes, windows.options());
    if (sizes.empty()) {
      if (size > 0) add_(out, view(windows, {}));
    } else {
      const int64_t count = windows.size(dim), last = windows.dim() - 1;
      // Window by window, or first elements of all windows, second elements ...: whichever takes fewer steps.
      if (count < size) {
        for (int64_t w = 0; w < count; ++w)
          add_(narrow(out, dim, w * step, size), movedim(select(windows, dim, w), -1, dim));
      } else {
        for (int64_t i = 0; i < size; ++i)
          add_(slice(out, dim, i, i + (count - 1) * step + 1, step), select(windows, last, i));
      }
    }
  }
  if (should_record(windows))
    record("UnfoldBackwardBackward0", out, {windows},
           [dim, size, step](BackwardCall& call) { call.set(0, unfold(call.grad(), dim, size, step)); });
  return out;
}

}  // namespace

Tensor unfold(const Tensor& x, int64_t dimension, int64_t size, int64_t step) {
  check_strided("unfold", x);
  const int64_t d = wrap_dim(dimension, x.dim());
  const int64_t most = x.dim() == 0 ? 1 : x.sizes()[static_cast<size_t>(d)];
  TERCEL_CHECK(size >= 0, RuntimeError, "size is ", size, " but must be >= 0");
  TERCEL_CHECK(size <= most, RuntimeError, "maximum size for tensor at dimension ", d, " is ", most, " but size is ",
               size);
  TERCEL_CHECK(step > 0, RuntimeError, "step is ", step, " but must be > 0");
  Geometry g(x);
  g.sizes.push_back(size);
  g.strides.push_back(x.dim() == 0 ? 1 : g.strides[static_cast<size_t>(d)]);
  if (x.dim() > 0) {
    int64_t& count = g.sizes[static_cast<size_t>(d)];
    count = (count - size) / step + 1;
    g.strides[static_cast<size_t>(d)] = steps_apart(g.strides[static_cast<size_t>(d)], step);
  }
  Tensor out = g.of(x);
  make_view("UnfoldBackward0", out, x, [&] {
    return [sizes = DimVector(x.sizes()), d, size, step](BackwardCall& call) {
      call.set(0, fold(call.grad(), sizes, d, size, step));
    };
  });
  return out;
}

// ---- several views

namespace {

/** Checks the number of views before a list of that length is allocated. */
void check_number_of_parts(const char* op, int64_t parts) {
  constexpr int64_t kMost = int64_t{1} << 31;
  TERCEL_CHECK(parts <= kMost, RuntimeError, op, ": ", parts, " tensors exceed the maximum of ", kMost);
}

std::vector<Tensor> room_for(const char* op, int64_t parts) {
  check_number_of_parts(op, parts);
  std::vector<Tensor> out;
  out.reserve(static_cast<size_t>(parts));
  return out;
}

size_t dim_to_split(const Tensor& x, int64_t dim, const char* op) {
  check_strided(op, x);
  TERCEL_CHECK(x.dim() > 0, RuntimeError, op, " expects at least a 1-dimensional tensor");
  return static_cast<size_t>(wrap_dim(dim, x.dim()));
}

/** Parts of a dimension as views of one op; the caller has checked the lengths. */
std::vector<Tensor> in_lengths(const char* name, const Tensor& x, std::vector<int64_t> lengths, size_t dim) {
  std::vector<Tensor> parts;
  parts.reserve(lengths.size());
  int64_t start = 0;
  for (const int64_t length : lengths) {
    parts.push_back(strided_alias(x, dim, start, length, 1));
    start += length;
  }
  make_views(name, parts, x, [&] {
    return [sizes = DimVector(x.sizes()), dim, lengths = std::move(lengths)](BackwardCall& call) {
      const auto sizes_of = [&](size_t part) {
        DimVector own = sizes;
        own[dim] = lengths[part];
        return own;
      };
      call.set(0, cat(gradients_of_views(call, sizes_of), static_cast<int64_t>(dim)));
    };
  });
  return parts;
}

}  // namespace

std::vector<Tensor> split(const Tensor& x, IntSpan split_sizes, int64_t dim) {
  const size_t d = dim_to_split(x, dim, "split");
  int64_t left = x.sizes()[d];
  for (const int64_t s : split_sizes) {
    TERCEL_CHECK(s >= 0, RuntimeError,
                 "split_with_sizes expects split_sizes have only non-negative entries, but got "
                 "split_sizes=",
                 split_sizes);
    left = s <= left ? left - s : -1;  // once negative, it stays negative
  }
  TERCEL_CHECK(left == 0, RuntimeError, "split_with_sizes expects split_sizes to sum exactly to ", x.sizes()[d],
               " (input tensor's size at dimension ", d, "), but got split_sizes=", split_sizes);
  return in_lengths("SplitWithSizesBackward0", x, {split_sizes.begin(), split_sizes.end()}, d);
}
std::vector<Tensor> split_with_sizes(const Tensor& x, IntSpan split_sizes, int64_t dim) {
  return split(x, split_sizes, dim);
}

std::vector<Tensor> split(const Tensor& x, int64_t split_size, int64_t dim) {
  const size_t d = dim_to_split(x, dim, "split");
  const int64_t size = x.sizes()[d];
  TERCEL_CHECK(split_size >= 0, RuntimeError,
               "split expects split_size be non-negative, but got split_size=", split_size);
  TERCEL_CHECK(split_size > 0 || size == 0, RuntimeError,
               "split_size can only be 0 if dimension size is 0, but got dimension size of ", size);
  const int64_t parts = size == 0 ? 1 : (size - 1) / split_size + 1;
  check_number_of_parts("split", parts);
  std::vector<int64_t> lengths(static_cast<size_t>(parts), split_size);
  lengths.back() = size - (parts - 1) * split_size;
  return in_lengths("SplitBackward0", x, std::move(lengths), d);
}

std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  const size_t d = dim_to_split(x, dim, "chunk");
  TERCEL_CHECK(chunks > 0, RuntimeError, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  const int64_t size = x.sizes()[d];
  if (size > 0) return split(x, (size - 1) / chunks + 1, dim);
  // An empty dimension gives the requested number of chunks.
  check_number_of_parts("chunk", chunks);
  return in_lengths("SplitBackward0", x, std::vector<int64_t>(static_cast<size_t>(chunks), 0), d);
}

std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int64_t dim) {
  check_strided("tensor_split", x);
  TERCEL_CHECK(x.dim() > 0, RuntimeError,
               "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ", x.dim(), " dims");
  const auto d = static_cast<size_t>(wrap_dim(dim, x.dim()));
  TERCEL_CHECK(sections > 0, RuntimeError, "number of sections must be larger than 0, got ", sections);
  const int64_t size = x.sizes()[d], least = size / sections, larger = size % sections;
  std::vector<Tensor> parts = room_for("tensor_split", sections);
  int64_t start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    const int64_t length = least + (i < larger ? 1 : 0);
    parts.push_back(strided_part("SliceBackward0", x, d, start, length, 1, ViewOrigin::MultiOutput));
    start += length;
  }
  return parts;
}

std::vector<Tensor> tensor_split(const Tensor& x, IntSpan indices, int64_t dim) {
  check_strided("tensor_split", x);
  TERCEL_CHECK(x.dim() > 0, RuntimeError,
               "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ", x.dim(), " dims");
  std::vector<Tensor> parts;
  for (size_t i = 0; i <= indices.size(); ++i) {
    parts.push_back(slice(x, dim, i == 0 ? 0 : indices[i - 1], i == indices.size() ? INT64_MAX : indices[i]));
    if (grad_enabled()) parts.back().impl().set_view_origin(ViewOrigin::MultiOutput);
  }
  return parts;
}

std::vector<Tensor> tensor_split(const Tensor& x, const Tensor& tensor_indices_or_sections, int64_t dim) {
  const Tensor& given = tensor_indices_or_sections;
  check_strided("tensor_split", given, "indices_or_sections");
  TERCEL_CHECK(given.device().is_cpu(), RuntimeError,
               "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on ",
               to_string(given.device()));
  TERCEL_CHECK(given.dtype() == kInt64, RuntimeError,
               "tensor_split expected tensor_indices_or_sections to have dtype of long, but got ",
               scalar_type_word(given.dtype()));
  TERCEL_CHECK(given.dim() <= 1, RuntimeError,
               "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, "
               "but got a tensor with ",
               given.dim(), " dims");
  if (given.dim() == 0) return tensor_split(x, item(given).to_int64(), dim);
  const Tensor list = contiguous(given);
  return tensor_split(x, IntSpan(static_cast<const int64_t*>(list.data_ptr()), static_cast<size_t>(list.numel())), dim);
}

namespace {

/** The dimension that "hsplit", "vsplit" or "dsplit" splits; if not null, `sections` must divide its size. */
int64_t named_dim(const Tensor& x, const char* op, int64_t least_dims, int64_t dim, const int64_t* sections) {
  check_strided(op, x);
  TERCEL_CHECK(x.dim() >= least_dims, RuntimeError, op, "() requires a tensor with at least ", least_dims,
               " dimension, but got a tensor with ", x.dim(), " dimensions!");
  if (!sections) return dim;
  const int64_t size = x.size(dim);
  TERCEL_CHECK(*sections > 0 && size % *sections == 0, RuntimeError, op, "() attempted to split along dimension ", dim,
               ", but the size of the dimension ", size, " is not divisible by the split_size ", *sections, "!");
  return dim;
}

}  // namespace

std::vector<Tensor> hsplit(const Tensor& x, int64_t sections) {
  return tensor_split(x, sections, named_dim(x, "hsplit", 1, x.dim() == 1 ? 0 : 1, &sections));
}
std::vector<Tensor> hsplit(const Tensor& x, IntSpan indices) {
  return tensor_split(x, indices, named_dim(x, "hsplit", 1, x.dim() == 1 ? 0 : 1, nullptr));
}
std::vector<Tensor> vsplit(const Tensor& x, int64_t sections) {
  return tensor_split(x, sections, named_dim(x, "vsplit", 2, 0, &sections));
}
std::vector<Tensor> vsplit(const Tensor& x, IntSpan indices) {
  return tensor_split(x, indices, named_dim(x, "vsplit", 2, 0, nullptr));
}
std::vector<Tensor> dsplit(const Tensor& x, int64_t sections) {
  return tensor_split(x, sections, named_dim(x, "dsplit", 3, 2, &sections));
}
std::vector<Tensor> dsplit(const Tensor& x, IntSpan indices) {
  return tensor_split(x, indices, named_dim(x, "dsplit", 3, 2, nullptr));
}

std::vector<Tensor> unbind(const Tensor& x, int64_t dim) {
  if (has_sparse(x)) [[unlikely]] {
    std::vector<Tensor> parts;
    const int64_t d = wrap_dim(dim, x.dim(), false);
    for (int64_t i = 0; i < x.size(d); ++i) parts.push_back(sparse_select(x, d, i));
    return parts;
  }
  check_strided("unbind", x);
  const auto d = static_cast<size_t>(wrap_dim(dim, x.dim(), false));
  const int64_t size = x.sizes()[d];
  std::vector<Tensor> parts = room_for("unbind", size);
  for (int64_t i = 0; i < size; ++i) parts.push_back(select_alias(x, d, i));
  make_views("UnbindBackward0", parts, x, [&] {
    DimVector sizes(x.sizes());
    sizes.erase(sizes.begin() + d);
    return [sizes, d](BackwardCall& call) {
      call.set(0, stack(gradients_of_views(call, [&](size_t) { return sizes; }), static_cast<int64_t>(d)));
    };
  });
  return parts;
}

}  // namespace tercel
