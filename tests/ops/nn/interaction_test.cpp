#include "tercel/ops/nn/interaction.h"

#include "tercel/autograd/autograd.h"
#include "tercel/core/dispatch.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/nn/interaction_rows.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace tercel::test {

INSTANTIATE_TEST_SUITE_P(Interaction, Conformance, ::testing::ValuesIn(interaction_rows()), row_name);

namespace {

// Integers, so that sums are exact and equal on every instruction set.
Tensor whole(const Sizes& sizes, uint64_t seed) {
  return make(sizes, kFloat32, values_of(random(sizes, kInt64, -3, 3, seed)));
}

// Gradients of mlp and emb from their definition.
std::vector<double> dot_gradients(const Tensor& mlp, const Tensor& emb, const Tensor& grad_out) {
  const size_t batch = static_cast<size_t>(mlp.size(0)), d = static_cast<size_t>(mlp.size(1));
  const size_t slots = static_cast<size_t>(emb.size(1)), columns = static_cast<size_t>(grad_out.size(1));
  const std::vector<double> first = values_of(mlp), others = values_of(emb), g = values_of(grad_out);
  std::vector<double> dfirst(first.size()), dothers(others.size());
  for (size_t b = 0; b < batch; ++b) {
    const auto at = [&](auto& f, auto& o, size_t i, size_t k) -> auto& {
      return i == 0 ? f[b * d + k] : o[(b * slots + i - 1) * d + k];
    };
    for (size_t k = 0; k < d; ++k) dfirst[b * d + k] = g[b * columns + k];
    size_t pair = b * columns + d;
    for (size_t i = 1; i <= slots; ++i) {
      for (size_t j = 0; j < i; ++j, ++pair) {
        for (size_t k = 0; k < d; ++k) {
          at(dfirst, dothers, i, k) += g[pair] * at(first, others, j, k);
          at(dfirst, dothers, j, k) += g[pair] * at(first, others, i, k);
        }
      }
    }
  }
  dfirst.insert(dfirst.end(), dothers.begin(), dothers.end());
  return dfirst;
}

}  // namespace

TEST(DotInteraction, EverySizeOnEveryInstructionSet) {
  const CpuIsa before = cpu_isa();
  for (const CpuIsa isa : {CpuIsa::Generic, CpuIsa::Avx2, CpuIsa::Avx512}) {
    if (isa > best_cpu_isa()) continue;
    set_cpu_isa(isa);
    for (const int64_t slots : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 23, 24, 25, 26, 31, 32, 33, 50, 70}) {
      for (const int64_t dim : {1, 4, 5, 8, 16, 24, 32, 37}) {
        SCOPED_TRACE(::testing::Message() << to_string(isa) << " slots " << slots << " dim " << dim);
        Tensor mlp = whole({2, dim}, 1), emb = whole({2, slots, dim}, 2);
        mlp.requires_grad_();
        emb.requires_grad_();
        const Tensor out = dot_interaction(mlp, emb, slots % 2 == 0);
        ASSERT_EQ(values_of(out), values_of(dot_reference(mlp, emb, slots % 2 == 0)));
        const Tensor incoming = whole(out.sizes().to_vector(), 3);
        const Tensor inputs[] = {mlp, emb};
        const std::vector<Gradient> g =
            grad(Span<Tensor>(&out, 1), Span<Tensor>(inputs, 2), Span<Tensor>(&incoming, 1));
        std::vector<double> got = values_of(g[0].values), more = values_of(g[1].values);
        got.insert(got.end(), more.begin(), more.end());
        ASSERT_EQ(got, dot_gradients(mlp, emb, incoming));
      }
    }
  }
  set_cpu_isa(before);
}

TEST(DotInteraction, EmbeddingsAloneGoThroughAsTheyAre) {
  for (const int64_t slots : {1, 2, 8, 9, 17, 33}) {
    for (const int64_t dim : {1, 5, 16, 37}) {
      SCOPED_TRACE(::testing::Message() << "slots " << slots << " dim " << dim);
      Tensor emb = whole({3, slots, dim}, 2);
      emb.requires_grad_();
      const Tensor out = dot_interaction(Tensor(), emb, true);
      ASSERT_EQ(values_of(out), values_of(dot_reference(Tensor(), emb, true)));
      const Tensor incoming = whole(out.sizes().to_vector(), 3);
      const Gradient found = grad(Span<Tensor>(&out, 1), Span<Tensor>(&emb, 1), Span<Tensor>(&incoming, 1))[0];
      // The same as the interaction of the first vector with the others, plus the gradient of the copied part.
      const int64_t passed = slots * dim, pairs = slots * (slots - 1) / 2;
      const Tensor of_pairs = cat({zeros({3, dim}), narrow(incoming, 1, passed, pairs)}, 1);
      const Tensor first = select(emb.detach(), 1, 0), others = narrow(emb.detach(), 1, 1, slots - 1);
      const std::vector<double> of_products = dot_gradients(first, others, of_pairs);
      const auto split = static_cast<size_t>(3 * dim);
      const Tensor of_first = make({3, 1, dim}, kFloat32, {of_products.begin(), of_products.begin() + split});
      const Tensor of_others = make({3, slots - 1, dim}, kFloat32, {of_products.begin() + split, of_products.end()});
      const Tensor through = reshape(narrow(incoming, 1, 0, passed), {3, slots, dim});
      ASSERT_EQ(values_of(found.values), values_of(add(cat({of_first, of_others}, 1), through)));
    }
  }
}

TEST(DotInteraction, GradientMayBeAPartOfWiderRows) {
  Tensor mlp = whole({4, 8}, 1), emb = whole({4, 5, 8}, 2);
  mlp.requires_grad_();
  const Tensor out = dot_interaction(mlp, emb);
  const Tensor wide = whole({4, 40}, 3);
  const Tensor part(make_intrusive<TensorImpl>(wide.storage(), kFloat32, out.sizes(), Sizes{40, 1}, 7));
  const Gradient g = grad(Span<Tensor>(&out, 1), Span<Tensor>(&mlp, 1), Span<Tensor>(&part, 1))[0];
  const std::vector<double> want = dot_gradients(mlp, emb, part);
  EXPECT_EQ(values_of(g.values), std::vector<double>(want.begin(), want.begin() + 32));
}

TEST(DotInteraction, EmptyBatchAndWrongSizes) {
  EXPECT_EQ(dot_interaction(empty({0, 4}), empty({0, 3, 4})).sizes(), IntSpan({0, 10}));
  EXPECT_EQ(dot_interaction(Tensor(), empty({0, 3, 4}), true).sizes(), IntSpan({0, 12 + 3 + 1}));
  EXPECT_THROW(dot_interaction(Tensor(), empty({2, 0, 4})), RuntimeError) << "no vector at all";
  EXPECT_THROW(dot_interaction(Tensor(), empty({2, 4})), RuntimeError);
  EXPECT_THROW(dot_interaction(Tensor(), empty({2, 3, 4}, kInt64)), RuntimeError);
  EXPECT_THROW(dot_interaction(empty({2, 4}), empty({2, 3, 5})), RuntimeError);
  EXPECT_THROW(dot_interaction(empty({2, 4}), empty({3, 3, 4})), RuntimeError);
  EXPECT_THROW(dot_interaction(empty({2, 4}), empty({2, 4})), RuntimeError);
  EXPECT_THROW(dot_interaction(empty({2, 4}), empty({2, 3, 4}, kFloat64)), RuntimeError);
  TERCEL_EXPECT_THROW(dot_interaction(empty({3, 0}), empty({3, int64_t{1} << 33, 0})), RuntimeError, "overflow");
  EXPECT_THROW(fm_order2(empty({2, 7}), 3), RuntimeError);
  EXPECT_THROW(fm_order2(empty({2, 6}), 0), RuntimeError);
  EXPECT_EQ(values_of(fm_order2(empty({2, 0}), 3)), std::vector<double>(6, 0));
}

TEST(InteractionThreads, SameBitsForAnyNumberOfThreads) {
  const int64_t before = num_threads();
  const Tensor mlp = random({301, 16}, kFloat32, -1, 1, 1), emb = random({301, 26, 16}, kFloat32, -1, 1, 2);
  const Tensor flat(make_intrusive<TensorImpl>(emb.storage(), kFloat32, Sizes{301, 416}));
  set_num_threads(1);
  const std::string dot = bytes_of(dot_interaction(mlp, emb)), fm = bytes_of(fm_order2(flat, 16));
  set_num_threads(4);
  EXPECT_EQ(bytes_of(dot_interaction(mlp, emb)), dot);
  EXPECT_EQ(bytes_of(fm_order2(flat, 16)), fm);
  set_num_threads(before);
}

}  // namespace tercel::test
