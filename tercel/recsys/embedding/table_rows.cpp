#include "tercel/recsys/embedding/table_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/recsys/embedding/hashed_table.h"
#include "tercel/recsys/embedding/static_table.h"
#include "tercel/util/error.h"

namespace tercel::recsys {

namespace {

Tensor tensor_of(const std::vector<int64_t>& values) {
  Tensor t = empty({static_cast<int64_t>(values.size())}, kInt64);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return t;
}

Span<int64_t> elements(const Tensor& t) { return {t.data<int64_t>(), static_cast<size_t>(t.numel())}; }

KeyRows rows_of(const StaticTable& table) {
  std::vector<int64_t> keys(static_cast<size_t>(table.rows())), rows(keys.size());
  std::iota(keys.begin(), keys.end(), table.first_key());
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return {tensor_of(keys), tensor_of(rows)};
}

KeyRows rows_of(const HashedTable& table) {
  const std::vector<Tensor> state = table.key_state();
  const Span<int64_t> key_of_row = elements(state[0]), free = elements(state[1]);
  std::vector<bool> has_key(key_of_row.size(), true);
  has_key[0] = false;  // row 0 is that of keys without one
  for (const int64_t row : free) has_key[static_cast<size_t>(row)] = false;
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t row = 0; row < key_of_row.size(); ++row)
    if (has_key[row]) pairs.emplace_back(key_of_row[row], static_cast<int64_t>(row));
  std::sort(pairs.begin(), pairs.end());
  std::vector<int64_t> keys, rows;
  for (const auto& [key, row] : pairs) {
    keys.push_back(key);
    rows.push_back(row);
  }
  return {tensor_of(keys), tensor_of(rows)};
}

void check_unique(const std::string& name, const Tensor& keys) {
  const Span<int64_t> all = elements(keys);
  std::vector<int64_t> sorted(all.begin(), all.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  TERCEL_CHECK(twice == sorted.end(), ValueError, "embedding table '", name, "': key ", *twice, " occurs twice");
}

template <class T>
void check_finite(const std::string& name, const Tensor& keys, const Tensor& vectors) {
  const auto* const first = vectors.data<T>();
  const auto* const bad = std::find_if(first, first + vectors.numel(), [](T value) { return !std::isfinite(value); });
  TERCEL_CHECK(bad == first + vectors.numel(), ValueError, "embedding table '", name, "': the vector of key ",
               elements(keys)[static_cast<size_t>((bad - first) / vectors.size(1))], " has ", double{*bad},
               ", which is not finite");
}

}  // namespace

KeyRows rows_of_keys(const EmbeddingTable& table) {
  if (const auto* const hashed = dynamic_cast<const HashedTable*>(&table)) return rows_of(*hashed);
  const auto* const fixed = dynamic_cast<const StaticTable*>(&table);
  TERCEL_CHECK(fixed, RuntimeError, "embedding table '", table.name(), "': its keys are not known");
  return rows_of(*fixed);
}

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
  check_unique(name, all);
  if (values.dtype() == kFloat64)
    check_finite<double>(name, all, values);
  else
    check_finite<float>(name, all, values);

  Tensor rows = table.find_rows(all, NewKeys::Refuse);
  if (const auto* const hashed = dynamic_cast<const HashedTable*>(&table)) {
    const auto misses = [&] { return std::count(elements(rows).begin(), elements(rows).end(), int64_t{0}); };
    if (const int64_t missing = misses(); missing > 0) {
      TERCEL_CHECK(table.weight().requires_grad(), RuntimeError, "embedding table '", name,
                   "': it is frozen, and has no rows for ", missing, " of the keys");
      for (int64_t i = 0; i < hashed->options().admission && misses() > 0; ++i)
        rows = table.find_rows(all, NewKeys::Insert);
    }
  } else {
    table.refuse_keys(all);
  }
  index_copy_(table.weight().detach(), 0, to(rows, kInt64), to(values, table.weight().dtype()));
}

}  // namespace tercel::recsys
