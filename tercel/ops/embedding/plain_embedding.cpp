#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/ternary.h"
#include "tercel/ops/embedding/plain_embedding_impl.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/views/views.h"

namespace tercel {

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

}  // namespace tercel
