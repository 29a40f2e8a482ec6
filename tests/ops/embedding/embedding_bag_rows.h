// What lookups in tables are held to; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/embedding/embedding_bag.h"
#include "tests/ops/rows.h"

namespace tercel::test {

/** Bags of a table, by loops over doubles: weight [rows, dim], indices, where the bags begin, weights of indices. */
inline Tensor bag_reference(const Tensor& weight, const Tensor& indices, const Sizes& starts, BagMode mode,
                            const Tensor& index_weights = {}, int64_t padding = -1) {
  const std::vector<double> table = values_of(weight), index = values_of(indices);
  const std::vector<double> factor =
      index_weights.defined() ? values_of(index_weights) : std::vector<double>(index.size(), 1);
  const size_t dim = static_cast<size_t>(weight.size(1)), bags = starts.size();
  std::vector<double> out(bags * dim, 0.0);
  for (size_t b = 0; b < bags; ++b) {
    const size_t end = b + 1 < bags ? static_cast<size_t>(starts[b + 1]) : index.size();
    double count = 0;
    for (size_t i = static_cast<size_t>(starts[b]); i < end; ++i) {
      if (static_cast<int64_t>(index[i]) == padding) continue;
      ++count;
      for (size_t c = 0; c < dim; ++c) {
        const double value = factor[i] * table.at(static_cast<size_t>(index[i]) * dim + c);
        double& sum = out[b * dim + c];
        sum = mode != BagMode::Max ? sum + value : count == 1 ? value : std::max(sum, value);
      }
    }
    if (mode == BagMode::Mean && count > 0)
      for (size_t c = 0; c < dim; ++c) out[b * dim + c] /= count;
  }
  return make({static_cast<int64_t>(bags), weight.size(1)}, kFloat64, out);
}

inline Sizes each_its_own(int64_t n) {
  Sizes starts;
  for (int64_t i = 0; i < n; ++i) starts.push_back(i);
  return starts;
}

inline Tensor int_tensor(const Sizes& values, ScalarType dtype = kInt64) {
  return make({static_cast<int64_t>(values.size())}, dtype, std::vector<double>(values.begin(), values.end()));
}

inline Row embedding_row(const std::string& name, ScalarType index, bool sparse) {
  Row row;
  row.name = name;
  row.twice_differentiable = !sparse;
  row.inputs = {{{10, 19}}, {{5, 4}, 0, 9, index, false}};
  row.run = [sparse](const std::vector<Tensor>& in) { return embedding(in[0], in[1], {}, sparse); };
  row.reference = [](const std::vector<Tensor>& in) {
    const Tensor flat = bag_reference(in[0], in[1], each_its_own(in[1].numel()), BagMode::Sum);
    return make({5, 4, 19}, kFloat64, values_of(flat));
  };
  row.ulps = 0;
  return row;
}

inline Row bag_row(const std::string& name, int64_t dim, EmbeddingBagOptions options, ScalarType index, bool weighted) {
  // An empty bag at the front, in the middle and at the end; bags of one and of many.
  static const Sizes kStarts = {0, 0, 1, 9, 9, 10, 23};
  Row row;
  row.name = name;
  row.twice_differentiable = !options.sparse;
  row.inputs = {{{10, dim}}, {{23}, 0, 9, index, false}};
  if (weighted) row.inputs.push_back({{23}});
  row.run = [options, index](const std::vector<Tensor>& in) {
    Sizes offsets = kStarts;
    if (options.include_last_offset) offsets.push_back(23);
    return embedding_bag(in[0], in[1], int_tensor(offsets, index), options, in.size() > 2 ? in[2] : Tensor());
  };
  row.reference = [options](const std::vector<Tensor>& in) {
    return bag_reference(in[0], in[1], kStarts, options.mode, in.size() > 2 ? in[2] : Tensor(),
                         options.padding_idx.value_or(-1));
  };
  row.scale = 100;
  return row;
}

/** Rows that are looked up, none longer than `most` by the 3-norm; the others as they are. */
inline Row renorm_row(const std::string& name, double most) {
  Row row;
  row.name = name;
  row.inputs = {{{10, 7}, -3, 3, ScalarType::Undefined, false}, {{3, 2}, 0, 9, kInt64, false}};
  row.differentiable = false;
  row.run = [most](const std::vector<Tensor>& in) { return embedding_renorm_(clone(in[0]), in[1], most, 3); };
  row.inplace = [most](const std::vector<Tensor>& in) { embedding_renorm_(in[0], in[1], most, 3); };
  row.reference = [most](const std::vector<Tensor>& in) {
    std::vector<double> out = values_of(in[0]);
    std::vector<bool> done(10, false);
    for (const double index : values_of(in[1])) {
      const auto r = static_cast<size_t>(index);
      if (done[r]) continue;
      done[r] = true;
      double sum = 0;
      for (size_t c = 0; c < 7; ++c) sum += std::pow(std::abs(out[r * 7 + c]), 3);
      const double length = std::cbrt(sum);
      if (length > most)
        for (size_t c = 0; c < 7; ++c) out[r * 7 + c] *= most / (length + 1e-7);
    }
    return make({10, 7}, kFloat64, out);
  };
  row.ulps = 32;
  row.scale = 4;
  row.bitwise = false;
  return row;
}

/** Keys of bags of three slots, none beyond its table's last row. */
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
      // Of every slot's bags, those of the others too: these keys must lie in its table as well.
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

inline std::vector<Row> embedding_bag_rows() {
  const auto bag = [](BagMode mode, bool last, std::optional<int64_t> padding, bool sparse) {
    EmbeddingBagOptions options;
    options.mode = mode;
    options.include_last_offset = last;
    options.padding_idx = padding;
    options.sparse = sparse;
    return options;
  };
  return {
      embedding_row("embedding_int64", kInt64, false),
      embedding_row("embedding_int32_sparse", kInt32, true),
      bag_row("embedding_bag_sum", 16, bag(BagMode::Sum, true, {}, true), kInt64, false),
      bag_row("embedding_bag_dense", 5, bag(BagMode::Sum, true, {}, false), kInt64, true),
      bag_row("embedding_bag_mean", 35, bag(BagMode::Mean, false, {}, false), kInt32, false),
      bag_row("embedding_bag_mean_padding", 70, bag(BagMode::Mean, true, 3, true), kInt64, false),
      bag_row("embedding_bag_weighted", 67, bag(BagMode::Sum, false, {}, true), kInt64, true),
      bag_row("embedding_bag_weighted_padding", 8, bag(BagMode::Sum, true, 2, false), kInt32, true),
      bag_row("embedding_bag_max", 19, bag(BagMode::Max, false, {}, false), kInt64, false),
      bag_row("embedding_bag_max_padding", 6, bag(BagMode::Max, true, 3, false), kInt32, false),
      renorm_row("embedding_renorm_", 2.5),
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
