#include "tercel/recsys/embedding/static_table.h"

#include <algorithm>

#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/embedding/batched_embedding_bag.h"
#include "tercel/ops/views/views.h"

namespace tercel::recsys {

StaticTable::StaticTable(std::string name, int64_t first_key, int64_t rows, int64_t dim, BagMode combiner,
                         nn::Init init)
    : name_(std::move(name)), first_key_(first_key), rows_(rows), dim_(dim), combiner_(combiner), init_(init) {}

bool StaticTable::allocate(Generator& generator, FunctionRef<bool()> go_on) {
  Tensor weight;
  try {
    weight = empty({rows_, dim_});
  } catch (const OutOfMemoryError& e) {
    throw_error<OutOfMemoryError>({"embedding table '", name_, "' (", rows_, " rows of ", dim_, "): ", e.what()});
  }
  // A generator's next range begins at a multiple of four numbers: with parts of such a size the numbers are those of
  // one call for the whole table.
  constexpr int64_t kPart = int64_t{1} << 22;
  const Tensor flat = weight.view({-1});
  for (int64_t start = 0; start < flat.numel(); start += kPart) {
    if (!go_on()) return false;
    nn::initialize(flat.narrow(0, start, std::min(kPart, flat.numel() - start)), init_, generator);
  }
  weight_ = std::move(weight);
  weight_.requires_grad_();
  return true;
}

void StaticTable::set_weight(Tensor weight) {
  TERCEL_CHECK(weight.is_contiguous() && weight.dtype() == kFloat32 && weight.sizes() == IntSpan({rows_, dim_}),
               RuntimeError, "embedding table '", name_, "': expected contiguous float32 [", rows_, ", ", dim_,
               "] but got ", describe(weight));
  weight_ = std::move(weight);
  weight_.requires_grad_();
}

Tensor StaticTable::lookup(const data::SparseBatch& batch) const {
  TERCEL_CHECK(batch.order == data::BagOrder::SampleMajor, RuntimeError, "embedding table '", name_,
               "': expected a batch of order ", to_string(data::BagOrder::SampleMajor), ", got ",
               to_string(batch.order));
  const Tensor rows = first_key_ == 0 ? batch.keys : sub(batch.keys, first_key_);
  return batched_embedding_bag(weight_, rows, batch.row_offsets, batch.slot_num, combiner_);
}

}  // namespace tercel::recsys
