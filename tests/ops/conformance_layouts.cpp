// The tests of layouts of Note [Conformance rows].
//
// Layouts: an opaque operand is refused before anything is read. Such tensors have no storage, so a read would be a
// crash. SparseOperands and CompressedOperands: an op with COO or CSR operands gives what it gives with strided ones,
// or refuses them with an error about layouts and changes nothing.
#include <string>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/composite.h"
#include "tercel/ops/sparse/compressed.h"
#include "tercel/ops/sparse/coo.h"
#include "tercel/util/error.h"
#include "tests/ops/conformance.h"

namespace tercel::test {

namespace {

/** A tensor of the same sizes whose layout has no strides. */
Tensor opaque_like(const Tensor& t) {
  return Tensor(make_intrusive<TensorImpl>(t.dtype(), t.device(), t.sizes(), Layout::Opaque));
}

template <class F>
::testing::AssertionResult refuses_layout(F&& call) {
  try {
    call();
  } catch (const NotImplementedError& error) {
    const std::string text = error.what();
    if (text.find(": not implemented for layout _mkldnn") != std::string::npos) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << text;
  } catch (const std::exception& error) {
    return ::testing::AssertionFailure() << "another error: " << error.what();
  }
  return ::testing::AssertionFailure() << "no error";
}

/** Errors that ops of sparse operands have in place of "not implemented for layout", which are PyTorch's. */
bool is_refusal(const std::string& text) {
  for (const char* part : {": not implemented for layout sparse_",
                           "expected 'self' and 'other' to have same size",
                           "can only transpose dimensions of the same type",
                           "hybrid sparse compressed tensors with dense dimensions are not supported",
                           "reduction operations on CSR tensors",
                           "computation on CPU is not implemented for",
                           "not implemented for compressed tensors",
                           "expected a matrix but got a tensor of layout",
                           "of sparse compressed tensors",
                           "add(sparse, dense) is not supported",
                           "Sparse division requires a scalar",
                           "Sparse floor division requires a scalar",
                           "expand is unsupported for Sparse",
                           "norm_sparse currently",
                           "but a dense tensor was found at position",
                           "copy_() between dense and sparse",
                           "transposed dimensions must be sparse",
                           "not implemented for sparse tensors",
                           "expected a strided input to be added",
                           "dense-sparse addition does not currently support broadcasting",
                           "sizes of 'self' and 'other' to match",
                           "cannot raise to zeroth power on sparse tensor",
                           "doesn't match the broadcast shape"})
    if (text.find(part) != std::string::npos) return true;
  return false;
}

/** Whether run() returns the same as with strided operands, or refuses its operands. */
template <class F>
::testing::AssertionResult agrees_or_refuses(const Tensor& expected, F&& run) {
  Tensor got;
  try {
    got = run();
  } catch (const Error& error) {
    if (is_refusal(error.what())) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "another error: " << error.what();
  }
  const Tensor dense = to_dense(got);
  if (dense.sizes() != expected.sizes() || dense.dtype() != expected.dtype())
    return ::testing::AssertionFailure() << describe(dense) << ", expected " << describe(expected);
  // A sum may be computed in another order.
  if (!allclose(dense, expected, 1e-5, 1e-5, true)) return ::testing::AssertionFailure() << "other values";
  return ::testing::AssertionSuccess();
}

}  // namespace

namespace {

/** Calls the op with operands that convert() has made sparse. */
void expect_agreement(const Row& row, const Function& convert) {
  const auto to_sparse = [&](const Tensor& t) { return convert({t}); };
  const ScalarType dtype = dtypes_of(row)[0];
  const std::vector<Tensor> inputs = make_inputs(row, dtype);
  const Tensor expected = row.run(make_inputs(row, dtype));
  std::vector<std::vector<Tensor>> cases;
  for (size_t i = 0; i < inputs.size(); ++i) {
    cases.push_back(inputs);
    cases.back()[i] = to_sparse(inputs[i]);
  }
  std::vector<Tensor> all;
  for (size_t i = 0; i < inputs.size(); ++i)
    all.push_back(row.inputs[i].dtype == ScalarType::Undefined ? to_sparse(inputs[i]) : inputs[i]);
  cases.push_back(all);
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE("operands " + std::to_string(i));
    // A COO tensor takes the sizes of what is copied to it, as in PyTorch.
    if (row.name == "copy_" && is_sparse(cases[i][0].layout()) && inputs[0].sizes() != inputs[1].sizes()) continue;
    EXPECT_TRUE(agrees_or_refuses(expected, [&] { return row.run(cases[i]); }));
    for (size_t k = 0; k < inputs.size(); ++k)
      EXPECT_TRUE(equal(to_dense(cases[i][k]), inputs[k])) << "operand " << k << " has changed";
    if (!row.inplace || expected.sizes() != inputs[0].sizes()) continue;
    std::vector<Tensor> changed, before;
    for (const Tensor& t : cases[i]) {
      changed.push_back(clone(t));
      before.push_back(to_dense(clone(t)));
    }
    std::vector<Tensor> strided;
    for (const Tensor& t : inputs) strided.push_back(clone(t));
    bool refused = false;
    EXPECT_TRUE(agrees_or_refuses((row.inplace(strided), strided[0]), [&] {
      refused = true;
      row.inplace(changed);
      refused = false;
      return changed[0];
    })) << "in place";
    if (refused) {
      EXPECT_TRUE(equal(to_dense(changed[0]), before[0])) << "changed by a refused call";
    }
  }
}

}  // namespace

TEST_P(Conformance, SparseOperands) {
  expect_agreement(GetParam(), [](const std::vector<Tensor>& t) { return to_sparse(t[0]); });
}

TEST_P(Conformance, CompressedOperands) {
  expect_agreement(GetParam(), [](const std::vector<Tensor>& t) {
    return t[0].dim() < 2 ? t[0] : to_sparse_csr(t[0], t[0].dim() - 2);
  });
}

TEST_P(Conformance, Layouts) {
  const Row& row = GetParam();
  const std::vector<Tensor> inputs = make_inputs(row, dtypes_of(row)[0]);
  for (size_t i = 0; i < inputs.size(); ++i) {
    SCOPED_TRACE("input " + std::to_string(i));
    std::vector<Tensor> changed = inputs;
    changed[i] = opaque_like(inputs[i]);
    if (row.layout_any) {
      EXPECT_NO_THROW(row.run(changed));
      continue;
    }
    EXPECT_TRUE(refuses_layout([&] { row.run(changed); }));
    if (row.inplace) {
      EXPECT_TRUE(refuses_layout([&] { row.inplace(changed); })) << "in place";
    }
  }
  if (row.out) {
    EXPECT_TRUE(refuses_layout([&] { row.out(opaque_like(row.run(inputs)), inputs); })) << "out";
  }
}

}  // namespace tercel::test
