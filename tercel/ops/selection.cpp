#include "tercel/ops/selection.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "tercel/autograd/record.h"
#include "tercel/ops/binary.h"
#include "tercel/ops/copy.h"
#include "tercel/ops/factories.h"
#include "tercel/ops/picked_impl.h"
#include "tercel/ops/reduce.h"
#include "tercel/ops/sort.h"
#include "tercel/ops/sort_impl.h"
#include "tercel/ops/ternary.h"
#include "tercel/ops/unary.h"
#include "tercel/ops/views.h"
#include "tercel/util/parallel.h"

namespace tercel {

namespace {

constinit const KernelTable<SortKeysFn> keys_kernels = TERCEL_CPU_KERNELS(sort_keys);

constexpr int64_t kGrain = 16384;
constexpr int64_t kTile = 1024;

/** A key, and where it stands: comparing both keeps equal elements in order. */
struct Candidate {
  int64_t key, position;

  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.key != b.key ? a.key < b.key : a.position < b.position;
  }
};

/** Lines along a dimension, one after the other, and picked elements of them with the dimension back in its place. */
class Lines {
 public:
  Lines(const char* op, const Tensor& x, int64_t d) : x_(x), dim_(wrap_dim(d, x.dim())) {
    TERCEL_CHECK(!x.is_complex(), NotImplementedError, op, ": not implemented for dtype ", to_string(x.dtype()));
    const NoGradGuard no_grad;
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

  /** Calls pick(line, indices [k]) for every line, on several threads; gives the elements there. */
  template <class Pick>
  ValuesAndIndices pick(int64_t k, Pick pick) const {
    const NoGradGuard no_grad;
    DimVector sizes(lines_.sizes());
    sizes.back() = k;
    ValuesAndIndices out{empty(sizes, x_.options()), empty(sizes, TensorOptions(kInt64, x_.device()))};
    if (out.indices.numel() != 0) {
      const size_t item = x_.itemsize();
      auto* values = static_cast<std::byte*>(out.values.data_ptr());
      auto* indices = out.indices.data<int64_t>();
      parallel_for(0, count(), std::max<int64_t>(1, kGrain / n_), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          pick(i, indices + i * k);
          for (int64_t j = i * k; j < (i + 1) * k; ++j)
            std::memcpy(values + static_cast<size_t>(j) * item, line(i) + static_cast<size_t>(indices[j]) * item, item);
        }
      });
    }
    out.values = contiguous(transpose(out.values, dim_, -1));
    out.indices = contiguous(transpose(out.indices, dim_, -1));
    return out;
  }

  /** The result with the dimension gone unless it is kept, recorded. */
  ValuesAndIndices finish(const char* name, ValuesAndIndices out, bool keepdim) const {
    const bool keeps = keepdim && x_.dim() != 0;
    if (!keeps) {
      const NoGradGuard no_grad;
      out = {squeeze(out.values, dim_), squeeze(out.indices, dim_)};
    }
    record_picked(name, out.values, x_, out.indices, dim_, keeps);
    return out;
  }

 private:
  Tensor x_, at_least_1d_, lines_;
  int64_t dim_, n_;
};

/** The k best of the n elements in `line`: smallest keys, or largest. */
void select_top(const Tensor& like, const std::byte* line, int64_t n, int64_t k, bool largest, bool sorted,
                int64_t* indices) {
  const auto keys_of = keys_kernels[like.device()];
  // What is no better than the worst of k candidates is passed over; when the room for candidates is full, the best k
  // of them stay. So most elements cost one comparison.
  const size_t wanted = static_cast<size_t>(k);
  std::vector<Candidate> best;
  best.reserve(2 * wanted + kTile);
  bool bounded = false;
  int64_t bound = 0;
  int64_t keys[kTile];
  const auto keep_best = [&] {
    std::nth_element(best.begin(), best.begin() + k - 1, best.end());
    best.resize(wanted);
    bound = best.back().key;
    bounded = true;
  };
  for (int64_t first = 0; first < n; first += kTile) {
    const int64_t m = std::min(kTile, n - first);
    keys_of(like.dtype(), line + static_cast<size_t>(first) * like.itemsize(), m, keys);
    if (largest)
      for (int64_t i = 0; i < m; ++i) keys[i] = ~keys[i];
    for (int64_t i = 0; i < m; ++i)
      if (!bounded || keys[i] < bound) best.push_back({keys[i], first + i});
    if (best.size() >= 2 * wanted && best.size() > wanted) keep_best();
  }
  if (best.size() > wanted) keep_best();
  if (sorted) std::sort(best.begin(), best.end());
  for (size_t i = 0; i < wanted; ++i) indices[i] = best[i].position;
}

/** Where the element number `rank` in order stands; reorders `scratch`. */
int64_t position_of_rank(const int64_t* keys, int64_t n, int64_t rank, std::vector<int64_t>& scratch) {
  scratch.assign(keys, keys + n);
  std::nth_element(scratch.begin(), scratch.begin() + rank, scratch.end());
  const int64_t key = scratch[static_cast<size_t>(rank)];
  int64_t before = 0;
  for (int64_t i = 0; i < n; ++i) before += keys[i] < key;
  int64_t equal = rank - before, i = 0;
  while (keys[i] != key || equal-- > 0) ++i;
  return i;
}

ValuesAndIndices element_of_rank(const Lines& lines, int64_t rank) {
  const int64_t n = lines.length();
  return lines.pick(1, [&](int64_t i, int64_t* index) {
    RowKeys keys;
    std::vector<int64_t> scratch;
    *index = position_of_rank(keys.read(lines.x(), lines.line(i), n), n, rank, scratch);
  });
}

/** Where the median stands: the first NaN if there is one, unless these are left out. */
int64_t position_of_median(const int64_t* keys, int64_t n, ScalarType dtype, bool ignore_nan,
                           std::vector<int64_t>& scratch) {
  if (!is_floating(dtype)) return position_of_rank(keys, n, (n - 1) / 2, scratch);
  const int64_t nan = nan_key(dtype), *end = keys + n;
  const int64_t* first = std::find(keys, end, nan);
  if (first == end) return position_of_rank(keys, n, (n - 1) / 2, scratch);
  const int64_t numbers = n - std::count(first, end, nan);
  if (!ignore_nan || numbers == 0) return first - keys;
  return position_of_rank(keys, n, (numbers - 1) / 2, scratch);
}

ValuesAndIndices median_of(const Lines& lines, bool ignore_nan) {
  const int64_t n = lines.length();
  return lines.pick(1, [&](int64_t i, int64_t* index) {
    RowKeys keys;
    std::vector<int64_t> scratch;
    *index = position_of_median(keys.read(lines.x(), lines.line(i), n), n, lines.x().dtype(), ignore_nan, scratch);
  });
}

Tensor median_of_all(const char* op, const char* backward_name, const Tensor& x, bool ignore_nan) {
  check_defined(x, op, "x");
  Tensor out;
  {
    const NoGradGuard no_grad;
    if (x.numel() == 0) return full({}, std::numeric_limits<double>::quiet_NaN(), x.options());
    out = view(median_of(Lines(op, reshape(x, {-1}), 0), ignore_nan).values, {});
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

/** Where the most frequent key, the smallest of several, stands last; `sorted` says where the ordered keys stood. */
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

}  // namespace

ValuesAndIndices topk(const Tensor& x, int64_t k, int64_t d, bool largest, bool sorted) {
  check_defined(x, "topk", "x");
  const int64_t dim = wrap_dim(d, x.dim());
  TERCEL_CHECK(k >= 0 && k <= (x.dim() == 0 ? 1 : x.size(dim)), RuntimeError, "selected index k out of range");
  if (k == 0 || x.numel() == 0) {
    DimVector sizes(x.sizes());
    if (x.dim() != 0) sizes[static_cast<size_t>(dim)] = k;
    return {zeros(sizes, x.options()), zeros(sizes, TensorOptions(kInt64, x.device()))};
  }
  const Lines lines("topk", x, dim);
  const int64_t n = lines.length();
  // Much of a long line is sorted faster than it is selected.
  if (k > kTile && k > n / 8) {
    ValuesAndIndices out;
    {
      const NoGradGuard no_grad;
      const ValuesAndIndices all = sort(x, dim, largest);
      out = {clone(narrow(all.values, dim, 0, k)), clone(narrow(all.indices, dim, 0, k))};
    }
    record_picked("TopkBackward0", out.values, x, out.indices, dim, true);
    return out;
  }
  ValuesAndIndices out =
      lines.pick(k, [&](int64_t i, int64_t* indices) { select_top(x, lines.line(i), n, k, largest, sorted, indices); });
  if (x.dim() == 0) return lines.finish("TopkBackward0", out, false);
  record_picked("TopkBackward0", out.values, x, out.indices, dim, true);
  return out;
}

ValuesAndIndices kthvalue(const Tensor& x, int64_t k, int64_t dim, bool keepdim) {
  check_defined(x, "kthvalue", "x");
  const Lines lines("kthvalue", x, dim);
  TERCEL_CHECK(k > 0 && k <= lines.length(), RuntimeError, "kthvalue(): selected number k out of range for dimension ",
               lines.dim());
  return lines.finish("KthvalueBackward0", element_of_rank(lines, k - 1), keepdim);
}

Tensor median(const Tensor& x) { return median_of_all("median", "MedianBackward0", x, false); }
Tensor nanmedian(const Tensor& x) { return median_of_all("nanmedian", "NanmedianBackward0", x, true); }
ValuesAndIndices median(const Tensor& x, int64_t dim, bool keepdim) {
  check_defined(x, "median", "x");
  const Lines lines("median", x, dim);
  return lines.finish("MedianBackward1", median_of(lines, false), keepdim);
}
ValuesAndIndices nanmedian(const Tensor& x, int64_t dim, bool keepdim) {
  check_defined(x, "nanmedian", "x");
  const Lines lines("nanmedian", x, dim);
  return lines.finish("NanmedianBackward1", median_of(lines, true), keepdim);
}

ValuesAndIndices mode(const Tensor& x, int64_t dim, bool keepdim) {
  check_defined(x, "mode", "x");
  const Lines lines("mode", x, dim);
  const int64_t n = lines.length();
  const Tensor sorted = argsort(lines.tensor().detach(), -1);
  const ValuesAndIndices out = lines.pick(1, [&](int64_t i, int64_t* index) {
    RowKeys keys;
    *index = position_of_mode(keys.read(lines.x(), lines.line(i), n), sorted.data<int64_t>() + i * n, n);
  });
  return lines.finish("ModeBackward0", out, keepdim);
}

}  // namespace tercel
