// Every conformance row, for the benchmark that times them.
#pragma once

#include <vector>

#include "tests/ops/elementwise/binary_rows.h"
#include "tests/ops/elementwise/composite_rows.h"
#include "tests/ops/elementwise/unary_rows.h"
#include "tests/ops/embedding/batched_embedding_bag_rows.h"
#include "tests/ops/embedding/embedding_bag_rows.h"
#include "tests/ops/embedding/embedding_rows.h"
#include "tests/ops/fft/fft_rows.h"
#include "tests/ops/index/gather_rows.h"
#include "tests/ops/index/index_put_rows.h"
#include "tests/ops/index/scatter_rows.h"
#include "tests/ops/index/subscript_rows.h"
#include "tests/ops/linalg/matmul_rows.h"
#include "tests/ops/linalg/packed_weight_rows.h"
#include "tests/ops/linalg/products_rows.h"
#include "tests/ops/nn/attention_rows.h"
#include "tests/ops/nn/batch_norm_rows.h"
#include "tests/ops/nn/conv_rows.h"
#include "tests/ops/nn/cross_entropy_rows.h"
#include "tests/ops/nn/ctc_loss_rows.h"
#include "tests/ops/nn/distance_rows.h"
#include "tests/ops/nn/dropout_rows.h"
#include "tests/ops/nn/grid_sample_rows.h"
#include "tests/ops/nn/interaction_rows.h"
#include "tests/ops/nn/interpolate_rows.h"
#include "tests/ops/nn/linear_rows.h"
#include "tests/ops/nn/loss_rows.h"
#include "tests/ops/nn/norm_rows.h"
#include "tests/ops/nn/pool_rows.h"
#include "tests/ops/nn/recurrent_rows.h"
#include "tests/ops/nn/similarity_rows.h"
#include "tests/ops/nn/softmax_rows.h"
#include "tests/ops/reduce/differences_rows.h"
#include "tests/ops/reduce/histogram_rows.h"
#include "tests/ops/reduce/reduce_rows.h"
#include "tests/ops/reduce/scan_rows.h"
#include "tests/ops/reduce/segment_reduce_rows.h"
#include "tests/ops/sort/order_statistics_rows.h"
#include "tests/ops/sort/search_rows.h"
#include "tests/ops/sort/sort_rows.h"
#include "tests/ops/special/special_rows.h"
#include "tests/ops/views/cat_rows.h"
#include "tests/ops/views/diagonals_rows.h"
#include "tests/ops/views/flip_roll_repeat_rows.h"
#include "tests/ops/views/meshgrid_rows.h"
#include "tests/ops/views/pad_rows.h"
#include "tests/ops/views/permute_rows.h"
#include "tests/ops/views/slicing_rows.h"
#include "tests/ops/views/view_copies_rows.h"
#include "tests/ops/views/view_scatter_rows.h"
#include "tests/ops/views/views_rows.h"

namespace tercel::test {

inline std::vector<Row> all_rows() {
  std::vector<Row> all;
  for (const auto rows : {unary_rows,
                          special_rows,
                          composite_rows,
                          activation_rows,
                          binary_rows,
                          compare_rows,
                          ternary_rows,
                          reduce_rows,
                          matmul_rows,
                          linear_rows,
                          packed_weight_rows,
                          products_rows,
                          einsum_rows,
                          distance_rows,
                          diagonals_rows,
                          gather_rows,
                          subscript_rows,
                          index_put_rows,
                          cat_rows,
                          sort_rows,
                          softmax_rows,
                          embedding_rows,
                          embedding_bag_rows,
                          batched_embedding_bag_rows,
                          interaction_rows,
                          loss_rows,
                          dropout_rows,
                          batch_norm_rows,
                          views_rows,
                          copy_rows,
                          conv_rows,
                          pool_rows,
                          interpolate_rows,
                          norm_rows,
                          cross_entropy_rows,
                          similarity_rows,
                          attention_rows,
                          permute_rows,
                          slicing_rows,
                          view_copies_rows,
                          view_scatter_rows,
                          flip_roll_repeat_rows,
                          pad_rows,
                          meshgrid_rows,
                          scan_rows,
                          order_statistics_rows,
                          search_rows,
                          histogram_rows,
                          segment_reduce_rows,
                          differences_rows,
                          fft_rows,
                          recurrent_rows,
                          ctc_rows,
                          grid_sample_rows})
    for (Row& row : rows()) all.push_back(std::move(row));
  return all;
}

}  // namespace tercel::test
