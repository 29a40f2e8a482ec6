#include "tercel/ops/views/meshgrid.h"

#include <algorithm>
#include <numeric>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/reduce/scan.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/flip_roll_repeat.h"
#include "tercel/ops/views/views.h"

namespace tercel {

std::vector<Tensor> meshgrid(Span<Tensor> tensors, std::string_view indexing) {
  TERCEL_CHECK(!tensors.empty(), RuntimeError, "meshgrid() expects a non-empty list of tensors, but got an empty one");
  TERCEL_CHECK(indexing == "ij" || indexing == "xy", RuntimeError,
               "meshgrid(): indexing must be one of \"xy\" or \"ij\", but received: ", indexing);
  DimVector sizes;
  for (const Tensor& x : tensors) {
    check_strided("meshgrid", x, "tensors");
    TERCEL_CHECK(x.dim() <= 1, RuntimeError,
                 "meshgrid(): Expected 0D or 1D tensor in the tensor list but got: ", describe(x));
    TERCEL_CHECK(x.dtype() == tensors[0].dtype(), RuntimeError,
                 "meshgrid() expects all tensors to have the same dtype, but got ", to_string(tensors[0].dtype()),
                 " and ", to_string(x.dtype()));
    TERCEL_CHECK(x.device() == tensors[0].device(), RuntimeError,
                 "meshgrid() expects all tensors to be on the same device, but got ", describe(tensors[0]), " and ",
                 describe(x));
    sizes.push_back(x.numel());
  }
  const bool swaps = indexing == "xy" && tensors.size() >= 2;
  const auto place = [swaps](size_t i) { return swaps && i < 2 ? 1 - i : i; };
  if (swaps) std::swap(sizes[0], sizes[1]);
  std::vector<Tensor> out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    DimVector own(sizes.size(), 1);
    own[place(i)] = tensors[i].numel();
    out.push_back(expand(reshape(tensors[i], own), sizes));
  }
  return out;
}

Tensor cartesian_prod(Span<Tensor> tensors) {
  TERCEL_CHECK(!tensors.empty(), RuntimeError, "meshgrid() expects a non-empty list of tensors, but got an empty one");
  for (const Tensor& x : tensors) {
    check_strided("cartesian_prod", x, "tensors");
    TERCEL_CHECK(x.dim() == 1, RuntimeError, "Expect a 1D vector, but got shape ", x.sizes());
  }
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> columns = meshgrid(tensors);
  const Tensor grid = stack(columns, -1);
  return flatten(grid, 0, -2);
}

Tensor combinations(const Tensor& x, int64_t r, bool with_replacement) {
  check_strided("combinations", x, "input");
  TERCEL_CHECK(x.dim() == 1, RuntimeError, "Expect a 1D vector, but got shape ", x.sizes());
  TERCEL_CHECK(r >= 0, RuntimeError, "Expect a non-negative number, but got ", r);
  if (r == 0) return empty({0}, x.options());
  const int64_t n = x.numel();
  // m choose r, with m = n, or n + r - 1; every partial product is itself a binomial coefficient.
  int64_t m = n, count = 0;
  TERCEL_CHECK(!with_replacement || !__builtin_add_overflow(n, r - 1, &m), RuntimeError, "combinations: ", r,
               " elements of ", n, " are too many");
  if (n > 0 && r <= m) {
    count = 1;
    const int64_t fewer = std::min(r, m - r);
    for (int64_t i = 1; i <= fewer; ++i) {
      TERCEL_CHECK(!__builtin_mul_overflow(count, m - fewer + i, &count), RuntimeError, "combinations: ", r,
                   " elements of ", n, " are too many");
      count /= i;
    }
  }
  const Tensor index = empty({count, r}, kInt64);
  if (count > 0) {
    auto* row = static_cast<int64_t*>(index.data_ptr());
    std::vector<int64_t> chosen(static_cast<size_t>(r), 0);
    if (!with_replacement) std::iota(chosen.begin(), chosen.end(), 0);
    for (int64_t c = 0; c < count; ++c) {
      row = std::copy(chosen.begin(), chosen.end(), row);
      // The last position that can still advance; those after it restart right behind it.
      int64_t i = r - 1;
      const auto most = [&](int64_t place) { return with_replacement ? n - 1 : n - r + place; };
      while (i >= 0 && chosen[static_cast<size_t>(i)] == most(i)) --i;
      if (i < 0) break;
      int64_t next = chosen[static_cast<size_t>(i)] + 1;
      for (; i < r; ++i) chosen[static_cast<size_t>(i)] = with_replacement ? next : next++;
    }
  }
  return view(index_select(x, 0, view(index, {count * r})), {count, r});
}

Tensor vander(const Tensor& x, std::optional<int64_t> n, bool increasing) {
  check_strided("vander", x, "x");
  TERCEL_CHECK(x.dim() == 1, RuntimeError, "x must be a one-dimensional tensor.");
  const int64_t columns = n.value_or(x.numel());
  TERCEL_CHECK(columns >= 0, RuntimeError, "N must be non-negative.");
  const Tensor base = to(x, promote_types(x.dtype(), kInt64));
  const int64_t rows = base.numel();
  if (columns == 0 || rows == 0) return empty({rows, columns}, base.options());
  const Tensor powers[] = {ones({rows, 1}, base.options()),
                           cumprod(expand(unsqueeze(base, 1), {rows, columns - 1}), 1)};
  const Tensor out = cat(powers, 1);
  return increasing ? out : flip(out, {1});
}

}  // namespace tercel
