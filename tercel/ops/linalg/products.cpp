#include "tercel/ops/linalg/products.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tercel/core/default_dtype.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/out.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/linalg/linalg.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/diagonals.h"
#include "tercel/ops/views/views.h"

namespace tercel {

Tensor inner(const Tensor& a, const Tensor& b) {
  check_strided("inner", a);
  check_strided("inner", b, "other");
  check_same_dtype("inner", a, b);
  if (a.dim() == 0 || b.dim() == 0) return mul(a, b);
  TERCEL_CHECK(a.size(-1) == b.size(-1), RuntimeError,
               "inner() the last dimension must match on both input tensors but got shapes ", a.sizes(), " and ",
               b.sizes());
  const int64_t last_a = a.dim() - 1, last_b = b.dim() - 1;
  return tensordot(a, b, IntSpan(&last_a, 1), IntSpan(&last_b, 1));
}

const Tensor& inner_out(const Tensor& out, const Tensor& a, const Tensor& b) {
  check_out_apart("inner", {out}, {a, b});
  return put_out("inner", out, inner(a, b));
}

Tensor tensordot(const Tensor& a, const Tensor& b, int64_t dims) {
  check_strided("tensordot", a, "a");
  check_strided("tensordot", b, "b");
  TERCEL_CHECK(dims >= 0, RuntimeError, "tensordot expects dims >= 0, but got dims=", dims);
  TERCEL_CHECK(dims <= a.dim() && dims <= b.dim(), RuntimeError,
               "tensordot expects dims < ndim_a + 1 and ndim_b + 1, but got dims=", dims, " for tensors of ", a.dim(),
               " and ", b.dim(), " dimensions");
  DimVector last, first;
  for (int64_t d = 0; d < dims; ++d) {
    last.push_back(d - dims);
    first.push_back(d);
  }
  return tensordot(a, b, IntSpan(last), IntSpan(first));
}

Tensor tensordot(const Tensor& a, const Tensor& b, IntSpan dims_self, IntSpan dims_other) {
  check_strided("tensordot", a);
  check_strided("tensordot", b, "other");
  TERCEL_CHECK(dims_self.size() == dims_other.size(), RuntimeError,
               "tensordot: both dimension lists should have same length");
  check_same_dtype("tensordot", a, b);
  const size_t na = a.sizes().size(), nb = b.sizes().size();
  std::vector<bool> used_a(na, false), used_b(nb, false);
  DimVector order_a, order_b, sizes;
  // A dimension of size 1 on one side matches any size on the other, which is summed over first.
  Tensor left = a, right = b;
  for (size_t i = 0; i < dims_self.size(); ++i) {
    const auto da = static_cast<size_t>(wrap_dim(dims_self[i], a.dim(), false)),
               db = static_cast<size_t>(wrap_dim(dims_other[i], b.dim(), false));
    TERCEL_CHECK(!used_a[da] && !used_b[db], RuntimeError, "tensordot: dim ", used_a[da] ? da : db,
                 " appears multiple times in the list of dims");
    used_a[da] = used_b[db] = true;
    const int64_t size_a = a.sizes()[da], size_b = b.sizes()[db];
    TERCEL_CHECK(size_a == size_b || size_a == 1 || size_b == 1, RuntimeError,
                 "tensordot: contracted dimensions need to match, but first has size ", size_a, " in dim ",
                 dims_self[i], " and second has size ", size_b, " in dim ", dims_other[i]);
    if (size_a == 1 && size_b != 1) right = sum(right, {static_cast<int64_t>(db)}, true, right.dtype());
    if (size_b == 1 && size_a != 1) left = sum(left, {static_cast<int64_t>(da)}, true, left.dtype());
  }
  int64_t rows = 1, columns = 1, inner_size = 1;
  for (size_t d = 0; d < na; ++d) {
    if (used_a[d]) continue;
    order_a.push_back(static_cast<int64_t>(d));
    sizes.push_back(a.sizes()[d]);
    rows *= a.sizes()[d];
  }
  for (const int64_t d : dims_self) {
    order_a.push_back(wrap_dim(d, a.dim()));
    inner_size *= left.size(d);
  }
  for (const int64_t d : dims_other) order_b.push_back(wrap_dim(d, b.dim()));
  for (size_t d = 0; d < nb; ++d) {
    if (used_b[d]) continue;
    order_b.push_back(static_cast<int64_t>(d));
    sizes.push_back(b.sizes()[d]);
    columns *= b.sizes()[d];
  }
  const Tensor x = reshape(permute(left, order_a), {rows, inner_size});
  const Tensor y = reshape(permute(right, order_b), {inner_size, columns});
  return reshape(mm(x, y), sizes);
}

Tensor kron(const Tensor& a, const Tensor& b) {
  check_strided("kron", a);
  check_strided("kron", b, "other");
  // a gets a dimension of size 1 after each of its dimensions, b before each: the product interleaves the sizes.
  const size_t n = std::max(a.sizes().size(), b.sizes().size());
  DimVector sizes_a, sizes_b, sizes;
  const auto size_at = [n](const Tensor& x, size_t d) {
    const size_t lead = n - x.sizes().size();
    return d < lead ? int64_t{1} : x.sizes()[d - lead];
  };
  for (size_t d = 0; d < n; ++d) {
    const int64_t size_a = size_at(a, d), size_b = size_at(b, d);
    sizes_a.push_back(size_a);
    sizes_a.push_back(1);
    sizes_b.push_back(1);
    sizes_b.push_back(size_b);
    int64_t product = 0;
    TERCEL_CHECK(!__builtin_mul_overflow(size_a, size_b, &product), RuntimeError, "kron: the result of ", a.sizes(),
                 " and ", b.sizes(), " is too large");
    sizes.push_back(product);
  }
  return reshape(mul(reshape(a, sizes_a), reshape(b, sizes_b)), sizes);
}

Tensor cross(const Tensor& a, const Tensor& b, int64_t dim) {
  check_strided("linalg.cross", a, "input");
  check_strided("linalg.cross", b, "other");
  TERCEL_CHECK(a.dim() == b.dim(), RuntimeError, "linalg.cross: inputs must have the same number of dimensions.");
  const int64_t d = wrap_dim(dim, a.dim());
  TERCEL_CHECK(a.dim() > 0 && a.size(d) == 3 && b.size(d) == 3, RuntimeError, "linalg.cross: inputs dimension ", dim,
               " must have length 3. Got ", a.dim() > 0 ? a.size(d) : 1, " and ", b.dim() > 0 ? b.size(d) : 1);
  const DimVector sizes = broadcast_sizes(a.sizes(), b.sizes());
  const std::vector<Tensor> x = unbind(expand(a, sizes), d), y = unbind(expand(b, sizes), d);
  const Tensor parts[] = {sub(mul(x[1], y[2]), mul(x[2], y[1])), sub(mul(x[2], y[0]), mul(x[0], y[2])),
                          sub(mul(x[0], y[1]), mul(x[1], y[0]))};
  return stack(parts, d);
}

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
  check_strided("bilinear", input1, "input1");
  check_strided("bilinear", input2, "input2");
  check_strided("bilinear", weight, "weight");
  TERCEL_CHECK(input1.dim() >= 1 && input1.dim() == input2.dim(), RuntimeError,
               "bilinear(): input dimensions do not match: got ", input1.dim(), " and ", input2.dim());
  TERCEL_CHECK(
      input1.sizes().subspan(0, input1.sizes().size() - 1) == input2.sizes().subspan(0, input2.sizes().size() - 1),
      RuntimeError, "bilinear(): input batch dimensions do not match: got ", input1.sizes(), " and ", input2.sizes());
  TERCEL_CHECK(weight.dim() == 3 && input1.size(-1) == weight.size(1), RuntimeError,
               "bilinear(): input1 size does not match weight size: got ", input1.size(-1), " but expected ",
               weight.dim() == 3 ? weight.size(1) : -1);
  TERCEL_CHECK(input2.size(-1) == weight.size(2), RuntimeError,
               "bilinear(): input2 size does not match weight size: got ", input2.size(-1), " but expected ",
               weight.size(2));
  TERCEL_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)), RuntimeError,
               "bilinear(): bias size does not match weight size: got ", bias.defined() ? bias.sizes() : IntSpan(),
               " but expected ", weight.size(0));
  const int64_t n = numel_of(input1.sizes().subspan(0, input1.sizes().size() - 1));
  const int64_t outputs = weight.size(0), size_a = weight.size(1), size_b = weight.size(2);
  const Tensor x = reshape(input1, {n, size_a}), y = reshape(input2, {n, size_b});
  // [n, size_a] times [size_a, outputs * size_b], then a product with y for each row.
  const Tensor left =
      reshape(mm(x, reshape(permute(weight, {1, 0, 2}), {size_a, outputs * size_b})), {n, outputs, size_b});
  DimVector sizes(input1.sizes());
  sizes.back() = outputs;
  const Tensor product = reshape(bmm(left, unsqueeze(y, 2)), sizes);
  return bias.defined() ? add(product, bias) : product;
}

namespace {

/** The cheapest order of a product of matrices, by dynamic programming over ranges. */
class Chain {
 public:
  explicit Chain(const std::vector<Tensor>& matrices) : matrices_(matrices) {
    const size_t n = matrices.size();
    std::vector<double> sizes;
    for (const Tensor& m : matrices) sizes.push_back(static_cast<double>(m.size(0)));
    sizes.push_back(static_cast<double>(matrices.back().size(1)));
    std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
    split_.assign(n, std::vector<size_t>(n, 0));
    for (size_t length = 2; length <= n; ++length) {
      for (size_t i = 0; i + length <= n; ++i) {
        const size_t j = i + length - 1;
        cost[i][j] = HUGE_VAL;
        for (size_t k = i; k < j; ++k) {
          const double c = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
          if (c >= cost[i][j]) continue;
          cost[i][j] = c;
          split_[i][j] = k;
        }
      }
    }
  }

  Tensor product(size_t i, size_t j) const {
    if (i == j) return matrices_[i];
    return mm(product(i, split_[i][j]), product(split_[i][j] + 1, j));
  }

 private:
  const std::vector<Tensor>& matrices_;
  std::vector<std::vector<size_t>> split_;
};

}  // namespace

Tensor linalg::multi_dot(Span<Tensor> tensors) {
  const size_t n = tensors.size();
  TERCEL_CHECK(n >= 2, RuntimeError, "multi_dot(): expected at least 2 tensors but got ", n);
  for (const Tensor& t : tensors) check_strided("multi_dot", t, "tensors");
  std::vector<Tensor> matrices(tensors.begin(), tensors.end());
  const bool row = matrices.front().dim() == 1, column = matrices.back().dim() == 1;
  if (row) matrices.front() = unsqueeze(matrices.front(), 0);
  if (column) matrices.back() = unsqueeze(matrices.back(), 1);
  TERCEL_CHECK(matrices.front().dim() == 2, RuntimeError, "multi_dot(): the first tensor must be 1D or 2D but got ",
               tensors.front().dim(), "D");
  TERCEL_CHECK(matrices.back().dim() == 2, RuntimeError, "multi_dot(): the last tensor must be 1D or 2D but got ",
               tensors.back().dim(), "D");
  for (size_t i = 0; i < n; ++i) {
    TERCEL_CHECK(matrices[i].dim() == 2, RuntimeError, "multi_dot(): tensor ", i, " must be 2D but got ",
                 matrices[i].dim(), "D");
    TERCEL_CHECK(matrices[i].dtype() == matrices[0].dtype(), RuntimeError,
                 "multi_dot(): all tensors must have be the same dtype but tensor 0 is ",
                 scalar_type_word(matrices[0].dtype()), " and tensor ", i, " ", scalar_type_word(matrices[i].dtype()));
    TERCEL_CHECK(i == 0 || matrices[i - 1].size(1) == matrices[i].size(0), RuntimeError, "multi_dot(): tensors ",
                 static_cast<int64_t>(i) - 1, " and ", i, " with shapes ", tensors[i ? i - 1 : 0].sizes(), " and ",
                 tensors[i].sizes(), " cannot be multiplied");
  }
  Tensor out = Chain(matrices).product(0, n - 1);
  if (column) out = squeeze(out, 1);
  if (row) out = squeeze(out, 0);
  return out;
}

Tensor chain_matmul(Span<Tensor> matrices) {
  TERCEL_CHECK(!matrices.empty(), RuntimeError, "chain_matmul(): Expected one or more matrices");
  for (const Tensor& m : matrices) {
    check_strided("chain_matmul", m, "matrices");
    TERCEL_CHECK(m.dim() == 2, RuntimeError, "chain_matmul(): Tensor dimension is ", m.dim(), ", expected 2 instead.");
  }
  return matrices.size() == 1 ? matrices[0] : linalg::multi_dot(matrices);
}

Tensor linalg::vecdot(const Tensor& a, const Tensor& b, int64_t dim) {
  check_strided("linalg.vecdot", a, "x");
  check_strided("linalg.vecdot", b, "y");
  TERCEL_CHECK(a.is_differentiable(), NotImplementedError,
               "linalg.vecdot: Expected a floating point or complex tensor as input. Got ",
               scalar_type_word(a.dtype()));
  const DimVector sizes = broadcast_sizes(a.sizes(), b.sizes());
  return sum(mul(conj(a), b), {wrap_dim(dim, static_cast<int64_t>(sizes.size()))});
}

Tensor matrix_power(const Tensor& a, int64_t n) {
  check_strided("linalg.matrix_power", a, "A");
  TERCEL_CHECK(a.dim() >= 2, RuntimeError, "linalg.matrix_power: The input tensor A must have at least 2 dimensions.");
  TERCEL_CHECK(a.size(-1) == a.size(-2), RuntimeError,
               "linalg.matrix_power: A must be batches of square matrices, but they are ", a.size(-2), " by ",
               a.size(-1), " matrices");
  if (n == 0) return clone(expand(eye(a.size(-1), -1, a.options()), a.sizes()), MemoryFormat::Contiguous);
  Tensor square = n < 0 ? linalg::inv(a) : a;
  // The magnitude of INT64_MIN needs an unsigned type.
  uint64_t left = n < 0 ? uint64_t{0} - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  if (left == 1) return clone(square);
  Tensor out;
  for (;; left >>= 1) {
    if (left & 1) out = out.defined() ? matmul(out, square) : square;
    if (left == 1) return out;
    square = matmul(square, square);
  }
}

Tensor cov(const Tensor& x, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  check_strided("cov", x, "input");
  TERCEL_CHECK(x.dim() <= 2, RuntimeError,
               "cov(): expected input to have two or fewer dimensions but got an input with ", x.dim(), " dimensions");
  TERCEL_CHECK(x.dtype() != kBool, NotImplementedError, "cov(): bool dtype is not supported for input");
  Tensor values = x.dim() < 2 ? reshape(x, {1, -1}) : x;
  const int64_t observations = values.size(1);
  if (aweights.defined() && aweights.is_floating_point())
    values = to(values, promote_types(values.dtype(), aweights.dtype()));
  if (!values.is_differentiable()) values = to(values, default_dtype());
  const ScalarType weight_dtype = real_dtype(values.dtype());

  const auto check_weights = [&](const char* name, const Tensor& w, bool right_kind, const char* kind) {
    TERCEL_CHECK(w.dim() <= 1, RuntimeError, "cov(): expected ", name, " to have one or fewer dimensions but got ",
                 name, " with ", w.dim(), " dimensions");
    TERCEL_CHECK(right_kind, RuntimeError, "cov(): expected ", name, " to have ", kind, " dtype but got ", name,
                 " with ", scalar_type_word(w.dtype()), " dtype");
    TERCEL_CHECK(w.numel() == observations, RuntimeError, "cov(): expected ", name,
                 " to have the same numel as there are observations in the input but got ", w.numel(),
                 " != ", observations);
    TERCEL_CHECK(observations == 0 || item(min(w)).to_double() >= 0, RuntimeError, "cov(): ", name,
                 " cannot be negative");
  };
  Tensor w;
  if (fweights.defined()) {
    check_weights("fweights", fweights, is_integral(fweights.dtype(), false), "integral");
    w = reshape(fweights, {observations});
  }
  if (aweights.defined()) {
    check_weights("aweights", aweights, aweights.is_floating_point(), "floating point");
    const Tensor a = reshape(aweights, {observations});
    w = w.defined() ? mul(w, a) : a;
  }
  Tensor mean_of_rows, norm;
  if (w.defined()) {
    const Tensor total = to(sum(w), weight_dtype);
    TERCEL_CHECK(observations == 0 || item(total).to_double() != 0, RuntimeError,
                 "cov(): weights sum to zero, can't be normalized");
    w = to(w, weight_dtype);
    mean_of_rows = div(sum(mul(values, w), {1}, true), total);
    // aweights scale the correction.
    if (correction != 0 && aweights.defined())
      norm = sub(total, mul(div(sum(mul(w, to(reshape(aweights, {observations}), weight_dtype))), total),
                            static_cast<double>(correction)));
    else
      norm = sub(total, static_cast<double>(correction));
  } else {
    mean_of_rows = mean(values, {1}, true);
    norm = full(IntSpan(), static_cast<double>(observations - correction), weight_dtype);
  }
  const Tensor centered = sub(values, mean_of_rows);
  const Tensor weighted = w.defined() ? mul(centered, w) : centered;
  return squeeze(div(mm(weighted, conj(t(centered))), clamp_min(norm, 0)));
}

Tensor corrcoef(const Tensor& x) {
  check_strided("corrcoef", x, "input");
  TERCEL_CHECK(x.dim() <= 2, RuntimeError,
               "corrcoef(): expected input to have two or fewer dimensions but got an input with ", x.dim(),
               " dimensions");
  const Tensor c = cov(x);
  if (c.dim() == 0) return div(c, c);
  const Tensor deviation = sqrt(real(diagonal(c)));
  const Tensor out = div(div(c, unsqueeze(deviation, 1)), unsqueeze(deviation, 0));
  if (out.is_complex()) return complex(clamp(real(out), -1, 1), clamp(imag(out), -1, 1));
  return clamp(out, -1, 1);
}

namespace linalg {

const Tensor& cross_out(const Tensor& out, const Tensor& a, const Tensor& b, int64_t dim) {
  check_out_apart("linalg_cross", {out}, {a, b, dim});
  return put_linalg_out("linalg_cross", out, cross(a, b, dim));
}
const Tensor& matmul_out(const Tensor& out, const Tensor& a, const Tensor& b) {
  return put_linalg_out("linalg_matmul", out, matmul(a, b));
}
const Tensor& matrix_power_out(const Tensor& out, const Tensor& a, int64_t n) {
  return put_linalg_out("linalg_matrix_power", out, matrix_power(a, n));
}

}  // namespace linalg

}  // namespace tercel
