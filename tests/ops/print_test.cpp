#include "tercel/ops/print.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sparse/compressed.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/ops/views/views.h"

namespace tercel {
namespace {

// PyTorch's output, without "torch." before dtypes.
TEST(Print, PartsOfSparseTensors) {
  const Tensor coo = sparse_coo_tensor(tensor({{0, 1, 1}}), tensor({3.0, 4.0, 5.0}), {3});
  EXPECT_EQ(to_string(coo),
            "tensor(indices=tensor([[0, 1, 1]]),\n       values=tensor([3., 4., 5.]),\n"
            "       size=(3,), nnz=3, layout=sparse_coo)");
  const Tensor m = tensor({{1.0, 0.0}, {0.0, 2.5}}, kFloat64);
  EXPECT_EQ(to_string(to_sparse_csr(m)),
            "tensor(crow_indices=tensor([0, 1, 2]),\n       col_indices=tensor([0, 1]),\n"
            "       values=tensor([1.0000, 2.5000]), size=(2, 2), nnz=2, dtype=float64,\n       layout=sparse_csr)");
  const int64_t block[] = {1, 2};
  EXPECT_EQ(to_string(to_sparse_bsc(tensor({{1.0, 2.0}}), block)),
            "tensor(ccol_indices=tensor([0, 1]),\n       row_indices=tensor([0]),\n"
            "       values=tensor([[[1., 2.]]]), size=(1, 2), nnz=1, layout=sparse_bsc)");
  EXPECT_EQ(to_string(sparse_coo_tensor({2, 3}).requires_grad_()),
            "tensor(indices=tensor([], size=(2, 0)),\n       values=tensor([], size=(0,)),\n"
            "       size=(2, 3), nnz=0, layout=sparse_coo, requires_grad=True)");
}

TEST(Print, AsPyTorch) {
  EXPECT_EQ(to_string(tensor({{1, 2}, {3, 4}})),
            "tensor([[1, 2],\n"
            "        [3, 4]])");
  EXPECT_EQ(to_string(tensor({1.0, 2.5})), "tensor([1.0000, 2.5000])");
  EXPECT_EQ(to_string(tensor({1.0, 200.0, 0.0})), "tensor([  1., 200.,   0.])");
  EXPECT_EQ(to_string(scalar_tensor(1.5)), "tensor(1.5000)");
  EXPECT_EQ(to_string(scalar_tensor(-7)), "tensor(-7)");
  EXPECT_EQ(to_string(tensor({true, false})), "tensor([ True, False])");
  EXPECT_EQ(to_string(tensor({1e-5, 1.0})), "tensor([1.0000e-05, 1.0000e+00])");
  EXPECT_EQ(to_string(tensor({1.0, 2000.0})), "tensor([1.0000e+00, 2.0000e+03])");
  EXPECT_EQ(to_string(tensor({-0.5, 100.25}, kFloat64)), "tensor([ -0.5000, 100.2500], dtype=float64)");
  EXPECT_EQ(to_string(tensor({NAN, INFINITY, -1.0})), "tensor([nan, inf, -1.])");
  EXPECT_EQ(to_string(tensor({NAN, 1.5, -INFINITY})), "tensor([   nan, 1.5000,   -inf])");
  EXPECT_EQ(to_string(zeros({2, 3})),
            "tensor([[0., 0., 0.],\n"
            "        [0., 0., 0.]])");
  EXPECT_EQ(to_string(zeros({2}, kInt16)), "tensor([0, 0], dtype=int16)");
  EXPECT_EQ(to_string(empty({0})), "tensor([])");
  EXPECT_EQ(to_string(empty({0}, kInt64)), "tensor([], dtype=int64)");
  EXPECT_EQ(to_string(empty({2, 0}, kFloat64)), "tensor([], size=(2, 0), dtype=float64)");
  EXPECT_EQ(to_string(arange(40)),
            "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
            "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,\n"
            "        36, 37, 38, 39])");
  EXPECT_EQ(to_string(arange(1200)), "tensor([   0,    1,    2,  ..., 1197, 1198, 1199])");
  EXPECT_EQ(to_string(view(arange(24), {2, 3, 4})),
            "tensor([[[ 0,  1,  2,  3],\n"
            "         [ 4,  5,  6,  7],\n"
            "         [ 8,  9, 10, 11]],\n"
            "\n"
            "        [[12, 13, 14, 15],\n"
            "         [16, 17, 18, 19],\n"
            "         [20, 21, 22, 23]]])");
  EXPECT_EQ(to_string(view(arange(10000), {100, 100})),
            "tensor([[   0,    1,    2,  ...,   97,   98,   99],\n"
            "        [ 100,  101,  102,  ...,  197,  198,  199],\n"
            "        [ 200,  201,  202,  ...,  297,  298,  299],\n"
            "        ...,\n"
            "        [9700, 9701, 9702,  ..., 9797, 9798, 9799],\n"
            "        [9800, 9801, 9802,  ..., 9897, 9898, 9899],\n"
            "        [9900, 9901, 9902,  ..., 9997, 9998, 9999]])");
  EXPECT_EQ(to_string(view(arange(4096), {16, 16, 16})),
            "tensor([[[   0,    1,    2,  ...,   13,   14,   15],\n"
            "         [  16,   17,   18,  ...,   29,   30,   31],\n"
            "         [  32,   33,   34,  ...,   45,   46,   47],\n"
            "         ...,\n"
            "         [ 208,  209,  210,  ...,  221,  222,  223],\n"
            "         [ 224,  225,  226,  ...,  237,  238,  239],\n"
            "         [ 240,  241,  242,  ...,  253,  254,  255]],\n"
            "\n"
            "        [[ 256,  257,  258,  ...,  269,  270,  271],\n"
            "         [ 272,  273,  274,  ...,  285,  286,  287],\n"
            "         [ 288,  289,  290,  ...,  301,  302,  303],\n"
            "         ...,\n"
            "         [ 464,  465,  466,  ...,  477,  478,  479],\n"
            "         [ 480,  481,  482,  ...,  493,  494,  495],\n"
            "         [ 496,  497,  498,  ...,  509,  510,  511]],\n"
            "\n"
            "        [[ 512,  513,  514,  ...,  525,  526,  527],\n"
            "         [ 528,  529,  530,  ...,  541,  542,  543],\n"
            "         [ 544,  545,  546,  ...,  557,  558,  559],\n"
            "         ...,\n"
            "         [ 720,  721,  722,  ...,  733,  734,  735],\n"
            "         [ 736,  737,  738,  ...,  749,  750,  751],\n"
            "         [ 752,  753,  754,  ...,  765,  766,  767]],\n"
            "\n"
            "        ...,\n"
            "\n"
            "        [[3328, 3329, 3330,  ..., 3341, 3342, 3343],\n"
            "         [3344, 3345, 3346,  ..., 3357, 3358, 3359],\n"
            "         [3360, 3361, 3362,  ..., 3373, 3374, 3375],\n"
            "         ...,\n"
            "         [3536, 3537, 3538,  ..., 3549, 3550, 3551],\n"
            "         [3552, 3553, 3554,  ..., 3565, 3566, 3567],\n"
            "         [3568, 3569, 3570,  ..., 3581, 3582, 3583]],\n"
            "\n"
            "        [[3584, 3585, 3586,  ..., 3597, 3598, 3599],\n"
            "         [3600, 3601, 3602,  ..., 3613, 3614, 3615],\n"
            "         [3616, 3617, 3618,  ..., 3629, 3630, 3631],\n"
            "         ...,\n"
            "         [3792, 3793, 3794,  ..., 3805, 3806, 3807],\n"
            "         [3808, 3809, 3810,  ..., 3821, 3822, 3823],\n"
            "         [3824, 3825, 3826,  ..., 3837, 3838, 3839]],\n"
            "\n"
            "        [[3840, 3841, 3842,  ..., 3853, 3854, 3855],\n"
            "         [3856, 3857, 3858,  ..., 3869, 3870, 3871],\n"
            "         [3872, 3873, 3874,  ..., 3885, 3886, 3887],\n"
            "         ...,\n"
            "         [4048, 4049, 4050,  ..., 4061, 4062, 4063],\n"
            "         [4064, 4065, 4066,  ..., 4077, 4078, 4079],\n"
            "         [4080, 4081, 4082,  ..., 4093, 4094, 4095]]])");
  EXPECT_EQ(to_string(t(tensor({{1.25, 2.0}, {3.0, 4.0}}))),
            "tensor([[1.2500, 3.0000],\n"
            "        [2.0000, 4.0000]])");
  EXPECT_EQ(to_string(to(tensor({1.0, 0.5}), kBFloat16)), "tensor([1.0000, 0.5000], dtype=bfloat16)");
  EXPECT_EQ(to_string(view(mul(arange(30), 0.5), {2, 15}).to(kFloat64)),
            "tensor([[ 0.0000,  0.5000,  1.0000,  1.5000,  2.0000,  2.5000,  3.0000,  3.5000,\n"
            "          4.0000,  4.5000,  5.0000,  5.5000,  6.0000,  6.5000,  7.0000],\n"
            "        [ 7.5000,  8.0000,  8.5000,  9.0000,  9.5000, 10.0000, 10.5000, 11.0000,\n"
            "         11.5000, 12.0000, 12.5000, 13.0000, 13.5000, 14.0000, 14.5000]],\n"
            "       dtype=float64)");
  EXPECT_EQ(to_string(tensor({1.0, 2.0}).requires_grad_()), "tensor([1., 2.], requires_grad=True)");
  EXPECT_EQ(to_string(mul(tensor({1.0, 2.0}).requires_grad_(), 2.0)), "tensor([2., 4.], grad_fn=<MulBackward0>)");
  EXPECT_EQ(to_string(full({20}, 1.125, kFloat64)),
            "tensor([1.1250, 1.1250, 1.1250, 1.1250, 1.1250, 1.1250, 1.1250, 1.1250, 1.1250,\n"
            "        1.1250, 1.1250, 1.1250, 1.1250, 1.1250, 1.1250, 1.1250, 1.1250, 1.1250,\n"
            "        1.1250, 1.1250], dtype=float64)");
  EXPECT_EQ(to_string(full({9}, 1.125, kFloat64)),
            "tensor([1.1250, 1.1250, 1.1250, 1.1250, 1.1250, 1.1250, 1.1250, 1.1250, 1.1250],\n"
            "       dtype=float64)");
}

TEST(Print, StreamsAndUndefinedTensors) {
  std::ostringstream out;
  out << tensor({1, 2});
  EXPECT_EQ(out.str(), "tensor([1, 2])");
  EXPECT_EQ(to_string(Tensor()), "tensor(undefined)");
}

TEST(Print, ReadsViewsWithNegativeStrides) {
  EXPECT_EQ(to_string(slice(arange(5), 0, INT64_MAX, INT64_MIN, -2)), "tensor([4, 2, 0])");
}

}  // namespace
TEST(Print, WhatTensorsAreMadeOf) {
  std::ostringstream out;
  const Tensor x = zeros({2, 3}, kFloat64);
  out << x.dtype() << " " << x.device() << " " << x.layout() << " " << MemoryFormat::ChannelsLast << " " << x.sizes()
      << " " << x.strides() << " " << Scalar(2.5) << " " << IntSpan();
  EXPECT_EQ(out.str(), "float64 cpu strided channels_last [2, 3] [3, 1] 2.5 []");
}

}  // namespace tercel
