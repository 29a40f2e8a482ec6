// Conformance rows of embedding() and embedding_renorm_(); see Note [Conformance rows].
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/embedding/embedding.h"
#include "tests/ops/embedding/embedding_support.h"
#include "tests/ops/rows.h"

namespace tercel::test {

inline Row embedding_row(const std::string& name, ScalarType index, bool sparse) {
  Row row;
  row.name = name;
  row.twice_differentiable = !sparse;
  row.inputs = {{{10, 19}}, {{5, 4}, 0, 9, index, false}};
  row.run = [sparse](const std::vector<Tensor>& in) { return embedding(in[0], in[1], {}, sparse); };
  row.reference = [](const std::vector<Tensor>& in) {
    const Tensor flat = bag_reference(in[0], in[1], each_its_own(in[1].numel()), BagMode::Sum);
    return make({5, 4, 19}, kFloat64, values_of(flat));
  };
  row.ulps = 0;
  return row;
}

/** Looked-up rows with the 3-norm limited to `most`; other rows unchanged. */
inline Row renorm_row(const std::string& name, double most) {
  Row row;
  row.name = name;
  row.inputs = {{{10, 7}, -3, 3, ScalarType::Undefined, false}, {{3, 2}, 0, 9, kInt64, false}};
  row.differentiable = false;
  row.run = [most](const std::vector<Tensor>& in) { return embedding_renorm_(clone(in[0]), in[1], most, 3); };
  row.inplace = [most](const std::vector<Tensor>& in) { embedding_renorm_(in[0], in[1], most, 3); };
  row.reference = [most](const std::vector<Tensor>& in) {
    std::vector<double> out = values_of(in[0]);
    std::vector<bool> done(10, false);
    for (const double index : values_of(in[1])) {
      const auto r = static_cast<size_t>(index);
      if (done[r]) continue;
      done[r] = true;
      double sum = 0;
      for (size_t c = 0; c < 7; ++c) sum += std::pow(std::abs(out[r * 7 + c]), 3);
      const double length = std::cbrt(sum);
      if (length > most)
        for (size_t c = 0; c < 7; ++c) out[r * 7 + c] *= most / (length + 1e-7);
    }
    return make({10, 7}, kFloat64, out);
  };
  row.ulps = 32;
  row.scale = 4;
  row.bitwise = false;
  return row;
}

inline std::vector<Row> embedding_rows() {
  return {
      embedding_row("embedding_int64", kInt64, false),
      embedding_row("embedding_int32_sparse", kInt32, true),
      renorm_row("embedding_renorm_", 2.5),
  };
}

}  // namespace tercel::test
