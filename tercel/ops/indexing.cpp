#include "tercel/ops/indexing.h"

#include <algorithm>
#include <atomic>

#include "tercel/autograd/record.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/factories.h"
#include "tercel/ops/indexing_impl.h"
#include "tercel/ops/row_gradient.h"
#include "tercel/ops/tensor_iterator.h"
#include "tercel/ops/ternary.h"
#include "tercel/ops/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<IndexSelectFn> index_select_kernels = TERCEL_CPU_KERNELS(index_select);
constinit const KernelTable<GatherFn> gather_kernels = TERCEL_CPU_KERNELS(gather);
constinit const KernelTable<GatherFn> scatter_add_kernels = TERCEL_CPU_KERNELS(scatter_add);

constexpr int64_t kGrainBytes = 128 * 1024;
constexpr int64_t kGrain = 32768;

void check_index(const char* op, const Tensor& index) {
  check_defined(index, op, "index");
  TERCEL_CHECK(index.dtype() == kInt64 || index.dtype() == kInt32, TypeError, op,
               "(): Expected dtype int32 or int64 for index, but got ", describe(index));
}

[[noreturn]] void refuse_index(const char* op, const Tensor& index, int64_t dim, int64_t size) {
  const NoGradGuard no_grad;
  const Tensor flat = to(contiguous(index), kInt64);
  const auto* values = static_cast<const int64_t*>(flat.data_ptr());
  int64_t i = 0;
  while (i + 1 < flat.numel() && values[i] >= 0 && values[i] < size) ++i;
  throw_error<IndexError>({op, "(): index ", values[i], " is out of bounds for dimension ", dim, " with size ", size});
}

// ---- index_select

Tensor select_slices(const Tensor& x, int64_t dim, const Tensor& index) {
  const Tensor indices = index.contiguous();
  const size_t d = static_cast<size_t>(dim);
  DimVector sizes(x.sizes());
  sizes[d] = indices.numel();
  Tensor out = empty(sizes, x.options());
  if (out.numel() == 0) return out;

  const IntSpan x_sizes = x.sizes();
  // Slices are runs of memory if the inner dimensions lie together, and one outer step leads from each to the next.
  const auto inner = [d](const auto& list) { return list.subspan(d + 1, list.size() - d - 1); };
  const bool plain = x.is_contiguous() || (dim == 0 && is_contiguous_strides(inner(x_sizes), inner(x.strides())));
  const Tensor source = plain ? x : x.contiguous();
  const int64_t item = static_cast<int64_t>(x.itemsize());
  int64_t run = item, outer = 1;
  for (size_t i = d + 1; i < x_sizes.size(); ++i) run *= x_sizes[i];
  for (size_t i = 0; i < d; ++i) outer *= x_sizes[i];

  SelectLoop loop{};
  loop.in = static_cast<const char*>(source.data_ptr());
  loop.out = static_cast<char*>(out.data_ptr());
  loop.index = indices.data_ptr();
  loop.wide = indices.dtype() == kInt64;
  loop.n = indices.numel();
  loop.size = x_sizes[d];
  loop.stride = source.strides()[d] * item;
  loop.outer_stride = x_sizes[d] * run;
  loop.run = run;
  const auto kernel = index_select_kernels[x.device()];
  parallel_for(0, outer * loop.n, std::max<int64_t>(1, kGrainBytes / run), [&](int64_t begin, int64_t end) {
    if (kernel(loop, begin, end) >= 0) refuse_index("index_select", index, dim, loop.size);
  });
  return out;
}

// ---- gather and scatter_add

DimVector at_least_1d(IntSpan sizes) { return sizes.empty() ? DimVector{1} : DimVector(sizes); }
DimVector at_least_1d_strides(const Tensor& t) { return t.dim() == 0 ? DimVector{1} : DimVector(t.strides()); }

struct GatherShape {
  GatherLoop loop{};
  int64_t lines = 1;
};

GatherShape gather_shape(const Tensor& indexed, int64_t dim, const Tensor& index, const Tensor& other) {
  GatherShape shape;
  GatherLoop& loop = shape.loop;
  loop.dtype = indexed.dtype();
  loop.wide = index.dtype() == kInt64;
  loop.indexed = static_cast<char*>(indexed.data_ptr());
  loop.index = static_cast<const char*>(index.data_ptr());
  loop.other = static_cast<char*>(other.data_ptr());
  const int64_t item = static_cast<int64_t>(indexed.itemsize()), index_item = static_cast<int64_t>(index.itemsize());
  const DimVector sizes = at_least_1d(index.sizes()), indexed_sizes = at_least_1d(indexed.sizes());
  const DimVector strides = at_least_1d_strides(indexed), index_strides = at_least_1d_strides(index);
  const DimVector other_strides = at_least_1d_strides(other);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (static_cast<int64_t>(d) == dim) {
      loop.n = sizes[d];
      loop.size = indexed_sizes[d];
      loop.indexed_stride = strides[d] * item;
      loop.index_stride = index_strides[d] * index_item;
      loop.other_stride = other_strides[d] * item;
      continue;
    }
    loop.sizes[loop.ndim] = sizes[d];
    loop.indexed_strides[loop.ndim] = strides[d] * item;
    loop.index_strides[loop.ndim] = index_strides[d] * index_item;
    loop.other_strides[loop.ndim] = other_strides[d] * item;
    ++loop.ndim;
    shape.lines *= sizes[d];
  }
  return shape;
}

void run_lines(const char* op, const KernelTable<GatherFn>& kernels, const Tensor& indexed, int64_t dim,
               const Tensor& index, const Tensor& other) {
  if (index.numel() == 0) return;
  const GatherShape shape = gather_shape(indexed, dim, index, other);
  const auto kernel = kernels[indexed.device()];
  parallel_for(0, shape.lines, std::max<int64_t>(1, kGrain / shape.loop.n), [&](int64_t begin, int64_t end) {
    if (!kernel(shape.loop, begin, end)) refuse_index(op, index, dim, shape.loop.size);
  });
}

// index has the dimensions of `of`, and no larger ones but in dim.
void check_index_sizes(const char* op, const Tensor& index, const Tensor& of, const char* name, int64_t dim,
                       bool also_dim) {
  TERCEL_CHECK(of.dim() <= kMaxGatherDims, ValueError, op, "(): expected at most ", kMaxGatherDims,
               " dimensions but got ", of.dim());
  const DimVector sizes = at_least_1d(index.sizes()), limit = at_least_1d(of.sizes());
  bool fits = sizes.size() == limit.size();
  for (size_t d = 0; fits && d < sizes.size(); ++d)
    fits = (!also_dim && static_cast<int64_t>(d) == dim) || sizes[d] <= limit[d];
  TERCEL_CHECK(fits, ValueError, op, "(): Expected index ", index.sizes(), " to be no larger than ", name, " ",
               of.sizes(), also_dim ? "" : " apart from dimension ", also_dim ? "" : std::to_string(dim));
}

void add_at(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  const NoGradGuard no_grad;
  check_no_internal_overlap("scatter_add", x);
  for (const Tensor* other : {&index, &source})
    TERCEL_CHECK(
        !x.is_alias_of(*other), ValueError,
        "scatter_add(): unsupported operation: the written-to tensor and an input share memory. Please clone() "
        "the input before performing the operation.");
  run_lines("scatter_add", scatter_add_kernels, x, dim, index, source);
}

int64_t check_scatter_add(const Tensor& x, int64_t d, const Tensor& index, const Tensor& source) {
  check_defined(x, "scatter_add", "x");
  check_defined(source, "scatter_add", "source");
  check_index("scatter_add", index);
  const int64_t dim = wrap_dim(d, x.dim());
  TERCEL_CHECK(source.dtype() == x.dtype(), TypeError,
               "scatter_add(): Expected self.dtype to be equal to src.dtype, got ", describe(x), " and ",
               describe(source));
  if (index.numel() != 0) {
    check_index_sizes("scatter_add", index, x, "self", dim, false);
    check_index_sizes("scatter_add", index, source, "src", dim, true);
  }
  return dim;
}

auto scatter_add_backward(int64_t dim, const Tensor& index, const Tensor& source) {
  return [dim, index = SavedTensor(index), sizes = DimVector(source.sizes())](BackwardCall& call) {
    if (call.needs(1)) {
      const Tensor& at = index.get();
      const Tensor picked = gather(call.grad(), dim, at);
      if (at.sizes() == IntSpan(sizes)) {
        call.set(1, picked);
      } else {
        Tensor grad = zeros(sizes, picked.options());
        Tensor part = grad;
        for (int64_t d = 0; d < at.dim(); ++d) part = narrow(part, d, 0, at.size(d));
        if (at.numel() != 0) copy_(part, picked);
        call.set(1, grad);
      }
    }
    if (call.needs(0)) call.set(0, call.take());
  };
}

}  // namespace

Tensor index_select(const Tensor& x, int64_t d, const Tensor& index) {
  check_defined(x, "index_select", "x");
  check_index("index_select", index);
  TERCEL_CHECK(index.dim() <= 1, ValueError, "index_select(): Index is supposed to be a vector, but got ",
               describe(index));
  const int64_t dim = wrap_dim(d, x.dim());
  Tensor out;
  {
    const NoGradGuard no_grad;
    out = x.dim() == 0 ? view(select_slices(view(x, {1}), 0, index), {}) : select_slices(x, dim, index);
  }
  if (should_record(x))
    record("IndexSelectBackward0", out, {x},
           [index = SavedTensor(index), sizes = DimVector(x.sizes()), dim](BackwardCall& call) {
             if (sizes.empty()) return call.set(0, call.take());
             // The dimension comes first, where slices are rows.
             const Tensor grad = transpose(call.grad(), 0, dim);
             DimVector rows(sizes);
             std::swap(rows[0], rows[static_cast<size_t>(dim)]);
             const Tensor at = to(view(contiguous(index.get()), {-1}), kInt64);
             call.set(0, transpose(dense_gradient({grad, at}, rows), 0, dim));
           });
  return out;
}

Tensor gather(const Tensor& x, int64_t d, const Tensor& index) {
  check_defined(x, "gather", "x");
  check_index("gather", index);
  const int64_t dim = wrap_dim(d, x.dim());
  if (index.numel() != 0) check_index_sizes("gather", index, x, "input", dim, false);
  Tensor out = empty(index.sizes(), x.options());
  run_lines("gather", gather_kernels, x, dim, index, out);
  if (should_record(x))
    record("GatherBackward0", out, {x},
           [index = SavedTensor(index), sizes = DimVector(x.sizes()), dim](BackwardCall& call) {
             const Tensor grad = zeros(sizes, call.grad().options());
             add_at(grad, dim, index.get(), call.grad());
             call.set(0, grad);
           });
  return out;
}

Tensor scatter_add(const Tensor& x, int64_t d, const Tensor& index, const Tensor& source) {
  const int64_t dim = check_scatter_add(x, d, index, source);
  Tensor out;
  {
    const NoGradGuard no_grad;
    out = clone(x, MemoryFormat::Contiguous);
  }
  add_at(out, dim, index, source);
  if (should_record(x, source))
    record("ScatterAddBackward0", out, {x, source}, scatter_add_backward(dim, index, source));
  return out;
}

const Tensor& scatter_add_(const Tensor& x, int64_t d, const Tensor& index, const Tensor& source) {
  const int64_t dim = check_scatter_add(x, d, index, source);
  const bool records = should_record(x, source);
  check_inplace(x, records);
  add_at(x, dim, index, source);
  x.impl().bump_version();
  if (records) record_inplace("ScatterAddBackward0", x, {x, source}, scatter_add_backward(dim, index, source));
  return x;
}

Tensor take(const Tensor& x, const Tensor& index) {
  check_defined(x, "take", "x");
  check_index("take", index);
  return view(gather(reshape(x, {-1}), 0, reshape(index, {-1})), index.sizes());
}

namespace {

Tensor filled(const char* op, const Tensor& x, const Tensor& mask, Scalar value) {
  check_defined(x, op, "x");
  check_defined(mask, op, "mask");
  TERCEL_CHECK(mask.dtype() == kBool, TypeError, op, ": expected a bool mask but got ", describe(mask));
  TERCEL_CHECK(can_cast(value.dtype(), x.dtype()), TypeError, op, ": value ", to_string(value),
               " cannot be converted to type ", to_string(x.dtype()), " without overflow");
  TERCEL_CHECK(IntSpan(broadcast_sizes(x.sizes(), mask.sizes())) == x.sizes(), ValueError, op,
               ": expected a mask that broadcasts to ", x.sizes(), " but got ", mask.sizes());
  return where(mask, value, x);
}

}  // namespace

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value) { return filled("masked_fill", x, mask, value); }

const Tensor& masked_fill_(const Tensor& x, const Tensor& mask, Scalar value) {
  return copy_(x, filled("masked_fill_", x, mask, value));
}

}  // namespace tercel
