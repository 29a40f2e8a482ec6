#include "tercel/ops/common/out.h"

#include <string_view>

#include "tercel/autograd/grad_mode.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/overlap_checks_impl.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/resize.h"
#include "tercel/util/warning.h"

namespace tercel {

struct OutRule {
  Overlap first;   ///< the least overlap with the first tensor that is an error; None: all overlap is allowed
  Overlap others;  ///< the same for the other tensors
  std::string_view operations;
};

namespace {

// Note [Overlap with out]
// Results are computed before they are copied to `out`, so `out` may share memory with an input. PyTorch's kernels
// write to `out` directly, and PyTorch refuses overlap for some operations: an `out` that shares only part of its
// elements with an input (Partial), or any (Full). This table follows PyTorch. Elementwise operations, and others whose
// kernels write to `out`, check overlap themselves.
constexpr OutRule kOutRules[] = {
    {Overlap::Full, Overlap::Full,
     " cat concat concatenate stack hstack vstack row_stack dstack column_stack cross linalg_cross gather index_select "
     "kron kthvalue masked_select "
     "nonzero take take_along_dim "},
    {Overlap::Partial, Overlap::Full,
     " index_add index_copy index_fill index_reduce scatter scatter_add scatter_reduce "},
    {Overlap::Partial, Overlap::None, " addbmm addmm addmv baddbmm "},
    {Overlap::Partial, Overlap::Partial,
     " addr aminmax angle bitwise_not clamp clamp_max clamp_min clip complex conj_physical cumprod cumsum deg2rad diff "
     "div "
     "frexp histogram inner isin isneginf isposinf ldexp linalg_lu_solve linalg_solve_triangular logcumsumexp "
     "logit max min mode msort nan_to_num outer polar rad2deg renorm round sgn signbit sort topk "},
};

constexpr const char* kResizeAdvice =
    ". Resizing an out tensor that has elements is deprecated. To reuse a tensor t as out, resize it to zero elements "
    "first, with t.resize_(0).";

/** The checks of put_out(). */
void check_out(const char* op, const Tensor& out, const Tensor& result) {
  check_strided(op, out, "out");
  check_out_gradients(op, result);
  check_out_gradients(op, out);
  TERCEL_CHECK(can_cast(result.dtype(), out.dtype()), RuntimeError, "result type ", scalar_type_word(result.dtype()),
               " can't be cast to the desired output type ", scalar_type_word(out.dtype()));
  if (out.sizes() == result.sizes()) check_no_internal_overlap(op, out);
}

const Tensor& write_out(const char* op, const Tensor& out, const Tensor& result) {
  prepare_out(op, out, result.sizes());
  const NoRecordGuard guard;
  return copy_(out, result);
}

void check_out_dtype(const Tensor& out, const Tensor& result) {
  TERCEL_CHECK(result.dtype() == out.dtype(), RuntimeError, "Expected out tensor to have dtype ",
               cpp_type_name(result.dtype()), ", but got ", cpp_type_name(out.dtype()), " instead");
}

/** Operations whose `out` may have any dtype that the result can be cast to, with their names in the error message. */
struct CastableOut {
  std::string_view op;
  const char *words, *result = "result";
};
constexpr CastableOut kCastableOuts[] = {
    {"cholesky_inverse", "cholesky_inverse"},
    {"cholesky_solve", "cholesky_solve"},
    {"geqrf", "geqrf", nullptr},
    {"linalg_cond", "linalg.cond"},
    {"linalg_eig", "linalg.eig", nullptr},
    {"linalg_eigvals", "linalg.eigvals", "eigenvalues"},
    {"linalg_householder_product", "linalg.householder_product"},
    {"linalg_lstsq", "linalg.lstsq", nullptr},
    {"linalg_matrix_power", "matrix_power"},
    {"linalg_matrix_rank", "linalg.matrix_rank"},
    {"linalg_pinv", "linalg.pinv"},
    {"linalg_tensorinv", "tensorinv"},
    {"linalg_tensorsolve", "tensorsolve"},
    {"orgqr", "linalg.householder_product"},
};

}  // namespace

const OutRule* out_rule(std::string_view op) {
  for (const OutRule& rule : kOutRules)
    for (size_t at = rule.operations.find(op); at != std::string_view::npos; at = rule.operations.find(op, at + 1))
      if (rule.operations[at - 1] == ' ' && rule.operations[at + op.size()] == ' ') return &rule;
  return nullptr;
}

void check_out_apart(std::string_view op, Span<Tensor> out, Span<OutInput> arguments) {
  const OutRule* rule = out_rule(op);
  if (!rule) return;
  bool first = true;
  for (const OutInput& argument : arguments) {
    const Overlap refused = first ? rule->first : rule->others;
    for (const Tensor& in : argument.tensors())
      for (const Tensor& to : out) {
        if (!in.defined() || !to.defined() || has_sparse(in, to)) continue;
        if (refused == Overlap::Full) check_apart(std::string(op).c_str(), to, in);
        if (refused == Overlap::Partial) check_overlap(std::string(op).c_str(), to, in);
      }
    first &= argument.tensors().empty();
  }
}

void check_out_gradients(const char* op, const Tensor& x) {
  if (!should_record(x)) return;
  TERCEL_CHECK(!grad_enabled() || !x.requires_grad(), RuntimeError, op,
               "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
               "requires grad.");
  throw_error<NotImplementedError>(
      {"Trying to use forward AD with ", op, " (because it is an out= function) that does not support it."});
}

void prepare_out(const char* op, const Tensor& out, IntSpan sizes) {
  check_strided(op, out, "out");
  check_out_gradients(op, out);
  if (out.sizes() == sizes) return;
  if (out.numel() > 0)
    warn(str_cat({"An output with one or more elements was resized since it had shape ", out.sizes(),
                  ", which does not match the required output shape ", sizes, kResizeAdvice}));
  resize_(out, sizes);
}

const Tensor& put_out(const char* op, const Tensor& out, const Tensor& result) {
  if (has_sparse(out, result)) [[unlikely]]
    return sparse_put_out(op, out, result);
  check_out(op, out, result);
  return write_out(op, out, result);
}

std::vector<Tensor> put_out(const char* op, Span<Tensor> out, Span<Tensor> results) {
  TERCEL_CHECK(out.size() == results.size(), RuntimeError, op, "() expected an out= argument of size ", results.size(),
               ", got size ", out.size());
  for (size_t i = 0; i < out.size(); ++i) check_out(op, out[i], results[i]);
  for (size_t i = 0; i < out.size(); ++i) write_out(op, out[i], results[i]);
  return out.to_vector();
}

ValuesAndIndices put_out(const char* op, const Tensor& values, const Tensor& indices, const ValuesAndIndices& result) {
  check_strided(op, values, "values");
  check_strided(op, indices, "indices");
  check_out_dtype(values, result.values);
  check_out_dtype(indices, result.indices);
  put_out(op, {values, indices}, {result.values, result.indices});
  return {values, indices};
}

void check_linalg_out(const char* name_of_op, const Tensor& out, const Tensor& result, const char* part) {
  const std::string_view op = name_of_op;
  for (const CastableOut& rule : kCastableOuts) {
    if (rule.op != op) continue;
    const char* name = rule.result ? rule.result : part;
    TERCEL_CHECK(can_cast(result.dtype(), out.dtype()), RuntimeError, rule.words, ": Expected ", name,
                 " to be safely castable from ", scalar_type_word(result.dtype()), " dtype, but got ", name,
                 " with dtype ", scalar_type_word(out.dtype()));
    return;
  }
  TERCEL_CHECK(op != "linalg_multi_dot" || result.dtype() == out.dtype(), RuntimeError,
               "multi_dot(): expected out tensor to have dtype ", cpp_type_name(result.dtype()), " but got ",
               cpp_type_name(out.dtype()));
  TERCEL_CHECK(op != "ormqr" || result.dtype() == out.dtype(), RuntimeError,
               "ormqr: Expected input and result to have the same dtype, but input has dtype ",
               scalar_type_word(result.dtype()), " and result has dtype ", scalar_type_word(out.dtype()));
  check_out_dtype(out, result);
}

const Tensor& put_linalg_out(const char* op, const Tensor& out, const Tensor& result) {
  check_strided(op, out, "out");
  check_linalg_out(op, out, result, "result");
  return put_out(op, out, result);
}

void put_linalg_out(const char* op, Span<Tensor> out, Span<Tensor> results, Span<const char*> parts) {
  for (size_t i = 0; i < out.size(); ++i) {
    check_strided(op, out[i], parts[i]);
    check_linalg_out(op, out[i], results[i], parts[i]);
  }
  put_out(op, out, results);
}

ScalarType dtype_for_out(ScalarType given, const Tensor& out) {
  if (!out.defined()) return given;
  TERCEL_CHECK(given == ScalarType::Undefined || given == out.dtype(), RuntimeError,
               "Expected out tensor to have dtype ", cpp_type_name(given), ", but got ", cpp_type_name(out.dtype()),
               " instead");
  return out.dtype();
}

}  // namespace tercel
