// Plans the kernels' loops, given a tensor and the dimensions to reduce.
//
// Note [Reduction plan]
// Dimensions are sorted by stride and merged where that keeps the order of elements. If the innermost dimension is
// reduced, the elements of an output are combined along rows of memory; otherwise adjacent outputs are combined as
// columns, row by row. So memory is read in order in either case. The elements of an output are split into blocks that
// depend only on the sizes; blocks run on several threads, and their partial results are reduced in a second step. Few
// columns over many rows are treated as more columns over fewer rows, which the second step combines.
#include <algorithm>
#include <cstdlib>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce_impl.h"
#include "tercel/ops/reduce/reduce_kernels.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<ReduceFn> rows_kernels = TERCEL_CPU_KERNELS(reduce_rows);
constinit const KernelTable<ReduceFn> columns_kernels = TERCEL_CPU_KERNELS(reduce_columns);
constinit const KernelTable<ArgReduceFn> arg_rows_kernels = TERCEL_CPU_KERNELS(arg_reduce_rows);
constinit const KernelTable<ArgReduceFn> arg_columns_kernels = TERCEL_CPU_KERNELS(arg_reduce_columns);

constexpr int64_t kGrainElements = 32768;
// Rows longer than two blocks are split.
constexpr int64_t kRowBlock = 65536;
// Elements in a block of columns, and its minimum number of rows.
constexpr int64_t kColumnBlock = 262144;
constexpr int64_t kColumnBlockRows = 512;
// Shorter rows are not combined along the row.
constexpr int64_t kShortRow = 16;
// Number of columns that justifies a separate loop.
constexpr int64_t kFoldedColumns = 512;

struct Dim {
  int64_t size, stride;  // of the input, in bytes
  int64_t out_stride;    // of the output, in bytes; 0 when reduced
};
using Dims = SmallVector<Dim, 8>;

void sort_by_distance(Dims& dims) {
  // Insertion sort: there are few dimensions, and std::stable_sort allocates.
  for (size_t i = 1; i < dims.size(); ++i) {
    const Dim dim = dims[i];
    size_t to = i;
    for (; to > 0 && std::abs(dim.stride) < std::abs(dims[to - 1].stride); --to) dims[to] = dims[to - 1];
    dims[to] = dim;
  }
}

// Merges adjacent dimensions that are a single dimension in memory.
void coalesce(Dims& dims) {
  size_t n = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (n > 0 && dims[n - 1].stride * dims[n - 1].size == dims[d].stride &&
        dims[n - 1].out_stride * dims[n - 1].size == dims[d].out_stride) {
      dims[n - 1].size *= dims[d].size;
    } else {
      dims[n++] = dims[d];
    }
  }
  dims.resize(n);
}

int64_t product(const Dims& dims) {
  int64_t n = 1;
  for (const Dim& d : dims) n *= d.size;
  return n;
}

struct Geometry {
  Dims kept, reduced;
  DimVector kept_sizes, kept_strides, out_strides, reduced_sizes, reduced_strides;

  // Drops dimensions of size 1, but keeps one in an otherwise empty list, so that loops run once.
  void finish() {
    if (kept.empty()) kept.push_back({1, 0, 0});
    if (reduced.empty()) reduced.push_back({1, 0, 0});
    for (const Dim& d : kept) {
      kept_sizes.push_back(d.size);
      kept_strides.push_back(d.stride);
      out_strides.push_back(d.out_stride);
    }
    for (const Dim& d : reduced) {
      reduced_sizes.push_back(d.size);
      reduced_strides.push_back(d.stride);
    }
  }
  void describe(ReduceLoop& loop) const {
    loop.num_kept = static_cast<int>(kept.size());
    loop.num_reduced = static_cast<int>(reduced.size());
    loop.kept_sizes = kept_sizes.data();
    loop.kept_strides = kept_strides.data();
    loop.out_strides = out_strides.data();
    loop.reduced_sizes = reduced_sizes.data();
    loop.reduced_strides = reduced_strides.data();
    loop.reduced = product(reduced);
  }
};

struct Plan {
  Geometry geometry;
  bool by_rows = false;
  int64_t fold = 1;
  int64_t outputs = 1;
};

bool is_reduced(DimMask mask, int64_t d) { return (mask >> d & 1) != 0; }

// Sizes of the kept dimensions.
DimVector kept_sizes(const Tensor& x, DimMask mask) {
  DimVector sizes;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (!is_reduced(mask, d)) sizes.push_back(x.sizes()[static_cast<size_t>(d)]);
  return sizes;
}

// The number of rows to merge into one, if there are few contiguous columns and many rows.
int64_t fold_of(const Dims& kept, const Dims& reduced, int64_t item) {
  if (kept.size() != 1 || reduced.size() != 1) return 1;
  const int64_t columns = kept[0].size, rows = reduced[0].size;
  if (kept[0].stride != item || reduced[0].stride != columns * item) return 1;
  const int64_t fold = kFoldedColumns / columns;
  return fold > 1 && rows >= 8 * fold ? fold : 1;
}

// The plan; output elements have `out_item` bytes and are row-major.
Plan make_plan(const Tensor& x, DimMask mask, int64_t out_item) {
  Plan plan;
  const int64_t item = static_cast<int64_t>(x.itemsize());
  int64_t out_stride = out_item;
  for (int64_t d = x.dim() - 1; d >= 0; --d) {
    const int64_t size = x.sizes()[static_cast<size_t>(d)], stride = x.strides()[static_cast<size_t>(d)] * item;
    if (is_reduced(mask, d)) {
      if (size != 1) plan.geometry.reduced.push_back({size, stride, 0});
    } else {
      if (size != 1) plan.geometry.kept.push_back({size, stride, out_stride});
      out_stride *= size;
      plan.outputs *= size;
    }
  }
  Dims &kept = plan.geometry.kept, &reduced = plan.geometry.reduced;
  sort_by_distance(kept);
  sort_by_distance(reduced);
  coalesce(kept);
  coalesce(reduced);
  if (kept.empty() || reduced.empty()) {
    plan.by_rows = kept.empty();
    return plan;
  }
  const bool row_is_closer = std::abs(reduced[0].stride) <= std::abs(kept[0].stride);
  plan.fold = row_is_closer ? 1 : fold_of(kept, reduced, item);
  const bool short_row = reduced[0].size < kShortRow, few_columns = kept[0].size < kShortRow && plan.fold == 1;
  plan.by_rows = row_is_closer ? !short_row || few_columns : few_columns && !short_row;
  return plan;
}

// Runs the blocks of a loop whose pointers and geometry are set.
void run(Device device, const ReduceLoop& loop, bool by_rows, int64_t outputs) {
  if (by_rows) {
    const auto kernel = rows_kernels[device];
    parallel_for(0, outputs * loop.blocks, std::max<int64_t>(1, kGrainElements / loop.block),
                 [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
    return;
  }
  const auto kernel = columns_kernels[device];
  const int64_t columns = loop.kept_sizes[0], width = std::min(columns, strip_width(loop.compute));
  const int64_t tasks = outputs / columns * ceil_div(columns, width) * loop.blocks;
  parallel_for(0, tasks, std::max<int64_t>(1, kGrainElements / (width * loop.block)),
               [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
}

int64_t block_size(const Plan& plan, int64_t reduced, Compute compute) {
  if (plan.by_rows) return reduced <= 2 * kRowBlock ? reduced : kRowBlock;
  const int64_t width = std::min(plan.geometry.kept[0].size, strip_width(compute));
  const int64_t rows = std::max(kColumnBlockRows, kColumnBlock / width);
  return reduced <= 2 * rows ? reduced : rows;
}

int merge_op(int op) {
  return []<class... Ops>(OpList<Ops...>, int i) {
    constexpr int merges[] = {index_of<typename Ops::Merge, ReduceOps>...};
    return merges[i];
  }(ReduceOps{}, op);
}

Scalar identity_of(int op, Compute compute) {
  return []<class... Ops>(OpList<Ops...>, int i, Compute c) {
    const Scalar floating[] = {Scalar(Ops::template identity<double>())...};
    const Scalar integral[] = {Scalar(Ops::template identity<int64_t>())...};
    const Scalar natural[] = {Scalar(Ops::template identity<uint64_t>())...};
    if (c == Compute::U64) return natural[i];
    return c == Compute::I32 || c == Compute::I64 ? integral[i] : floating[i];
  }(ReduceOps{}, op, compute);
}

}  // namespace

Tensor reduce_over(int op, Compute compute, const Tensor& x, DimMask mask) {
  const ProfileRange range("reduce", RangeKind::Op);
  const DimVector sizes = kept_sizes(x, mask);
  const ScalarType dtype = native_dtype(compute);
  const int64_t item = static_cast<int64_t>(item_size(dtype));
  Tensor out = empty(sizes, TensorOptions(dtype, x.device()));
  if (out.numel() == 0) return out;
  if (x.numel() == 0) {
    fill_(out, identity_of(op, compute));
    return out;
  }

  Plan plan = make_plan(x, mask, item);
  const int64_t x_item = static_cast<int64_t>(x.itemsize());
  const int64_t fold = plan.fold;
  int64_t rest = 0;  // rows that do not fill a merged row
  const int64_t columns = plan.by_rows ? 0 : plan.geometry.kept[0].size;
  if (fold > 1) {
    Dim &kept = plan.geometry.kept[0], &reduced = plan.geometry.reduced[0];
    rest = reduced.size % fold;
    reduced.size /= fold;
    reduced.stride *= fold;
    kept.size *= fold;
    plan.outputs *= fold;
  }
  plan.geometry.finish();

  ReduceLoop loop{};
  loop.op = op;
  loop.compute = compute;
  loop.dtype = x.dtype();
  loop.in = static_cast<const char*>(x.data_ptr());
  plan.geometry.describe(loop);
  loop.block = block_size(plan, loop.reduced, compute);
  loop.blocks = ceil_div(loop.reduced, loop.block);
  if (loop.blocks == 1 && fold == 1) {
    loop.out = static_cast<char*>(out.data_ptr());
    run(x.device(), loop, plan.by_rows, plan.outputs);
    return out;
  }

  const int64_t parts = loop.blocks * fold + (rest > 0);
  Tensor partial = empty({parts, out.numel()}, TensorOptions(dtype, x.device()));
  loop.out = static_cast<char*>(partial.data_ptr());
  loop.out_block_stride = plan.outputs * item;
  run(x.device(), loop, plan.by_rows, plan.outputs);
  if (rest > 0) {
    Geometry remaining;
    remaining.kept.push_back({columns, x_item, item});
    remaining.reduced.push_back({rest, columns * x_item, 0});
    remaining.finish();
    remaining.describe(loop);
    loop.in += (plan.geometry.reduced[0].size * plan.geometry.reduced[0].stride);
    loop.out += (parts - 1) * columns * item;
    loop.block = rest;
    loop.blocks = 1;
    run(x.device(), loop, false, columns);
  }
  const Tensor merged = reduce_over(merge_op(op), compute, partial, 1);
  return Tensor(make_intrusive<TensorImpl>(merged.storage(), dtype, sizes));
}

void arg_reduce_over(int op, const Tensor& x, int64_t dim, Tensor* values, Tensor& indices) {
  const DimMask mask = DimMask{1} << dim;
  const DimVector sizes = kept_sizes(x, mask);
  const Compute compute = compute_of(x.dtype());
  indices = empty(sizes, TensorOptions(kInt64, x.device()));
  const bool none = indices.numel() == 0;
  if (values) *values = empty(sizes, TensorOptions(none ? x.dtype() : native_dtype(compute), x.device()));
  if (none) return;

  Plan plan = make_plan(x, mask, 1);
  plan.geometry.finish();
  ArgReduceLoop loop{};
  loop.op = op;
  loop.compute = compute;
  loop.dtype = x.dtype();
  loop.in = static_cast<const char*>(x.data_ptr());
  loop.values = values ? static_cast<char*>(values->data_ptr()) : nullptr;
  loop.indices = indices.data<int64_t>();
  loop.num_kept = static_cast<int>(plan.geometry.kept.size());
  loop.kept_sizes = plan.geometry.kept_sizes.data();
  loop.kept_strides = plan.geometry.kept_strides.data();
  loop.out_strides = plan.geometry.out_strides.data();
  loop.size = plan.geometry.reduced[0].size;
  loop.stride = plan.geometry.reduced[0].stride;
  if (plan.by_rows) {
    const auto kernel = arg_rows_kernels[x.device()];
    parallel_for(0, plan.outputs, std::max<int64_t>(1, kGrainElements / loop.size),
                 [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
  } else {
    const auto kernel = arg_columns_kernels[x.device()];
    const int64_t columns = loop.kept_sizes[0], width = std::min(columns, strip_width(compute));
    parallel_for(0, plan.outputs / columns * ceil_div(columns, width),
                 std::max<int64_t>(1, kGrainElements / (width * loop.size)),
                 [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
  }
  if (values && values->dtype() != x.dtype()) *values = to(*values, x.dtype());
}

}  // namespace tercel
