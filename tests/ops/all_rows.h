// Every conformance row, for the benchmark that times them.
#pragma once

#include <vector>

#include "tests/ops/batch_norm_rows.h"
#include "tests/ops/binary_rows.h"
#include "tests/ops/dropout_rows.h"
#include "tests/ops/embedding_bag_rows.h"
#include "tests/ops/indexing_rows.h"
#include "tests/ops/interaction_rows.h"
#include "tests/ops/join_rows.h"
#include "tests/ops/linear_rows.h"
#include "tests/ops/loss_rows.h"
#include "tests/ops/matmul_rows.h"
#include "tests/ops/reduce_rows.h"
#include "tests/ops/softmax_rows.h"
#include "tests/ops/sort_rows.h"
#include "tests/ops/unary_rows.h"
#include "tests/ops/views_rows.h"

namespace tercel::test {

inline std::vector<Row> all_rows() {
  std::vector<Row> all;
  for (const auto rows : {unary_rows, binary_rows, compare_rows, ternary_rows, reduce_rows, matmul_rows, linear_rows,
                          indexing_rows, join_rows, sort_rows, softmax_rows, embedding_bag_rows, interaction_rows,
                          loss_rows, dropout_rows, batch_norm_rows, views_rows, copy_rows})
    for (Row& row : rows()) all.push_back(std::move(row));
  return all;
}

}  // namespace tercel::test
