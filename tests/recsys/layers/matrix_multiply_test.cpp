#include "tercel/recsys/layers/matrix_multiply.h"

#include "tests/recsys/layers/layer_support.h"

namespace tercel::recsys {
namespace {

/** Products of `count` pairs of matrices [m, n] and [n, k], one after the other. */
Values products(const Values& a, const Values& b, size_t count, size_t m, size_t n, size_t k) {
  Values out;
  for (size_t c = 0; c < count; ++c)
    for (size_t i = 0; i < m; ++i)
      for (size_t j = 0; j < k; ++j) {
        double sum = 0;
        for (size_t l = 0; l < n; ++l) sum += a[(c * m + i) * n + l] * b[(c * n + l) * k + j];
        out.push_back(sum);
      }
  return out;
}

struct Form {
  TensorShape a, b, top;
  size_t matrices, m, n, k;  // of a sample
};

const Form kForms[] = {
    {{2, 3}, {3, 4}, {2, 4}, 1, 2, 3, 4},
    {{5, 2, 3}, {5, 3, 4}, {5, 2, 4}, 5, 2, 3, 4},
    // Rows of a sample.
    {TensorShape::with_rows({3}, 2), TensorShape::with_rows({4}, 3), TensorShape::with_rows({4}, 2), 1, 2, 3, 4},
    {{3}, TensorShape::with_rows({4}, 3), {4}, 1, 1, 3, 4},
    {TensorShape::with_rows({3}, 2), TensorShape::with_rows({2, 2}, 3), TensorShape::with_rows({2, 2}, 2), 1, 2, 3, 4},
    {TensorShape::with_rows({3}, 2), {3, 4}, {2, 4}, 1, 2, 3, 4},
    {{3}, {3, 4}, {1, 4}, 1, 1, 3, 4},
};

Tensor tensor_of(const TensorShape& shape, int64_t batch, uint64_t seed) {
  Sizes sizes = {batch * shape.rows_per_sample};
  for (const int64_t size : shape.sizes) sizes.push_back(size);
  return numbers(sizes, seed);
}

TEST(MatrixMultiplyLayer, EveryFormIsAProductForEachSample) {
  for (const Form& form : kForms)
    for (const int64_t batch : {1, 3}) {
      SCOPED_TRACE(shape_text(form.a) + " " + shape_text(form.b) + ", batch " + std::to_string(batch));
      Built layer("MatrixMultiply", {form.a, form.b});
      EXPECT_EQ(layer.layer->tops()[0], form.top);
      const Tensor a = tensor_of(form.a, batch, 1), b = tensor_of(form.b, batch, 2);
      expect_near(
          values_of(layer.run({a, b})),
          products(values_of(a), values_of(b), static_cast<size_t>(batch) * form.matrices, form.m, form.n, form.k));
      EXPECT_TRUE(layer.gradients({a, b}));
    }
}

TEST(MatrixMultiplyLayer, RefusesWhatMixesSamples) {
  const char* reason = "whose product does not mix rows of different samples, but got";
  refuses("MatrixMultiply", {{3}, {3}}, "{}", reason);
  refuses("MatrixMultiply", {TensorShape::with_rows({3}, 2), TensorShape::with_rows({4}, 2)}, "{}", reason);
  refuses("MatrixMultiply", {{3, 4}, {3}}, "{}", reason);
  refuses("MatrixMultiply", {{2, 3}, {4, 3}}, "{}", "but got [batch, 2, 3], [batch, 4, 3]");
  refuses("MatrixMultiply", {{5, 2, 3}, {4, 3, 4}}, "{}", "but got [batch, 5, 2, 3], [batch, 4, 3, 4]");
  refuses("MatrixMultiply", {{3}, {4, 4}}, "{}", "but got [batch, 3], [batch, 4, 4]");
  refuses("MatrixMultiply", {{2, 3}, TensorShape::with_rows({3, 4}, 2)}, "{}", reason);
  refuses("MatrixMultiply", {{2, 3}}, "{}", "but got [batch, 2, 3]");
}

}  // namespace
}  // namespace tercel::recsys
