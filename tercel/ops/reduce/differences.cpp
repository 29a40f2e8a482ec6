#include "tercel/ops/reduce/differences.h"

#include <algorithm>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/reduce/scan.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

/** All elements except the first `count`, or except the last `count`. */
Tensor without_first(const Tensor& x, int64_t dim, int64_t count = 1) {
  return narrow(x, dim, count, x.size(dim) - count);
}
Tensor without_last(const Tensor& x, int64_t dim, int64_t count = 1) { return narrow(x, dim, 0, x.size(dim) - count); }

void check_prepend_append(const Tensor& x, const Tensor& joined, int64_t dim) {
  if (!joined.defined()) return;
  TERCEL_CHECK(joined.dim() == x.dim(), RuntimeError,
               "diff expects prepend or append to be the same dimension as input");
  for (int64_t d = 0; d < x.dim(); ++d)
    TERCEL_CHECK(d == dim || joined.size(d) == x.size(d), RuntimeError,
                 "diff expects the shape of tensor to prepend or append to match that of input except along the ",
                 "differencing dimension; input.size(", d, ") = ", x.size(d), ", but got tensor.size(", d,
                 ") = ", joined.size(d));
}

/** The coordinates of samples, shaped to broadcast with the samples. */
Tensor places_along(const char* op, const Tensor& y, const Tensor& x, int64_t dim) {
  check_strided(op, x, "x");
  TERCEL_CHECK(y.dtype() != kBool && x.dtype() != kBool, NotImplementedError, op,
               ": received a bool input for `x` or `y`, but bool is not supported");
  if (x.dim() == 1) {
    TERCEL_CHECK(x.size(0) == y.size(dim), RuntimeError, op, ": There must be one `x` value for each sample point");
    DimVector sizes(y.sizes());
    for (int64_t& size : sizes) size = 1;
    sizes[static_cast<size_t>(dim)] = x.size(0);
    return reshape(x, sizes);
  }
  Tensor out = x;
  while (out.dim() < y.dim()) out = unsqueeze(out, 0);
  return out;
}

/** Twice the area between adjacent samples. */
Tensor areas(const Tensor& y, int64_t dim, const Tensor& widths) {
  return mul(add(without_first(y, dim), without_last(y, dim)), widths);
}
Tensor widths_of(const Tensor& x, int64_t dim) { return sub(without_first(x, dim), without_last(x, dim)); }

int64_t samples_dim(const char* op, const Tensor& y, int64_t dim) {
  check_strided(op, y, "y");
  TERCEL_CHECK(y.dtype() != kBool, NotImplementedError, op,
               ": received a bool input for `y`, but bool is not supported");
  return wrap_dim(dim, y.dim(), false);
}

DimVector sizes_without(const Tensor& y, int64_t dim) {
  DimVector sizes;
  for (int64_t d = 0; d < y.dim(); ++d)
    if (d != dim) sizes.push_back(y.size(d));
  return sizes;
}

/** The dimension of x that corresponds to y's `dim`, counting from the end. */
int64_t same_from_the_end(const Tensor& x, const Tensor& y, int64_t dim) { return dim + x.dim() - y.dim(); }

}  // namespace

Tensor diff(const Tensor& input, int64_t n, int64_t d, const Tensor& prepend, const Tensor& append) {
  check_strided("diff", input, "x");
  TERCEL_CHECK(input.dim() >= 1, RuntimeError, "diff expects input to be at least one-dimensional");
  TERCEL_CHECK(n >= 0, RuntimeError, "order must be non-negative but got ", n);
  const int64_t dim = wrap_dim(d, input.dim());
  check_prepend_append(input, prepend, dim);
  check_prepend_append(input, append, dim);
  std::vector<Tensor> parts;
  for (const Tensor& part : {prepend, input, append})
    if (part.defined()) parts.push_back(part);
  Tensor x = parts.size() == 1 ? input : cat(parts, dim);
  if (n == 0) return clone(input);
  if (n >= x.size(dim)) return narrow(x, dim, 0, 0);
  for (int64_t i = 0; i < n; ++i) {
    const Tensor later = without_first(x, dim), earlier = without_last(x, dim);
    x = x.dtype() == kBool ? logical_xor(later, earlier) : sub(later, earlier);
  }
  return x;
}

Tensor trapezoid(const Tensor& y, double dx, int64_t d) {
  const int64_t dim = samples_dim("trapezoid", y, d);
  if (y.size(dim) == 0) return zeros(sizes_without(y, dim), y.options());
  // Every sample except the first and the last counts twice.
  const Tensor ends = mul(add(select(y, dim, 0), select(y, dim, -1)), 0.5);
  return mul(sub(sum(y, {dim}), ends), dx);
}

Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t d) {
  const int64_t dim = samples_dim("trapezoid", y, d);
  const Tensor places = places_along("trapezoid", y, x, dim);
  if (y.size(dim) == 0) return zeros(sizes_without(y, dim), y.options());
  const Tensor widths = widths_of(places, same_from_the_end(places, y, dim));
  const Tensor between = areas(y, dim, widths);
  return div(sum(between, {same_from_the_end(between, y, dim)}), 2.0);
}

Tensor trapz(const Tensor& y, double dx, int64_t dim) { return trapezoid(y, dx, dim); }
Tensor trapz(const Tensor& y, const Tensor& x, int64_t dim) { return trapezoid(y, x, dim); }

Tensor cumulative_trapezoid(const Tensor& y, double dx, int64_t d) {
  const int64_t dim = samples_dim("cumulative_trapezoid", y, d);
  if (y.size(dim) == 0) return zeros(y.sizes(), y.options());
  return mul(cumsum(add(without_first(y, dim), without_last(y, dim)), dim), dx / 2);
}

Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t d) {
  const int64_t dim = samples_dim("cumulative_trapezoid", y, d);
  const Tensor places = places_along("cumulative_trapezoid", y, x, dim);
  if (y.size(dim) == 0) return zeros(y.sizes(), y.options());
  const Tensor between = areas(y, dim, widths_of(places, same_from_the_end(places, y, dim)));
  return div(cumsum(between, same_from_the_end(between, y, dim)), 2.0);
}

namespace {

DimVector gradient_dims(const Tensor& x, IntSpan given, int64_t edge_order) {
  check_strided("gradient", x, "x");
  TERCEL_CHECK(edge_order == 1 || edge_order == 2, RuntimeError,
               "gradient() only supports edge_order=1 and edge_order=2, but got ", edge_order);
  DimVector dims;
  for (int64_t d = 0; given.empty() && d < x.dim(); ++d) dims.push_back(d);
  for (const int64_t d : given) {
    const int64_t dim = wrap_dim(d, x.dim());
    TERCEL_CHECK(std::find(dims.begin(), dims.end(), dim) == dims.end(), RuntimeError, "dim ", dim,
                 " appears multiple times in the list of dims");
    dims.push_back(dim);
  }
  for (const int64_t dim : dims)
    TERCEL_CHECK(x.size(dim) >= edge_order + 1, RuntimeError,
                 "gradient() expected each dimension size to be at least edge_order+1, but dimension ", dim,
                 " of size ", x.size(dim), " is smaller than ", edge_order + 1);
  return dims;
}

void check_spacings(size_t count, size_t dims) {
  TERCEL_CHECK(count == dims, RuntimeError,
               "gradient() expected spacing to be unspecified, a scalar or a list of length ", dims,
               " but got a list of length ", count);
}

Tensor at(const Tensor& x, int64_t dim, int64_t i) { return narrow(x, dim, i < 0 ? x.size(dim) + i : i, 1); }

Tensor joined(const Tensor& first, const Tensor& inner, const Tensor& last, int64_t dim) {
  const Tensor parts[] = {first, inner, last};
  return cat(parts, dim);
}

Tensor gradient_along(const Tensor& x, int64_t dim, double h, int64_t edge_order) {
  const Tensor inner = div(sub(without_first(x, dim, 2), without_last(x, dim, 2)), 2 * h);
  if (edge_order == 1)
    return joined(div(sub(at(x, dim, 1), at(x, dim, 0)), h), inner, div(sub(at(x, dim, -1), at(x, dim, -2)), h), dim);
  const auto end = [&](int64_t a, int64_t b, int64_t c, double width) {
    return div(sub(sub(mul(at(x, dim, b), 2.0), mul(at(x, dim, a), 1.5)), mul(at(x, dim, c), 0.5)), width);
  };
  return joined(end(0, 1, 2, h), inner, end(-1, -2, -3, -h), dim);
}

Tensor gradient_along(const Tensor& x, int64_t dim, const Tensor& coordinates, int64_t edge_order) {
  TERCEL_CHECK(coordinates.dim() == 1, RuntimeError,
               "gradient() expected each element of spacing to have one dimension, but got an element with ",
               coordinates.dim(), " dimensions");
  TERCEL_CHECK(coordinates.size(0) == x.size(dim), RuntimeError,
               "gradient() expected each element of spacing to have as many coordinates as its dimension, ",
               x.size(dim), ", but got ", coordinates.size(0));
  DimVector sizes(x.sizes());
  for (int64_t& size : sizes) size = 1;
  sizes[static_cast<size_t>(dim)] = x.size(dim) - 1;
  const Tensor steps = reshape(sub(without_first(coordinates, 0), without_last(coordinates, 0)), sizes);
  const Tensor before = without_last(steps, dim), after = without_first(steps, dim);
  // Derivative at the middle of three points of their parabola.
  const Tensor both = add(before, after);
  const Tensor inner = sub(add(mul(without_first(x, dim, 2), div(before, mul(after, both))),
                               mul(narrow(x, dim, 1, x.size(dim) - 2), div(sub(after, before), mul(before, after)))),
                           mul(without_last(x, dim, 2), div(after, mul(before, both))));
  const auto first_order = [&](int64_t a, int64_t b, int64_t step) {
    return div(sub(at(x, dim, b), at(x, dim, a)), at(steps, dim, step));
  };
  if (edge_order == 1) return joined(first_order(0, 1, 0), inner, first_order(-2, -1, -1), dim);
  // The same at an outer point: near is the adjacent step, far the next one.
  const auto end = [&](int64_t a, int64_t b, int64_t c, const Tensor& near, const Tensor& far) {
    const Tensor all = add(near, far);
    return sub(sub(mul(at(x, dim, b), div(all, mul(near, far))), mul(at(x, dim, c), div(near, mul(far, all)))),
               mul(at(x, dim, a), div(add(near, all), mul(near, all))));
  };
  const Tensor first = end(0, 1, 2, at(steps, dim, 0), at(steps, dim, 1));
  const Tensor last = end(-1, -2, -3, at(steps, dim, -1), at(steps, dim, -2));
  return joined(first, inner, mul(last, -1.0), dim);
}

/** spacing_of(i) is the spacing along dimension i of `dims`. */
template <class SpacingOf>
std::vector<Tensor> gradient_along_each(const Tensor& x, const DimVector& dims, int64_t edge_order,
                                        SpacingOf spacing_of) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < dims.size(); ++i) out.push_back(gradient_along(x, dims[i], spacing_of(i), edge_order));
  return out;
}

template <class Spacing>
std::vector<Tensor> gradient_by(const Tensor& x, Span<Spacing> spacings, IntSpan given, int64_t edge_order) {
  const DimVector dims = gradient_dims(x, given, edge_order);
  check_spacings(spacings.size(), dims.size());
  return gradient_along_each(x, dims, edge_order, [&](size_t i) -> const Spacing& { return spacings[i]; });
}

}  // namespace

std::vector<Tensor> gradient(const Tensor& x, Span<double> spacing, IntSpan given, int64_t edge_order) {
  return gradient_by(x, spacing, given, edge_order);
}

std::vector<Tensor> gradient(const Tensor& x, double spacing, IntSpan given, int64_t edge_order) {
  return gradient_along_each(x, gradient_dims(x, given, edge_order), edge_order, [&](size_t) { return spacing; });
}

std::vector<Tensor> gradient(const Tensor& x, Span<Tensor> coordinates, IntSpan given, int64_t edge_order) {
  return gradient_by(x, coordinates, given, edge_order);
}

}  // namespace tercel
