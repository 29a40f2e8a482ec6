#include "tercel/ops/index/gather.h"

#include <algorithm>
#include <atomic>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/promotion_impl.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/common/tensor_iterator_impl.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/embedding/row_gradient.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather_impl.h"
#include "tercel/ops/index/gather_kernels.h"
#include "tercel/ops/index/gather_scatter_plan_impl.h"
#include "tercel/ops/index/scatter.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<IndexSelectFn> index_select_kernels = TERCEL_CPU_KERNELS(index_select);
constinit const KernelTable<GatherFn> gather_kernels = TERCEL_CPU_KERNELS(gather);

constexpr int64_t kGrainBytes = 128 * 1024;

[[noreturn]] void refuse_index(const Tensor& index, int64_t size) {
  const NoRecordGuard no_record;
  const Tensor flat = to(contiguous(index), kInt64);
  const auto* values = flat.data<int64_t>();
  int64_t i = 0;
  while (i + 1 < flat.numel() && values[i] >= 0 && values[i] < size) ++i;
  throw_error<IndexError>(
      {"index_select(): index out of range in self: expected indices in [0, ", size, ") but got ", values[i]});
}

// ---- index_select

DimVector selected_sizes(const Tensor& x, int64_t dim, const Tensor& index) {
  DimVector sizes(x.sizes());
  sizes[static_cast<size_t>(dim)] = index.numel();
  return sizes;
}

/** Gives `out`, contiguous, of selected_sizes(), the slices. */
void select_slices_to(const Tensor& out, const Tensor& x, int64_t dim, const Tensor& index) {
  const ProfileRange range("index_select", RangeKind::Op);
  if (out.numel() == 0) return;
  const Tensor indices = index.contiguous();
  const size_t d = static_cast<size_t>(dim);
  const IntSpan x_sizes = x.sizes();
  // Slices are contiguous if the inner dimensions are, and the outer ones must have one common stride.
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
    if (kernel(loop, begin, end) >= 0) refuse_index(index, loop.size);
  });
}

Tensor select_slices(const Tensor& x, int64_t dim, const Tensor& index) {
  Tensor out = empty(selected_sizes(x, dim, index), x.options());
  select_slices_to(out, x, dim, index);
  return out;
}

// The gradient of a tensor of the given sizes from which slices were selected. Recorded.
Tensor index_select_gradient(const Tensor& g, const DimVector& sizes, int64_t dim, const Tensor& index) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    // The dimension is moved to the front, so that slices are rows.
    DimVector rows(sizes);
    std::swap(rows[0], rows[static_cast<size_t>(dim)]);
    const Tensor at = to(view(contiguous(index), {-1}), kInt64);
    out = transpose(dense_gradient({transpose(g, 0, dim), at}, rows), 0, dim).detach();
  }
  if (should_record(g))
    record("IndexSelectBackwardBackward0", out, {g}, [dim, index = SavedTensor(index)](BackwardCall& call) {
      call.set(0, index_select(call.grad(), dim, index.get()));
    });
  return out;
}

}  // namespace

namespace {

/** Checks the indices for a tensor without elements, for which no kernel runs. */
void check_empty_select(const Tensor& index, int64_t size) {
  if (index.numel() == 0) return;
  TERCEL_CHECK(size > 0, RuntimeError, "index_select(): self indexing axis dim should be positive");
  const Tensor at = to(index, kInt64);
  const int64_t low = item(min(at)).to_int64(), high = item(max(at)).to_int64();
  TERCEL_CHECK(low >= 0 && high < size, RuntimeError,
               "INDICES element is out of DATA bounds, id=", low < 0 ? low : high, " axis_dim=", size);
}

/** The dimension. */
int64_t check_select(const Tensor& x, int64_t d, const Tensor& index) {
  check_strided("index_select", x, "x");
  check_index("index_select", index);
  TERCEL_CHECK(index.dim() <= 1, RuntimeError, "index_select(): Index is supposed to be a vector, but got ",
               describe(index));
  const int64_t dim = wrap_dim(d, x.dim());
  if (x.numel() == 0 && x.dim() > 0) check_empty_select(index, x.size(dim));
  return dim;
}

}  // namespace

void select_rows_to(const Tensor& out, const Tensor& x, const Tensor& rows) {
  const int64_t dim = check_select(x, 0, rows);
  TERCEL_CHECK(out.is_contiguous() && out.sizes() == IntSpan(selected_sizes(x, dim, rows)) && out.dtype() == x.dtype(),
               RuntimeError, "select_rows_to: expected a contiguous tensor for ", rows.numel(), " rows of ",
               describe(x), " but got ", describe(out));
  select_slices_to(out, x, dim, rows);
}

Tensor index_select(const Tensor& x, int64_t d, const Tensor& index) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_index_select(x, d, index);
  const int64_t dim = check_select(x, d, index);
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = x.dim() == 0 ? view(select_slices(view(x, {1}), 0, index), {}) : select_slices(x, dim, index);
  }
  if (should_record(x))
    record("IndexSelectBackward0", out, {x},
           [index = SavedTensor(index), sizes = DimVector(x.sizes()), dim](BackwardCall& call) {
             call.set(0, sizes.empty() ? call.take() : index_select_gradient(call.grad(), sizes, dim, index.get()));
           });
  return out;
}

Tensor gather(const Tensor& x, int64_t d, const Tensor& index) {
  const ProfileRange range("gather", RangeKind::Op);
  check_strided("gather", x, "x");
  check_index("gather", index);
  const int64_t dim = wrap_dim(d, x.dim());
  if (index.numel() != 0) check_index_sizes("gather", index, x, "input", dim, false);
  Tensor out = empty(index.sizes(), x.options());
  GatherFn* kernel = gather_kernels[x.device()];
  run_gather_scatter(x, dim, index, out, [&](const GatherLoop& loop, int64_t begin, int64_t end) {
    if (!kernel(loop, begin, end)) check_bounds(index, dim, loop.size);
  });
  if (should_record(x))
    record("GatherBackward0", out, {x},
           [index = SavedTensor(index), sizes = DimVector(x.sizes()), dim](BackwardCall& call) {
             call.set(0, scatter_add(zeros(sizes, call.grad().options()), dim, index.get(), call.grad()));
           });
  return out;
}

namespace {

Tensor filled(const char* op, const Tensor& x, const Tensor& mask, Scalar value) {
  check_strided(op, x, "x");
  check_strided(op, mask, "mask");
  TERCEL_CHECK(mask.dtype() == kBool, RuntimeError, op, " only supports boolean masks, but got mask with dtype ",
               cpp_type_name(mask.dtype()));
  check_number_fits(x.dtype(), value);
  return where(mask, full({}, value, TensorOptions(x.dtype(), x.device())), x);
}

}  // namespace

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value) {
  Tensor out;
  {
    const NoRecordGuard no_record;
    // As in PyTorch, the result is contiguous for all strides of the operand.
    out = contiguous(filled("masked_fill", x, mask, value));
  }
  if (should_record(x))
    record("MaskedFillBackward0", out, {x},
           [mask = SavedTensor(mask), sizes = DimVector(x.sizes())](BackwardCall& call) {
             call.set(0, sum_to_size(masked_fill(call.grad(), mask.get(), 0), sizes));
           });
  return out;
}

const Tensor& masked_fill_(const Tensor& x, const Tensor& mask, Scalar value) {
  const DimVector sizes = broadcast_sizes(x.sizes(), mask.sizes());
  TERCEL_CHECK(IntSpan(sizes) == x.sizes(), RuntimeError, "masked_fill_: output with shape ", x.sizes(),
               " doesn't match the broadcast shape ", IntSpan(sizes));
  return copy_(x, filled("masked_fill_", x, mask, value));
}

}  // namespace tercel
