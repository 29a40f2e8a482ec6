// The number of threads may change at any time, also during an op; results must stay correct.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/ops.h"
#include "tercel/util/parallel.h"
#include "tercel/util/sanitizers_impl.h"
#include "tests/support/tensors.h"

namespace tercel::test {
namespace {

#if TERCEL_THREAD_SANITIZER  // slow, and reports a benign race
constexpr int kRepeats = 4;
#else
constexpr int kRepeats = 40;
#endif

// With "Threads" in its name the suite also runs under ThreadSanitizer.
class ThreadCountThreads : public testing::Test {
 protected:
  ~ThreadCountThreads() override { set_num_threads(before_); }

  /** Calls op repeatedly while another thread changes the number of threads; all results must be equal. */
  template <class Op>
  void expect_the_same(const char* name, Op op) {
    SCOPED_TRACE(name);
    set_num_threads(1);
    const std::string want = bytes(op());
    std::atomic<bool> done{false};
    std::thread other([&done] {
      for (int64_t i = 0; !done; ++i) set_num_threads(1 + i % 8);
    });
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const std::string got = bytes(op());
      EXPECT_TRUE(got == want) << "repeat " << repeat;
    }
    done = true;
    other.join();
  }

 private:
  static std::string bytes(const std::vector<Tensor>& tensors) {
    std::string out;
    for (const Tensor& t : tensors) out += bytes_of(t);
    return out;
  }

  int64_t before_ = num_threads();
};

/** Integers, whose sums are exact in any order. */
Tensor whole(const Sizes& sizes, ScalarType dtype, int64_t high, uint64_t seed) {
  return to(random(sizes, kInt64, 0, static_cast<double>(high), seed), dtype);
}

TEST_F(ThreadCountThreads, Sorting) {
  const Tensor x = whole({150'000}, kInt64, 5000, 1);
  expect_the_same("unique", [&] {
    const UniqueValues out = unique(x, true, true);
    return std::vector<Tensor>{out.values, out.inverse, out.counts};
  });
  expect_the_same("sort", [&] {
    const ValuesAndIndices out = sort(x, 0);
    return std::vector<Tensor>{out.values, out.indices};
  });
}

TEST_F(ThreadCountThreads, Counting) {
  const Tensor x = whole({400'000}, kInt64, 99, 2), values = to(x, kFloat32);
  expect_the_same("bincount", [&] { return std::vector<Tensor>{bincount(x)}; });
  expect_the_same("histc", [&] { return std::vector<Tensor>{histc(values, 100, 0, 100)}; });
  expect_the_same("nonzero", [&] { return std::vector<Tensor>{nonzero(x)}; });
}

TEST_F(ThreadCountThreads, RowGradients) {
  const Tensor rows = whole({70'000}, kInt64, 3000, 3), values = whole({70'000, 4}, kFloat32, 9, 4);
  expect_the_same("UniqueRows", [&] {
    UniqueRows unique;
    const Gradient out = unique.reduce({values, rows});
    return std::vector<Tensor>{clone(out.rows), clone(out.values)};
  });
}

TEST_F(ThreadCountThreads, Interactions) {
  Tensor mlp = whole({100, 64}, kFloat32, 3, 5), emb = whole({100, 40, 64}, kFloat32, 3, 6);
  mlp.requires_grad_();
  emb.requires_grad_();
  expect_the_same("dot_interaction", [&] {
    const Tensor out = dot_interaction(mlp, emb);
    const Tensor inputs[] = {mlp, emb};
    const Tensor total = out.sum();
    const std::vector<Gradient> grads = grad(Span<Tensor>(&total, 1), inputs);
    return std::vector<Tensor>{out.detach(), grads[0].values, grads[1].values};
  });
}

TEST_F(ThreadCountThreads, Convolutions) {
  const auto gradients = [](Tensor x, Tensor weight, int64_t groups) {
    x.requires_grad_();
    weight.requires_grad_();
    const Tensor out = conv2d(x, weight, {}, {1}, {1}, {1}, groups);
    const Tensor inputs[] = {x, weight};
    const Tensor total = out.sum();
    const std::vector<Gradient> grads = grad(Span<Tensor>(&total, 1), inputs);
    return std::vector<Tensor>{out.detach(), grads[0].values, grads[1].values};
  };
  const Tensor x = whole({9, 8, 14, 13}, kFloat32, 3, 7), last = contiguous(x, MemoryFormat::ChannelsLast);
  const Tensor weight = whole({6, 8, 3, 3}, kFloat32, 3, 8), each = whole({8, 1, 3, 3}, kFloat32, 3, 9);
  expect_the_same("channels first", [&] { return gradients(x.detach(), weight.detach(), 1); });
  expect_the_same("channels last", [&] { return gradients(last.detach(), weight.detach(), 1); });
  expect_the_same("depthwise", [&] { return gradients(last.detach(), each.detach(), 8); });
}

TEST_F(ThreadCountThreads, Products) {
  const Tensor a = whole({150, 200}, kFloat32, 3, 10), b = whole({200, 170}, kFloat32, 3, 11);
  expect_the_same("matmul", [&] { return std::vector<Tensor>{matmul(a, b)}; });
  expect_the_same("sum", [&] { return std::vector<Tensor>{sum(a), sum(a, {0}), sum(a, {1})}; });
  expect_the_same("cumsum", [&] { return std::vector<Tensor>{cumsum(a, 0), cumsum(reshape(a, {-1}), 0)}; });
}

}  // namespace
}  // namespace tercel::test
