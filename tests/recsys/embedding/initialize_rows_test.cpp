#include "tercel/recsys/embedding/initialize_rows.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>

#include "tercel/core/dispatch.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/checksum.h"
#include "tercel/util/parallel.h"
#include "tercel/util/philox.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {
namespace {

using test::bytes_of;
using test::values_of;

Tensor rows_of(const nn::Init& init, int64_t n, int64_t dim, uint64_t seed, std::string_view table, int64_t first_key) {
  Tensor rows = empty({n, dim});
  initialize_rows(rows, init, seed, table, first_key);
  return rows;
}

/** A value by Note [Initial rows], one number at a time. */
double value_of(const nn::Init& init, uint64_t seed, std::string_view table, int64_t key, int64_t column) {
  const PhiloxBlock mixed = Philox{seed, checksum(table.data(), table.size())}(0);
  const Philox stream{random_u64(mixed.word[0], mixed.word[1]), static_cast<uint64_t>(column / 4)};
  const PhiloxBlock block = stream(static_cast<uint64_t>(key));
  const auto word = static_cast<size_t>(column % 4);
  if (init.kind == nn::Init::Kind::Uniform)
    return init.a + (init.b - init.a) * static_cast<double>(uniform_f32(block.word[word]));
  const double u = static_cast<double>((block.word[word / 2 * 2] >> 8) + 1) * 0x1p-24;
  const double angle = 2 * std::numbers::pi * static_cast<double>(uniform_f32(block.word[word / 2 * 2 + 1]));
  return init.a + init.b * std::sqrt(-2 * std::log(u)) * (word % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

TEST(InitialRows, EachValueIsThatOfItsKeyAndColumn) {
  constexpr int64_t kRows = 300;  // several batches of keys and the rest of one
  for (const nn::Init& init : {nn::Init::uniform(0.5), nn::Init::normal(2)})
    for (const int64_t dim : {1, 4, 7, 16})
      for (const int64_t first_key : {int64_t{0}, int64_t{12345}, int64_t{1} << 40}) {
        const std::vector<double> found = values_of(rows_of(init, kRows, dim, 9, "table", first_key));
        for (int64_t r = 0; r < kRows; ++r)
          for (int64_t c = 0; c < dim; ++c)
            ASSERT_NEAR(found[static_cast<size_t>(r * dim + c)], value_of(init, 9, "table", first_key + r, c), 2e-6)
                << "dim " << dim << ", key " << first_key + r << ", column " << c;
      }
}

TEST(InitialRows, KnownAnswersOnEveryInstructionSet) {
  const CpuIsa before = cpu_isa();
  for (const CpuIsa isa : {CpuIsa::Generic, CpuIsa::Avx2, CpuIsa::Avx512}) {
    if (isa > best_cpu_isa()) continue;
    set_cpu_isa(isa);
    const Tensor uniform = rows_of(nn::Init::uniform(1), 2, 5, 1, "embedding", 3);
    const Tensor normal = rows_of(nn::Init::normal(1), 2, 5, 1, "embedding", 3);
    EXPECT_EQ(checksum_to_hex(checksum(uniform.data_ptr(), uniform.nbytes())), "ae92349c6b24f56b") << to_string(isa);
    EXPECT_EQ(checksum_to_hex(checksum(normal.data_ptr(), normal.nbytes())), "69dbffbe78bab3ca") << to_string(isa);
  }
  set_cpu_isa(before);
}

TEST(InitialRows, DependOnNothingElse) {
  const nn::Init init = nn::Init::normal(1);
  const Tensor all = rows_of(init, 1000, 8, 5, "a", 100);
  EXPECT_EQ(bytes_of(narrow(all, 0, 300, 50)), bytes_of(rows_of(init, 50, 8, 5, "a", 400))) << "size and first key";
  EXPECT_EQ(bytes_of(narrow(all, 1, 0, 3).contiguous()), bytes_of(rows_of(init, 1000, 3, 5, "a", 100))) << "dim";
  const Tensor wide = zeros({1000, 11});
  initialize_rows(narrow(wide, 1, 2, 8), init, 5, "a", 100);
  EXPECT_EQ(bytes_of(narrow(wide, 1, 2, 8).contiguous()), bytes_of(all)) << "stride";
  for (const int64_t column : {0, 1, 10})
    for (const double x : values_of(narrow(wide, 1, column, 1).contiguous())) ASSERT_EQ(x, 0) << "outside the rows";
  EXPECT_NE(bytes_of(all), bytes_of(rows_of(init, 1000, 8, 6, "a", 100))) << "the seed counts";
  EXPECT_NE(bytes_of(all), bytes_of(rows_of(init, 1000, 8, 5, "b", 100))) << "and the name";
}

TEST(InitialRows, AreTheSameNumbersInFloat64) {
  for (const nn::Init& init : {nn::Init::uniform(0.3), nn::Init::normal(2)}) {
    const Tensor wide = empty({200, 7}, kFloat64);
    initialize_rows(wide, init, 5, "a", 100);
    EXPECT_EQ(values_of(wide), values_of(rows_of(init, 200, 7, 5, "a", 100)));
  }
}

TEST(InitialRowsThreads, DoNotDependOnThreads) {
  const int64_t threads = num_threads();
  set_num_threads(1);
  const std::string one = bytes_of(rows_of(nn::Init::normal(1), 20'000, 6, 5, "a", 1));
  set_num_threads(4);
  EXPECT_EQ(bytes_of(rows_of(nn::Init::normal(1), 20'000, 6, 5, "a", 1)), one);
  set_num_threads(threads);
}

TEST(InitialRows, HaveTheirDistribution) {
  constexpr int64_t kRows = 50'000, kDim = 4;
  const auto moments = [](const nn::Init& init) {
    double sum = 0, squares = 0, most = 0;
    for (const double x : values_of(rows_of(init, kRows, kDim, 3, "t", 0))) {
      sum += x;
      squares += x * x;
      most = std::max(most, std::abs(x));
    }
    constexpr double kNumbers = kRows * kDim;
    return std::array{sum / kNumbers, std::sqrt(squares / kNumbers), most};
  };
  const auto uniform = moments(nn::Init::uniform(0.3)), normal = moments(nn::Init::normal(0.3));
  EXPECT_NEAR(uniform[0], 0, 0.002);
  EXPECT_NEAR(uniform[1], 0.3 / std::sqrt(3), 0.002);
  EXPECT_LE(uniform[2], 0.3);
  EXPECT_NEAR(normal[0], 0, 0.003);
  EXPECT_NEAR(normal[1], 0.3, 0.003);
  EXPECT_GT(normal[2], 0.3 * 3.5);
}

TEST(InitialRows, ConstantsAndErrors) {
  EXPECT_EQ(values_of(rows_of(nn::Init::zero(), 2, 2, 1, "t", 0)), std::vector<double>(4, 0));
  EXPECT_EQ(values_of(rows_of(nn::Init::constant(3), 2, 2, 1, "t", 0)), std::vector<double>(4, 3));
  EXPECT_EQ(rows_of(nn::Init::normal(1), 0, 2, 1, "t", 0).numel(), 0);
  TERCEL_EXPECT_THROW(
      initialize_rows(empty({2, 2}, kBFloat16), nn::Init::zero(), 1, "t", 0), RuntimeError,
      "initialize_rows: expected float32 or float64 [n, dim] with contiguous rows but got [2, 2] bfloat16");
}

}  // namespace
}  // namespace tercel::recsys
