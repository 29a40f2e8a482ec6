#include "tercel/ops/views/permute.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <numeric>
#include <utility>

#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/views_impl.h"

namespace tercel {

namespace {

using Order = std::array<uint8_t, 128>;  // of the maximum number of dimensions

Tensor reordered(const Tensor& x, const Order& order) {
  Tensor out = alias(x);
  out.impl().take_dims(x.impl(), order.data());
  return out;
}

}  // namespace

Geometry transposed(const Tensor& x, int64_t dim0, int64_t dim1) {
  const auto a = static_cast<size_t>(wrap_dim(dim0, x.dim())), b = static_cast<size_t>(wrap_dim(dim1, x.dim()));
  Geometry g(x);
  if (a != b) {
    std::swap(g.sizes[a], g.sizes[b]);
    std::swap(g.strides[a], g.strides[b]);
  }
  return g;
}

Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_transpose(x, dim0, dim1);
  check_strided("transpose", x);
  const auto a = static_cast<size_t>(wrap_dim(dim0, x.dim())), b = static_cast<size_t>(wrap_dim(dim1, x.dim()));
  Order order;
  std::iota(order.begin(), order.begin() + x.dim(), uint8_t{0});
  if (a != b) std::swap(order[a], order[b]);
  Tensor out = reordered(x, order);
  make_view("TransposeBackward0", out, x, [a, b] {
    return [a, b](BackwardCall& call) {
      call.set(0, transpose(call.grad(), static_cast<int64_t>(a), static_cast<int64_t>(b)));
    };
  });
  return out;
}

Tensor swapaxes(const Tensor& x, int64_t axis0, int64_t axis1) { return transpose(x, axis0, axis1); }
Tensor swapdims(const Tensor& x, int64_t dim0, int64_t dim1) { return transpose(x, dim0, dim1); }

Tensor t(const Tensor& x) {
  if (!has_sparse(x)) check_strided("t", x);
  TERCEL_CHECK(x.dim() <= 2, RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is ", x.dim(), "D");
  return transpose(x, 0, x.dim() < 2 ? 0 : 1);
}

Tensor permute(const Tensor& x, IntSpan dims) {
  if (has_sparse(x)) [[unlikely]]
    return sparse_permute(x, dims);
  check_strided("permute", x);
  const size_t n = x.sizes().size();
  TERCEL_CHECK(
      dims.size() == n, RuntimeError,
      "permute(): number of dimensions in the tensor input does not match the length of the desired ordering of "
      "dimensions i.e. input.dim() = ",
      n, " is not equal to len(dims) = ", dims.size());
  Order order;
  std::bitset<128> named;
  for (size_t i = 0; i < n; ++i) {
    order[i] = static_cast<uint8_t>(wrap_dim(dims[i], x.dim()));
    TERCEL_CHECK(!named[order[i]], RuntimeError, "permute(): duplicate dims are not allowed.");
    named.set(order[i]);
  }
  Tensor out = reordered(x, order);
  make_view("PermuteBackward0", out, x, [&order, n] {
    DimVector inverse(n);
    for (size_t i = 0; i < n; ++i) inverse[order[i]] = static_cast<int64_t>(i);
    return [inverse](BackwardCall& call) { call.set(0, permute(call.grad(), inverse)); };
  });
  return out;
}

namespace {

/** For each dimension in the list, its position in the list plus one; 0 for other dimensions. */
DimVector places_of(IntSpan dims, int64_t ndim, const char* list) {
  DimVector places(static_cast<size_t>(std::max<int64_t>(ndim, 1)), 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t& place = places[static_cast<size_t>(wrap_dim(dims[i], ndim))];
    TERCEL_CHECK(place == 0, RuntimeError, "movedim: repeated dim in `", list, "` (", dims, ")");
    place = static_cast<int64_t>(i) + 1;
  }
  return places;
}

}  // namespace

Tensor movedim(const Tensor& x, IntSpan source, IntSpan destination) {
  if (!has_sparse(x)) check_strided("movedim", x);
  TERCEL_CHECK(source.size() == destination.size(), RuntimeError,
               "movedim: Invalid source or destination dims: source (", source,
               " dims) should contain the same number of dims as destination (", destination, " dims)");
  const DimVector from = places_of(source, x.dim(), "source"), to = places_of(destination, x.dim(), "destination");
  if (x.dim() == 0) return permute(x, {});
  DimVector order;
  size_t rest = 0;  // the next dimension that keeps its order
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] != 0) {
      order.push_back(wrap_dim(source[static_cast<size_t>(to[d] - 1)], x.dim()));
      continue;
    }
    while (from[rest] != 0) ++rest;
    order.push_back(static_cast<int64_t>(rest++));
  }
  return permute(x, order);
}
Tensor movedim(const Tensor& x, int64_t source, int64_t destination) {
  return movedim(x, IntSpan(&source, 1), IntSpan(&destination, 1));
}
Tensor moveaxis(const Tensor& x, IntSpan source, IntSpan destination) { return movedim(x, source, destination); }
Tensor moveaxis(const Tensor& x, int64_t source, int64_t destination) { return movedim(x, source, destination); }

Tensor numpy_T(const Tensor& x) {
  if (!has_sparse(x)) check_strided("numpy_T", x);
  DimVector order;
  for (int64_t d = x.dim(); d-- > 0;) order.push_back(d);
  return permute(x, order);
}

namespace {

Tensor matrices_transposed(const Tensor& x, const char* op, const char* what) {
  if (!has_sparse(x)) check_strided(op, x);
  TERCEL_CHECK(x.dim() != 1, RuntimeError, what, " is only supported on matrices or batches of matrices. Got ", x.dim(),
               "-D tensor.");
  return x.dim() == 0 ? transpose(x, 0, 0) : transpose(x, -2, -1);
}

}  // namespace

Tensor mT(const Tensor& x) { return matrices_transposed(x, "mT", "tensor.mT"); }
Tensor matrix_H(const Tensor& x) {
  if (!has_sparse(x)) check_strided("matrix_H", x);
  TERCEL_CHECK(x.dim() == 0 || x.dim() == 2, RuntimeError, "tensor.H is only supported on matrices (2-D tensors). Got ",
               x.dim(), "-D tensor.");
  return conj(matrices_transposed(x, "matrix_H", "tensor.H"));
}
Tensor mH(const Tensor& x) { return conj(matrices_transposed(x, "mH", "tensor.mH")); }
Tensor adjoint(const Tensor& x) { return conj(matrices_transposed(x, "adjoint", "adjoint()")); }

}  // namespace tercel
