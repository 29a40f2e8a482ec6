#include <algorithm>

#include "tercel/io/coo_impl.h"
#include "tercel/util/error.h"

namespace tercel::io {

namespace {

/** The first fault of the indices [sparse dims, nnz]; of a coalesced tensor they ascend. */
std::string fault_of_indices(const Tensor& indices, IntSpan sizes, bool coalesced) {
  const auto* first = static_cast<const int64_t*>(indices.data_ptr());
  const int64_t step = indices.stride(1), next = indices.stride(0);
  const int64_t dims = indices.size(0);
  for (int64_t i = 0; i < indices.size(1); ++i) {
    int order = 0;  // of the entry and the one before
    for (int64_t d = 0; d < dims; ++d) {
      const int64_t index = first[d * next + i * step];
      if (index < 0 || index >= sizes[static_cast<size_t>(d)])
        return str_cat({"index ", index, " of dimension ", d, " in sizes ", sizes});
      if (i > 0 && order == 0) {
        const int64_t before = first[d * next + (i - 1) * step];
        order = before < index ? -1 : before > index ? 1 : 0;
      }
    }
    if (coalesced && i > 0 && order >= 0) return str_cat({"entry ", i, " out of order in a coalesced tensor"});
  }
  return {};
}

}  // namespace

std::string fault_of_coo(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced) {
  if (indices.dtype() != kInt64 || indices.dim() != 2) return "indices " + describe(indices);
  if (values.dim() < 1 || values.size(0) != indices.size(1))
    return str_cat({"values ", describe(values), " for ", indices.size(1), " entries"});
  const auto sparse_dim = static_cast<size_t>(indices.size(0));
  const IntSpan of_value = values.sizes().subspan(1, values.sizes().size() - 1);
  bool fits =
      sizes.size() == sparse_dim + of_value.size() && sizes.subspan(sparse_dim, sizes.size() - sparse_dim) == of_value;
  int64_t numel = 1;
  for (const int64_t size : sizes)
    fits = fits && size >= 0 && !__builtin_mul_overflow(numel, std::max<int64_t>(size, 1), &numel);
  if (!fits)
    return str_cat({"sizes ", sizes, " for ", indices.size(0), " sparse dimensions and values ", values.sizes()});
  return fault_of_indices(indices, sizes, coalesced);
}

}  // namespace tercel::io
