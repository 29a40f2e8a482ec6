#include "tercel/ops/sort/order_statistics.h"

#include <algorithm>
#include <limits>

#include "tercel/autograd/record.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/value_selecting_reduction_backward_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/sort/order_statistics_kernels.h"
#include "tercel/ops/sort/row_keys_impl.h"
#include "tercel/ops/sort/sort.h"
#include "tercel/ops/sort/sort_kernels.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<TopkFn> top_kernels = TERCEL_CPU_KERNELS(topk);
constinit const KernelTable<OrderStatisticFn> rank_kernels = TERCEL_CPU_KERNELS(order_statistic);

constexpr int64_t kGrainElements = 16384;

/** Contiguous lines along a dimension; moves the dimension of selected elements back. */
class Lines {
 public:
  Lines(const char* op, const Tensor& x, int64_t d) : x_(x), dim_(wrap_dim(d, x.dim())) {
    TERCEL_CHECK(!x.is_complex(), NotImplementedError, op, ": not implemented for dtype ", to_string(x.dtype()));
    const NoRecordGuard no_record;
    at_least_1d_ = x.dim() == 0 ? view(x, {1}) : x;
    TERCEL_CHECK(at_least_1d_.size(dim_) != 0, IndexError, op, "(): Expected reduction dim ", dim_,
                 " to have non-zero size.");
    lines_ = contiguous(transpose(at_least_1d_, dim_, -1));
    n_ = lines_.size(-1);
  }

  const Tensor& x() const { return x_; }
  int64_t dim() const { return dim_; }
  int64_t length() const { return n_; }
  int64_t count() const { return lines_.numel() / n_; }
  const std::byte* line(int64_t i) const {
    return static_cast<const std::byte*>(lines_.data_ptr()) + static_cast<size_t>(i * n_) * x_.itemsize();
  }
  const Tensor& tensor() const { return lines_; }

  /** Allocates k elements for each line. */
  ValuesAndIndices room(int64_t k) const {
    DimVector sizes(lines_.sizes());
    sizes.back() = k;
    return {empty(sizes, x_.options()), empty(sizes, TensorOptions(kInt64, x_.device()))};
  }
  /** Calls visit(begin, end) for lines, on several threads. */
  template <class Visit>
  void for_each(Visit visit) const {
    if (lines_.numel() != 0) parallel_for(0, count(), std::max<int64_t>(1, kGrainElements / n_), visit);
  }
  /** Calls `kernel` for lines, each call with separate scratch memory. */
  template <class Fn, class Loop>
  void run(Fn* kernel, Loop loop, int64_t scratch_bytes, const ValuesAndIndices& out) const {
    loop.dtype = x_.dtype();
    loop.lines = lines_.data_ptr();
    loop.n = n_;
    loop.values = out.values.data_ptr();
    loop.indices = out.indices.data<int64_t>();
    for_each([&](int64_t begin, int64_t end) {
      const Tensor scratch = empty({scratch_bytes}, kUInt8);
      Loop own = loop;
      own.scratch = scratch.data_ptr();
      kernel(own, begin, end);
    });
  }
  /** The result of room(), with the dimension moved back. */
  ValuesAndIndices in_place(const ValuesAndIndices& out) const {
    return {contiguous(transpose(out.values, dim_, -1)), contiguous(transpose(out.indices, dim_, -1))};
  }

  /** The recorded result, without the dimension unless keepdim. */
  ValuesAndIndices finish(const char* name, ValuesAndIndices out, bool keepdim) const {
    const bool keeps = keepdim && x_.dim() != 0;
    if (!keeps) {
      const NoRecordGuard no_record;
      out = {squeeze(out.values, dim_), squeeze(out.indices, dim_)};
    }
    record_value_selecting_reduction(name, out.values, x_, out.indices, dim_, keeps);
    return out;
  }

 private:
  Tensor x_, at_least_1d_, lines_;
  int64_t dim_, n_;
};

ValuesAndIndices top_of(const Lines& lines, int64_t k, bool largest, bool sorted) {
  const NoRecordGuard no_record;
  ValuesAndIndices out = lines.room(k);
  TopkLoop loop{};
  loop.k = k;
  loop.largest = largest;
  lines.run(top_kernels[lines.x().device()], loop, topk_scratch_bytes(lines.length(), k), out);
  if (sorted && k > kMaxOrdered && out.values.numel() != 0) {
    // Equal elements are ordered by position, as in a stable sort.
    const ValuesAndIndices order = sort(out.values, -1, largest);
    out = {order.values, gather(out.indices, -1, order.indices)};
  }
  return lines.in_place(out);
}

ValuesAndIndices of_rank(const Lines& lines, RankOf of, int64_t rank = 0) {
  const NoRecordGuard no_record;
  const ValuesAndIndices out = lines.room(1);
  OrderStatisticLoop loop{};
  loop.of = of;
  loop.rank = rank;
  lines.run(rank_kernels[lines.x().device()], loop, order_statistic_scratch_bytes(lines.length()), out);
  return lines.in_place(out);
}

RankOf median_rank(bool ignore_nan) { return ignore_nan ? RankOf::MedianOfNumbers : RankOf::MedianOrNan; }

Tensor median_of_all(const char* op, const char* backward_name, const Tensor& x, bool ignore_nan) {
  check_strided(op, x, "x");
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = x.numel() == 0 ? to(full({}, std::numeric_limits<double>::quiet_NaN()), x.dtype())
                         : view(of_rank(Lines(op, reshape(x, {-1}), 0), median_rank(ignore_nan)).values, {});
  }
  if (should_record(x))
    record(backward_name, out, {x}, [x = SavedTensor(x), out = SavedTensor::output(out)](BackwardCall& call) {
      const Tensor& input = x.get();
      const Tensor& value = out.get(call);
      const Tensor equal = isnan(value).item<bool>() ? isnan(input) : eq(input, value);
      call.set(0, mul(div(call.grad(), sum(equal)), equal));
    });
  return out;
}

/** Last position of the most frequent key (the smallest if several are); `sorted` has positions in key order. */
int64_t position_of_mode(const int64_t* keys, const int64_t* sorted, int64_t n) {
  int64_t best = 0, most = 0;
  for (int64_t i = 0; i < n;) {
    int64_t end = i + 1;
    while (end < n && keys[sorted[end]] == keys[sorted[i]]) ++end;
    if (end - i > most) {
      most = end - i;
      best = sorted[end - 1];
    }
    i = end;
  }
  return best;
}

/** Whether x is a 0-dimensional complex number, the only complex case that needs no order. */
bool is_alone(const Tensor& x, int64_t dim) { return x.dim() == 0 && x.is_complex() && wrap_dim(dim, 0) == 0; }

}  // namespace

ValuesAndIndices topk(const Tensor& x, int64_t k, int64_t d, bool largest, bool sorted) {
  check_strided("topk", x, "x");
  const int64_t dim = wrap_dim(d, x.dim());
  TERCEL_CHECK(k >= 0 && k <= (x.dim() == 0 ? 1 : x.size(dim)), RuntimeError, "selected index k out of range");
  if (x.dim() != 0 && (k == 0 || x.numel() == 0)) {
    DimVector sizes(x.sizes());
    sizes[static_cast<size_t>(dim)] = k;
    const ValuesAndIndices out{empty(sizes, x.options()), empty(sizes, TensorOptions(kInt64, x.device()))};
    record_value_selecting_reduction("TopkBackward0", out.values, x, out.indices, dim, true);
    return out;
  }
  const Lines lines("topk", x, dim);
  const int64_t n = lines.length();
  // If k is a large part of a long line, sorting is faster than selecting.
  if (k > kOrderStatisticPiece / 4 && k > n / 8) {
    ValuesAndIndices out;
    {
      const NoRecordGuard no_record;
      const ValuesAndIndices all = sort(x, dim, largest);
      out = {clone(narrow(all.values, dim, 0, k)), clone(narrow(all.indices, dim, 0, k))};
    }
    record_value_selecting_reduction("TopkBackward0", out.values, x, out.indices, dim, true);
    return out;
  }
  // A 0-dimensional tensor returns itself, even for k = 0.
  ValuesAndIndices out = top_of(lines, x.dim() == 0 ? 1 : k, largest, sorted);
  if (x.dim() == 0) return lines.finish("TopkBackward0", out, false);
  record_value_selecting_reduction("TopkBackward0", out.values, x, out.indices, dim, true);
  return out;
}

ValuesAndIndices kthvalue(const Tensor& x, int64_t k, int64_t dim, bool keepdim) {
  check_strided("kthvalue", x, "x");
  if (is_alone(x, dim) && k == 1) return {clone(x), zeros({}, kInt64)};
  const Lines lines("kthvalue", x, dim);
  TERCEL_CHECK(k > 0 && k <= lines.length(), RuntimeError, "kthvalue(): selected number k out of range for dimension ",
               lines.dim());
  return lines.finish("KthvalueBackward0", of_rank(lines, RankOf::All, k - 1), keepdim);
}

Tensor median(const Tensor& x) { return median_of_all("median", "MedianBackward0", x, false); }
Tensor nanmedian(const Tensor& x) { return median_of_all("nanmedian", "NanmedianBackward0", x, true); }
ValuesAndIndices median(const Tensor& x, int64_t dim, bool keepdim) {
  check_strided("median", x, "x");
  const Lines lines("median", x, dim);
  return lines.finish("MedianBackward1", of_rank(lines, median_rank(false)), keepdim);
}
ValuesAndIndices nanmedian(const Tensor& x, int64_t dim, bool keepdim) {
  check_strided("nanmedian", x, "x");
  const Lines lines("nanmedian", x, dim);
  return lines.finish("NanmedianBackward1", of_rank(lines, median_rank(true)), keepdim);
}

ValuesAndIndices mode(const Tensor& x, int64_t dim, bool keepdim) {
  check_strided("mode", x, "x");
  if (is_alone(x, dim)) return {clone(x), zeros({}, kInt64)};
  const Lines lines("mode", x, dim);
  const int64_t n = lines.length();
  const Tensor sorted = argsort(lines.tensor().detach(), -1);
  const Tensor where = lines.room(1).indices;
  lines.for_each([&](int64_t begin, int64_t end) {
    RowKeys keys;
    for (int64_t i = begin; i < end; ++i)
      where.data<int64_t>()[i] =
          position_of_mode(keys.read(lines.x(), lines.line(i), n), sorted.data<int64_t>() + i * n, n);
  });
  const ValuesAndIndices out = lines.in_place({gather(lines.tensor().detach(), -1, where), where});
  return lines.finish("ModeBackward0", out, keepdim);
}

}  // namespace tercel
