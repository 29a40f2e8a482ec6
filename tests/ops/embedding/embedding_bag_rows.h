// Conformance rows of embedding_bag(); see Note [Conformance rows].
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tercel/ops/embedding/embedding_bag.h"
#include "tests/ops/embedding/embedding_support.h"
#include "tests/ops/rows.h"

namespace tercel::test {

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
      bag_row("embedding_bag_sum", 16, bag(BagMode::Sum, true, {}, true), kInt64, false),
      bag_row("embedding_bag_dense", 5, bag(BagMode::Sum, true, {}, false), kInt64, true),
      bag_row("embedding_bag_mean", 35, bag(BagMode::Mean, false, {}, false), kInt32, false),
      bag_row("embedding_bag_mean_padding", 70, bag(BagMode::Mean, true, 3, true), kInt64, false),
      bag_row("embedding_bag_weighted", 67, bag(BagMode::Sum, false, {}, true), kInt64, true),
      bag_row("embedding_bag_weighted_padding", 8, bag(BagMode::Sum, true, 2, false), kInt32, true),
      bag_row("embedding_bag_max", 19, bag(BagMode::Max, false, {}, false), kInt64, false),
      bag_row("embedding_bag_max_padding", 6, bag(BagMode::Max, true, 3, false), kInt32, false),
  };
}

}  // namespace tercel::test
