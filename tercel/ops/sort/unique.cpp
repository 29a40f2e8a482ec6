#include "tercel/ops/sort/unique.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "tercel/autograd/grad_mode.h"
#include "tercel/autograd/not_implemented.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/sort/key_sort_impl.h"
#include "tercel/ops/sort/row_keys_impl.h"
#include "tercel/ops/sort/sort_kernels.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<CountUniqueFn> count_kernels = TERCEL_CPU_KERNELS(count_unique);
constinit const KernelTable<UniqueResultFn> unique_kernels = TERCEL_CPU_KERNELS(unique_result);

constexpr int64_t kGrainElements = 16384;

UniqueValues unique_elements(const Tensor& x, bool return_inverse, bool return_counts) {
  const ProfileRange range("unique", RangeKind::Op);
  const Tensor elements = contiguous(x);
  const int64_t n = elements.numel();
  UniqueValues out;
  if (return_inverse) out.inverse = empty(x.sizes(), TensorOptions(kInt64, x.device()));

  RowKeys keys;
  KeySorter sorter;
  UniqueResult result{};
  result.sorted = sorter.sort("unique", keys.read(elements, elements.data_ptr(), n), n);
  result.dtype = x.dtype();
  result.in = elements.data_ptr();
  result.inverse = return_inverse ? static_cast<int64_t*>(out.inverse.data_ptr()) : nullptr;

  const auto count = count_kernels[x.device()];
  const auto write = unique_kernels[x.device()];
  const Partition partition(0, n, kGrainElements);
  std::vector<int64_t> firsts(static_cast<size_t>(partition.chunks()));
  partition.run([&](int64_t chunk, int64_t begin, int64_t end) {
    firsts[static_cast<size_t>(chunk)] = count(result, begin, end);
  });
  int64_t different = 0;
  for (int64_t& first : firsts) different += std::exchange(first, different);

  out.values = empty({different}, x.options());
  if (return_counts) out.counts = empty({different}, TensorOptions(kInt64, x.device()));
  result.values = out.values.data_ptr();
  result.starts = return_counts ? static_cast<int64_t*>(out.counts.data_ptr()) : nullptr;
  partition.run([&](int64_t chunk, int64_t begin, int64_t end) {
    write(result, begin, end, firsts[static_cast<size_t>(chunk)]);
  });
  // Converts starts to counts.
  for (int64_t i = 0; return_counts && i < different; ++i)
    result.starts[i] = (i + 1 < different ? result.starts[i + 1] : n) - result.starts[i];
  return out;
}

/** Slices as rows of keys. */
class Slices {
 public:
  Slices(const Tensor& x, int64_t dim) : count_(x.size(dim)), width_(count_ == 0 ? 0 : x.numel() / count_) {
    rows_ = contiguous(transpose(x, 0, dim));
    keys_ = memory_.read(rows_, rows_.data_ptr(), rows_.numel());
    if (is_floating(x.dtype())) nan_ = nan_key(x.dtype());
    floating_ = is_floating(x.dtype());
  }

  int64_t count() const { return count_; }
  bool less(int64_t a, int64_t b) const {
    return std::lexicographical_compare(row(a), row(a) + width_, row(b), row(b) + width_);
  }
  bool equal(int64_t a, int64_t b) const {
    return std::equal(row(a), row(a) + width_, row(b)) &&
           !(floating_ && std::find(row(a), row(a) + width_, nan_) != row(a) + width_);
  }

 private:
  const int64_t* row(int64_t i) const { return keys_ + i * width_; }

  int64_t count_, width_;
  int64_t nan_ = 0;
  bool floating_ = false;
  Tensor rows_;
  RowKeys memory_;
  const int64_t* keys_;
};

/** The slices in the given order, without consecutive duplicates. */
UniqueValues without_repeats(const Tensor& x, int64_t dim, const Slices& slices, const std::vector<int64_t>& order,
                             bool return_inverse, bool return_counts) {
  const TensorOptions indices(kInt64, x.device());
  UniqueValues out;
  const int64_t n = slices.count();
  if (return_inverse) out.inverse = empty({n}, indices);
  std::vector<int64_t> firsts, counts;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t slice = order[static_cast<size_t>(i)];
    if (i == 0 || !slices.equal(order[static_cast<size_t>(i - 1)], slice)) {
      firsts.push_back(slice);
      counts.push_back(0);
    }
    ++counts.back();
    if (return_inverse) out.inverse.data<int64_t>()[slice] = static_cast<int64_t>(firsts.size()) - 1;
  }
  const int64_t m = static_cast<int64_t>(firsts.size());
  const Tensor first_positions = empty({m}, indices);
  std::copy(firsts.begin(), firsts.end(), first_positions.data<int64_t>());
  out.values = index_select(x, dim, first_positions);
  if (return_counts) {
    out.counts = empty({m}, indices);
    std::copy(counts.begin(), counts.end(), out.counts.data<int64_t>());
  }
  return out;
}

void check_slices(const Tensor& x, int64_t dim) {
  const int64_t empty_dims = std::count(x.sizes().begin(), x.sizes().end(), 0);
  if (x.size(dim) == 0)
    TERCEL_CHECK(empty_dims == 1, RuntimeError,
                 "Number of zero sized dimensions is more than one, so unique cannot be applied ");
  else
    TERCEL_CHECK(empty_dims == 0, RuntimeError,
                 "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
}

UniqueValues unique_slices(const Tensor& given, int64_t d, bool in_order, bool return_inverse, bool return_counts) {
  const Tensor x = given.dim() == 0 ? view(given, {1}) : given;
  const int64_t dim = wrap_dim(d, given.dim());
  check_slices(x, dim);
  const Slices slices(x, dim);
  std::vector<int64_t> order(static_cast<size_t>(slices.count()));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (in_order) std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return slices.less(a, b); });
  return without_repeats(x, dim, slices, order, return_inverse, return_counts);
}

}  // namespace

UniqueValues unique(const Tensor& x, bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
  check_real("unique", x);
  UniqueValues out;
  {
    const NoRecordGuard no_record;
    out = dim ? unique_slices(x, *dim, true, return_inverse, return_counts)
              : unique_elements(x, return_inverse, return_counts);
  }
  if (dim)
    record_not_implemented("UniqueDimBackward0", {out.values}, {x}, "unique_dim");
  else
    record_not_implemented("Unique2Backward0", {out.values}, {x}, "_unique2");
  return out;
}

UniqueValues unique_consecutive(const Tensor& x, bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
  check_real("unique_consecutive", x);
  UniqueValues out;
  {
    const NoRecordGuard no_record;
    out = dim ? unique_slices(x, *dim, false, return_inverse, return_counts)
              : unique_slices(reshape(x, {-1}), 0, false, return_inverse, return_counts);
    if (!dim && return_inverse) out.inverse = view(out.inverse, x.sizes());
  }
  record_not_implemented("UniqueConsecutiveBackward0", {out.values}, {x}, "unique_consecutive");
  return out;
}

}  // namespace tercel
