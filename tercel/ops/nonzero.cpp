#include "tercel/ops/nonzero.h"

#include <bit>
#include <cstring>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/binary.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/index.h"
#include "tercel/ops/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constexpr int64_t kChunk = 32768;

/** Row-major bytes, 1 where x is different from zero. */
Tensor truth_of(const Tensor& x) { return contiguous(x.dtype() == kBool ? x.detach() : ne(x.detach(), 0)); }

/** Calls visit(i) for each byte that is not 0, i in [begin, end). */
template <class Visit>
void for_each_true(const uint8_t* truth, int64_t begin, int64_t end, Visit visit) {
  int64_t i = begin;
  for (; i + 8 <= end; i += 8) {
    uint64_t word;
    std::memcpy(&word, truth + i, 8);
    // One bit for each byte, also where a byte that is true is not 1.
    word |= word >> 4 & 0x0f0f0f0f0f0f0f0f;
    word |= word >> 2 & 0x0303030303030303;
    word |= word >> 1 & 0x0101010101010101;
    word &= 0x0101010101010101;
    for (; word != 0; word &= word - 1) visit(i + std::countr_zero(word) / 8);
  }
  for (; i < end; ++i)
    if (truth[i] != 0) visit(i);
}

int64_t count_true(const uint8_t* truth, int64_t begin, int64_t end) {
  int64_t count = 0;
  for (int64_t i = begin; i < end; ++i) count += truth[i] != 0;
  return count;
}

/** [dims, n]: one row of indices for each dimension. */
Tensor nonzero_rows(const Tensor& x) {
  const NoRecordGuard no_record;
  const Tensor bytes = truth_of(x);
  const auto* truth = static_cast<const uint8_t*>(bytes.data_ptr());
  const int64_t numel = bytes.numel(), chunks = (numel + kChunk - 1) / kChunk;
  // How many there are before each chunk says where its indices go.
  std::vector<int64_t> first(static_cast<size_t>(chunks) + 1, 0);
  const auto end_of = [numel](int64_t chunk) { return std::min(numel, (chunk + 1) * kChunk); };
  parallel_for(0, chunks, 4, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) first[static_cast<size_t>(c) + 1] = count_true(truth, c * kChunk, end_of(c));
  });
  for (size_t c = 1; c < first.size(); ++c) first[c] += first[c - 1];
  const int64_t n = first.back();
  const IntSpan sizes = x.sizes();
  Tensor out = empty({x.dim(), n}, kInt64);
  if (n == 0 || sizes.empty()) return out;
  auto* rows = static_cast<int64_t*>(out.data_ptr());
  const size_t last = sizes.size() - 1;
  parallel_for(0, chunks, 4, [&](int64_t begin, int64_t end) {
    DimVector at(sizes.size(), 0);
    for (int64_t c = begin; c < end; ++c) {
      int64_t* to = rows + first[static_cast<size_t>(c)];
      // Where the current innermost row begins, and its outer indices.
      int64_t row = -1;
      for_each_true(truth, c * kChunk, end_of(c), [&](int64_t i) {
        if (row < 0 || i - row >= sizes[last]) {
          int64_t rest = i / sizes[last];
          row = rest * sizes[last];
          for (size_t d = last; d-- > 0;) {
            at[d] = rest % sizes[d];
            rest /= sizes[d];
          }
        }
        for (size_t d = 0; d < last; ++d) to[static_cast<int64_t>(d) * n] = at[d];
        to[static_cast<int64_t>(last) * n] = i - row;
        ++to;
      });
    }
  });
  return out;
}

}  // namespace

Tensor nonzero(const Tensor& x) {
  check_defined(x, "nonzero", "input");
  if (x.dim() == 0) return argwhere(x);
  return transpose(nonzero_rows(x), 0, 1);
}

std::vector<Tensor> nonzero_tuple(const Tensor& x) {
  check_defined(x, "nonzero", "input");
  return unbind(nonzero_rows(x.dim() == 0 ? view(x.detach(), {1}) : x), 0);
}

Tensor argwhere(const Tensor& x) {
  check_defined(x, "argwhere", "input");
  if (x.dim() > 0) return nonzero(x);
  return empty({nonzero_rows(view(x.detach(), {1})).size(1), 0}, kInt64);
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  check_defined(x, "masked_select", "input");
  check_defined(mask, "masked_select", "mask");
  TERCEL_CHECK(mask.dtype() == kBool, RuntimeError, "masked_select: expected BoolTensor for mask, but got ",
               describe(mask));
  const DimVector sizes = broadcast_sizes(x.sizes(), mask.sizes());
  if (sizes.empty()) return masked_select(view(x, {1}), mask);
  return index(expand(x, sizes), {expand(mask, sizes)});
}

}  // namespace tercel
