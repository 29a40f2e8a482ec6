#include "tercel/ops/index/subscript.h"

#include <algorithm>
#include <string_view>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/overlap_checks_impl.h"
#include "tercel/ops/common/sum_to_size.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/nonzero.h"
#include "tercel/ops/index/nonzero_impl.h"
#include "tercel/ops/index/subscript_kernels.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<IndexFn> get_kernels = TERCEL_CPU_KERNELS(index_get);
constinit const KernelTable<IndexFn> put_kernels = TERCEL_CPU_KERNELS(index_put);
constinit const KernelTable<IndexFn> add_kernels = TERCEL_CPU_KERNELS(index_add);

constexpr int64_t kGrainBytes = 128 * 1024;

// ---- from items to a view and index tensors

struct Basic {
  Tensor view;
  /** Index tensors of the first dimensions of the view; undefined for dimensions without one. */
  std::vector<Tensor> tensors;
  bool advanced = false;
};

bool is_mask(const Tensor& t) { return t.dtype() == kBool || t.dtype() == kUInt8; }

int64_t dims_indexed_by(Span<TensorIndex> items) {
  int64_t dims = 0;
  for (const TensorIndex& item : items) {
    if (item.kind() == TensorIndex::Kind::Integer || item.kind() == TensorIndex::Kind::Slice) ++dims;
    if (item.kind() == TensorIndex::Kind::Tensor) {
      check_strided("index", item.tensor(), "indices");
      dims += is_mask(item.tensor()) ? item.tensor().dim() : 1;
    }
  }
  return dims;
}

Tensor select_item(const Tensor& x, int64_t dim, int64_t index, int64_t original_dim) {
  TERCEL_CHECK(x.dim() > dim, IndexError,
               "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert "
               "a 0-dim tensor to a number");
  const int64_t size = x.sizes()[static_cast<size_t>(dim)];
  TERCEL_CHECK(index >= -size && index < size, IndexError, "index ", index, " is out of bounds for dimension ",
               original_dim, " with size ", size);
  return select(x, dim, index);
}

/** NotImplementedError unless the slice of a sparse tensor is the whole dimension. */
void check_full_slice(const Tensor& x, int64_t dim, const indexing::Slice& s) {
  if (s.start != 0 || s.stop < x.size(dim) || s.step != 1) refuse_layout("slice", x.layout());
}

Basic apply_basic(const Tensor& x, Span<TensorIndex> items) {
  if (!has_sparse(x)) check_strided("index", x);
  const int64_t indexed = dims_indexed_by(items);
  const bool one_integer = items.size() == 1 && items[0].kind() == TensorIndex::Kind::Integer;
  TERCEL_CHECK(indexed <= x.dim() || one_integer, IndexError, "too many indices for tensor of dimension ", x.dim());
  Basic out{x, {}, false};
  int64_t dim = 0, original = 0;
  // A mask is a single tensor that indexes several dimensions.
  int64_t behind_masks = 0;
  const auto add_tensor = [&](const Tensor& t, int64_t covered) {
    out.tensors.resize(static_cast<size_t>(dim - behind_masks));
    out.tensors.push_back(t);
    out.advanced = true;
    dim += covered;
    behind_masks += covered - 1;
  };
  const auto add_bool = [&](bool value) {
    out.view = unsqueeze(out.view, dim);
    add_tensor(zeros({value ? 1 : 0}, kInt64), 1);
  };
  for (const TensorIndex& item : items) {
    switch (item.kind()) {
      case TensorIndex::Kind::None: out.view = unsqueeze(out.view, dim++); break;
      case TensorIndex::Kind::Ellipsis:
        dim += x.dim() - indexed;
        original += x.dim() - indexed;
        break;
      case TensorIndex::Kind::Integer: out.view = select_item(out.view, dim, item.integer(), original++); break;
      case TensorIndex::Kind::Slice: {
        const indexing::Slice& s = item.slice();
        if (has_sparse(x)) [[unlikely]] {
          check_full_slice(out.view, dim++, s);
          ++original;
          break;
        }
        out.view = slice(out.view, dim++, s.start, s.stop, s.step);
        ++original;
        break;
      }
      case TensorIndex::Kind::Boolean: add_bool(item.boolean()); break;
      case TensorIndex::Kind::Tensor: {
        const Tensor& t = item.tensor();
        if (t.dim() == 0 && is_mask(t)) {
          add_bool(t.item().to_bool());
        } else if (t.dim() == 0 && is_integral(t.dtype(), false)) {
          out.view = select_item(out.view, dim, t.item().to_int64(), original++);
        } else {
          const int64_t covered = is_mask(t) ? t.dim() : 1;
          add_tensor(t, covered);
          original += covered;
        }
        break;
      }
    }
  }
  return out;
}

}  // namespace

TensorIndex::TensorIndex(const char* text) : kind_(Kind::Ellipsis) {
  TERCEL_CHECK(std::string_view(text) == "...", ValueError,
               "Expected \"...\" to represent an ellipsis index, but got \"", text, "\"");
}

namespace {

// ---- from index tensors to a loop

/** IndexError unless the mask has the sizes of x from dimension `first` on. */
void check_mask(const Tensor& x, const Tensor& mask, int64_t first) {
  for (int64_t d = 0; d < mask.dim(); ++d) {
    const int64_t at = first + d;
    TERCEL_CHECK(at < x.dim() && mask.sizes()[static_cast<size_t>(d)] == x.sizes()[static_cast<size_t>(at)], IndexError,
                 "The shape of the mask ", mask.sizes(), " at index ", d,
                 " does not match the shape of the indexed tensor ", x.sizes(), " at index ", at);
  }
}

/** Replaces masks by the indices of their true elements, one vector for each dimension. */
std::vector<Tensor> expand_masks(const Tensor& x, Span<Tensor> indices) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < indices.size(); ++i) {
    const Tensor& t = indices[i];
    if (!t.defined()) {
      out.emplace_back();
      continue;
    }
    if (!is_mask(t)) {
      TERCEL_CHECK(t.dtype() == kInt64 || t.dtype() == kInt32, IndexError,
                   "tensors used as indices must be long, int, byte or bool tensors");
      out.push_back(t);
      continue;
    }
    check_mask(x, t, static_cast<int64_t>(out.size()));
    for (Tensor& column : nonzero_tuple(t)) out.push_back(std::move(column));
  }
  TERCEL_CHECK(static_cast<int64_t>(out.size()) <= x.dim(), IndexError, "too many indices for tensor of dimension ",
               x.dim(), " (got ", out.size(), ")");
  return out;
}

/** Checks integers, wraps negative ones, and writes them times `stride`. */
void write_offsets(const Tensor& indices, int64_t dim, int64_t size, int64_t stride, int64_t* offsets) {
  visit_index_types("index", indices.dtype(), [&]<class I> {
    const I* values = indices.data<I>();
    parallel_for(0, indices.numel(), 32768, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t value = values[i];
        TERCEL_CHECK(value >= -size && value < size, IndexError, "index ", value, " is out of bounds for dimension ",
                     dim, " with size ", size);
        offsets[i] = (value < 0 ? value + size : value) * stride;
      }
    });
  });
}

/** The dimensions of x in groups: before the indexed ones, these (as one offset per position), after. */
struct Plan {
  Tensor x;         ///< with the dimensions in the order of the groups
  DimVector shape;  ///< common shape of the indices
  int64_t positions = 1;
  const int64_t* offsets = nullptr;  ///< in bytes, in row-major order
  size_t before = 0, indexed = 0;

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /** Sizes of x[indices]. */
  DimVector sizes() const {
    DimVector out;
    const IntSpan all = x.sizes();
    for (size_t d = 0; d < before; ++d) out.push_back(all[d]);
    for (const int64_t s : shape) out.push_back(s);
    for (size_t d = before + indexed; d < all.size(); ++d) out.push_back(all[d]);
    return out;
  }
  void set_offsets(Span<Tensor> indices, const Tensor& indexed_tensor);

 private:
  static constexpr int64_t kFew = 64;
  int64_t few_[kFew];
  Tensor many_;
};

void Plan::set_offsets(Span<Tensor> indices, const Tensor& original) {
  const auto item = static_cast<int64_t>(original.itemsize());
  const auto stride_of = [&](size_t d) { return original.strides()[d] * item; };
  positions = numel_of(shape);
  if (positions == 0) return;
  Tensor sum;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) continue;
    const int64_t size = original.sizes()[d];
    TERCEL_CHECK(size > 0, IndexError, "index is out of bounds for dimension with size 0");
    const Tensor own = contiguous(indices[d]);
    const bool alone = indexed == 1;
    if (alone && positions <= kFew) {
      write_offsets(own, static_cast<int64_t>(d), size, stride_of(d), few_);
      offsets = few_;
      return;
    }
    Tensor part = empty(own.sizes(), kInt64);
    write_offsets(own, static_cast<int64_t>(d), size, stride_of(d), static_cast<int64_t*>(part.data_ptr()));
    sum = sum.defined() ? add(sum, part) : part;
  }
  if (!sum.defined()) sum = zeros({}, kInt64);
  many_ = contiguous(expand(sum, shape));
  offsets = static_cast<const int64_t*>(many_.data_ptr());
}

DimVector common_shape(Span<Tensor> indices) {
  DimVector shape;
  bool fits = true;
  for (const Tensor& t : indices) {
    if (!t.defined()) continue;
    const IntSpan sizes = t.sizes();
    while (shape.size() < sizes.size()) shape.insert(shape.begin(), 1);
    for (size_t d = 0; d < sizes.size(); ++d) {
      int64_t& s = shape[shape.size() - sizes.size() + d];
      fits &= s == sizes[d] || s == 1 || sizes[d] == 1;
      if (s == 1) s = sizes[d];
    }
  }
  if (!fits) {
    std::string list;
    for (const Tensor& t : indices)
      if (t.defined()) list += (list.empty() ? "" : ", ") + str_cat({t.sizes()});
    throw_error<IndexError>({"shape mismatch: indexing tensors could not be broadcast together with shapes ", list});
  }
  return shape;
}

void plan_index(Plan& plan, const Tensor& x, Span<Tensor> items) {
  const NoRecordGuard no_record;
  TERCEL_CHECK(x.dim() <= kMaxIndexDims, RuntimeError, "index: expected at most ", kMaxIndexDims,
               " dimensions but got ", x.dim());
  std::vector<Tensor> indices = expand_masks(x, items);
  indices.resize(static_cast<size_t>(x.dim()));
  plan.shape = common_shape(indices);
  size_t first = 0, last = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) continue;
    if (plan.indexed++ == 0) first = d;
    last = d;
  }
  plan.before = first;
  plan.x = x;
  if (plan.indexed > 0 && last - first + 1 != plan.indexed) {
    // Indexed dimensions that are not adjacent come first in the result.
    plan.before = 0;
    DimVector order, others;
    for (size_t d = 0; d < indices.size(); ++d)
      (indices[d].defined() ? order : others).push_back(static_cast<int64_t>(d));
    for (const int64_t d : others) order.push_back(d);
    plan.x = permute(x, order);
  }
  plan.set_offsets(indices, x);
}

/** Dimensions of a loop; merges adjacent ones that have a common stride in both tensors. */
struct LoopDims {
  IndexLoop& loop;
  int count = 0;
  int group = 0;  // first dimension of the current group

  void push(int64_t size, int64_t indexed_stride, int64_t other_stride) {
    if (size == 1) return;
    if (count > group) {
      const int d = count - 1;
      if (loop.indexed_strides[d] == size * indexed_stride && loop.other_strides[d] == size * other_stride) {
        loop.sizes[d] *= size;
        loop.indexed_strides[d] = indexed_stride;
        loop.other_strides[d] = other_stride;
        return;
      }
    }
    loop.sizes[count] = size;
    loop.indexed_strides[count] = indexed_stride;
    loop.other_strides[count] = other_stride;
    ++count;
  }
};

enum class Order : uint8_t { Any, Positions };

/** Runs a kernel over plan.x and `other` of plan.sizes(), whose indexed dimensions have a common stride. */
void run(const KernelTable<IndexFn>& kernels, const Plan& plan, const Tensor& other, Order order) {
  const ProfileRange range("index", RangeKind::Op);
  if (other.numel() == 0) return;
  IndexLoop loop;
  loop.dtype = plan.x.dtype();
  loop.indexed = static_cast<char*>(plan.x.data_ptr());
  loop.other = static_cast<char*>(other.data_ptr());
  loop.offset = plan.offsets;
  loop.n = plan.positions;
  const auto item = static_cast<int64_t>(plan.x.itemsize());
  const IntSpan sizes = plan.x.sizes(), strides = plan.x.strides(), other_strides = other.strides();
  const size_t shape_dims = plan.shape.size();
  LoopDims dims{loop};
  for (size_t d = 0; d < plan.before; ++d) dims.push(sizes[d], strides[d] * item, other_strides[d] * item);
  loop.before = dims.group = dims.count;
  for (size_t d = plan.before + plan.indexed; d < sizes.size(); ++d)
    dims.push(sizes[d], strides[d] * item, other_strides[d - plan.indexed + shape_dims] * item);
  loop.after = dims.count - loop.before;
  loop.other_stride = 0;
  for (size_t d = shape_dims; d-- > 0 && loop.other_stride == 0;)
    if (plan.shape[d] != 1) loop.other_stride = other_strides[plan.before + d] * item;
  int64_t blocks = 1, block_bytes = item;
  for (int d = 0; d < loop.before; ++d) blocks *= loop.sizes[d];
  for (int d = loop.before; d < dims.count; ++d) block_bytes *= loop.sizes[d];
  IndexFn* kernel = kernels[plan.x.device()];
  if (order == Order::Any) {
    parallel_for(0, blocks * loop.n, std::max<int64_t>(1, kGrainBytes / block_bytes),
                 [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
  } else {
    // All writes to an element are done by one thread, in order.
    parallel_for(0, blocks, std::max<int64_t>(1, kGrainBytes / block_bytes / loop.n),
                 [&](int64_t begin, int64_t end) { kernel(loop, begin * loop.n, end * loop.n); });
  }
}

/** Whether the dimensions [first, first + count) of t have a common stride in row-major order. */
bool is_one_step(const Tensor& t, size_t first, size_t count) {
  int64_t expected = 0;
  bool seen = false;
  for (size_t d = first + count; d-- > first;) {
    if (t.sizes()[d] == 1) continue;
    if (seen && t.strides()[d] != expected) return false;
    seen = true;
    expected = t.strides()[d] * t.sizes()[d];
  }
  return true;
}

const Tensor& put_at(const Tensor& x, Span<Tensor> indices, const Tensor& values, bool accumulate);

/** Whether the only index is a mask over all dimensions. */
bool is_whole_mask(const Tensor& x, Span<Tensor> indices) {
  return indices.size() == 1 && x.dim() > 0 && indices[0].defined() && is_mask(indices[0]) &&
         indices[0].sizes() == x.sizes();
}

Tensor gather_at(const Tensor& x, Span<Tensor> indices) {
  if (is_whole_mask(x, indices)) return elements_where(x, indices[0]);
  Plan plan;
  plan_index(plan, x, indices);
  Tensor out = empty(plan.sizes(), x.options());
  run(get_kernels, plan, out, Order::Any);
  return out;
}

Tensor get_at(const Tensor& x, Span<Tensor> indices) {
  const Tensor out = gather_at(x, indices);
  if (should_record(x))
    record("IndexBackward0", out, {x},
           [indices = SavedTensors(indices), sizes = DimVector(x.sizes())](BackwardCall& call) {
             const std::vector<Tensor> at = indices.get();
             call.set(0, put_at(zeros(sizes, call.grad().options()), at, call.grad(), true));
           });
  return out;
}

/** The values to write, expanded to plan.sizes(). */
Tensor expanded_values(const Tensor& values, const Plan& plan) {
  const NoRecordGuard no_record;
  const DimVector sizes = plan.sizes();
  const size_t lead = sizes.size() - std::min(sizes.size(), values.sizes().size());
  bool fits = values.sizes().size() <= sizes.size();
  for (size_t d = lead; fits && d < sizes.size(); ++d)
    fits = values.sizes()[d - lead] == sizes[d] || values.sizes()[d - lead] == 1;
  TERCEL_CHECK(fits, RuntimeError, "shape mismatch: value tensor of shape ", values.sizes(),
               " cannot be broadcast to indexing result of shape ", IntSpan(sizes));
  const Tensor source = expand(values, sizes);
  return is_one_step(source, plan.before, plan.shape.size()) ? source : contiguous(source);
}

const Tensor& put_at(const Tensor& x, Span<Tensor> indices, const Tensor& values, bool accumulate) {
  const bool records = should_record(x, values);
  check_inplace(x, records);
  check_no_internal_overlap("index_put_", x);
  check_apart("index_put_", x, values);
  for (const Tensor& t : indices)
    if (t.defined()) check_apart("index_put_", x, t);
  Plan plan;
  plan_index(plan, x, indices);
  const Tensor source = expanded_values(values, plan);
  TERCEL_CHECK(x.dtype() == values.dtype(), RuntimeError,
               "Index put requires the source and destination dtypes match, got ", to_string(x.dtype()),
               " for the destination and ", to_string(values.dtype()), " for the source.");
  run(accumulate ? add_kernels : put_kernels, plan, source, Order::Positions);
  x.impl().bump_version();
  if (records)
    record_inplace(
        "IndexPutBackward0", x, {x, values},
        [indices = SavedTensors(indices), value_sizes = DimVector(values.sizes()), accumulate](BackwardCall& call) {
          const std::vector<Tensor> at = indices.get();
          const Tensor& g = call.grad();
          if (call.needs(1)) call.set(1, sum_to_size(get_at(g, at), value_sizes));
          if (call.needs(0)) call.set(0, accumulate ? g : put_at(clone(g), at, zeros({}, g.options()), false));
        });
  return x;
}

/** The dimension of the only index, if that is a mask; else -1. */
int64_t place_of_only_mask(Span<Tensor> indices) {
  int64_t place = -1;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i].defined()) continue;
    if (place >= 0 || !is_mask(indices[i])) return -1;
    place = static_cast<int64_t>(i);
  }
  return place;
}

/** Sets x to the value where the mask over its dimensions from `first` on is true. */
void fill_at(const Tensor& x, const Tensor& mask, int64_t first, Scalar value) {
  check_mask(x, mask, first);
  DimVector sizes(mask.sizes());
  sizes.resize(static_cast<size_t>(x.dim() - first), 1);
  masked_fill_(x, to(reshape(mask, sizes), kBool), value);
}

/** x[indices] = values. With a mask, a single number may have any dtype. */
void assign_at(const Tensor& x, Span<Tensor> indices, const Tensor& values) {
  const int64_t place = values.numel() == 1 && !is_tracked(values) ? place_of_only_mask(indices) : -1;
  if (place >= 0)
    fill_at(x, indices[static_cast<size_t>(place)], place, values.item());
  else
    put_at(x, indices, values, false);
}

/** The value without leading dimensions of size 1. */
Tensor without_lead(const Tensor& value) {
  IntSpan sizes = value.sizes();
  while (!sizes.empty() && sizes[0] == 1) sizes = sizes.subspan(1, sizes.size() - 1);
  return sizes.size() == value.sizes().size() ? value : reshape(value, sizes);
}

}  // namespace

namespace {

void check_assignable(const Tensor& x) { TERCEL_CHECK(!has_sparse(x), TypeError, "Cannot assign to a sparse tensor"); }

}  // namespace

Tensor index(const Tensor& x, Span<TensorIndex> items) {
  const Basic basic = apply_basic(x, items);
  if (has_sparse(x)) [[unlikely]] {
    if (basic.advanced) refuse_layout("index", x.layout());
    return basic.view.is_same(x) ? sparse_clone(x) : basic.view;
  }
  if (basic.advanced) return get_at(basic.view, basic.tensors);
  // An index expression without effect still returns a new view.
  return basic.view.is_same(x) ? as_strided(x, x.sizes(), x.strides(), x.storage_offset()) : basic.view;
}

const Tensor& set_item(const Tensor& x, Span<TensorIndex> items, const Tensor& value) {
  check_assignable(x);
  check_strided("index_put_", value, "values");
  const Basic basic = apply_basic(x, items);
  if (!basic.advanced) {
    const Tensor source = without_lead(value);
    const bool broadcasts = source.dim() > 0 && source.sizes() != basic.view.sizes();
    copy_(basic.view, broadcasts ? expand(source, basic.view.sizes()) : source);
    return x;
  }
  assign_at(basic.view, basic.tensors, without_lead(value));
  return x;
}

const Tensor& set_item(const Tensor& x, Span<TensorIndex> items, Scalar value) {
  check_assignable(x);
  check_strided("index_put_", x);
  return set_item(x, items, scalar_tensor(value, TensorOptions(x.dtype(), x.device())));
}

const Tensor& index_put_(const Tensor& x, Span<TensorIndex> items, const Tensor& values, bool accumulate) {
  check_strided("index_put_", x);
  check_strided("index_put_", values, "values");
  const Basic basic = apply_basic(x, items);
  if (accumulate)
    put_at(basic.view, basic.tensors, values, true);
  else
    assign_at(basic.view, basic.tensors, values);
  return x;
}

Tensor index_put(const Tensor& x, Span<TensorIndex> items, const Tensor& values, bool accumulate) {
  check_strided("index_put", x);
  return index_put_(clone(x), items, values, accumulate);
}

}  // namespace tercel
