// Fourier transforms beyond the rows: long lines, threads, errors, frequencies.
#include "tercel/ops/fft/fft.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tercel/autograd/autograd.h"
#include "tercel/ops/ops.h"
#include "tercel/util/parallel.h"
#include "tests/ops/conformance.h"
#include "tests/ops/fft/fft_rows.h"
#include "tests/support/errors.h"
#include "tests/support/gradcheck.h"

namespace tercel::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Fft, Conformance, ::testing::ValuesIn(fft_rows()), row_name);

/** The largest distance of two tensors' elements. */
double apart(const Tensor& a, const Tensor& b) { return max(abs(sub(a, b))).item<double>(); }

/** An impulse at `at` has the transform exp(-2 pi i at k / n) with every algorithm. */
TEST(Fft, ImpulsesOfEveryLength) {
  for (const int64_t n :
       {1, 2, 3, 31, 64, 512, 513, 961, 1024, 1155, 1331, 2310, 4096, 65536, 1009, 5003, 600000, 524288}) {
    const int64_t at = n / 3 + (n > 1);
    const Tensor x = zeros({n}, kComplex128);
    fill_(x.select(0, at % n), 2);
    const Tensor got = fft::fft(x);
    ComplexLine want;
    for (int64_t k = 0; k < n; ++k)
      want.push_back(2.0 * root_of_unity(static_cast<size_t>(at % n * k), static_cast<size_t>(n), -1));
    EXPECT_LT(apart(got, make_complex({n}, kComplex128, want)), 1e-11) << n;
    EXPECT_LT(apart(fft::ifft(got), x), 1e-12) << n;
  }
}

TEST(Fft, RealLinesAreHalfOfComplexOnes) {
  for (const int64_t n : {2, 3, 512, 1023, 1024, 1026, 1028, 2187, 3000, 4100, 6002, 10007, 131072}) {
    for (const int64_t dim : {0, 1}) {
      const Tensor x = random(dim == 0 ? Sizes{n, 3} : Sizes{3, n}, kFloat64, -1, 1, 1);
      const Tensor whole = fft::fft(x, {}, dim), half = fft::rfft(x, {}, dim);
      EXPECT_LT(apart(half, whole.narrow(dim, 0, n / 2 + 1)), 1e-10) << n;
      EXPECT_LT(apart(fft::irfft(half, n, dim), x), 1e-12) << n;
      EXPECT_LT(apart(fft::hfft(conj(half), n, dim), mul(x, n)), 1e-9) << n;
      EXPECT_LT(apart(fft::ihfft(x, {}, dim), div(conj(half), n)), 1e-12) << n;
    }
  }
}

TEST(Fft, ImaginaryPartsThatCannotBeAreLeftOut) {
  for (const int64_t n : {8, 9, 41, 2048, 2187}) {
    const Tensor half = random({n / 2 + 1}, kComplex128, -1, 1, 1);
    const Tensor changed = clone(half);
    add_(changed.select(0, 0), Scalar(std::complex<double>(0, 7)));
    if (n % 2 == 0) add_(changed.select(0, n / 2), Scalar(std::complex<double>(0, 7)));
    EXPECT_LT(apart(fft::irfft(half, n), fft::irfft(changed, n)), 1e-13) << n;
  }
}

TEST(FftThreads, SameBitsForAnyNumberOfThreads) {
  const int64_t before = num_threads();
  for (const Sizes& sizes : {Sizes{400, 100}, Sizes{1, 65536}, Sizes{7, 4096}, Sizes{5, 2003}}) {
    const Tensor x = random(sizes, kFloat32, -1, 1, 1);
    set_num_threads(1);
    const Tensor alone = fft::fft(x), half = fft::rfft(x), back = fft::irfft(half, sizes[1]);
    set_num_threads(3);
    EXPECT_TRUE(all(eq(fft::fft(x), alone)).item<bool>());
    EXPECT_TRUE(all(eq(fft::rfft(x), half)).item<bool>());
    EXPECT_TRUE(all(eq(fft::irfft(half, sizes[1]), back)).item<bool>());
  }
  set_num_threads(before);
}

/** The real part of the transform of real lines is a symmetric matrix, its own gradient. */
TEST(Fft, LongLinesHaveGradients) {
  for (const int64_t n : {1100, 1103, 2187, 4096}) {
    const Tensor x = random({n}, kFloat64, -1, 1, 1).requires_grad_(), w = random({n}, kFloat64, -1, 1, 2);
    const Tensor loss = sum(mul(real(fft::fft(x)), w));
    backward(Span<Tensor>(&loss, 1));
    EXPECT_LT(apart(x.grad(), real(fft::fft(w))), 1e-10) << n;
  }
}

TEST(Fft, DtypesAndEmptyBatches) {
  EXPECT_EQ(fft::fft(ones({4}, kInt32)).dtype(), kComplex64);
  EXPECT_EQ(fft::rfft(ones({4}, kBool)).dtype(), kComplex64);
  EXPECT_EQ(fft::irfft(ones({4}, kFloat64)).dtype(), kFloat64);
  EXPECT_EQ(fft::fft(empty({0, 5})).sizes(), IntSpan({0, 5}));
  EXPECT_EQ(fft::rfft(empty({0, 37})).sizes(), IntSpan({0, 19}));
  EXPECT_EQ(fft::irfft(empty({0, 37})).sizes(), IntSpan({0, 72}));
  EXPECT_EQ(complex_values_of(fft::fftn(scalar_tensor(2.0)))[0], std::complex<double>(2, 0));
  EXPECT_EQ(message_of<NotImplementedError>([] { fft::fft(ones({4}, kFloat16)); }), "Unsupported dtype Half");
}

TEST(Fft, Errors) {
  const Tensor x = ones({3, 4}), c = ones({3, 4}, kComplex64);
  EXPECT_EQ(message_of<RuntimeError>([&] { fft::fft(x, 0); }), "Invalid number of data points (0) specified");
  EXPECT_EQ(message_of<RuntimeError>([&] { fft::irfft(ones({3, 1})); }), "Invalid number of data points (0) specified");
  EXPECT_EQ(message_of<RuntimeError>([&] { fft::fft(x, {}, -1, "x"); }), "Invalid normalization mode: \"x\"");
  EXPECT_EQ(message_of<IndexError>([] { fft::fft(scalar_tensor(1.0)); }),
            "Dimension specified as -1 but tensor has no dimensions");
  EXPECT_EQ(message_of<TypeError>([&] { fft::rfft(c); }), "rfft expects a real input tensor, but got ComplexFloat");
  EXPECT_EQ(message_of<TypeError>([&] { fft::rfft2(c); }),
            "rfftn expects a real-valued input tensor, but got ComplexFloat");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              fft::fftn(x, {std::nullopt, DimVector{0, 0}});
            }),
            "FFT dims must be unique");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              fft::fftn(x, {DimVector{2}, DimVector{0, 1}});
            }),
            "When given, dim and shape arguments must have the same length");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              fft::fftn(x, {DimVector{2, 2, 2}, std::nullopt});
            }),
            "Got shape with 3 values but input tensor only has 2 dimensions.");
  EXPECT_EQ(message_of<RuntimeError>([&] {
              fft::rfftn(x, {std::nullopt, DimVector{}});
            }),
            "rfftn must transform at least one axis");
  EXPECT_EQ(message_of<RuntimeError>([] { fft::fftfreq(4, 1, kInt32); }),
            "fftfreq requires a floating point or complex dtype");
}

TEST(Fft, Frequencies) {
  EXPECT_EQ(values_of(fft::fftfreq(4, 0.5, kFloat64)), (std::vector<double>{0, 0.5, -1, -0.5}));
  EXPECT_EQ(values_of(fft::fftfreq(5, 0.2, kFloat64)), (std::vector<double>{0, 1, 2, -2, -1}));
  EXPECT_EQ(values_of(fft::rfftfreq(5, 0.2, kFloat64)), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(values_of(fft::rfftfreq(4, 0.25, kFloat64)), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(fft::fftfreq(0).numel(), 0);
}

}  // namespace
}  // namespace tercel::test
