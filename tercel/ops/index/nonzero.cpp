#include "tercel/ops/index/nonzero.h"

#include <algorithm>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/nonzero_impl.h"
#include "tercel/ops/index/nonzero_kernels.h"
#include "tercel/ops/index/subscript.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<CountTrueFn> count_kernels = TERCEL_CPU_KERNELS(count_true);
constinit const KernelTable<TruePositionsFn> position_kernels = TERCEL_CPU_KERNELS(true_positions);
constinit const KernelTable<TrueElementsFn> element_kernels = TERCEL_CPU_KERNELS(true_elements);

constexpr int64_t kChunk = 32768;

/** Row-major bytes that are 1 where x is nonzero. */
Tensor truth_of(const Tensor& x) { return contiguous(x.dtype() == kBool ? x.detach() : ne(x.detach(), 0)); }

/** Chunks of bytes, and the number of nonzero bytes before each, which is the output position. */
class Chunks {
 public:
  explicit Chunks(const Tensor& bytes)
      : bytes_(bytes), truth_(static_cast<const uint8_t*>(bytes.data_ptr())), numel_(bytes.numel()) {
    const int64_t chunks = ceil_div(numel_, kChunk);
    first_.resize(static_cast<size_t>(chunks) + 1);
    const auto count = count_kernels[kCpu];
    parallel_for(0, chunks, 4, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) first_[static_cast<size_t>(c) + 1] = count(truth_ + c * kChunk, length(c));
    });
    for (size_t c = 1; c < first_.size(); ++c) first_[c] += first_[c - 1];
  }

  int64_t total() const { return first_.back(); }
  /** Calls visit(bytes, count, position of the first byte, nonzero bytes before), on several threads. */
  template <class Visit>
  void for_each(Visit visit) const {
    parallel_for(0, static_cast<int64_t>(first_.size()) - 1, 4, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c)
        visit(truth_ + c * kChunk, length(c), c * kChunk, first_[static_cast<size_t>(c)]);
    });
  }

 private:
  int64_t length(int64_t chunk) const { return std::min(kChunk, numel_ - chunk * kChunk); }

  Tensor bytes_;
  const uint8_t* truth_;
  int64_t numel_;
  std::vector<int64_t> first_;
};

/** Converts flat positions in the last row of [dims, n] to indices, for columns [begin, end), in order. */
void split_positions(IntSpan sizes, int64_t* rows, int64_t n, int64_t begin, int64_t end) {
  const size_t last = sizes.size() - 1;
  int64_t* positions = rows + static_cast<int64_t>(last) * n;
  DimVector at(last, 0);
  // Start of the current innermost row.
  int64_t row = -1;
  for (int64_t i = begin; i < end; ++i) {
    if (row < 0 || positions[i] - row >= sizes[last]) {
      int64_t rest = positions[i] / sizes[last];
      row = rest * sizes[last];
      for (size_t d = last; d-- > 0;) {
        at[d] = rest % sizes[d];
        rest /= sizes[d];
      }
    }
    for (size_t d = 0; d < last; ++d) rows[static_cast<int64_t>(d) * n + i] = at[d];
    positions[i] -= row;
  }
}

/** [dims, n]: one row of indices for each dimension. */
Tensor nonzero_rows(const Tensor& x) {
  const NoRecordGuard no_record;
  const Chunks chunks(truth_of(x));
  const int64_t n = chunks.total();
  const IntSpan sizes = x.sizes();
  Tensor out = empty({x.dim(), n}, kInt64);
  if (n == 0 || sizes.empty()) return out;
  const size_t last = sizes.size() - 1;
  int64_t* rows = out.data<int64_t>();
  int64_t* positions = rows + static_cast<int64_t>(last) * n;
  chunks.for_each([&](const uint8_t* truth, int64_t count, int64_t position, int64_t before) {
    position_kernels[kCpu](truth, count, position, positions + before);
  });
  if (last > 0)
    parallel_for(0, n, kChunk, [&](int64_t begin, int64_t end) { split_positions(sizes, rows, n, begin, end); });
  return out;
}

}  // namespace

Tensor nonzero(const Tensor& x) {
  check_strided("nonzero", x, "input");
  if (x.dim() == 0) return argwhere(x);
  return transpose(nonzero_rows(x), 0, 1);
}

std::vector<Tensor> nonzero_tuple(const Tensor& x) {
  check_strided("nonzero", x, "input");
  return unbind(nonzero_rows(x.dim() == 0 ? view(x.detach(), {1}) : x), 0);
}

Tensor argwhere(const Tensor& x) {
  check_strided("argwhere", x, "input");
  if (x.dim() > 0) return nonzero(x);
  return empty({nonzero_rows(view(x.detach(), {1})).size(1), 0}, kInt64);
}

Tensor elements_where(const Tensor& x, const Tensor& mask) {
  const NoRecordGuard no_record;
  const Chunks chunks(truth_of(mask));
  const Tensor elements = contiguous(x);
  Tensor out = empty({chunks.total()}, x.options());
  const size_t item = x.itemsize();
  const auto* from = static_cast<const std::byte*>(elements.data_ptr());
  auto* to = static_cast<std::byte*>(out.data_ptr());
  chunks.for_each([&](const uint8_t* truth, int64_t count, int64_t position, int64_t before) {
    element_kernels[kCpu](from + static_cast<size_t>(position) * item, item, truth, count,
                          to + static_cast<size_t>(before) * item);
  });
  return out;
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  check_strided("masked_select", x, "input");
  check_strided("masked_select", mask, "mask");
  TERCEL_CHECK(mask.dtype() == kBool, RuntimeError, "masked_select: expected BoolTensor for mask, but got ",
               describe(mask));
  const DimVector sizes = broadcast_sizes(x.sizes(), mask.sizes());
  if (sizes.empty()) return masked_select(view(x, {1}), mask);
  return index(expand(x, sizes), {expand(mask, sizes)});
}

}  // namespace tercel
