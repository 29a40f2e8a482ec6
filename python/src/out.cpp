#include "python/src/out.h"

#include "tercel/util/warning.h"

namespace tercel::python {

namespace {

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
  if (!out_rule(operation)) return;
  const std::vector<Tensor> outs = tensors_in(arguments.values[signature.out()]);
  std::vector<std::vector<Tensor>> inputs;
  for (int i = 0; i < signature.out(); ++i) inputs.push_back(tensors_in(arguments.values[i]));
  std::vector<OutInput> spans;
  for (const std::vector<Tensor>& tensors : inputs) spans.emplace_back(Span<Tensor>(tensors));
  tercel::check_out_apart(operation, outs, spans);
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

Tensor into_exact(const char* op, const Tensor& out, const Tensor& result) {
  return out.defined() ? put_linalg_out(op, out, result) : result;
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
