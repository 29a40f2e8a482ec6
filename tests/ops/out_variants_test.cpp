// Out variants are generated from the table of ops (tests/build/make_ops_test.py): this tests some of each kind, and
// those written by hand.
#include "tercel/ops/out_variants.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/views/permute.h"
#include "tercel/ops/views/slicing.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/warning.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::test {

namespace out_variants {

namespace {

// A row is an op with its arguments: its out variant is compared with the op itself, and checked against Note [Out
// variants].

using Tensors = std::vector<Tensor>;

/** Arguments of ops. */
struct Operands {
  Tensor x = random({3, 4}, kFloat64, 0.1, 0.9, 1), y = random({3, 4}, kFloat64, 0.1, 0.9, 2);
  Tensor v = random({4}, kFloat64, 0.1, 0.9, 3), w = random({3}, kFloat64, 0.1, 0.9, 4);
  Tensor square = random({3, 3}, kFloat64, 0.1, 0.9, 5), b = random({3, 2}, kFloat64, 0.1, 0.9, 6);
  Tensor positive = add(matmul(square, square.t()), eye(3, 3, kFloat64));
  Tensor three = random({2, 3}, kFloat64, 0.1, 0.9, 7), image = random({1, 2, 6, 6}, kFloat64, 0.1, 0.9, 8);
  Tensor volume = random({1, 1, 4, 4, 4}, kFloat64, 0.1, 0.9, 9);
  Tensor z = complex(random({3, 4}, kFloat64, -1, 1, 10), random({3, 4}, kFloat64, -1, 1, 11));
  Tensor whole = make({3, 4}, kInt64, {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8});
  Tensor mask = make({3, 4}, kBool, {1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1});
  Tensor places = make({2}, kInt64, {2, 0}), along = make({3, 2}, kInt64, {0, 3, 1, 1, 2, 0});
  Tensor targets = make({3}, kInt64, {0, 3, 1}), flat = make({3}, kInt64, {11, 0, 5});
  Tensor sorted = make({4}, kFloat64, {0.2, 0.4, 0.6, 0.8});
  Tensor counts = make({3}, kInt64, {2, 0, 1});
  linalg::LuFactorResult lu = linalg::lu_factor(positive);
  linalg::LdlFactorResult ldl = linalg::ldl_factor(positive);
  Tensor factor = linalg::cholesky(positive);
  GeqrfResult reflectors = geqrf(square);
};

const Operands& in() {
  static const Operands& operands = *new Operands;
  return operands;
}

Generator& seeded() {
  static Generator& generator = *new Generator;
  generator.set_seed(7);
  return generator;
}

struct Row {
  std::string name;
  std::function<Tensors()> fresh;
  std::function<void(const Tensors& out)> into;
  /** Computes in the dtype of `out`. */
  bool any_dtype = false;
};

#define ROW(op, ...)                                                                                       \
  Row {                                                                                                    \
#op "(" #__VA_ARGS__ ")",                                                                              \
        [] { return Tensors{op(__VA_ARGS__)}; }, [](const Tensors& out) { op##_out(out[0], __VA_ARGS__); } \
  }
#define OF_OUT(op, ...)                                                                                          \
  Row {                                                                                                          \
#op "(" #__VA_ARGS__ ")",                                                                                    \
        [] { return Tensors{op(__VA_ARGS__)}; }, [](const Tensors& out) { op##_out(out[0], __VA_ARGS__); }, true \
  }
/** A factory: arguments of name() only are in parentheses. */
#define MADE(op, fresh_arguments, ...)                                                                              \
  Row {                                                                                                             \
#op "(" #__VA_ARGS__ ")",                                                                                       \
        [] { return Tensors{op fresh_arguments}; }, [](const Tensors& out) { op##_out(out[0], __VA_ARGS__); }, true \
  }
#define ROW2(op, ...)                             \
  Row {                                           \
#op "(" #__VA_ARGS__ ")",                       \
      [] {                                            \
        const auto [first, second] = op(__VA_ARGS__); \
        return Tensors{first, second};                \
      },                                              \
      [](const Tensors& out) { op##_out(out[0], out[1], __VA_ARGS__); } \
  }
#define ROW3(op, ...)                                    \
  Row {                                                  \
#op "(" #__VA_ARGS__ ")",                              \
      [] {                                                   \
        const auto [first, second, third] = op(__VA_ARGS__); \
        return Tensors{first, second, third};                \
      },                                                     \
      [](const Tensors& out) { op##_out(out[0], out[1], out[2], __VA_ARGS__); } \
  }
#define LIST(op, ...)                                                                                                \
  Row {                                                                                                              \
#op "(" #__VA_ARGS__ ")", [] { return op(__VA_ARGS__); }, [](const Tensors& out) { op##_out(out, __VA_ARGS__); } \
  }

class OutVariants : public ::testing::TestWithParam<Row> {};

/** op_number, for a suite's name. */
std::string name_of_row(const ::testing::TestParamInfo<Row>& info) {
  std::string name = info.param.name.substr(0, info.param.name.find('('));
  for (char& c : name)
    if (c == ':') c = '_';
  return name + "_" + std::to_string(info.index);
}

std::vector<Row> rows() {
  return {
      // written by hand, and families
      ROW(add, in().x, 2),
      ROW(add, in().x, in().v, 3),
      ROW(pow, 2, in().x),
      ROW(eq, in().whole, 5),
      ROW(digamma, in().x),
      ROW(isnan, in().x),
      ROW(arccos, in().x),
      ROW(special_expit, in().x),
      ROW(arctan2, in().x, in().y),
      ROW(divide, 3, in().x),
      ROW(greater, in().x, 0.5),
      ROW(angle, in().z),
      ROW(clamp, in().x, in().v, std::nullopt),
      ROW(conj_physical, in().z),
      ROW(special_polygamma, 1, in().x),
      ROW(where, in().mask, in().x, 1),
      ROW(linear, in().x, in().y, in().w),
      ROW(all, in().mask, {1}, true),
      ROW(max, in().x, in().y),
      ROW(mean, in().x, {1}),
      OF_OUT(nansum, in().x, {1}),
      OF_OUT(prod, in().x),
      ROW(quantile, in().x, in().sorted, 1, true),
      OF_OUT(sum, in().x),
      OF_OUT(sum, in().x, {0}, true),
      ROW(mean, in().x),
      ROW(renorm, in().x, 2, 0, 0.5),
      OF_OUT(cumsum, in().x, 0),
      ROW(diff, in().x, 2, 1),
      ROW(searchsorted, in().sorted, 0.5),
      ROW(chain_matmul, {in().x, in().v.reshape({4, 1}), in().v.reshape({1, 4})}),
      ROW(cross, in().three, in().three),
      ROW(mm, in().square, in().x),
      ROW(addmm, in().x, in().square, in().y, 0.5, 2),
      ROW(inner, in().x, in().y),
      ROW(complex, in().x, in().y),
      ROW(polar, in().x, in().y),
      ROW2(cummax, in().x, 1),
      ROW2(max, in().x, 1),
      ROW2(topk, in().x, 2),
      ROW2(aminmax, in().x, 1),
      ROW2(histogram, in().x, 4),
      ROW2(var_mean, in().x, {1}),
      // ops that move elements, and factories
      ROW(gather, in().x, 1, in().along),
      ROW(index_add, in().x, 0, in().places, slice(in().y, 0, 0, 2), 2),
      ROW(nonzero, in().mask),
      ROW(index, in().x, {in().places, indexing::Slice(1, 3)}),
      ROW(cat, {in().x, in().y}, 1),
      ROW(column_stack, {in().x, in().w}),
      ROW(tril, in().x, 1),
      ROW(flip, in().x, {0}),
      MADE(arange, (0, 5, 1, kFloat64), 5),
      MADE(arange, (1, 5, 2, kFloat64), 1, 5, 2),
      MADE(eye, (3, 4, kFloat64), 3, 4),
      MADE(full, ({2, 3}, 7, kFloat64), {2, 3}, 7),
      MADE(zeros, ({2, 3}, kFloat64), {2, 3}),
      MADE(rand, ({2, 3}, kFloat64, seeded()), {2, 3}, seeded()),
      MADE(randint, (0, 9, {2, 3}, kFloat64, seeded()), 0, 9, {2, 3}, seeded()),
      MADE(randperm, (6, kFloat64, seeded()), 6, seeded()),
      LIST(split_copy, in().x, 2, 1),
      LIST(unbind_copy, in().x, 0),
      ROW(linalg::cholesky, in().positive),
      ROW(linalg::lu_solve, in().lu.LU, in().lu.pivots, in().b),
      ROW(linalg::matrix_power, in().square, 2),
      ROW(linalg::cross, in().three, in().three),
      ROW(linalg::matmul, in().square, in().x),
      ROW2(linalg::qr, in().x),
      ROW3(linalg::svd, in().x),
      Row{"linalg::lstsq",
          [] {
            const auto [solution, residuals, rank, singular] = linalg::lstsq(in().x, in().b);
            return Tensors{solution, residuals, rank, singular};
          },
          [](const Tensors& out) { linalg::lstsq_out(out[0], out[1], out[2], out[3], in().x, in().b); }},
      ROW(fft::fft, in().x, 5),
      ROW(fft::fftn, in().x),
      ROW(fft::fft2, in().x),
      MADE(fft::fftfreq, (5, 1, kFloat64), 5),
      ROW(inverse, in().positive),
      ROW3(svd, in().x),
      ROW2(geqrf, in().x),
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

/** Collects warnings during its lifetime. */
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

INSTANTIATE_TEST_SUITE_P(Rows, OutVariants, ::testing::ValuesIn(rows()), name_of_row);

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
  // The first operand may be the same tensor as `out`; others may not.
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
  // An undefined operand is ignored.
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
  const Tensor untouched = full(x.sizes(), 7.0);
  TERCEL_EXPECT_THROW(sort_out(untouched, empty({1}, kInt64).expand(x.sizes()), x), RuntimeError,
                      "more than one element of the written-to tensor");
  EXPECT_EQ(values_of(untouched), values_of(full(x.sizes(), 7.0)));
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
