#include <algorithm>
#include <limits>
#include <type_traits>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/index/gather_scatter_plan_impl.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constexpr int64_t kGrainElements = 32768;

DimVector at_least_1d(IntSpan sizes) { return sizes.empty() ? DimVector{1} : DimVector(sizes); }
DimVector at_least_1d_strides(const Tensor& t) { return t.dim() == 0 ? DimVector{1} : DimVector(t.strides()); }

struct GatherScatterPlan {
  GatherLoop loop{};
  int64_t lines = 1;
};

GatherScatterPlan make_plan(const Tensor& indexed, int64_t dim, const Tensor& index, const Tensor& other) {
  GatherScatterPlan plan;
  GatherLoop& loop = plan.loop;
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
    plan.lines *= sizes[d];
  }
  return plan;
}

}  // namespace

void check_index(const char* op, const Tensor& index) {
  check_strided(op, index, "index");
  if (index.numel() != 0) check_index_dtype(op, index);
}

void check_index_sizes(const char* op, const Tensor& index, const Tensor& of, const char* name, int64_t dim,
                       bool also_dim) {
  TERCEL_CHECK(of.dim() <= kMaxGatherDims, RuntimeError, op, "(): expected at most ", kMaxGatherDims,
               " dimensions but got ", of.dim());
  const DimVector sizes = at_least_1d(index.sizes()), limit = at_least_1d(of.sizes());
  TERCEL_CHECK(sizes.size() == limit.size(), RuntimeError, op,
               "(): Index tensor must have the same number of dimensions as ", name, " tensor");
  for (size_t d = 0; d < sizes.size(); ++d)
    TERCEL_CHECK((!also_dim && static_cast<int64_t>(d) == dim) || sizes[d] <= limit[d], RuntimeError, op,
                 "(): Size does not match at dimension ", d, " expected index ", index.sizes(), " to be smaller than ",
                 name, " ", of.sizes(), also_dim ? "" : " apart from dimension ", also_dim ? "" : std::to_string(dim));
}

void check_bounds(const Tensor& index, int64_t dim, int64_t size) {
  const NoRecordGuard no_record;
  const Tensor flat = contiguous(index);
  visit_index_types("index", flat.dtype(), [&]<class I> {
    const I* values = flat.data<I>();
    parallel_for(0, flat.numel(), kGrainElements, [&](int64_t begin, int64_t end) {
      // A sign bit in a sum of bits, which the compiler turns into vectors even for int64 with SSE2: size - 1 - value
      // is negative for values too large, and may overflow only for those that are negative.
      using U = std::make_unsigned_t<I>;
      const U last = static_cast<U>(size > std::numeric_limits<I>::max() ? std::numeric_limits<I>::max() : size - 1);
      U bits = 0;
      for (int64_t i = begin; i < end; ++i) bits |= static_cast<U>(values[i]) | (last - static_cast<U>(values[i]));
      if (static_cast<I>(bits) >= 0) return;
      int64_t i = begin;
      while (values[i] >= 0 && values[i] < size) ++i;
      throw_error<RuntimeError>({"index ", values[i], " is out of bounds for dimension ", dim, " with size ", size});
    });
  });
}

void run_gather_scatter(const Tensor& indexed, int64_t dim, const Tensor& index, const Tensor& other,
                        FunctionRef<void(const GatherLoop&, int64_t, int64_t)> body) {
  if (index.numel() == 0) return;
  const GatherScatterPlan plan = make_plan(indexed, dim, index, other);
  parallel_for(0, plan.lines, std::max<int64_t>(1, kGrainElements / plan.loop.n),
               [&](int64_t begin, int64_t end) { body(plan.loop, begin, end); });
}

}  // namespace tercel
