#include "tercel/ops/nn/attention.h"

#include <cmath>
#include <limits>

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/nn/dropout.h"
#include "tercel/ops/nn/softmax.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/flip_roll_repeat.h"
#include "tercel/ops/views/views.h"

namespace tercel {

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
  constexpr const char* kOp = "scaled_dot_product_attention";
  check_strided(kOp, query, "query");
  check_strided(kOp, key, "key");
  check_strided(kOp, value, "value");
  TERCEL_CHECK(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2, RuntimeError, kOp,
               ": Expected query, key, and value to all be  at least 2 dimensional, but got query.dim(): ", query.dim(),
               ", key.dim(): ", key.dim(), " and value.dim(): ", value.dim(), " instead.");
  TERCEL_CHECK(query.dtype() == key.dtype() && key.dtype() == value.dtype(), RuntimeError,
               "Expected query, key, and value to have the same dtype, but got query.dtype: ", to_string(query.dtype()),
               " key.dtype: ", to_string(key.dtype()), " and value.dtype: ", to_string(value.dtype()), " instead.");
  TERCEL_CHECK(!is_causal || !attn_mask.defined(), RuntimeError, kOp,
               ": Explicit attn_mask should not be set when is_causal=True");
  if (enable_gqa) {
    TERCEL_CHECK(query.dim() >= 3 && key.dim() >= 3 && value.dim() >= 3, RuntimeError, kOp,
                 ": enable_gqa needs a dimension of heads, but got ", query.sizes(), ", ", key.sizes(), " and ",
                 value.sizes());
    const auto spread = [&](const Tensor& x, const char* name) {
      const int64_t heads = query.size(-3), groups = x.size(-3);
      TERCEL_CHECK(groups > 0 && heads % groups == 0, RuntimeError, kOp, ": Number of heads in ", name, " (", groups,
                   ") must divide the number of heads in query (", heads, ")");
      return heads == groups ? x : repeat_interleave(x, heads / groups, -3);
    };
    return scaled_dot_product_attention(query, spread(key, "key"), spread(value, "value"), attn_mask, dropout_p,
                                        is_causal, scale);
  }
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  Tensor scores = matmul(mul(query, factor), transpose(key, -2, -1));
  Tensor mask = attn_mask;
  if (is_causal) mask = ge(unsqueeze(arange(query.size(-2)), 1), arange(key.size(-2)));
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  if (mask.defined()) scores = mask.dtype() == kBool ? where(mask, scores, kNever) : add(scores, mask);
  // A fully masked position gets zeros instead of NaN, and its scores get no gradient.
  Tensor looks = mask;
  if (mask.defined() && mask.dtype() != kBool) {
    looks = any(ne(scores.detach(), kNever), {-1}, true);
    if (all(looks).item<bool>())
      looks = Tensor();
    else
      scores = where(looks, scores, 0);
  }
  Tensor weights = softmax(scores, -1);
  if (looks.defined()) weights = where(looks, weights, 0);
  if (dropout_p > 0) weights = dropout(weights, dropout_p, true);
  return matmul(weights, value);
}

}  // namespace tercel
