// Gradient checks as assertions.
#pragma once

#include <gtest/gtest.h>

#include "tercel/autograd/gradcheck.h"
#include "tests/support/tensors.h"

namespace tercel::test {

inline CheckedFunction as_checked(const Function& f) {
  return [f](const std::vector<Tensor>& inputs) { return std::vector<Tensor>{f(inputs)}; };
}

inline tercel::GradcheckOptions as_checked(const GradcheckOptions& options, double tolerance = 1) {
  return {options.step, options.absolute * tolerance, options.relative * tolerance, /*fast_mode=*/true};
}

/** Whether backward computes the derivatives of a fixed random combination of f's elements. */
inline ::testing::AssertionResult gradcheck(const Function& f, const std::vector<Tensor>& inputs,
                                            const GradcheckOptions& options = {}) {
  try {
    tercel::gradcheck(as_checked(f), inputs, as_checked(options));
  } catch (const Error& e) {
    return ::testing::AssertionFailure() << e.what();
  }
  return ::testing::AssertionSuccess();
}

/** The same for second derivatives. */
inline ::testing::AssertionResult gradgradcheck(const Function& f, const std::vector<Tensor>& inputs,
                                                const GradcheckOptions& options = {}) {
  try {
    tercel::gradgradcheck(as_checked(f), inputs, {}, as_checked(options, 10));
  } catch (const Error& e) {
    return ::testing::AssertionFailure() << e.what();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace tercel::test
