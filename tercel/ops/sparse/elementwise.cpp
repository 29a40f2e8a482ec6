#include <cmath>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/promotion.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/sparse/compressed_impl.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/sparse/coo_impl.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel {

using sparse_ops::compressed_values;
using sparse_ops::coo_of_values;
using sparse_ops::dense_sizes;
using sparse_ops::elements_at;
using sparse_ops::flat_indices;
using sparse_ops::for_values;
using sparse_ops::make_coo;
using sparse_ops::parts_of;
using sparse_ops::recorded_values;
using sparse_ops::replace_by_result;
using sparse_ops::same_entries;
using sparse_ops::sparse_sizes;
using sparse_ops::unique_entries;
using sparse_ops::UniqueEntries;
using sparse_ops::with_values;

namespace {

bool is_number(const Tensor& x) { return x.layout() == Layout::Strided && x.dim() == 0; }
bool is_coo_number(const Tensor& x) { return x.layout() == Layout::SparseCoo && x.dim() == 0; }

Scalar conjugate(Scalar s) {
  if (!s.is_complex()) return s;
  const Complex<double> z = s.to_complex();
  return Complex<double>(z.re, -z.im);
}

void check_result_dtype(const Tensor& x, const Tensor& result) {
  TERCEL_CHECK(can_cast(result.dtype(), x.dtype()), RuntimeError, "result type ", scalar_type_word(result.dtype()),
               " can't be cast to the desired output type ", scalar_type_word(x.dtype()));
}

/** The int64 positions as a tensor. */
Tensor positions_of(const std::vector<int64_t>& positions) {
  const Tensor out = empty({static_cast<int64_t>(positions.size())}, kInt64);
  std::copy(positions.begin(), positions.end(), out.data<int64_t>());
  return out;
}

void check_same_division(const char* op, const Tensor& a, const Tensor& b) {
  TERCEL_CHECK(a.sizes() == b.sizes(), RuntimeError, op, ": expected sizes of 'self' and 'other' to match, but ",
               a.sizes(), " != ", b.sizes());
  TERCEL_CHECK(sparse_dim(a) == sparse_dim(b), RuntimeError, op,
               ": expected 'self' and 'other' to have same density, but 'self' has ", sparse_dim(a),
               " sparse dimensions while 'other' has ", sparse_dim(b), " sparse dimensions");
}

/** a + b of two COO tensors: their entries merged in order, as long as they are in order. */
Tensor merged(const Tensor& a, const Tensor& b, Scalar alpha) {
  const SparseData &left = parts_of("add", a), &right = parts_of("add", b);
  const ScalarType dtype = result_type(a, b);
  // A tensor without entries is zero whatever the number of its sparse dimensions.
  if (left.sparse_dim != right.sparse_dim && a.sizes() == b.sizes()) {
    if (_nnz(b) == 0) return to(a, dtype, true);
    if (_nnz(a) == 0) return to(mul(b, alpha), dtype);
  }
  check_same_division("add", a, b);
  const Tensor values_a = to(left.values, dtype);
  const bool plain = equals(alpha, 1);
  const Tensor values_b = plain ? to(right.values, dtype) : to(mul(right.values, alpha), dtype);
  if (same_entries(left, right))
    return make_coo(left.indices, add(values_a, values_b), a.sizes(), left.coalesced || right.coalesced);
  const Tensor keys_a = flat_indices("add", left.indices, sparse_sizes(a, left)),
               keys_b = flat_indices("add", right.indices, sparse_sizes(b, right));
  const auto *p = static_cast<const int64_t*>(keys_a.data_ptr()), *q = static_cast<const int64_t*>(keys_b.data_ptr());
  const int64_t n = keys_a.numel(), m = keys_b.numel();
  // Of each entry of the sum, its position in the values of both, one after the other; and entries that are in both.
  std::vector<int64_t> from, both, second;
  from.reserve(static_cast<size_t>(n + m));
  int64_t i = 0, k = 0;
  while (i < n || k < m) {
    if (i < n && k < m && p[i] == q[k]) {
      both.push_back(static_cast<int64_t>(from.size()));
      second.push_back(k++);
      from.push_back(i++);
    } else if (k == m || (i < n && p[i] < q[k])) {
      from.push_back(i++);
    } else {
      from.push_back(n + k++);
    }
  }
  const Tensor order = positions_of(from);
  const Tensor indices = index_select(cat({left.indices, right.indices}, 1), 1, order);
  const Tensor values = index_select(cat({values_a, values_b}, 0), 0, order);
  if (!both.empty()) {
    const Tensor at = positions_of(both);
    index_copy_(values, 0, at, add(index_select(values, 0, at), index_select(values_b, 0, positions_of(second))));
  }
  return make_coo(indices, values, a.sizes(), left.coalesced && right.coalesced);
}

/** [rows, *dense sizes] of a dense tensor, for entries of the parts. */
DimVector rows_of(const Tensor& b, const SparseData& parts) {
  DimVector rows{numel_of(sparse_sizes(b, parts))};
  for (const int64_t s : dense_sizes(b, parts)) rows.push_back(s);
  return rows;
}

/** Adds alpha * b, COO, to the contiguous a of its sizes. */
void add_into(const Tensor& a, const Tensor& b, Scalar alpha) {
  const SparseData& parts = parts_of("add", b);
  if (parts.values.numel() == 0) return;
  const UniqueEntries unique = unique_entries("add", b);
  const Tensor rows = view(a, rows_of(b, parts));
  const Tensor sums = add(index_select(rows, 0, unique.flat), mul(unique.values, alpha));
  index_copy_(rows, 0, unique.flat, to(sums, a.dtype()));
}

void check_dense_sum(const Tensor& a, const Tensor& b) {
  parts_of("add", b);
  TERCEL_CHECK(a.sizes() == b.sizes(), RuntimeError,
               "add: expected 'self' and 'other' to have same size, but self has size ", a.sizes(),
               " while other has size ", b.sizes(),
               " (FYI: dense-sparse addition does not currently support broadcasting)");
}

[[noreturn]] void refuse_dense_other() {
  throw_error<RuntimeError>({"add(sparse, dense) is not supported. Use add(dense, sparse) instead."});
}

/** Elements of both at the entries that both have. */
Tensor intersection(const Tensor& x, const Tensor& y) {
  const Tensor a = coalesce(x), b = coalesce(y);
  const SparseData &left = parts_of("mul", a), &right = parts_of("mul", b);
  const Tensor keys_a = flat_indices("mul", left.indices, sparse_sizes(a, left)),
               keys_b = flat_indices("mul", right.indices, sparse_sizes(b, right));
  const auto *p = static_cast<const int64_t*>(keys_a.data_ptr()), *q = static_cast<const int64_t*>(keys_b.data_ptr());
  const int64_t n = keys_a.numel(), m = keys_b.numel();
  std::vector<int64_t> first, second;
  for (int64_t i = 0, k = 0; i < n && k < m;) {
    if (p[i] == q[k]) {
      first.push_back(i++);
      second.push_back(k++);
    } else {
      ++(p[i] < q[k] ? i : k);
    }
  }
  const Tensor at = positions_of(first);
  const Tensor product = mul(index_select(values(a), 0, at), index_select(values(b), 0, positions_of(second)));
  return coo_of_values(index_select(left.indices, 1, at), product, a.sizes(), true);
}

Tensor times_dense(const Tensor& sparse, const Tensor& dense) {
  const DimVector sizes = broadcast_sizes(sparse.sizes(), dense.sizes());
  const Tensor x = for_values(_sparse_broadcast_to(sparse, sizes));
  const SparseData& parts = parts_of("mul", x);
  const Tensor product = mul(recorded_values(x), elements_at(expand(dense, sizes), parts.indices, parts.sparse_dim));
  return coo_of_values(parts.indices, product, x.sizes(), parts.coalesced);
}

/** The values times or divided by a number, which is a tensor without dimensions that may require a gradient. */
Tensor by_number(const char* op, const Tensor& given, FunctionRef<Tensor(const Tensor&)> f) {
  const Tensor x = for_values(given);
  const SparseData& parts = parts_of(op, x);
  return coo_of_values(parts.indices, f(recorded_values(x)), x.sizes(), parts.coalesced);
}

/** x's entries times a COO tensor without dimensions. */
Tensor times_number(const Tensor& x, const Tensor& number) {
  return mul(x.dim() > 0 ? x : to(x, result_type(x, number)), to_dense(number));
}

/** A compressed tensor as COO, others as they are. */
Tensor as_coo(const Tensor& x) { return is_compressed(x.layout()) ? compressed_to_coo(x) : x; }

/** The elements of both at the entries of either. */
std::pair<Tensor, Tensor> aligned(const char* op, const Tensor& a, const Tensor& b) {
  const SparseData &left = parts_of(op, a), &right = parts_of(op, b);
  const Tensor pattern =
      coalesce(make_coo(cat({left.indices, right.indices}, 1),
                        zeros({left.indices.size(1) + right.indices.size(1)}, kBool), sparse_sizes(a, left), false));
  const Tensor at = indices(pattern);
  return {elements_at(a, at, left.sparse_dim), elements_at(b, at, left.sparse_dim)};
}

}  // namespace

void sparse_refuse_divisor(const char* op, const Tensor& divisor) {
  constexpr const char* kWanted = " requires a scalar or zero-dim dense tensor divisor (got ";
  if (divisor.dim() == 0) throw_error<RuntimeError>({"Sparse ", op, kWanted, "a sparse divisor)"});
  throw_error<RuntimeError>({"Sparse ", op, kWanted, "shape ", divisor.sizes(), " for divisor)"});
}

void sparse_check_coalesced(std::string_view op, const Tensor& x) {
  TERCEL_CHECK(x.layout() != Layout::SparseCoo || is_coalesced(x), RuntimeError, op, " requires coalesced input");
}

Tensor sparse_as_it_was(const Tensor& x, bool records) { return records ? clone(x) : x; }

const Tensor& sparse_assign_(const Tensor& x, const Tensor& result) {
  check_inplace(x, should_record(x, result));
  check_result_dtype(x, result);
  replace_by_result(x, to(result, x.dtype(), false));
  return x;
}

Tensor sparse_map_values(const char* op, const Tensor& given, FunctionRef<Tensor(const Tensor&)> f) {
  if (!is_compressed(given.layout())) parts_of(op, given);
  {
    const NoRecordGuard no_record;
    const Tensor at_zero = f(zeros({}, TensorOptions(given.dtype(), given.device())));
    if (!item(eq(at_zero, 0)).to_bool()) refuse_layout(op, given.layout());
  }
  if (is_compressed(given.layout())) return compressed_map_values(op, given, f);
  const Tensor x = coalesce(given);
  const SparseData& parts = parts_of(op, x);
  return coo_of_values(parts.indices, f(values(x)), x.sizes(), true);
}

const Tensor& sparse_map_values_(const char* op, const Tensor& x, FunctionRef<Tensor(const Tensor&)> f) {
  const Tensor result = sparse_map_values(op, sparse_as_it_was(x, should_record(x)), f);
  sparse_check_coalesced(str_cat({op, "_"}), x);
  return sparse_assign_(x, result);
}

Tensor sparse_neg(const Tensor& x) {
  if (is_compressed(x.layout())) return with_values(x, neg(compressed_values(x)));
  const SparseData& parts = parts_of("neg", x);
  Tensor out = make_coo(parts.indices, neg(parts.values), x.sizes(), parts.coalesced);
  if (should_record(x)) record("NegBackward0", out, {x}, [](BackwardCall& call) { call.set(0, neg(call.grad())); });
  return out;
}

Tensor sparse_add(const Tensor& a, const Tensor& b, Scalar alpha) {
  check_defined("add", a, "self");
  check_defined("add", b, "other");
  if (has_compressed(a, b)) return compressed_add(a, b, alpha);
  if (!is_sparse(b.layout())) refuse_dense_other();
  Tensor out;
  {
    const NoRecordGuard no_record;
    if (!is_sparse(a.layout())) {
      check_strided("add", a);
      check_dense_sum(a, b);
      out = clone(to(a, result_type(a, b)), MemoryFormat::Contiguous);
      add_into(out, b, alpha);
    } else {
      out = merged(a, b, alpha);
    }
  }
  if (should_record(a, b))
    record("AddBackward0", out, {a, b}, [alpha, to_a = a.dtype(), to_b = b.dtype()](BackwardCall& call) {
      if (call.needs(0)) call.set(0, to(call.grad(), to_a));
      if (call.needs(1)) call.set(1, to(mul(call.grad(), conjugate(alpha)), to_b));
    });
  return out;
}

const Tensor& sparse_add_(const char* op, const Tensor& a, const Tensor& b, Scalar alpha) {
  check_defined(op, a, "self");
  if (is_sparse(a.layout())) return sparse_assign_(a, add(sparse_as_it_was(a, should_record(a, b)), b, alpha));
  check_strided(op, a);
  if (is_compressed(b.layout())) return copy_(a, compressed_add(a, b, alpha));
  check_dense_sum(a, b);
  if (should_record(a, b) || !a.is_contiguous()) return copy_(a, add(a, b, alpha));
  check_inplace(a, false);
  TERCEL_CHECK(can_cast(result_type(a, b), a.dtype()), RuntimeError, "result type ",
               scalar_type_word(result_type(a, b)), " can't be cast to the desired output type ",
               scalar_type_word(a.dtype()));
  add_into(a.detach(), b, alpha);
  return a;
}

Tensor sparse_mul(const Tensor& a, Scalar b) {
  if (is_compressed(a.layout())) return with_values(a, mul(compressed_values(a), b));
  const SparseData& parts = parts_of("mul", a);
  Tensor out = make_coo(parts.indices, mul(parts.values.detach(), b), a.sizes(), parts.coalesced);
  if (should_record(a))
    record("MulBackward0", out, {a},
           [b, dtype = a.dtype()](BackwardCall& call) { call.set(0, to(mul(call.grad(), conjugate(b)), dtype)); });
  return out;
}

Tensor sparse_mul(const Tensor& a, const Tensor& b) {
  check_defined("mul", a, "self");
  check_defined("mul", b, "other");
  if (has_compressed(a, b)) return compressed_mul(a, b);
  // A COO tensor without dimensions is a number to another one; of two, that with fewer entries.
  if (is_coo_number(b) && is_sparse(a.layout()) && (a.dim() > 0 || _nnz(b) <= _nnz(a))) return times_number(a, b);
  if (is_coo_number(a) && is_sparse(b.layout())) return times_number(b, a);
  if (is_number(b)) return by_number("mul", a, [&](const Tensor& v) { return mul(v, b); });
  if (is_number(a)) return by_number("mul", b, [&](const Tensor& v) { return mul(v, a); });
  if (!is_sparse(a.layout())) {
    check_strided("mul", a);
    return times_dense(b, a);
  }
  if (!is_sparse(b.layout())) {
    check_strided("mul", b, "other");
    return times_dense(a, b);
  }
  parts_of("mul", a);
  parts_of("mul", b);
  const DimVector sizes = broadcast_sizes(a.sizes(), b.sizes());
  const Tensor x = _sparse_broadcast_to(a, sizes), y = _sparse_broadcast_to(b, sizes);
  check_same_division("mul", x, y);
  return intersection(x, y);
}

const Tensor& sparse_mul_(const Tensor& a, Scalar b) {
  return sparse_assign_(a, mul(sparse_as_it_was(a, should_record(a)), b));
}
const Tensor& sparse_mul_(const Tensor& a, const Tensor& b) {
  const Tensor product = mul(sparse_as_it_was(a, is_sparse(a.layout()) && should_record(a, b)), b);
  TERCEL_CHECK(product.sizes() == a.sizes(), RuntimeError, "mul_: output with shape ", a.sizes(),
               " doesn't match the broadcast shape ", product.sizes());
  return is_sparse(a.layout()) ? sparse_assign_(a, product) : copy_(a, to_dense(product));
}

Tensor sparse_div(const Tensor& a, Scalar b) {
  if (is_compressed(a.layout())) return with_values(a, div(compressed_values(a), b));
  const SparseData& parts = parts_of("div", a);
  Tensor out = make_coo(parts.indices, div(parts.values.detach(), b), a.sizes(), parts.coalesced);
  if (should_record(a))
    record("DivBackward0", out, {a},
           [b, dtype = a.dtype()](BackwardCall& call) { call.set(0, to(div(call.grad(), conjugate(b)), dtype)); });
  return out;
}

Tensor sparse_div(const Tensor& a, const Tensor& b) {
  check_defined("div", a, "self");
  check_defined("div", b, "other");
  if (!is_number(b)) sparse_refuse_divisor("division", b);
  if (is_compressed(a.layout())) return with_values(a, div(compressed_values(a), b));
  return by_number("div", a, [&](const Tensor& v) { return div(v, b); });
}

const Tensor& sparse_div_(const Tensor& a, Scalar b) {
  return sparse_assign_(a, div(sparse_as_it_was(a, should_record(a)), b));
}
const Tensor& sparse_div_(const Tensor& a, const Tensor& b) {
  if (!is_number(b)) sparse_refuse_divisor("division", b);
  return sparse_assign_(a, div(sparse_as_it_was(a, should_record(a, b)), b));
}

bool sparse_equal(const Tensor& a, const Tensor& b) {
  check_defined("equal", a, "self");
  check_defined("equal", b, "other");
  if (has_compressed(a, b)) return a.sizes() == b.sizes() && sparse_equal(as_coo(a), as_coo(b));
  parts_of("equal", a);
  parts_of("equal", b);
  if (a.sizes() != b.sizes()) return false;
  check_same_division("equal", a, b);
  const NoRecordGuard no_record;
  const auto [x, y] = aligned("equal", a, b);
  return equal(x, y);
}

bool sparse_allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  check_defined("allclose", a, "self");
  check_defined("allclose", b, "other");
  if (has_compressed(a, b)) return sparse_allclose(as_coo(a), as_coo(b), rtol, atol, equal_nan);
  parts_of("allclose", a);
  parts_of("allclose", b);
  check_same_division("allclose", a, b);
  const NoRecordGuard no_record;
  const auto [x, y] = aligned("allclose", a, b);
  return allclose(x, y, rtol, atol, equal_nan);
}

}  // namespace tercel
