#include "tercel/recsys/embedding/embedding_table.h"

namespace tercel::recsys {

EmbeddingTable::~EmbeddingTable() = default;

std::string EmbeddingTable::size_text() const { return str_cat({rows_of_all_ranks(), " x ", dim_}); }

void EmbeddingTable::set_key_state(Span<Tensor> state) {
  TERCEL_CHECK(state.empty(), RuntimeError, "embedding table '", name_, "': its keys have no state");
}

void EmbeddingTable::set_store(RowStore store) {
  TERCEL_CHECK(!store_.weight().defined(), RuntimeError, "embedding table '", name_, "': it has rows already");
  Tensor weight = store.weight();
  weight.requires_grad_();
  store_ = std::move(store);
}

void EmbeddingTable::set_weight(Tensor weight) {
  TERCEL_CHECK(weight.defined() && weight.is_contiguous() &&
                   (weight.dtype() == kFloat32 || weight.dtype() == kFloat64) &&
                   weight.sizes() == IntSpan({rows(), dim_}),
               RuntimeError, "embedding table '", name_, "': expected contiguous float32 or float64 [", rows(), ", ",
               dim_, "] but got ", describe(weight));
  set_store(RowStore(std::move(weight)));
}

}  // namespace tercel::recsys
