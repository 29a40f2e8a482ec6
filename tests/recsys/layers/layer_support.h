// A layer by itself, built from JSON: what the tests of every layer share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tercel/recsys/layers/layers_impl.h"
#include "tercel/util/error.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

namespace tercel::recsys {

using test::gradcheck;
using test::make;
using test::random;
using test::Sizes;
using test::values_of;
using Values = std::vector<double>;
using Shapes = std::vector<TensorShape>;

/** A layer, called "x" unless it has another name, built from JSON for inputs of those shapes. */
class Built {
 public:
  Built(std::string_view type, const Shapes& bottoms, const char* options = "{}", uint64_t seed = 1,
        std::string_view name = "x")
      : rows_per_sample(bottoms.empty() ? 1 : bottoms[0].rows_per_sample) {
    BuildContext build{type, name, bottoms, parameters};
    for (const LayerEntry& entry : layer_entries())
      if (entry.type == type) layer = entry.make(parse_json(options, "options", JsonErrors::Config), build, resolved);
    if (!layer) throw std::runtime_error("no such layer");
    Generator init(seed);
    parameters.allocate(init, kFloat64);
    layer->allocate(kFloat64);
  }

  std::vector<Tensor> forward(const std::vector<Tensor>& bottoms, bool training = true) {
    std::vector<Tensor> tops(layer->tops().size());
    context.training = training;
    layer->forward(bottoms, tops, context);
    for (size_t i = 0; i < tops.size(); ++i) {
      DimVector sizes;
      const TensorShape& shape = layer->tops()[i];
      if (shape.rows_per_sample > 0) sizes.push_back(bottoms[0].size(0) / rows_per_sample * shape.rows_per_sample);
      for (const int64_t size : shape.sizes) sizes.push_back(size);
      EXPECT_EQ(IntSpan(tops[i].sizes()), IntSpan(sizes)) << "the output is not of the shape that was announced";
    }
    return tops;
  }
  Tensor run(const std::vector<Tensor>& bottoms, bool training = true) { return forward(bottoms, training)[0]; }

  Values parameter(const std::string& name) {
    for (const auto& entry : parameters.entries())
      if (entry.name == "x." + name) return values_of(entry.tensor);
    ADD_FAILURE() << "no parameter " << name;
    return {};
  }

  /** Backward of output `top` with respect to the first `count` inputs, or all, and all parameters. */
  ::testing::AssertionResult gradients(const std::vector<Tensor>& bottoms, size_t top = 0, size_t count = SIZE_MAX) {
    const size_t n = std::min(count, bottoms.size());
    std::vector<Tensor> all(bottoms.begin(), bottoms.begin() + static_cast<int64_t>(n));
    for (Tensor& t : all) t.requires_grad_();
    for (const auto& entry : parameters.entries()) all.push_back(entry.tensor);
    return gradcheck(
        [&](const std::vector<Tensor>& inputs) {
          std::vector<Tensor> given(inputs.begin(), inputs.begin() + static_cast<int64_t>(n));
          given.insert(given.end(), bottoms.begin() + static_cast<int64_t>(n), bottoms.end());
          return forward(given)[top];
        },
        all);
  }

  int64_t rows_per_sample;  // of the first input
  Json resolved = Json::object();
  nn::ParameterArena parameters;
  std::unique_ptr<Layer> layer;
  ForwardContext context{.seed = 7, .step = 1};
};

inline Tensor numbers(const Sizes& sizes, uint64_t seed = 1, double low = -1, double high = 1) {
  return random(sizes, kFloat64, low, high, seed);
}

inline void expect_near(const Values& found, const Values& expected, double tolerance = 1e-12) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << "element " << i;
}

inline void refuses(std::string_view type, const Shapes& bottoms, const char* options, const char* text) {
  TERCEL_EXPECT_THROW(Built(type, bottoms, options), ConfigError, text);
}

inline double mean_of(const Values& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return sum / static_cast<double>(v.size());
}
inline double deviation_of(const Values& v) {
  const double mean = mean_of(v);
  double sum = 0;
  for (const double x : v) sum += (x - mean) * (x - mean);
  return std::sqrt(sum / static_cast<double>(v.size()));
}
inline double largest_of(const Values& v) {
  double largest = 0;
  for (const double x : v) largest = std::max(largest, std::abs(x));
  return largest;
}

/** That values are evenly distributed in +-bound: they come close to it, never pass it, and have its deviation. */
inline void expect_uniform(const Values& v, double bound) {
  EXPECT_LE(largest_of(v), bound * (1 + 1e-9));
  EXPECT_GT(largest_of(v), 0.98 * bound);
  EXPECT_NEAR(deviation_of(v), bound / std::sqrt(3), 0.05 * bound);
}
inline void expect_normal(const Values& v, double stddev) {
  EXPECT_NEAR(deviation_of(v), stddev, 0.05 * stddev);
  EXPECT_NEAR(mean_of(v), 0, 0.1 * stddev);
  EXPECT_GT(largest_of(v), 2.5 * stddev) << "a normal distribution has tails";
}

}  // namespace tercel::recsys
