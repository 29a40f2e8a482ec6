#include "tercel/ops/linalg/packed_weight.h"

#include <array>
#include <cmath>
#include <limits>
#include <thread>

#include "tercel/autograd/autograd.h"
#include "tercel/core/dispatch.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/nn/linear.h"
#include "tercel/ops/print.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/error.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/linalg/packed_weight_rows.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(PackedWeight, Conformance, ::testing::ValuesIn(packed_weight_rows()), row_name);

namespace {

class PackedWeight : public ::testing::Test {
 protected:
  ~PackedWeight() override {
    set_num_threads(threads_);
    set_cpu_isa(isa_);
  }

 private:
  const int64_t threads_ = num_threads();
  const CpuIsa isa_ = cpu_isa();
};

struct Layer {
  int64_t in, out;
};
// One and several panels and blocks of k; whole panels and others.
constexpr Layer kLayers[] = {{70, 33}, {300, 64}, {600, 100}, {1030, 17}, {1100, 1040}};

template <class Error, class F>
std::string message_of(F call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_F(PackedWeight, ProductHasTheBitsOfTheStridedWeight) {
  for (const ScalarType dtype : {kFloat32, kFloat64})
    for (const auto& [in, out] : kLayers) {
      const Tensor weight = random({out, in}, dtype, -1, 1, 1), bias = random({out}, dtype, -1, 1, 2);
      const Tensor packed = to_mkldnn(weight);
      // With more rows than gemm_of_dots() takes.
      for (const int64_t rows : {25, 33, 64, 150})
        for (const int64_t threads : {1, 2, 3}) {
          SCOPED_TRACE(testing::Message() << dtype << ' ' << rows << " x " << in << " -> " << out << ", " << threads);
          const Tensor x = random({rows, in}, dtype, -1, 1, 3);
          set_num_threads(threads);
          EXPECT_EQ(bytes_of(linear(x, packed, bias)), bytes_of(linear(x, weight, bias)));
          EXPECT_EQ(bytes_of(linear(x, packed)), bytes_of(linear(x, weight)));
        }
    }
}

TEST_F(PackedWeight, ARowOfTheProductDoesNotDependOnTheOthers) {
  for (const auto& [in, out] : kLayers) {
    const Tensor weight = random({out, in}, kFloat32, -1, 1, 1), packed = to_mkldnn(weight);
    const Tensor x = random({64, in}, kFloat32, -1, 1, 3);
    const Tensor want = linear(x, weight);
    for (int64_t rows = 1; rows <= 26; ++rows)
      for (const int64_t threads : {1, 2, 4}) {
        set_num_threads(threads);
        EXPECT_EQ(bytes_of(linear(x.narrow(0, 0, rows), packed)), bytes_of(contiguous(want.narrow(0, 0, rows))))
            << rows << " rows, " << threads << " threads";
      }
  }
}

TEST_F(PackedWeight, AnyStrides) {
  const Tensor weight = random({40, 96}, kFloat32, -1, 1, 1), x = random({30, 96}, kFloat32, -1, 1, 2);
  const std::string want = bytes_of(linear(x, weight));
  const Tensor packed = to_mkldnn(weight);
  for (const Placement placement : placements()) {
    EXPECT_EQ(bytes_of(unpack_weight(to_mkldnn(placed(weight, placement)))), bytes_of(weight));
    EXPECT_EQ(bytes_of(linear(placed(x, placement), packed)), want);
  }
  // A row that is repeated, and an operand that is contiguous across k.
  const Tensor row = weight.narrow(0, 3, 1).expand({40, 96});
  EXPECT_EQ(bytes_of(unpack_weight(to_mkldnn(row))), bytes_of(contiguous(row)));
  EXPECT_EQ(bytes_of(linear(contiguous(x.t()).t(), packed)), want);
}

TEST_F(PackedWeight, UnpackingGivesTheSameBits) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const ScalarType dtype : {kFloat32, kFloat64})
    for (const int64_t out : {0, 1, 7, 8, 31, 32, 33, 96})
      for (const int64_t in : {0, 1, 5, 64}) {
        const Tensor weight = random({out, in}, dtype, -1, 1, 1);
        if (out > 0 && in > 3) {
          const Tensor special = make({4}, dtype, {-0.0, kInf, -kInf, std::nan("")});
          copy_(weight.select(0, out - 1).narrow(0, 0, 4), special);
        }
        const Tensor packed = to_mkldnn(weight), back = unpack_weight(packed);
        EXPECT_EQ(packed.sizes(), weight.sizes());
        EXPECT_EQ(packed.dtype(), dtype);
        EXPECT_EQ(packed.layout(), Layout::Opaque);
        EXPECT_EQ(back.layout(), Layout::Strided);
        EXPECT_TRUE(back.is_contiguous());
        EXPECT_EQ(bytes_of(back), bytes_of(weight));
        EXPECT_EQ(linear(random({3, in}, dtype, -1, 1, 2), packed).sizes(), (Sizes{3, out}));
        EXPECT_EQ(linear(random({0, in}, dtype, -1, 1, 2), packed).sizes(), (Sizes{0, out}));
      }
  const Tensor weight = random({9, 4}, kFloat32, -1, 1, 1);
  EXPECT_EQ(bytes_of(unpack_weight(to_mkldnn(weight, kFloat64))), bytes_of(to(weight, kFloat64)));
}

TEST_F(PackedWeight, NumbersThatAreNotFiniteStayInTheirColumns) {
  // The last panel's missing columns are zeros, not what was in memory.
  const Tensor x = full({2, 3}, INFINITY), packed = to_mkldnn(ones({33, 3}));
  for (const double y : values_of(linear(x, packed))) EXPECT_EQ(y, std::numeric_limits<double>::infinity());
}

TEST_F(PackedWeight, IsForOneInstructionSet) {
  const Tensor weight = random({50, 20}, kFloat32, -1, 1, 1), x = random({30, 20}, kFloat32, -1, 1, 2);
  for (int level = 0; level <= static_cast<int>(best_cpu_isa()); ++level) {
    const auto isa = static_cast<CpuIsa>(level);
    set_cpu_isa(isa);
    const Tensor packed = to_mkldnn(weight);
    EXPECT_EQ(bytes_of(linear(x, packed)), bytes_of(linear(x, weight)));
    for (int other = 0; other <= static_cast<int>(best_cpu_isa()); ++other) {
      set_cpu_isa(static_cast<CpuIsa>(other));
      EXPECT_EQ(bytes_of(unpack_weight(packed)), bytes_of(weight));
      if (other == level) continue;
      const std::string message = message_of<RuntimeError>([&] { linear(x, packed); });
      EXPECT_EQ(message.find("linear: the weight was packed for another instruction set, in panels of "), 0U)
          << message;
      EXPECT_NE(message.find(std::string(to_string(cpu_isa())) + " kernels read panels of "), std::string::npos);
    }
  }
}

TEST_F(PackedWeight, CopiesShareWhatNeverChanges) {
  const Tensor weight = random({5, 6}, kFloat32, -1, 1, 1);
  const std::string bytes = bytes_of(weight);
  const Tensor packed = to_mkldnn(weight), copy = clone(packed), same = packed.detach();
  zero_(weight);
  for (const Tensor& t : {packed, copy, same}) {
    EXPECT_EQ(t.layout(), Layout::Opaque);
    EXPECT_EQ(t.sizes(), (Sizes{5, 6}));
    EXPECT_EQ(bytes_of(unpack_weight(t)), bytes);
  }
  EXPECT_FALSE(copy.is_same(packed));
  EXPECT_EQ(message_of<NotImplementedError>([&] { clone(packed, MemoryFormat::Contiguous); }),
            "clone: not implemented for layout _mkldnn");
}

TEST_F(PackedWeight, GradientOfTheInputAndTheBias) {
  const Tensor weight = random({5, 7}, kFloat64, -1, 1, 1), packed = to_mkldnn(weight);
  const Tensor incoming = random({4, 5}, kFloat64, -1, 1, 4);
  std::vector<std::string> found[2];
  for (const bool use_packed : {false, true}) {
    Tensor x = random({4, 7}, kFloat64, -1, 1, 2), bias = random({5}, kFloat64, -1, 1, 3);
    x.requires_grad_();
    bias.requires_grad_();
    const Tensor y = linear(x, use_packed ? packed : weight, bias);
    const Tensor inputs[] = {x, bias};
    for (const Gradient& g : grad(Span<Tensor>(&y, 1), inputs, Span<Tensor>(&incoming, 1)))
      found[use_packed ? 1 : 0].push_back(bytes_of(g.values));
  }
  EXPECT_EQ(found[0], found[1]);
}

TEST_F(PackedWeight, Refusals) {
  const Tensor weight = ones({3, 4}), packed = to_mkldnn(weight), x = ones({2, 4});
  const std::string refused = ": not implemented for layout _mkldnn";
  EXPECT_EQ(message_of<NotImplementedError>([&] { to_mkldnn(packed); }), "to_mkldnn" + refused);
  EXPECT_EQ(message_of<NotImplementedError>([&] { linear(packed, weight); }), "linear" + refused);
  EXPECT_EQ(message_of<NotImplementedError>([&] { linear(x, weight, packed); }), "linear" + refused);
  EXPECT_EQ(message_of<NotImplementedError>([&] { inner_product(x, packed); }), "inner_product" + refused);
  EXPECT_EQ(message_of<NotImplementedError>([&] { matmul(x, packed); }), "matmul" + refused);
  EXPECT_EQ(message_of<NotImplementedError>([&] { add(packed, packed); }), "add" + refused);
  EXPECT_EQ(message_of<NotImplementedError>([&] { copy_(weight, packed); }), "copy_" + refused);
  EXPECT_EQ(message_of<NotImplementedError>([&] { zero_(packed); }), "zero_" + refused);
  EXPECT_EQ(message_of<NotImplementedError>([&] { packed.data_ptr(); }), "data" + refused);
  EXPECT_EQ(message_of<NotImplementedError>([&] { clone(packed).requires_grad_(); }), "requires_grad_" + refused);
  EXPECT_EQ(message_of<NotImplementedError>([&] { unpack_weight(weight); }),
            "to_dense: not implemented for layout strided");
  EXPECT_FALSE(clone(packed).requires_grad_(false).requires_grad());

  EXPECT_EQ(message_of<RuntimeError>([&] { to_mkldnn(ones({3})); }),
            "to_mkldnn: expected a weight [out, in] but got [3]");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              to_mkldnn(ones({3, 4}, kInt32));
            }),
            "to_mkldnn: expected a float32 or float64 weight but got int32");
  EXPECT_EQ(message_of<RuntimeError>([&] { to_mkldnn(weight, kBFloat16); }),
            "to_mkldnn: expected a float32 or float64 weight but got bfloat16");
  EXPECT_EQ(message_of<RuntimeError>([&] { linear(to(x, kFloat64), packed); }),
            "linear: expected one dtype but got input float64, weight float32");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              linear(ones({2, 5}), packed);
            }),
            "linear: mat1 and mat2 shapes cannot be multiplied (2x5 and 4x3)");
  Tensor parameter = ones({3, 4});
  parameter.requires_grad_();
  EXPECT_EQ(message_of<RuntimeError>([&] { to_mkldnn(parameter); }),
            "to_mkldnn: the weight requires a gradient, but a packed weight has none; use detach() or no_grad()");
  const NoGradGuard no_grad;
  EXPECT_FALSE(to_mkldnn(parameter).requires_grad());
}

TEST_F(PackedWeight, Prints) {
  EXPECT_EQ(to_string(to_mkldnn(make({2, 3}, kFloat32, {0, 1, 2, 3, 4, 5}))),
            "tensor([[0., 1., 2.],\n        [3., 4., 5.]], layout=_mkldnn)");
  EXPECT_EQ(to_string(to_mkldnn(empty({0, 3}))), "tensor([], size=(0, 3), layout=_mkldnn)");
  EXPECT_EQ(to_string(to_mkldnn(ones({1, 1}, kFloat64))), "tensor([[1.]], dtype=float64, layout=_mkldnn)");
}

TEST(PackedWeightThreads, ShareOneWeight) {
  const Tensor weight = random({70, 90}, kFloat32, -1, 1, 1), packed = to_mkldnn(weight);
  const Tensor x = random({30, 90}, kFloat32, -1, 1, 2);
  const std::string want = bytes_of(linear(x, weight));
  std::array<std::string, 4> found;
  std::vector<std::thread> threads;
  for (std::string& bytes : found)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) bytes = bytes_of(linear(x, i % 2 == 0 ? packed : clone(packed)));
      EXPECT_EQ(bytes_of(unpack_weight(packed)), bytes_of(weight));
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& bytes : found) EXPECT_EQ(bytes, want);
}

}  // namespace tercel::test
