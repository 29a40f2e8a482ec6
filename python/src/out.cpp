#include "python/src/out.h"

#include "tercel/ops/tensor_iterator.h"
#include "tercel/util/warning.h"

namespace tercel::python {

namespace {

// Note [Where out may lie]
// Results are calculated before they are put into `out`, so that its memory may be an input's all the same. PyTorch,
// whose kernels write to `out` as they go, refuses this for some operations: an `out` that has only a part of its
// elements in common with an input (Partial), or any at all (Full). Elementwise operations, and some others whose
// kernels do write to `out`, look for themselves.
struct OutRule {
  Overlap first;   ///< the least overlap with the first tensor that is refused; None: all is allowed
  Overlap others;  ///< and with further ones
  std::string_view operations;
};
constexpr OutRule kOutRules[] = {
    {Overlap::Full, Overlap::Full,
     " cat stack hstack vstack dstack column_stack cross linalg_cross gather index_select kron kthvalue masked_select "
     "nonzero take take_along_dim "},
    {Overlap::Partial, Overlap::Full,
     " index_add index_copy index_fill index_reduce scatter scatter_add scatter_reduce "},
    {Overlap::Partial, Overlap::None, " addbmm addmm addmv baddbmm "},
    {Overlap::Partial, Overlap::Partial,
     " addr aminmax angle bitwise_not clamp clamp_max clamp_min complex conj_physical cumprod cumsum deg2rad diff div "
     "frac frexp histogram inner isin isneginf isposinf ldexp linalg_lu_solve linalg_solve_triangular logcumsumexp "
     "logit max min mode msort nan_to_num outer polar rad2deg renorm round sgn signbit sort topk "},
};

const OutRule* out_rule(std::string_view operation) {
  const std::string word = str_cat({" ", operation, " "});
  for (const OutRule& rule : kOutRules)
    if (rule.operations.find(word) != std::string_view::npos) return &rule;
  return nullptr;
}

/** The tensors of an argument. */
std::vector<Tensor> tensors_in(PyObject* argument) {
  if (is_tensor(argument)) return {tensor_of(argument)};
  if (!PyTuple_Check(argument) && !PyList_Check(argument)) return {};
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(argument);
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!is_tensor(PySequence_Fast_GET_ITEM(argument, i))) return {};
  return to_tensors(argument);
}

}  // namespace

void check_out_apart(std::string_view operation, const Signature& signature, const Arguments& arguments) {
  operation = operation.substr(0, operation.find('('));
  const OutRule* rule = out_rule(operation);
  if (!rule) return;
  const std::vector<Tensor> outs = tensors_in(arguments.values[signature.out()]);
  bool first = true;
  for (int i = 0; i < signature.out(); ++i) {
    const std::vector<Tensor> inputs = tensors_in(arguments.values[i]);
    const Overlap refused = first ? rule->first : rule->others;
    for (const Tensor& in : inputs)
      for (const Tensor& out : outs) {
        if (!in.defined() || !out.defined()) continue;
        if (refused == Overlap::Full) check_apart(std::string(operation).c_str(), out, in);
        if (refused == Overlap::Partial) check_overlap(std::string(operation).c_str(), out, in);
      }
    first &= inputs.empty();
  }
}

void warn(const std::string& text) {
  const WithGil scope;
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) throw nb::python_error();
}

void warn_of_bytes() {
  warn("indexing with dtype tercel.uint8 is now deprecated, please use a dtype tercel.bool instead.");
}

ScalarType dtype_of(std::optional<ScalarType> given, const Tensor& out) {
  return dtype_for_out(given.value_or(ScalarType::Undefined), out);
}

Tensor into(const char* op, const Tensor& out, const Tensor& result) {
  return out.defined() ? put_out(op, out, result) : result;
}

std::vector<Tensor> into(const char* op, const std::vector<Tensor>& out, Span<Tensor> results) {
  TERCEL_CHECK(out.size() == results.size(), TypeError, op, "() expected a tuple of ", results.size(),
               " elements for out");
  return put_out(op, Span<Tensor>(out), results);
}

std::vector<Tensor> into_each(const char* op, const std::optional<std::vector<Tensor>>& out,
                              const std::vector<Tensor>& results) {
  return out ? put_out(op, Span<Tensor>(*out), Span<Tensor>(results)) : results;
}

ValuesAndIndices into(const char* op, const std::optional<std::vector<Tensor>>& out, const ValuesAndIndices& result) {
  if (!out) return result;
  TERCEL_CHECK(out->size() == 2, TypeError, op, "() expected a tuple of 2 elements for out");
  return put_out(op, (*out)[0], (*out)[1], result);
}

}  // namespace tercel::python
