#include "tercel/recsys/embedding/static_table.h"

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/embedding/batched_embedding_bag.h"

namespace tercel::recsys {

StaticTable::StaticTable(std::string name, int64_t first_key, int64_t rows, int64_t dim, BagMode combiner,
                         nn::Init init)
    : name_(std::move(name)), first_key_(first_key), rows_(rows), dim_(dim), combiner_(combiner), init_(init) {}

void StaticTable::allocate(Generator& generator) {
  try {
    weight_ = empty({rows_, dim_});
  } catch (const OutOfMemoryError& e) {
    throw_error<OutOfMemoryError>({"embedding table '", name_, "' (", rows_, " rows of ", dim_, "): ", e.what()});
  }
  nn::initialize(weight_, init_, generator);
  weight_.requires_grad_();
}

void StaticTable::set_weight(Tensor weight) {
  TERCEL_CHECK(weight.is_contiguous() && weight.dtype() == kFloat32 && weight.sizes() == IntSpan({rows_, dim_}),
               RuntimeError, "embedding table '", name_, "': expected contiguous float32 [", rows_, ", ", dim_,
               "] but got ", describe(weight));
  weight_ = std::move(weight);
  weight_.requires_grad_();
}

Tensor StaticTable::lookup(const data::SparseBatch& batch) const {
  const Tensor rows = first_key_ == 0 ? batch.keys : sub(batch.keys, first_key_);
  return batched_embedding_bag(weight_, rows, batch.row_offsets, batch.slot_num, combiner_);
}

}  // namespace tercel::recsys
