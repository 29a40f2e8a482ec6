#include "tercel/recsys/embedding/static_table.h"

#include <algorithm>
#include <numeric>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/embedding/initialize_rows.h"

namespace tercel::recsys {

StaticTable::StaticTable(std::string name, int64_t first_key, int64_t rows, int64_t dim, nn::Init init)
    : StaticTable(std::move(name), first_key, dim, {{rows, init}}) {}

StaticTable::StaticTable(std::string name, int64_t first_key, int64_t dim, std::vector<RowsInit> parts)
    : EmbeddingTable(std::move(name), dim), first_key_(first_key), rows_(0), parts_(std::move(parts)) {
  for (const RowsInit& part : parts_) rows_ += part.rows;
}

Tensor StaticTable::find_rows(const Tensor& keys, NewKeys /*new_keys*/, Span<Tensor> /*in_use*/) {
  const Tensor wide = to(keys, kInt64);
  return first_key_ == 0 ? wide : sub(wide, first_key_);
}

Tensor StaticTable::keys() const {
  Tensor all = empty({rows_}, kInt64);
  std::iota(all.data<int64_t>(), all.data<int64_t>() + rows_, first_key_);
  return all;
}

bool StaticTable::finds_same_rows(const EmbeddingTable& other) const {
  const auto* const table = dynamic_cast<const StaticTable*>(&other);
  return table && table->first_key_ == first_key_;
}

void StaticTable::refuse_keys(const Tensor& keys) const {
  const Tensor wide = contiguous(to(keys, kInt64));
  const auto* const all = wide.data<int64_t>();
  const auto* const bad = std::find_if(all, all + wide.numel(),
                                       [this](int64_t key) { return key < first_key_ || key - first_key_ >= rows_; });
  TERCEL_CHECK(bad == all + wide.numel(), IndexError, "embedding table '", name(), "': no row for key ", *bad,
               " (at position ", bad - all, "); it has the keys from ", first_key_, " to ", first_key_ + rows_ - 1);
}

bool StaticTable::allocate(uint64_t seed, const RowStates& states, const TensorOptions& place,
                           FunctionRef<bool()> go_on) {
  const NoGradGuard no_grad;
  RowStore store;
  try {
    store = RowStore(rows_, dim(), place, states.names, states.per_row);
  } catch (const OutOfMemoryError& e) {
    throw_error<OutOfMemoryError>({"embedding table '", name(), "' (", rows_, " rows of ", dim(), "): ", e.what(),
                                   "; a table of \"table_type\": \"hashed\" has rows only for keys that occur"});
  }
  constexpr int64_t kPart = int64_t{1} << 22;  // elements
  const int64_t part = std::max<int64_t>(1, kPart / dim());
  int64_t end = 0;  // of the rows with one Init
  for (const RowsInit& alike : parts_) {
    int64_t row = end;
    for (end += alike.rows; row < end; row += part) {
      if (!go_on()) return false;
      const int64_t n = std::min(part, end - row);
      initialize_rows(store.weight().narrow(0, row, n), alike.init, seed, name(), first_key_ + row);
      for (const Tensor& state : store.states()) fill_(state.narrow(0, row, n), states.initial);
    }
  }
  set_store(std::move(store));
  return true;
}

}  // namespace tercel::recsys
