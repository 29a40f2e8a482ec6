// The test Empty of Note [Conformance rows]: with sizes of 0 an op throws a typed error, or computes a result and
// gradients without unwritten elements. It requires poisoned new memory, which CTest enables.
#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/util/error.h"
#include "tests/ops/conformance.h"

namespace tercel::test {

namespace {

/** Whether an element is still poisoned: no arithmetic produces a NaN whose bits are all ones. */
bool has_unwritten(const Tensor& t) {
  if (!t.is_floating_point() && !t.is_complex()) return false;
  const std::string bytes = bytes_of(t);
  const size_t item = t.itemsize() / (t.is_complex() ? 2 : 1);
  for (size_t at = 0; at < bytes.size(); at += item)
    if (bytes.find_first_not_of('\xFF', at) >= at + item) return true;
  return false;
}

/** The row's sizes with 0 in place of every `size`: dimensions that belong together stay equal. */
std::vector<Sizes> emptied(const Row& row, int64_t size) {
  std::vector<Sizes> out;
  for (const Input& input : row.inputs) {
    out.push_back(input.sizes);
    std::replace(out.back().begin(), out.back().end(), size, int64_t{0});
  }
  return out;
}

void check_written(const Row& row, const std::vector<Sizes>& sizes) {
  std::vector<Tensor> inputs = make_inputs(row, kFloat64, 1, sizes);
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (row.inputs[i].differentiable && inputs[i].is_differentiable()) {
      inputs[i].requires_grad_();
      any = true;
    }
  Tensor out;
  try {
    out = row.run(inputs);
  } catch (const Error&) {
    return;  // not every op takes sizes of 0
  } catch (const std::out_of_range&) {
    return;  // the row selects one of several results, and now there are fewer
  }
  EXPECT_FALSE(has_unwritten(out));
  if (!row.differentiable || !any || !out.requires_grad()) return;
  out.backward(ones(out.sizes(), out.options()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Gradient found = gradient_of(inputs[i]);
    if (!found.defined()) continue;
    EXPECT_TRUE(found.is_rows() || found.values.sizes() == inputs[i].sizes()) << "input " << i;
    EXPECT_FALSE(has_unwritten(found.values)) << "gradient of input " << i;
  }
}

}  // namespace

TEST_P(Conformance, Empty) {
  const Row& row = GetParam();
  const std::vector<ScalarType> dtypes = dtypes_of(row);
  if (std::find(dtypes.begin(), dtypes.end(), kFloat64) == dtypes.end()) return;
  std::set<int64_t> sizes;
  for (const Input& input : row.inputs) sizes.insert(input.sizes.begin(), input.sizes.end());
  for (const int64_t size : sizes) {
    SCOPED_TRACE("0 for " + std::to_string(size));
    check_written(row, emptied(row, size));
  }
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    for (size_t d = 0; d < row.inputs[i].sizes.size(); ++d) {
      SCOPED_TRACE("input " + std::to_string(i) + ", dimension " + std::to_string(d));
      std::vector<Sizes> one;
      for (const Input& input : row.inputs) one.push_back(input.sizes);
      one[i][d] = 0;
      check_written(row, one);
    }
  }
}

}  // namespace tercel::test
