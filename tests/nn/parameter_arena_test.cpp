#include "tercel/nn/parameter_arena.h"

#include <gtest/gtest.h>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/elementwise/binary.h"
#include "tests/support/errors.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/tensors.h"

namespace tercel::nn {
namespace {

using test::values_of;

TEST(ParameterArena, ParametersLieInOneBlockAtLineStarts) {
  ParameterArena arena;
  EXPECT_EQ(arena.reserve("a", {3, 5}, Init::constant(1)), 0u);
  EXPECT_EQ(arena.reserve("b", {}, Init::constant(2)), 1u);
  EXPECT_EQ(arena.reserve("empty", {0, 4}, Init::constant(3)), 2u);
  EXPECT_EQ(arena.reserve("c", {16}, Init::constant(4)), 3u);
  EXPECT_EQ(arena.size(), 16 + 16 + 0 + 16);
  EXPECT_FALSE(arena[0].defined());
  Generator generator(1);
  arena.allocate(generator);

  ASSERT_EQ(arena.weights().sizes().to_vector(), test::Sizes{48});
  ASSERT_EQ(arena.gradients().sizes().to_vector(), test::Sizes{48});
  std::vector<double> expected(48, 0.0);
  for (size_t i = 0; i < 15; ++i) expected[i] = 1;
  expected[16] = 2;
  for (size_t i = 32; i < 48; ++i) expected[i] = 4;
  EXPECT_EQ(values_of(arena.weights()), expected) << "the gaps are zero";
  EXPECT_EQ(values_of(arena.gradients()), std::vector<double>(48, 0.0));

  const test::Sizes sizes[] = {{3, 5}, {}, {0, 4}, {16}};
  for (size_t i = 0; i < 4; ++i) {
    const Tensor& x = arena[i];
    EXPECT_EQ(x.sizes().to_vector(), sizes[i]);
    EXPECT_TRUE(x.requires_grad() && x.is_leaf() && x.is_contiguous());
    EXPECT_TRUE(x.is_alias_of(arena.weights()));
    EXPECT_EQ(x.storage_offset(), arena.entries()[i].offset);
    EXPECT_EQ(x.storage_offset() % 16, 0);
    EXPECT_TRUE(x.grad().is_alias_of(arena.gradients()));
    EXPECT_EQ(x.grad().storage_offset(), x.storage_offset());
  }
}

TEST(ParameterArena, BackwardAddsIntoTheArena) {
  ParameterArena arena;
  const size_t a = arena.reserve("a", {2}, Init::constant(3)), b = arena.reserve("b", {2}, Init::constant(5));
  Generator generator(1);
  arena.allocate(generator, kFloat64);
  const void* where = arena.gradients().data_ptr();
  const Tensor ones = test::make({2}, kFloat64, {1, 1});
  for (int pass = 1; pass <= 2; ++pass) {
    // d(a b a)/da = 2 a b: a is used twice.
    mul(mul(arena[a], arena[b]), arena[a]).backward(ones);
    std::vector<double> expected(32, 0.0);
    expected[0] = expected[1] = 30 * pass;
    expected[16] = expected[17] = 9 * pass;
    EXPECT_EQ(values_of(arena.gradients()), expected) << "pass " << pass;
  }
  arena.zero_gradients();
  EXPECT_EQ(values_of(arena.gradients()), std::vector<double>(32, 0.0));
  EXPECT_EQ(arena.gradients().data_ptr(), where);
  EXPECT_EQ(gradient_of(arena[a]).values.data_ptr(), where) << "the gradient stays where it was";
}

TEST(ParameterArena, SavedWeightsNoticeAnUpdate) {
  ParameterArena arena;
  arena.reserve("a", {2}, Init::constant(3));
  Generator generator(1);
  arena.allocate(generator, kFloat64);
  const Tensor product = mul(arena[0], arena[0]);
  arena.weights().impl().bump_version();  // as an optimizer does
  TERCEL_EXPECT_THROW(product.backward(test::make({2}, kFloat64, {1, 1})), RuntimeError, "modified by an inplace");
}

TEST(ParameterArena, SameSeedSameWeights) {
  const auto draw = [](uint64_t seed) {
    ParameterArena arena;
    arena.reserve("a", {30}, Init::normal(1));
    arena.reserve("b", {30}, Init::uniform(1));
    Generator generator(seed);
    arena.allocate(generator);
    return test::bytes_of(arena.weights());
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(ParameterArena, BeginsWithTheSameValuesInFloat64) {
  const auto draw = [](ScalarType dtype) {
    ParameterArena arena;
    arena.reserve("a", {30}, Init::normal(1));
    arena.reserve("b", {3, 7}, Init::uniform(0.3));
    arena.reserve("c", {2}, Init::constant(0.5));
    Generator generator(1);
    arena.allocate(generator, dtype);
    EXPECT_EQ(arena[1].dtype(), dtype);
    EXPECT_EQ(arena[1].grad().dtype(), dtype);
    return values_of(arena.weights());
  };
  EXPECT_EQ(draw(kFloat64), draw(kFloat32));
}

TEST(ParameterArena, LiesOnTheDevice) {
  ParameterArena arena;
  arena.reserve("a", {30}, Init::zero());
  TERCEL_EXPECT_THROW(arena.allocate(kCuda), NotImplementedError, "no allocator for device cuda in this build");
  test::HostAllocator memory(kCuda);
  const test::ScopedAllocator scope(memory, DeviceType::Cuda);
  arena.allocate(kCuda);
  EXPECT_EQ(arena.weights().device(), kCuda);
  EXPECT_EQ(arena.gradients().device(), kCuda);
  EXPECT_EQ(arena[0].device(), kCuda);
}

TEST(ParameterArena, RefusesNamesTwiceAndLateReservations) {
  ParameterArena arena;
  arena.reserve("fc.weight", {2}, {});
  TERCEL_EXPECT_THROW(arena.reserve("fc.weight", {3}, {}), RuntimeError, "parameter 'fc.weight' exists already");
  Generator generator(1);
  TERCEL_EXPECT_THROW(arena.reserve("large", {1 << 30, 1 << 17}, {}), RuntimeError,
                      "parameter 'large': with [1073741824, 131072] there would be more than 140737488355328 elements");
  TERCEL_EXPECT_THROW(arena.reserve("larger", {INT64_MAX, 2}, {}), RuntimeError, "parameter 'larger': ");
  arena.allocate(generator);
  TERCEL_EXPECT_THROW(arena.reserve("more", {3}, {}), RuntimeError, "parameter 'more': the arena is already allocated");
  TERCEL_EXPECT_THROW(arena.allocate(generator), RuntimeError, "the arena is already allocated");
}

TEST(ParameterArena, MayBeEmpty) {
  ParameterArena arena;
  Generator generator(1);
  arena.allocate(generator);
  EXPECT_EQ(arena.weights().numel(), 0);
  arena.zero_gradients();
}

}  // namespace
}  // namespace tercel::nn
