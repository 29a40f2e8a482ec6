#include "tercel/ops/embedding/embedding.h"

#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/embedding/lookup_impl.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/reduce/vector_norms.h"
#include "tercel/ops/sort/unique.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

/** Rows of an integer or complex table, for which there is no kernel; the row of the padding index gets no gradient. */
Tensor plain_embedding(const Tensor& weight, const Tensor& indices, std::optional<int64_t> padding_idx) {
  TERCEL_CHECK(weight.dim() == 2, RuntimeError, "embedding: 'weight' must be 2-D, but got ", weight.dim(), "-D");
  const int64_t count = weight.size(0);
  TERCEL_CHECK(!padding_idx || (*padding_idx >= -count && *padding_idx < count), RuntimeError,
               "embedding: padding_idx must be within the number of embeddings, ", -count, " through ", count - 1,
               ", but got ", padding_idx.value_or(0));
  DimVector sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  const Tensor flat = reshape(indices, {-1});
  Tensor rows = index_select(weight, 0, flat);
  if (padding_idx) {
    const int64_t padding = *padding_idx < 0 ? *padding_idx + count : *padding_idx;
    rows = where(unsqueeze(eq(flat, padding), 1), rows.detach(), rows);
  }
  return view(rows, sizes);
}

}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& indices, std::optional<int64_t> padding_idx, bool sparse,
                 bool scale_grad_by_freq) {
  check_strided("embedding", weight, "weight");
  if (!weight.is_floating_point()) {
    check_index_dtype("embedding", indices, "indices");
    return plain_embedding(weight, indices, padding_idx);
  }
  check_table("embedding", weight);
  check_index_dtype("embedding", indices, "indices");
  Lookup lookup = make_lookup("embedding", indices, {}, BagMode::Sum);
  lookup.bags = indices.numel();
  DimVector sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  const int64_t padding = wrap_padding_idx("embedding", padding_idx, weight.size(0));
  if (scale_grad_by_freq) check_dense_scaling(sparse);
  const Tensor table = scale_grad_by_freq ? with_gradient_by_frequency(weight, lookup) : weight;
  return look_up("EmbeddingBackward0", table, std::move(lookup), {},
                 sparse ? TableGradient::Rows : TableGradient::Dense, padding, sizes);
}

const Tensor& embedding_renorm_(const Tensor& weight, const Tensor& indices, double max_norm, double norm_type) {
  constexpr const char* kOp = "embedding_renorm_";
  check_table(kOp, weight);
  check_index_dtype(kOp, indices, "indices");
  const Tensor rows = unique(to(indices, kInt64)).values;
  return index_copy_(weight, 0, rows, renorm(index_select(weight, 0, rows), norm_type, 0, max_norm));
}

}  // namespace tercel
