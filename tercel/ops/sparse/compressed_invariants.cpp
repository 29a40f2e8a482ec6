// Whether indices of compressed layouts are sorted, distinct and inside the sizes.
#include <atomic>

#include "tercel/ops/sparse/compressed_invariants_impl.h"
#include "tercel/ops/sparse/csr_impl.h"
#include "tercel/util/parallel.h"

namespace tercel::sparse_ops {

namespace {

constexpr int64_t kGrain = 4096;

/** What is wrong with the indices of one matrix; in the order in which faults are reported. */
enum Fault : int { kFirst = 1, kLast = 2, kCount = 4, kRange = 8, kOrder = 16 };

template <class I>
int faults_of(const I* offsets, const I* plain, int64_t compressed_size, int64_t plain_size, int64_t nnz) {
  if (offsets[0] != 0) return kFirst;
  if (static_cast<int64_t>(offsets[compressed_size]) != nnz) return kLast;
  std::atomic<int> faults{0};
  parallel_for(0, compressed_size, kGrain, [&](int64_t begin, int64_t end) {
    int found = 0;
    for (int64_t r = begin; r < end; ++r) {
      const auto first = static_cast<int64_t>(offsets[r]), last = static_cast<int64_t>(offsets[r + 1]);
      if (last < first || last - first > plain_size || first < 0 || last > nnz) {
        found |= kCount;
        continue;
      }
      bool outside = false, unordered = false;
      for (int64_t e = first; e < last; ++e) {
        outside |= static_cast<uint64_t>(plain[e]) >= static_cast<uint64_t>(plain_size);
        unordered |= e > first && plain[e] <= plain[e - 1];
      }
      found |= (outside ? kRange : 0) | (unordered ? kOrder : 0);
    }
    if (found != 0) faults.fetch_or(found, std::memory_order_relaxed);
  });
  return faults.load();
}

}  // namespace

void check_compressed_indices(const Tensor& offsets, const Tensor& plain, int64_t compressed_size, int64_t plain_size,
                              bool by_rows) {
  const int64_t nnz = plain.size(-1);
  const int64_t batches = numel_of(plain.sizes().subspan(0, plain.sizes().size() - 1));
  const Tensor all_offsets = offsets.contiguous(), all_plain = plain.contiguous();
  int faults = 0;
  with_index(offsets.dtype(), [&]<class I> {
    for (int64_t b = 0; b < batches && faults == 0; ++b)
      faults = faults_of(static_cast<const I*>(all_offsets.data_ptr()) + b * (compressed_size + 1),
                         static_cast<const I*>(all_plain.data_ptr()) + b * nnz, compressed_size, plain_size, nnz);
  });
  if (faults == 0) return;
  const char *compressed_name = by_rows ? "crow_indices" : "ccol_indices",
             *plain_name = by_rows ? "col_indices" : "row_indices", *rows = by_rows ? "nrows" : "ncols",
             *columns = by_rows ? "ncols" : "nrows";
  TERCEL_CHECK((faults & kFirst) == 0, RuntimeError, "`", compressed_name, "[..., 0] == 0` is not satisfied.");
  TERCEL_CHECK((faults & kLast) == 0, RuntimeError, "`", compressed_name, "[..., -1] == nnz` is not satisfied.");
  TERCEL_CHECK((faults & kCount) == 0, RuntimeError, "`0 <= ", compressed_name, "[..., 1:] - ", compressed_name,
               "[..., :-1] <= ", columns, "` is not satisfied.");
  TERCEL_CHECK((faults & kRange) == 0, RuntimeError, "`0 <= ", plain_name, " < ", columns, "` is not satisfied.");
  throw_error<RuntimeError>({"`", plain_name, "[..., ", compressed_name, "[..., i - 1]:", compressed_name,
                             "[..., i]] for all i = 1, ..., ", rows,
                             " are sorted and distinct along the last dimension values` is not satisfied."});
}

}  // namespace tercel::sparse_ops
