// Argument orders of PyTorch before 1.5, with a number before the tensor that it multiplies.
#include <algorithm>

#include "python/src/op.h"
#include "python/src/out.h"

namespace tercel::python {

namespace {

/** The numbers are keyword-only arguments of the operation, and of its in-place variant. */
const std::vector<Signature>& deprecated_signatures() {
  static const auto* signatures = new std::vector<Signature>{
      Signature("add(Tensor input, Scalar alpha, Tensor|Scalar other, *, Tensor out=None)"),
      Signature("sub(Tensor input, Scalar alpha, Tensor|Scalar other, *, Tensor out=None)"),
      Signature("addcdiv(Tensor input, Scalar value, Tensor tensor1, Tensor tensor2, *, Tensor out=None)"),
      Signature("addcmul(Tensor input, Scalar value, Tensor tensor1, Tensor tensor2, *, Tensor out=None)"),
#define TERCEL_DEPRECATED_PRODUCT_SIGNATURES(name, first, second)                              \
  Signature(#name "(Scalar beta, Tensor input, Scalar alpha, Tensor " first ", Tensor " second \
                  ", *, Tensor out=None)"),                                                    \
      Signature(#name "(Scalar beta, Tensor input, Tensor " first ", Tensor " second ", *, Tensor out=None)")
      TERCEL_DEPRECATED_PRODUCT_SIGNATURES(addbmm, "batch1", "batch2"),
      TERCEL_DEPRECATED_PRODUCT_SIGNATURES(addmm, "mat1", "mat2"),
      TERCEL_DEPRECATED_PRODUCT_SIGNATURES(addmv, "mat", "vec"),
      TERCEL_DEPRECATED_PRODUCT_SIGNATURES(addr, "vec1", "vec2"),
      TERCEL_DEPRECATED_PRODUCT_SIGNATURES(baddbmm, "batch1", "batch2"),
#undef TERCEL_DEPRECATED_PRODUCT_SIGNATURES
  };
  return *signatures;
}

/** The arguments in the order of the deprecated signature; a method's object comes first in the call. */
std::vector<PyObject*> in_order(const Signature& signature, PyObject* const* args, size_t count, PyObject* keywords,
                                bool method) {
  const size_t extra = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
  std::vector<PyObject*> out(args, args + count + extra);
  const std::vector<Parameter>& parameters = signature.parameters();
  const auto input =
      std::find_if(parameters.begin(), parameters.end(), [](const Parameter& p) { return to_text(p.name) == "input"; });
  const auto at = input - parameters.begin();
  if (method && static_cast<std::ptrdiff_t>(count) > at)
    std::rotate(out.begin(), out.begin() + 1, out.begin() + at + 1);
  return out;
}

}  // namespace

PyObject* call_deprecated_signature(const Op& op, PyObject* const* args, size_t count, PyObject* keywords,
                                    unsigned place) {
  std::string_view name = op.name();
  const bool in_place = name.ends_with('_');
  if (in_place) name.remove_suffix(1);
  for (const Signature& signature : deprecated_signatures()) {
    if (signature.name() != name) continue;
    const std::vector<PyObject*> given = in_order(signature, args, count, keywords, place == kMethod);
    Arguments matched;
    if (!signature.match(given.data(), count, keywords, false, matched)) continue;
    warn(str_cat({"This overload of ", op.name(), " is deprecated:\n\t", op.name(), signature.listing(false),
                  "\nConsider passing its numbers as keyword arguments after the tensors."}));
    std::vector<PyObject*> again, by_name;
    nb::list names;
    const std::vector<Parameter>& parameters = signature.parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      PyObject* value = matched.values[i];
      const bool named = parameters[i].kind == Kind::Scalar || (parameters[i].keyword_only && value != Py_None);
      if (named) {
        by_name.push_back(value);
        names.append(nb::borrow(parameters[i].name));
      } else if (!parameters[i].keyword_only) {
        again.push_back(value);
      }
    }
    const size_t tensors = again.size();
    again.insert(again.end(), by_name.begin(), by_name.end());
    return op.call(again.data(), tensors, nb::tuple(names).ptr(), place);
  }
  return nullptr;
}

}  // namespace tercel::python
