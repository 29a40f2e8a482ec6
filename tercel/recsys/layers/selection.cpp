#include "tercel/recsys/layers/selection.h"

#include <algorithm>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/views/views.h"

namespace tercel::recsys {

SelectionLayer::SelectionLayer(int64_t dim, std::vector<int64_t> indices, const BuildContext& context)
    : Layer(context), dim_(dim), indices_(std::move(indices)) {
  if (context.bottoms.size() != 1 || dim < 1 || static_cast<size_t>(dim) > context.bottoms[0].sizes.size())
    refuse_inputs(context, str_cat({"one input with a dimension ", std::max<int64_t>(dim, 1)}));
  DimVector top = context.bottoms[0].sizes;
  int64_t& size = top[static_cast<size_t>(dim - 1)];
  for (const int64_t position : indices_)
    TERCEL_CHECK(position < size, ConfigError, "[", context.type, " ", context.name, "] position ", position, " of ",
                 size, " in dimension ", dim, " of ", shape_text(context.bottoms[0]));
  is_range_ = !indices_.empty() && std::adjacent_find(indices_.begin(), indices_.end(), [](int64_t a, int64_t b) {
                                     return b != a + 1;
                                   }) == indices_.end();
  size = static_cast<int64_t>(indices_.size());
  add_top(std::move(top));
}

int64_t SelectionLayer::last_dim(const BuildContext& context) {
  return context.bottoms.empty() ? 0 : static_cast<int64_t>(context.bottoms[0].sizes.size());
}

void SelectionLayer::allocate(const TensorOptions& place) {
  const Tensor index = empty({static_cast<int64_t>(indices_.size())}, kInt64);
  std::copy(indices_.begin(), indices_.end(), index.data<int64_t>());
  index_ = empty(index.sizes(), TensorOptions(kInt64, place.device));
  copy_(index_, index);
}

void SelectionLayer::forward(Span<Tensor> bottoms, std::vector<Tensor>& tops, const ForwardContext&) {
  tops[0] = is_range_ ? narrow(bottoms[0], dim_, indices_[0], static_cast<int64_t>(indices_.size()))
                      : index_select(bottoms[0], dim_, index_);
}

}  // namespace tercel::recsys
