// Scaled dot-product attention.
#pragma once

#include <optional>

#include "tercel/core/tensor.h"

namespace tercel {

/**
 * softmax(query key^T * scale + mask) value: query [..., length, depth], key [..., source, depth], value [..., source,
 * width] -> [..., length, width]. scale defaults to 1 / sqrt(depth). The mask broadcasts to [..., length, source]:
 * bool, true where attention is allowed, or numbers to add; causal lets position i attend to sources 0 to i. With
 * enable_gqa key and value may have fewer heads (dimension -3), each shared by several heads of query.
 */
TERCEL_OP_API(python_nn, autocast_lower, keyword = scale)
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask = {}, double dropout_p = 0, bool is_causal = false,
                                    std::optional<double> scale = {}, bool enable_gqa = false);

}  // namespace tercel
