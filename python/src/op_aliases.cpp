// Aliases of operations, including in-place variants.
#include "python/src/op.h"

namespace tercel::python {

Span<OpAlias> op_aliases() {
  static constexpr OpAlias kAliases[] = {
      {"absolute", "abs"},
      {"arccos", "acos"},
      {"arccosh", "acosh"},
      {"arcsin", "asin"},
      {"arcsinh", "asinh"},
      {"arctan", "atan"},
      {"arctan2", "atan2"},
      {"arctanh", "atanh"},
      {"clip", "clamp"},
      {"divide", "div"},
      {"fix", "trunc"},
      {"greater", "gt"},
      {"greater_equal", "ge"},
      {"less", "lt"},
      {"less_equal", "le"},
      {"multiply", "mul"},
      {"negative", "neg"},
      {"not_equal", "ne"},
      {"subtract", "sub"},
      {"true_divide", "div"},
      // tercel.special
      {"special_digamma", "digamma"},
      {"special_erf", "erf"},
      {"special_erfc", "erfc"},
      {"special_erfinv", "erfinv"},
      {"special_exp2", "exp2"},
      {"special_expit", "sigmoid"},
      {"special_expm1", "expm1"},
      {"special_gammainc", "igamma"},
      {"special_gammaincc", "igammac"},
      {"special_gammaln", "lgamma"},
      {"special_i0", "i0"},
      {"special_log1p", "log1p"},
      {"special_log_softmax", "log_softmax"},
      {"special_logit", "logit"},
      {"special_logsumexp", "logsumexp"},
      {"special_modified_bessel_i0", "i0"},
      {"special_modified_bessel_i1", "special_i1"},
      {"special_multigammaln", "mvlgamma"},
      {"special_polygamma", "polygamma"},
      {"special_psi", "digamma"},
      {"special_round", "round"},
      {"special_sinc", "sinc"},
      {"special_softmax", "softmax"},
      {"special_xlogy", "xlogy"},
  };
  return kAliases;
}

}  // namespace tercel::python
