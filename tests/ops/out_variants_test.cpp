#include "tercel/ops/out_variants.h"

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/views/permute.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/warning.h"
#include "tests/ops/out_variant_rows.h"
#include "tests/support/errors.h"

namespace tercel::test {

namespace out_variants {

namespace {

std::vector<Row> calculating_rows() {
  return {
      ROW(add, in().x, in().y),
      ROW(add, in().x, 2),
      ROW(add, 2, in().x),
      ROW(add, in().x, in().v, 3),
      ROW(sub, in().x, in().y, 3),
      ROW(div, in().x, in().y, "floor"),
      ROW(div, in().x, 0.25, "trunc"),
      ROW(pow, in().x, 2),
      ROW(pow, 2, in().x),
      ROW(eq, in().whole, 5),
      ROW(lt, 4, in().whole),
      ROW(logical_and, in().mask, in().whole),
      ROW(xlogy, in().x, 2),
      ROW(xlogy, 2, in().x),
      ROW(igamma, in().x, in().y),
      ROW(exp, in().x),
      ROW(digamma, in().x),
      ROW(isnan, in().x),
      ROW(frac, in().x),
      ROW(arccos, in().x),
      ROW(special_expit, in().x),
      ROW(arctan2, in().x, in().y),
      ROW(divide, in().x, 3),
      ROW(divide, 3, in().x),
      ROW(greater, in().x, in().y),
      ROW(greater, in().x, 0.5),
      ROW(angle, in().z),
      ROW(bitwise_not, in().whole),
      ROW(clamp, in().x, 0.3, 0.5),
      ROW(clamp, in().x, in().v, std::nullopt),
      ROW(clamp_max, in().x, 0.5),
      ROW(clamp_min, in().x, 0.5),
      ROW(clip, in().x, 0.3, 0.5),
      ROW(clip, in().x, std::nullopt, in().v),
      ROW(conj_physical, in().z),
      ROW(float_power, in().whole, in().x),
      ROW(float_power, in().whole, 2),
      ROW(float_power, 2, in().whole),
      ROW(hardshrink, in().x, 0.4),
      ROW(isneginf, in().x),
      ROW(isposinf, in().x),
      ROW(ldexp, in().x, in().whole),
      ROW(lerp, in().x, in().y, in().v),
      ROW(lerp, in().x, in().y, 0.25),
      ROW(addcdiv, in().x, in().y, in().v, 2),
      ROW(addcmul, in().x, in().y, in().v, 2),
      ROW(round, in().x, 1),
      ROW(special_round, in().x, 1),
      ROW(special_polygamma, 1, in().x),
      ROW(polygamma, 1, in().x),
      ROW(special_multigammaln, add(in().x, 3), 2),
      ROW(special_logit, in().x),
      ROW(logit, in().x, 0.3),
      ROW(mvlgamma, add(in().x, 3), 2),
      ROW(nan_to_num, in().x, 1, 2, 3),
      ROW(signbit, in().x),
      ROW(true_divide, in().whole, in().x),
      ROW(true_divide, in().whole, 3),
      ROW(rsub, in().x, in().y, 2),
      ROW(rsub, in().x, 1, 2),
      ROW(where, in().mask, in().x, in().y),
      ROW(where, in().mask, 1.5, 2.5),
      ROW(where, in().mask, in().x, 1),
      ROW(where, in().mask, 1, in().x),
      ROW(elu, in().x, 0.5),
      ROW(gelu, in().x, "tanh"),
      ROW(glu, in().x, 1),
      ROW(hardsigmoid, in().x),
      ROW(hardswish, in().x),
      ROW(hardtanh, in().x, 0.2, 0.4),
      ROW(leaky_relu, in().x, 0.2),
      ROW(logsigmoid, in().x),
      ROW(mish, in().x),
      ROW(softplus, in().x, 2),
      ROW(softshrink, in().x, 0.3),
      ROW(threshold, in().x, 0.5, 0.1),
      ROW(softmax, in().x, 1),
      ROW(log_softmax, in().x, 0),
      ROW(normalize, in().x),
      ROW(binary_cross_entropy, in().x, in().y),
      ROW(huber_loss, in().x, in().y, Reduction::None),
      ROW(mse_loss, in().x, in().y, Reduction::Sum),
      ROW(multi_margin_loss, in().x, in().targets),
      ROW(multilabel_margin_loss, in().x, make({3, 4}, kInt64, {0, -1, 0, 0, 1, 2, -1, 0, 3, -1, 0, 0})),
      ROW(nll_loss, in().x, in().targets, in().v, Reduction::None),
      ROW(smooth_l1_loss, in().x, in().y),
      ROW(soft_margin_loss, in().x, in().y),
      ROW(adaptive_avg_pool2d, in().image, {2, 3}),
      ROW(adaptive_avg_pool3d, in().volume, {2}),
      ROW(avg_pool2d, in().image, {2}),
      ROW(avg_pool3d, in().volume, {2}),
      ROW(linear, in().x, in().y, in().w),
      ROW(im2col, in().image, {2, 2}),
      ROW(col2im, random({1, 8, 25}, kFloat64, -1, 1, 1), {6, 6}, {2, 2}),
      ROW(all, in().mask),
      ROW(all, in().mask, {1}, true),
      ROW(any, in().mask),
      ROW(any, in().mask, {0}),
      ROW(amax, in().x, {1}),
      ROW(amin, in().x, {0, 1}),
      ROW(argmax, in().x, 1),
      ROW(argmin, in().x),
      ROW(count_nonzero, in().mask, {0}),
      ROW(logsumexp, in().x, {1}),
      ROW(special_logsumexp, in().x, {0}, true),
      ROW(max, in().x),
      ROW(max, in().x, in().y),
      ROW(min, in().x),
      ROW(min, in().x, in().y),
      ROW(mean, in().x, {1}),
      ROW(median, in().x),
      ROW(nanmean, in().x, {1}),
      ROW(nanmedian, in().x),
      OF_OUT(nansum, in().x, {1}),
      ROW(norm, in().x, 3),
      ROW(norm, in().x, 1, {1}),
      OF_OUT(prod, in().x, {1}),
      OF_OUT(prod, in().x),
      ROW(quantile, in().x, 0.3, 1),
      ROW(quantile, in().x, in().sorted, 1, true),
      ROW(nanquantile, in().x, 0.3),
      ROW(nanquantile, in().x, in().sorted, 0),
      ROW(std, in().x, {1}),
      ROW(var, in().x, {0, 1}, 0),
      OF_OUT(sum, in().x),
      OF_OUT(sum, in().x, {0}, true),
      ROW(mean, in().x),
      ROW(renorm, in().x, 2, 0, 0.5),
      ROW(dist, in().x, in().y, 1),
      OF_OUT(cumprod, in().x, 1),
      OF_OUT(cumsum, in().x, 0),
      ROW(logcumsumexp, in().x, 0),
      ROW(diff, in().x, 2, 1),
      ROW(argsort, in().x, 0),
      ROW(msort, in().x),
      ROW(bucketize, in().x, in().sorted),
      ROW(bucketize, 0.5, in().sorted, true),
      ROW(searchsorted, in().sorted, in().x, false, true),
      ROW(searchsorted, in().sorted, 0.5),
      ROW(isin, in().whole, in().counts),
      ROW(isin, in().whole, 5),
      ROW(isin, 2, in().counts),
      ROW(histc, in().x, 5),
      ROW(bincount, in().counts),
      ROW(chain_matmul, {in().x, in().v.reshape({4, 1}), in().v.reshape({1, 4})}),
      ROW(cross, in().three, in().three),
      ROW(kron, in().x, in().w),
      ROW(matrix_power, in().square, 3),
      ROW(tensordot, in().x, in().y, 2),
      ROW(tensordot, in().x, in().y, {1}, {1}),
      ROW(mm, in().square, in().x),
      ROW(addmm, in().x, in().square, in().y, 0.5, 2),
      ROW(inner, in().x, in().y),
      ROW(complex, in().x, in().y),
      ROW(polar, in().x, in().y),
      ROW2(cummax, in().x, 1),
      ROW2(cummin, in().x, 0),
      ROW2(kthvalue, in().x, 2, 1),
      ROW2(max, in().x, 1),
      ROW2(median, in().x, 0, true),
      ROW2(min, in().x, 0),
      ROW2(mode, in().x, 1),
      ROW2(nanmedian, in().x, 1),
      ROW2(sort, in().x, 1, true),
      ROW2(topk, in().x, 2),
      ROW2(adaptive_max_pool2d, in().image, {2, 2}),
      ROW2(adaptive_max_pool3d, in().volume, {2, 2, 2}),
      ROW2(max_pool2d_with_indices, in().image, {2}),
      ROW2(max_pool3d_with_indices, in().volume, {2}),
      ROW2(aminmax, in().x, 1),
      ROW2(frexp, in().x),
      ROW2(histogram, in().x, in().sorted),
      ROW2(histogram, in().x, 4),
      ROW2(var_mean, in().x, {1}),
      ROW2(std_mean, in().x, {0}),
  };
}

void expect_same(const Tensors& got, const Tensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].sizes(), want[i].sizes());
    EXPECT_EQ(got[i].dtype(), want[i].dtype());
    EXPECT_EQ(bytes_of(got[i]), bytes_of(want[i])) << "result " << i;
  }
}

/** The warnings while it lives. */
struct Warnings {
  std::vector<std::string> texts;
  WarningHandler before = set_warning_handler([this](const std::string& text) { texts.push_back(text); });
  ~Warnings() { set_warning_handler(before); }
};

TEST_P(OutVariants, GivesWhatTheFreshFormGives) {
  const Tensors want = GetParam().fresh();
  Tensors out;
  const Warnings warnings;
  for (const Tensor& t : want) out.push_back(empty({0}, t.dtype()));
  GetParam().into(out);
  expect_same(out, want);
  for (Tensor& t : out) t = empty(t.sizes(), t.dtype());
  std::vector<void*> memory;
  for (const Tensor& t : out) memory.push_back(t.data_ptr());
  GetParam().into(out);
  expect_same(out, want);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i].data_ptr(), memory[i]);
  EXPECT_TRUE(warnings.texts.empty());
}

TEST_P(OutVariants, WarnsWhereItResizes) {
  const Tensors want = GetParam().fresh();
  Tensors out;
  for (const Tensor& t : want) out.push_back(empty({t.numel() + 1}, t.dtype()));
  const Warnings warnings;
  GetParam().into(out);
  expect_same(out, want);
  ASSERT_EQ(warnings.texts.size(), want.size());
  EXPECT_NE(warnings.texts[0].find("An output with one or more elements was resized since it had shape"),
            std::string::npos);
}

TEST_P(OutVariants, TakesAnyStridesButNoOverlap) {
  const Tensors want = GetParam().fresh();
  Tensors out, repeated;
  for (const Tensor& t : want) {
    const Sizes turned(std::make_reverse_iterator(t.sizes().end()), std::make_reverse_iterator(t.sizes().begin()));
    Tensor back = empty(turned, t.dtype());
    for (int64_t d = 0; d < t.dim() / 2; ++d) back = transpose(back, d, t.dim() - 1 - d);
    out.push_back(back);
    repeated.push_back(expand(empty(Sizes(static_cast<size_t>(t.dim()), 1), t.dtype()), t.sizes()));
  }
  GetParam().into(out);
  expect_same(out, want);
  if (want[0].numel() > 1) {
    EXPECT_THROW(GetParam().into(repeated), RuntimeError);
  }
}

TEST_P(OutVariants, RecordsNothing) {
  Tensors out;
  for (const Tensor& t : GetParam().fresh()) {
    out.push_back(empty(t.sizes(), t.dtype()));
    if (t.is_differentiable()) out.back().requires_grad_();
  }
  if (!out[0].requires_grad()) return;
  TERCEL_EXPECT_THROW(GetParam().into(out), RuntimeError,
                      "functions with out=... arguments don't support automatic differentiation");
  const NoGradGuard guard;
  GetParam().into(out);
  for (const Tensor& t : out) EXPECT_TRUE(t.is_leaf());
}

TEST_P(OutVariants, RefusesDtypesThatCannotHoldTheResult) {
  Tensors out;
  for (const Tensor& t : GetParam().fresh())
    out.push_back(empty({0}, t.is_complex() ? kFloat64 : t.is_floating_point() ? kInt64 : kBool));
  if (!GetParam().any_dtype && GetParam().fresh()[0].dtype() != kBool) {
    EXPECT_THROW(GetParam().into(out), RuntimeError);
  }
}

INSTANTIATE_TEST_SUITE_P(Calculating, OutVariants, ::testing::ValuesIn(calculating_rows()), name_of_row);

}  // namespace

TEST(OutVariants, OperandsThatRequireGrad) {
  Tensor x = random({3}, kFloat64, 0.1, 0.9, 1);
  const Tensor out = empty({3}, kFloat64);
  x.requires_grad_();
  const char* words = "(): functions with out=... arguments don't support automatic differentiation";
  TERCEL_EXPECT_THROW(exp_out(out, x), RuntimeError, std::string("exp") + words);
  TERCEL_EXPECT_THROW(add_out(out, x, 1), RuntimeError, std::string("add") + words);
  TERCEL_EXPECT_THROW(dot_out(out, x, x), RuntimeError, std::string("dot") + words);
  TERCEL_EXPECT_THROW(cumsum_out(out, x, 0), RuntimeError, std::string("cumsum") + words);
  TERCEL_EXPECT_THROW(linalg::vecdot_out(out, x, x), RuntimeError, std::string("linalg_vecdot") + words);
  const NoGradGuard guard;
  EXPECT_FALSE(cumsum_out(out, x, 0).requires_grad());
}

TEST(OutVariants, MayWriteWhatTheyRead) {
  const Tensor x = make({2, 2}, kFloat64, {1, 2, 3, 4});
  flip_out(x, x, {0});
  EXPECT_EQ(values_of(x), (std::vector<double>{3, 4, 1, 2}));
  matmul_out(x, x, x);
  EXPECT_EQ(values_of(x), (std::vector<double>{13, 20, 5, 8}));
  add_out(x, x, x);
  EXPECT_EQ(values_of(x), (std::vector<double>{26, 40, 10, 16}));
  TERCEL_EXPECT_THROW(exp_out(x.view({4}).slice(0, 1), x.view({4}).slice(0, 0, 3)), RuntimeError,
                      "unsupported operation: some elements");
}

TEST(OutVariants, SomeMayNotLieInTheirOperands) {
  const auto refused = [](const char* op, auto call) {
    TERCEL_EXPECT_THROW(call(), RuntimeError, str_cat({op, ": unsupported operation: some elements"}));
  };
  const Tensor x = random({4, 4}, kFloat64, 0.1, 0.9, 1), flat = x.view({16});
  const Tensor index = make({4}, kInt64, {3, 2, 1, 0});
  refused("index_select", [&] { index_select_out(x, x, 0, index); });
  refused("index_select", [&] { index_select_out(index, flat, 0, index); });
  refused("stack", [&] { stack_out(x, {flat.slice(0, 0, 4), ones({4}, kFloat64)}); });
  refused("concat", [&] { concat_out(flat, {flat.slice(0, 0, 4), flat.slice(0, 4)}); });
  refused("cat", [&] { cat_out(flat, {flat.slice(0, 0, 4), flat.slice(0, 4)}); });
  refused("linalg_cross", [&] { linalg::cross_out(x.narrow(1, 0, 3), x.narrow(1, 0, 3), x.narrow(1, 1, 3)); });
  refused("kthvalue", [&] { kthvalue_out(flat[0], index[0], flat, 2); });
  // The first operand may be the very same tensor, others may not.
  index_add_out(x, x, 0, index, ones({4, 4}, kFloat64));
  refused("index_add", [&] { index_add_out(x, ones({4, 4}, kFloat64), 0, index, x); });
  refused("index_add", [&] { index_add_out(flat.slice(0, 1), flat.slice(0, 0, 15), 0, index, ones({4}, kFloat64)); });
  addmm_out(x, x, x, x);
  refused("addmv", [&] { addmv_out(flat.slice(0, 1, 5), flat.slice(0, 0, 4), x, ones({4}, kFloat64)); });
  clamp_out(flat, flat, 0.2, 0.3);
  for (const auto& call : std::vector<std::pair<const char*, std::function<void(const Tensor&, const Tensor&)>>>{
           {"clamp", [](const Tensor&out, const Tensor&in) { clamp_out(out, in, 0.2, 0.3); }},
           {"clamp", [](const Tensor&out, const Tensor&in) { clamp_out(out, ones({15}, kFloat64), in, std::nullopt); }},
           {"cumsum", [](const Tensor&out, const Tensor&in) { cumsum_out(out, in, 0); }},
           {"frac", [](const Tensor&out, const Tensor&in) { frac_out(out, in); }},
           {"inner", [](const Tensor&out, const Tensor&in) { inner_out(out[0], in, in); }},
           {"sort", [](const Tensor&out, const Tensor&in) { sort_out(out, empty({0}, kInt64), in); }},
           {"aminmax", [](const Tensor&out, const Tensor&in) { aminmax_out(out[0], empty({}, kFloat64), in); }}})
    refused(call.first, [&] { call.second(flat.slice(0, 1), flat.slice(0, 0, 15)); });
  // An undefined operand is none.
  bincount_out(empty({0}, kInt64), index, Tensor());
  EXPECT_EQ(out_rule("exp"), nullptr);
  EXPECT_EQ(out_rule("index"), nullptr);
}

TEST(OutVariants, SumsAreCalculatedInTheDtypeOfOut) {
  const Tensor x = make({3}, kUInt8, {200, 100, 50}), out = empty({}, kUInt8);
  EXPECT_EQ(sum_out(out, x).item<int>(), 350 - 256);
  EXPECT_EQ(sum_out(empty({}, kFloat64), x).item<double>(), 350);
  TERCEL_EXPECT_THROW(sum_out(out, x, {0}, false, kInt64), RuntimeError, "Expected out tensor to have dtype");
}

TEST(OutVariants, SearchesAskForTheirDtypes) {
  const Tensor x = random({3, 4}, kFloat32, -1, 1, 1);
  TERCEL_EXPECT_THROW(sort_out(empty({0}), empty({0}), x), RuntimeError,
                      "Expected out tensor to have dtype long int, but got float instead");
  TERCEL_EXPECT_THROW(max_out(empty({0}, kFloat64), empty({0}, kInt64), x, 1), RuntimeError,
                      "Expected out tensor to have dtype float, but got double instead");
}

TEST(OutVariants, LinearAlgebraAsksForItsDtype) {
  const Tensor a = eye(3);
  TERCEL_EXPECT_THROW(linalg::inv_out(empty({0}, kFloat64), a), RuntimeError,
                      "Expected out tensor to have dtype float, but got double instead");
  EXPECT_EQ(linalg::matrix_power_out(empty({0}, kFloat64), a, 2).dtype(), kFloat64);
  TERCEL_EXPECT_THROW(linalg::eig_out(empty({0}), empty({0}), a), RuntimeError,
                      "linalg.eig: Expected eigenvalues to be safely castable from ComplexFloat dtype, but got "
                      "eigenvalues with dtype Float");
}

TEST(OutVariants, UndefinedOut) {
  const Tensor x = ones({3});
  TERCEL_EXPECT_THROW(exp_out(Tensor(), x), RuntimeError, "undefined");
  TERCEL_EXPECT_THROW(cumsum_out(Tensor(), x, 0, kFloat32), RuntimeError, "undefined");
  TERCEL_EXPECT_THROW(empty_out(Tensor(), {2}), RuntimeError, "undefined");
  TERCEL_EXPECT_THROW(sort_out(Tensor(), empty({0}, kInt64), x), RuntimeError, "undefined");
}

TEST(OutVariants, ListsOfAnotherLength) {
  TERCEL_EXPECT_THROW(unbind_copy_out({empty({0})}, ones({2, 3})), RuntimeError,
                      "unbind_copy() expected an out= argument of size 2, got size 1");
}

TEST(OutVariants, EmptyAlone) {
  const Tensor out = empty({0});
  EXPECT_TRUE(empty_out(out, {2, 3}).is_same(out));
  EXPECT_EQ(out.sizes(), IntSpan({2, 3}));
}

}  // namespace out_variants

}  // namespace tercel::test
