// Conformance rows of batch normalization; see Note [Conformance rows].
#pragma once

#include <cmath>
#include <vector>

#include "tercel/ops/nn/batch_norm.h"
#include "tests/ops/rows.h"

namespace tercel::test {

struct Moments {
  std::vector<double> mean, var;  // biased
};

/** Statistics of each channel of x [n, channels, ...]. */
inline Moments moments_of(const Tensor& x) {
  const size_t channels = static_cast<size_t>(x.size(1)),
               inner = static_cast<size_t>(x.numel()) / channels / static_cast<size_t>(x.size(0));
  const std::vector<double> values = values_of(x);
  const size_t of_each = values.size() / channels;
  const auto n = static_cast<double>(of_each);
  Moments m{std::vector<double>(channels), std::vector<double>(channels)};
  for (size_t i = 0; i < values.size(); ++i) m.mean[i / inner % channels] += values[i] / n;
  for (size_t i = 0; i < values.size(); ++i) {
    const double distance = values[i] - m.mean[i / inner % channels];
    m.var[i / inner % channels] += distance * distance / n;
  }
  return m;
}

inline Row batch_norm_row(const std::string& name, const Sizes& sizes, bool training, bool affine) {
  const int64_t channels = sizes[1];
  Row row;
  row.name = name;
  row.inputs = {{sizes}};
  if (affine) row.inputs.insert(row.inputs.end(), {{{channels}}, {{channels}}});
  // Separate statistics for evaluation.
  const Tensor mean = random({channels}, kFloat32, -1, 1, 5), var = random({channels}, kFloat32, 0.5, 2, 6);
  row.run = [training, mean, var](const std::vector<Tensor>& in) {
    BatchNormOptions options;
    options.training = training;
    const Tensor none;
    return batch_norm(in[0], training ? none : mean, training ? none : var, in.size() > 1 ? in[1] : none,
                      in.size() > 1 ? in[2] : none, options);
  };
  row.reference = [training, mean, var](const std::vector<Tensor>& in) {
    const Moments m = training ? moments_of(in[0]) : Moments{values_of(mean), values_of(var)};
    const size_t all = m.mean.size();
    const std::vector<double> x = values_of(in[0]),
                              weight = in.size() > 1 ? values_of(in[1]) : std::vector<double>(all, 1),
                              bias = in.size() > 1 ? values_of(in[2]) : std::vector<double>(all, 0);
    const size_t inner = x.size() / all / static_cast<size_t>(in[0].size(0));
    std::vector<double> out;
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = i / inner % all;
      out.push_back((x[i] - m.mean[c]) / std::sqrt(m.var[c] + 1e-5) * weight[c] + bias[c]);
    }
    return make(in[0].sizes().to_vector(), kFloat64, out);
  };
  row.ulps = 16;
  row.scale = 60;
  return row;
}

inline std::vector<Row> batch_norm_rows() {
  return {
      batch_norm_row("batch_norm_training", {9, 21}, true, true),
      batch_norm_row("batch_norm_plain", {9, 5}, true, false),
      batch_norm_row("batch_norm_eval", {9, 21}, false, true),
      batch_norm_row("batch_norm_images", {3, 4, 2, 5}, true, true),
      batch_norm_row("batch_norm_images_eval", {2, 3, 7}, false, true),
  };
}

}  // namespace tercel::test
