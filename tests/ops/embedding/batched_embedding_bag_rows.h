// Conformance rows of batched_embedding_bag(); see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tercel/ops/embedding/batched_embedding_bag.h"
#include "tests/ops/embedding/embedding_support.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** Keys for bags of three slots, all within their table. */
inline Tensor keys_within(const Tensor& keys, const Sizes& offsets, const Sizes& table_rows) {
  std::vector<double> values = values_of(keys);
  for (size_t bag = 0; bag + 1 < offsets.size(); ++bag)
    for (int64_t i = offsets[bag]; i < offsets[bag + 1]; ++i) {
      double& value = values.at(static_cast<size_t>(i));
      value = std::min(value, static_cast<double>(table_rows[bag % 3] - 1));
    }
  return make({keys.numel()}, kInt64, values);
}

inline Row batched_row(const std::string& name, bool several, bool one_each, BagMode mode,
                       const Sizes& table_rows = {10, 10, 10}) {
  // Two samples of three slots.
  const Sizes offsets = one_each ? each_its_own(7) : Sizes{0, 1, 4, 4, 6, 7, 12};
  const int64_t keys = offsets.back();
  const Sizes starts(offsets.begin(), offsets.end() - 1);
  Row row;
  row.name = name;
  row.twice_differentiable = false;
  for (size_t i = 0; i < (several ? 3 : 1); ++i) row.inputs.push_back({{table_rows[i], 16}});
  row.inputs.push_back({{keys}, 0, 9, kInt64, false});
  const bool short_tables = table_rows != Sizes{10, 10, 10};
  row.run = [several, offsets, mode, table_rows, short_tables](const std::vector<Tensor>& in) {
    const Tensor at = int_tensor(offsets);
    const Tensor used = short_tables ? keys_within(in.back(), offsets, table_rows) : in.back();
    if (!several) return batched_embedding_bag(in[0], used, at, 3, mode);
    return batched_embedding_bag(Span<Tensor>(in.data(), 3), used, at, mode);
  };
  row.reference = [several, offsets, starts, mode, table_rows](const std::vector<Tensor>& in) {
    std::vector<double> out;
    for (size_t slot = 0; slot < 3; ++slot) {
      // Each table serves the bags of all slots, so all keys must be within it.
      const Tensor used = keys_within(in.back(), offsets, Sizes(3, table_rows[slot]));
      const std::vector<double> all = values_of(bag_reference(in[several ? slot : 0], used, starts, mode));
      out.resize(all.size());
      for (size_t bag = slot; bag < 6; bag += 3)
        for (size_t c = 0; c < 16; ++c) out[bag * 16 + c] = all[bag * 16 + c];
    }
    return make({2, 3, 16}, kFloat64, out);
  };
  row.scale = 100;
  return row;
}

inline std::vector<Row> batched_embedding_bag_rows() {
  return {
      batched_row("batched_embedding_bag", false, false, BagMode::Sum),
      batched_row("batched_embedding_bag_mean", false, false, BagMode::Mean),
      batched_row("batched_embedding_bag_one_each", false, true, BagMode::Sum),
      batched_row("batched_embedding_bag_several", true, false, BagMode::Mean),
      batched_row("batched_embedding_bag_several_one_each", true, true, BagMode::Sum),
      batched_row("batched_embedding_bag_one_row_first", true, false, BagMode::Sum, {1, 10, 1}),
      batched_row("batched_embedding_bag_one_row_last", true, true, BagMode::Sum, {10, 10, 1}),
  };
}

}  // namespace tercel::test
