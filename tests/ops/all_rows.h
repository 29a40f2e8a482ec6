// Every conformance row, for the benchmark that times them.
#pragma once

#include <vector>

#include "tests/ops/batch_norm_rows.h"
#include "tests/ops/binary_rows.h"
#include "tests/ops/class_loss_rows.h"
#include "tests/ops/conv_rows.h"
#include "tests/ops/ctc_loss_rows.h"
#include "tests/ops/diagonals_rows.h"
#include "tests/ops/differences_rows.h"
#include "tests/ops/dropout_rows.h"
#include "tests/ops/embedding_bag_rows.h"
#include "tests/ops/fft_rows.h"
#include "tests/ops/grid_sample_rows.h"
#include "tests/ops/index_rows.h"
#include "tests/ops/index_update_rows.h"
#include "tests/ops/indexing_rows.h"
#include "tests/ops/interaction_rows.h"
#include "tests/ops/join_rows.h"
#include "tests/ops/linear_rows.h"
#include "tests/ops/loss_rows.h"
#include "tests/ops/matmul_rows.h"
#include "tests/ops/norm_rows.h"
#include "tests/ops/order_views_rows.h"
#include "tests/ops/part_views_rows.h"
#include "tests/ops/pointwise_rows.h"
#include "tests/ops/pool_rows.h"
#include "tests/ops/products_rows.h"
#include "tests/ops/rearrange_rows.h"
#include "tests/ops/recurrent_rows.h"
#include "tests/ops/reduce_rows.h"
#include "tests/ops/scan_rows.h"
#include "tests/ops/scatter_rows.h"
#include "tests/ops/search_rows.h"
#include "tests/ops/selection_rows.h"
#include "tests/ops/softmax_rows.h"
#include "tests/ops/sort_rows.h"
#include "tests/ops/special_rows.h"
#include "tests/ops/unary_rows.h"
#include "tests/ops/view_copies_rows.h"
#include "tests/ops/view_scatter_rows.h"
#include "tests/ops/views_rows.h"

namespace tercel::test {

inline std::vector<Row> all_rows() {
  std::vector<Row> all;
  for (const auto rows :
       {unary_rows,      special_rows,     pointwise_rows,     activation_rows,  binary_rows,       compare_rows,
        ternary_rows,    reduce_rows,      matmul_rows,        linear_rows,      products_rows,     einsum_rows,
        distance_rows,   diagonals_rows,   indexing_rows,      index_rows,       index_update_rows, join_rows,
        sort_rows,       softmax_rows,     embedding_bag_rows, interaction_rows, loss_rows,         dropout_rows,
        batch_norm_rows, views_rows,       copy_rows,          conv_rows,        pool_rows,         norm_rows,
        class_loss_rows, order_views_rows, part_views_rows,    view_copies_rows, view_scatter_rows, rearrange_rows,
        pad_rows,        grids_rows,       scan_rows,          selection_rows,   search_rows,       differences_rows,
        fft_rows,        recurrent_rows,   ctc_rows,           grid_sample_rows})
    for (Row& row : rows()) all.push_back(std::move(row));
  return all;
}

}  // namespace tercel::test
