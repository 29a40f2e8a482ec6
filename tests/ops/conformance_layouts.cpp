// The test Layouts of Note [Conformance rows]: operands of a layout other than strided are refused before anything is
// read. Such tensors have no storage, so a read would be a crash.
#include <string>

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

}  // namespace

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
