#include "tercel/recsys/embedding/table_rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/tensor_of.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/sort/sort.h"
#include "tercel/util/error.h"

namespace tercel::recsys {

namespace {

Span<int64_t> elements(const Tensor& t) { return {t.data<int64_t>(), static_cast<size_t>(t.numel())}; }

template <class T>
void check_finite(const std::string& name, const Tensor& keys, const Tensor& vectors) {
  const auto* const first = vectors.data<T>();
  const auto* const bad = std::find_if(first, first + vectors.numel(), [](T value) { return !std::isfinite(value); });
  TERCEL_CHECK(bad == first + vectors.numel(), ValueError, "embedding table '", name, "': the vector of key ",
               elements(keys)[static_cast<size_t>((bad - first) / vectors.size(1))], " has ", double{*bad},
               ", which is not finite");
}

}  // namespace

void check_unique_keys(const EmbeddingTable& table, const Tensor& keys) {
  const Span<int64_t> all = elements(keys);
  std::vector<int64_t> sorted(all.begin(), all.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  TERCEL_CHECK(twice == sorted.end(), ValueError, "embedding table '", table.name(), "': key ", *twice,
               " occurs twice");
}

void check_finite_vectors(const EmbeddingTable& table, const Tensor& keys, const Tensor& vectors) {
  if (vectors.dtype() == kFloat64)
    check_finite<double>(table.name(), keys, vectors);
  else
    check_finite<float>(table.name(), keys, vectors);
}

OwnKeys keys_of_rank(const EmbeddingTable& table, const Tensor& keys) {
  const Span<int64_t> all = elements(keys);
  std::vector<int64_t> owners(all.size());
  if (!table.owners(all, owners.data())) table.refuse_keys(keys);
  OwnKeys own;
  for (size_t i = 0; i < all.size(); ++i) {
    if (owners[i] != table.shard().rank()) continue;
    own.keys.push_back(all[i]);
    own.places.push_back(static_cast<int64_t>(i));
  }
  return own;
}

KeyRows rows_of_keys(EmbeddingTable& table) {
  const Tensor keys = sort(table.keys()).values;
  return {keys, to(table.find_rows(keys, NewKeys::Refuse), kInt64)};
}

namespace {

void set_rows(EmbeddingTable& table, const Tensor& keys, const Tensor& vectors) {
  const Tensor rows = table.find_rows(keys, NewKeys::Admit);
  index_copy_(table.weight().detach(), 0, to(rows, kInt64), to(vectors, table.weight().dtype()));
}

}  // namespace

void set_vectors(EmbeddingTable& table, const Tensor& keys, const Tensor& vectors) {
  const std::string& name = table.name();
  TERCEL_CHECK(table.weight().defined(), RuntimeError, "embedding table '", name, "': it is not initialised");
  TERCEL_CHECK(keys.has_storage() && keys.dim() == 1 && (keys.dtype() == kInt64 || keys.dtype() == kInt32), ValueError,
               "embedding table '", name, "': expected keys [n] of int64 or int32, found ", keys.sizes(), " of ",
               to_string(keys.dtype()));
  TERCEL_CHECK(vectors.has_storage() && vectors.dim() == 2 && vectors.size(0) == keys.size(0) &&
                   vectors.size(1) == table.dim() && (vectors.dtype() == kFloat32 || vectors.dtype() == kFloat64),
               ValueError, "embedding table '", name, "': expected vectors [", keys.size(0), ", ", table.dim(),
               "] of float32 or float64, found ", vectors.sizes(), " of ", to_string(vectors.dtype()));
  if (keys.numel() == 0) return;
  const NoGradGuard no_grad;
  const Tensor all = contiguous(to(keys, kInt64)), values = contiguous(vectors);
  check_unique_keys(table, all);
  check_finite_vectors(table, all, values);

  table.refuse_keys(all);
  if (table.shard().is_whole()) return set_rows(table, all, values);
  const OwnKeys own = keys_of_rank(table, all);
  set_rows(table, tensor(own.keys), index_select(values, 0, tensor(own.places)));
}

}  // namespace tercel::recsys
