#include <algorithm>

#include "tercel/io/sparse_impl.h"
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

/** The last dimension of matrix `b` of a batch, which is contiguous. */
template <class I>
const I* line_of(const Tensor& x, int64_t b) {
  const I* first = static_cast<const I*>(x.data_ptr());
  for (size_t d = x.sizes().size() - 1; d-- > 0;) {
    first += b % x.sizes()[d] * x.strides()[d];
    b /= x.sizes()[d];
  }
  return first;
}

bool has_lines(const Tensor& x) {
  const size_t last = x.sizes().size() - 1;
  return x.sizes()[last] < 2 || x.strides()[last] == 1;
}

/** The first fault of the offsets [*batch, lines + 1] and the indices [*batch, nnz]. */
template <class I>
std::string fault_of_lines(const Tensor& offsets, const Tensor& plain, int64_t plain_size) {
  const int64_t count = offsets.sizes()[offsets.sizes().size() - 1], nnz = plain.sizes()[plain.sizes().size() - 1];
  const int64_t batches = offsets.numel() / count;
  for (int64_t b = 0; b < batches; ++b) {
    const I *offset = line_of<I>(offsets, b), *index = nnz > 0 ? line_of<I>(plain, b) : nullptr;
    int64_t before = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<int64_t>(offset[i]);
      if (i == 0 ? at != 0 : at < before || at - before > plain_size || at > nnz)
        return str_cat(
            {"offset ", at, " at ", i, " after ", before, " for lines of ", plain_size, " and ", nnz, " entries"});
      before = at;
    }
    if (before != nnz) return str_cat({"offsets up to ", before, " for ", nnz, " entries"});
    for (int64_t e = 0; e < nnz; ++e) {
      const auto at = static_cast<int64_t>(index[e]);
      if (at < 0 || at >= plain_size) return str_cat({"index ", at, " in a dimension of ", plain_size});
    }
  }
  return {};
}

/** Whether the product of the sizes, with ones in place of zeros, is an int64. */
bool has_number(IntSpan sizes) {
  int64_t numel = 1;
  bool fits = true;
  for (const int64_t size : sizes)
    fits = fits && size >= 0 && !__builtin_mul_overflow(numel, std::max<int64_t>(size, 1), &numel);
  return fits;
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
  fits = fits && has_number(sizes);
  if (!fits)
    return str_cat({"sizes ", sizes, " for ", indices.size(0), " sparse dimensions and values ", values.sizes()});
  return fault_of_indices(indices, sizes, coalesced);
}

std::string fault_of_compressed(Layout layout, const Tensor& offsets, const Tensor& plain, const Tensor& values,
                                IntSpan sizes) {
  const bool rows = layout == Layout::SparseCsr || layout == Layout::SparseBsr;
  const size_t block = layout == Layout::SparseBsr || layout == Layout::SparseBsc ? 2 : 0;
  const auto wrong = [&] {
    return str_cat({"offsets ", describe(offsets), ", indices ", describe(plain), ", values ", describe(values),
                    " for sizes ", sizes});
  };
  if ((offsets.dtype() != kInt32 && offsets.dtype() != kInt64) || offsets.dtype() != plain.dtype()) return wrong();
  if (offsets.dim() < 1 || offsets.dim() != plain.dim()) return wrong();
  const auto batch = static_cast<size_t>(offsets.dim() - 1);
  const IntSpan of_values = values.sizes();
  if (of_values.size() < batch + 1 + block) return wrong();
  const size_t dense = of_values.size() - batch - 1 - block;
  const auto same = [&](IntSpan a, size_t from, IntSpan b, size_t start, size_t count) {
    return a.subspan(from, count) == b.subspan(start, count);
  };
  if (sizes.size() != batch + 2 + dense || !has_number(sizes) || !same(sizes, 0, offsets.sizes(), 0, batch) ||
      !same(sizes, 0, plain.sizes(), 0, batch) || !same(sizes, 0, of_values, 0, batch) ||
      !same(sizes, batch + 2, of_values, batch + 1 + block, dense) || plain.sizes()[batch] != of_values[batch])
    return wrong();
  int64_t lines[2] = {sizes[batch], sizes[batch + 1]};
  for (size_t d = 0; d < block; ++d) {
    const int64_t of_block = of_values[batch + 1 + d];
    if (of_block < 1 || lines[d] % of_block != 0) return wrong();
    lines[d] /= of_block;
  }
  if (offsets.sizes()[batch] - 1 != lines[rows ? 0 : 1] || !has_lines(offsets) || !has_lines(plain)) return wrong();
  const int64_t plain_size = lines[rows ? 1 : 0];
  return offsets.dtype() == kInt64 ? fault_of_lines<int64_t>(offsets, plain, plain_size)
                                   : fault_of_lines<int32_t>(offsets, plain, plain_size);
}

}  // namespace tercel::io
