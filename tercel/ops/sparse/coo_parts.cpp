#include <algorithm>
#include <atomic>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace tercel::sparse_ops {

namespace {

constexpr int64_t kGrain = 16384;

/** The elements of a coalesced tensor at flat positions; zeros where it has no entry. Not recorded. */
Tensor looked_up(const Tensor& x, const Tensor& wanted) {
  const SparseData& parts = *x.impl().sparse();
  const Tensor keys = flat_indices("sparse_mask", parts.indices, sparse_sizes(x, parts));
  const auto *key = static_cast<const int64_t*>(keys.data_ptr()),
             *want = static_cast<const int64_t*>(wanted.data_ptr());
  const int64_t n = keys.numel(), m = wanted.numel();
  // Position n: a row of zeros behind the values.
  const Tensor positions = empty({m}, kInt64);
  auto* position = positions.data<int64_t>();
  parallel_for(0, m, kGrain / 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = std::lower_bound(key, key + n, want[i]) - key;
      position[i] = at < n && key[at] == want[i] ? at : n;
    }
  });
  DimVector one(parts.values.sizes());
  one[0] = 1;
  return index_select(cat({parts.values, zeros(one, parts.values.options())}, 0), 0, positions);
}

}  // namespace

std::string_view layout_word(Layout layout) {
  switch (layout) {
    case Layout::Strided: return "Strided";
    case Layout::SparseCoo: return "Sparse";
    case Layout::SparseCsr: return "SparseCsr";
    case Layout::SparseCsc: return "SparseCsc";
    case Layout::SparseBsr: return "SparseBsr";
    case Layout::SparseBsc: return "SparseBsc";
    case Layout::Opaque: return "Mkldnn";
  }
  return "";
}

const SparseData& parts_of(const char* op, const Tensor& x) {
  check_defined(op, x, "self");
  if (x.layout() != Layout::SparseCoo) refuse_layout(op, x.layout());
  return *x.impl().sparse();
}

IntSpan sparse_sizes(const Tensor& x, const SparseData& parts) {
  return x.sizes().subspan(0, static_cast<size_t>(parts.sparse_dim));
}
IntSpan dense_sizes(const Tensor& x, const SparseData& parts) {
  return x.sizes().subspan(static_cast<size_t>(parts.sparse_dim), static_cast<size_t>(parts.dense_dim));
}

Tensor coo_of_values(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced) {
  Tensor out = make_coo(indices, values, sizes, coalesced);
  if (should_record(values))
    record("SparseCooTensorWithDimsAndTensorsBackward0", out, {values},
           [indices = SavedTensor(indices)](BackwardCall& call) {
             const Tensor at = indices.get();
             call.set(0, elements_at(call.grad(), at, at.size(0)));
           });
  return out;
}

Tensor empty_coo(IntSpan sizes, ScalarType dtype, Device device, int64_t sparse_dim) {
  DimVector value_sizes{0};
  for (size_t d = static_cast<size_t>(sparse_dim); d < sizes.size(); ++d) value_sizes.push_back(sizes[d]);
  return make_coo(empty({sparse_dim, 0}, TensorOptions(kInt64, device)),
                  empty(value_sizes, TensorOptions(dtype, device)), sizes, true);
}

Tensor for_values(const Tensor& x) { return should_record(x) ? coalesce(x) : x; }
Tensor recorded_values(const Tensor& x) { return is_coalesced(x) ? values(x) : _values(x); }

Tensor flat_indices(const char* op, const Tensor& indices, IntSpan sizes) {
  const int64_t n = indices.size(1);
  const Tensor flat = empty({n}, kInt64);
  auto* out = flat.data<int64_t>();
  const auto* first = static_cast<const int64_t*>(indices.data_ptr());
  const int64_t step = indices.stride(1), next = indices.stride(0);
  parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
    std::fill(out + begin, out + end, int64_t{0});
    for (size_t d = 0; d < sizes.size(); ++d) {
      const int64_t* at = first + static_cast<int64_t>(d) * next;
      const int64_t size = sizes[d];
      // Read again each time: the memory of the indices is the caller's, who may have changed it.
      bool inside = true;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t index = at[i * step];
        inside &= static_cast<uint64_t>(index) < static_cast<uint64_t>(size);
        out[i] = static_cast<int64_t>(static_cast<uint64_t>(out[i]) * static_cast<uint64_t>(size) +
                                      static_cast<uint64_t>(index));
      }
      TERCEL_CHECK(inside, IndexError, op, ": the tensor has indices outside of size ", size, " of dimension ", d);
    }
  });
  return flat;
}

void check_indices(const char* op, const Tensor& indices, IntSpan sizes) {
  const auto* first = static_cast<const int64_t*>(indices.data_ptr());
  const int64_t step = indices.stride(1), next = indices.stride(0);
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t* at = first + static_cast<int64_t>(d) * next;
    const auto size = static_cast<uint64_t>(sizes[d]);
    parallel_for(0, indices.size(1), kGrain, [&](int64_t begin, int64_t end) {
      bool inside = true;
      for (int64_t i = begin; i < end; ++i) inside &= static_cast<uint64_t>(at[i * step]) < size;
      TERCEL_CHECK(inside, IndexError, op, ": the tensor has indices outside of size ", size, " of dimension ", d);
    });
  }
}

bool ascends(const Tensor& numbers) {
  const auto* at = static_cast<const int64_t*>(numbers.data_ptr());
  const int64_t step = numbers.stride(0);
  std::atomic<bool> ascend{true};
  parallel_for(1, std::max<int64_t>(numbers.numel(), 1), kGrain, [&](int64_t begin, int64_t end) {
    bool falls = false;
    for (int64_t i = begin; i < end; ++i) falls |= at[i * step] <= at[(i - 1) * step];
    if (falls) ascend.store(false, std::memory_order_relaxed);
  });
  return ascend.load();
}

bool same_entries(const SparseData& a, const SparseData& b) {
  if (a.indices.sizes() != b.indices.sizes()) return false;
  return a.indices.is_set_to(b.indices) || tercel::equal(a.indices, b.indices);
}

Tensor unflatten(const Tensor& flat, IntSpan sizes) {
  const int64_t n = flat.numel();
  const Tensor indices = empty({static_cast<int64_t>(sizes.size()), n}, kInt64);
  const auto* from = static_cast<const int64_t*>(flat.data_ptr());
  auto* to = indices.data<int64_t>();
  parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      auto rest = static_cast<uint64_t>(from[i]);
      for (size_t d = sizes.size(); d-- > 0;) {
        const auto size = static_cast<uint64_t>(sizes[d]);
        uint64_t quotient;
        // A division of 32-bit numbers is several times faster.
        if (d == 0)
          quotient = 0;
        else if ((rest | size) >> 32 == 0)
          quotient = static_cast<uint32_t>(rest) / static_cast<uint32_t>(size);
        else
          quotient = rest / size;
        to[static_cast<int64_t>(d) * n + i] = static_cast<int64_t>(rest - quotient * size);
        rest = quotient;
      }
    }
  });
  return indices;
}

Tensor elements_at(const Tensor& x, const Tensor& indices, int64_t sparse_dim) {
  const auto n = static_cast<size_t>(sparse_dim);
  const IntSpan sizes = x.sizes().subspan(0, n);
  const Tensor flat = flat_indices("sparse_mask", indices, sizes);
  DimVector rows{numel_of(sizes)};
  for (size_t d = n; d < x.sizes().size(); ++d) rows.push_back(x.sizes()[d]);
  if (x.layout() == Layout::Strided) {
    if (rows[0] == 0) {
      rows[0] = flat.numel();
      return zeros(rows, TensorOptions(x.dtype(), x.device()));
    }
    return index_select(reshape(x, rows), 0, flat);
  }
  const SparseData& given = parts_of("sparse_mask", x);
  TERCEL_CHECK(given.sparse_dim == sparse_dim, RuntimeError, "sparse_mask(): the tensor has ", given.sparse_dim,
               " sparse dimensions and the mask ", sparse_dim);
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = looked_up(coalesce(x), flat);
  }
  if (should_record(x))
    record("SparseMaskBackward0", out, {x},
           [indices = SavedTensor(indices), sizes = DimVector(x.sizes())](BackwardCall& call) {
             call.set(0, coo_of_values(indices.get(), call.grad(), sizes, false));
           });
  return out;
}

void replace_parts(const Tensor& x, const Tensor& with) {
  const uint32_t before = x.version();
  TensorImpl& impl = x.impl();
  const bool wrapped = impl.is_wrapped_number();
  impl.shallow_copy_from(with.impl());
  impl.set_wrapped_number(wrapped);
  if (x.version() == before) impl.bump_version();
}

void replace_by_result(const Tensor& x, const Tensor& result) {
  const bool records = should_record(x, result) && x.is_differentiable();
  check_inplace(x, records);
  overwrite(x, result, records);
  // The old value has no gradient of its own: if the result depends on it, it does so through a copy.
  if (records)
    record_inplace("CopyBackwards", x, {x, result}, [](BackwardCall& call) {
      if (call.needs(1)) call.set(1, call.take());
    });
}

void check_unrecorded(const char* op, const Tensor& x, bool records) {
  check_inplace(x, records);
  TERCEL_CHECK(!records, NotImplementedError, op,
               ": in-place changes of the sizes of a sparse tensor are not recorded; "
               "detach() it first");
}

}  // namespace tercel::sparse_ops
