// Conformance rows of Fourier transforms; see Note [Conformance rows].
#pragma once

#include <complex>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/fft/fft.h"
#include "tercel/ops/views/cat.h"
#include "tests/ops/rows.h"

namespace tercel::test {

using ComplexLine = std::vector<std::complex<double>>;

struct ComplexField {
  Sizes sizes;
  ComplexLine values;
};

/** Replaces each line along `dim` by f(line). */
inline ComplexField map_complex_lines(const ComplexField& x, size_t dim,
                                      const std::function<ComplexLine(const ComplexLine&)>& f) {
  size_t outer = 1, inner = 1;
  const size_t n = static_cast<size_t>(x.sizes[dim]);
  for (size_t d = 0; d < dim; ++d) outer *= static_cast<size_t>(x.sizes[d]);
  for (size_t d = dim + 1; d < x.sizes.size(); ++d) inner *= static_cast<size_t>(x.sizes[d]);
  ComplexField out{x.sizes, {}};
  for (size_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < inner; ++i) {
      ComplexLine line(n);
      for (size_t j = 0; j < n; ++j) line[j] = x.values[(o * n + j) * inner + i];
      const ComplexLine result = f(line);
      const size_t m = result.size();
      out.values.resize(outer * m * inner);
      for (size_t j = 0; j < m; ++j) out.values[(o * m + j) * inner + i] = result[j];
      out.sizes[dim] = static_cast<int64_t>(m);
    }
  }
  return out;
}

inline std::complex<double> root_of_unity(size_t jk, size_t n, int sign) {
  return std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(jk % n) / static_cast<double>(n));
}

/** The transform by direct summation, of the line cut or padded to n points. */
inline ComplexLine dft_of(ComplexLine x, int sign, size_t n, double scale) {
  x.resize(n);
  ComplexLine out(n);
  for (size_t k = 0; k < n; ++k)
    for (size_t j = 0; j < n; ++j) out[k] += scale * x[j] * root_of_unity(j * k, n, sign);
  return out;
}
/** The same for a half spectrum, whose other half is the conjugate. */
inline ComplexLine real_dft_of(ComplexLine x, int sign, size_t n, double scale) {
  x.resize(n / 2 + 1);
  x.resize(n);
  x[0] = x[0].real();
  if (n % 2 == 0) x[n / 2] = x[n / 2].real();
  for (size_t k = n / 2 + 1; k < n; ++k) x[k] = std::conj(x[n - k]);
  return dft_of(x, sign, n, scale);
}

/** One transform after another: of the last dimension of `dims` first. */
struct FftCase {
  std::string name;
  Sizes sizes;
  std::vector<size_t> dims;
  enum Kind { kComplex, kHalf, kReal } kind;
  int sign;
  std::vector<size_t> lengths;
  double scale;
  Function run;

  ComplexField reference(ComplexField x) const {
    const size_t last = dims.size() - 1;
    const auto ends = [&](const ComplexField& f) {
      return map_complex_lines(f, dims[last], [&](const ComplexLine& line) {
        if (kind == kReal) return real_dft_of(line, sign, lengths[last], scale);
        ComplexLine out = dft_of(line, sign, lengths[last], scale);
        if (kind == kHalf) out.resize(lengths[last] / 2 + 1);
        return out;
      });
    };
    if (kind != kReal) x = ends(x);
    for (size_t i = 0; i < last; ++i)
      x = map_complex_lines(x, dims[i], [&](const ComplexLine& line) { return dft_of(line, sign, lengths[i], 1); });
    return kind == kReal ? ends(x) : x;
  }
};

/** Converts a row's result to the input's kind: a complex one to its parts, a real one to complex numbers. */
inline Row fft_row(const FftCase& c) {
  Row row;
  row.name = c.name;
  row.inputs = {{c.sizes}};
  row.run = [c](const std::vector<Tensor>& in) {
    const Tensor out = c.run(in);
    if (out.is_complex() == in[0].is_complex()) return out;
    if (!out.is_complex()) return to(out, complex_dtype(out.dtype()));
    const Tensor parts[] = {real(out), imag(out)};
    return stack(parts, 0);
  };
  row.reference = [c](const std::vector<Tensor>& in) {
    const ComplexField out = c.reference({c.sizes, complex_values_of(to(in[0], kComplex128))});
    std::vector<double> values;
    for (const auto& z : out.values) values.push_back(z.real());
    if (c.kind == FftCase::kReal) return make(out.sizes, kFloat64, values);
    for (const auto& z : out.values) values.push_back(z.imag());
    Sizes sizes = out.sizes;
    sizes.insert(sizes.begin(), 2);
    return make(sizes, kFloat64, values);
  };
  if (c.kind != FftCase::kHalf)
    row.complex_reference = [c](const std::vector<Tensor>& in) {
      const ComplexField out = c.reference({c.sizes, complex_values_of(in[0])});
      return make_complex(out.sizes, kComplex128, out.values);
    };
  if (c.name == "fft_columns") row.gradient_sizes = {{10, 3}};
  row.dtypes = {kFloat32, kFloat64};
  row.ulps = 8;
  // Numbers up to 3 are added up, of primes after a convolution.
  row.scale = static_cast<double>(numel_of(c.sizes)) * c.scale * (c.name.ends_with("prime") ? 24 : 6);
  return row;
}

inline std::vector<Row> fft_rows() {
  using Tensors = std::vector<Tensor>;
  using fft::fft2, fft::fftn, fft::fftshift, fft::hfft, fft::hfft2, fft::hfftn, fft::ifft, fft::ifft2, fft::ifftn;
  using fft::ifftshift, fft::ihfft, fft::ihfft2, fft::ihfftn, fft::irfft, fft::irfft2, fft::irfftn, fft::rfft;
  using fft::rfft2, fft::rfftn;
  constexpr auto kComplex = FftCase::kComplex, kHalf = FftCase::kHalf, kReal = FftCase::kReal;
  std::vector<Row> rows;
  for (const FftCase& c : std::vector<FftCase>{
           {"fft", {3, 24}, {1}, kComplex, -1, {24}, 1, [](const Tensors& in) { return fft::fft(in[0]); }},
           {"fft_columns",
            {30, 21},
            {0},
            kComplex,
            -1,
            {30},
            1,
            [](const Tensors& in) { return fft::fft(in[0], {}, 0); }},
           {"fft_seven", {18, 14}, {1}, kComplex, -1, {14}, 1, [](const Tensors& in) { return fft::fft(in[0]); }},
           {"fft_prime", {2, 37}, {1}, kComplex, -1, {37}, 1, [](const Tensors& in) { return fft::fft(in[0]); }},
           {"fft_padded", {3, 5}, {1}, kComplex, -1, {8}, 1, [](const Tensors& in) { return fft::fft(in[0], 8); }},
           {"ifft", {2, 15, 3}, {1}, kComplex, 1, {15}, 1 / 15.0, [](const Tensors& in) { return ifft(in[0], {}, 1); }},
           {"ifft_cut",
            {3, 9},
            {1},
            kComplex,
            1,
            {6},
            1,
            [](const Tensors& in) { return ifft(in[0], 6, 1, "forward"); }},
           {"rfft", {3, 16}, {1}, kHalf, -1, {16}, 1, [](const Tensors& in) { return rfft(in[0]); }},
           {"rfft_odd", {15, 20}, {0}, kHalf, -1, {15}, 1, [](const Tensors& in) { return rfft(in[0], {}, 0); }},
           {"rfft_prime", {41, 2}, {0}, kHalf, -1, {41}, 1, [](const Tensors& in) { return rfft(in[0], {}, 0); }},
           {"ihfft", {3, 12}, {1}, kHalf, 1, {12}, 1 / 12.0, [](const Tensors& in) { return ihfft(in[0]); }},
           {"irfft", {19, 9}, {1}, kReal, 1, {16}, 1 / 16.0, [](const Tensors& in) { return irfft(in[0]); }},
           {"irfft_odd", {8, 3}, {0}, kReal, 1, {15}, 1 / 15.0, [](const Tensors& in) { return irfft(in[0], 15, 0); }},
           {"irfft_prime", {2, 20}, {1}, kReal, 1, {38}, 1 / 38.0, [](const Tensors& in) { return irfft(in[0]); }},
           {"hfft", {3, 7}, {1}, kReal, -1, {12}, 1, [](const Tensors& in) { return hfft(in[0]); }},
           {"fftn", {4, 3, 5}, {0, 1, 2}, kComplex, -1, {4, 3, 5}, 1, [](const Tensors& in) { return fftn(in[0]); }},
           {"ifftn",
            {4, 3, 5},
            {2, 0},
            kComplex,
            1,
            {6, 3},
            1 / 18.0,
            [](const Tensors& in) {
              return ifftn(in[0], {DimVector{6, 3}, DimVector{2, 0}});
            }},
           {"fft2", {2, 4, 6}, {1, 2}, kComplex, -1, {4, 6}, 1, [](const Tensors& in) { return fft2(in[0]); }},
           {"ifft2", {2, 4, 6}, {1, 2}, kComplex, 1, {4, 6}, 1 / 24.0, [](const Tensors& in) { return ifft2(in[0]); }},
           {"rfftn",
            {4, 6, 3},
            {0, 1},
            kHalf,
            -1,
            {4, 6},
            1,
            [](const Tensors& in) {
              return rfftn(in[0], {std::nullopt, DimVector{0, 1}});
            }},
           {"rfft2", {2, 4, 5}, {1, 2}, kHalf, -1, {4, 5}, 1, [](const Tensors& in) { return rfft2(in[0]); }},
           {"ihfftn", {4, 6}, {0, 1}, kHalf, 1, {4, 6}, 1 / 24.0, [](const Tensors& in) { return ihfftn(in[0]); }},
           {"ihfft2", {4, 6}, {0, 1}, kHalf, 1, {4, 6}, 1 / 24.0, [](const Tensors& in) { return ihfft2(in[0]); }},
           {"irfftn", {4, 5}, {0, 1}, kReal, 1, {4, 8}, 1 / 32.0, [](const Tensors& in) { return irfftn(in[0]); }},
           {"irfft2",
            {2, 3, 5},
            {1, 2},
            kReal,
            1,
            {3, 9},
            1 / 27.0,
            [](const Tensors& in) {
              return irfft2(in[0], {DimVector{3, 9}, DimVector{-2, -1}});
            }},
           {"hfftn", {4, 5}, {0, 1}, kReal, -1, {4, 8}, 1, [](const Tensors& in) { return hfftn(in[0]); }},
           {"hfft2", {4, 5}, {0, 1}, kReal, -1, {4, 8}, 1, [](const Tensors& in) { return hfft2(in[0]); }},
       })
    rows.push_back(fft_row(c));

  for (const bool back : {false, true}) {
    Row row;
    row.name = back ? "ifftshift" : "fftshift";
    row.inputs = {{{3, 4}}};
    row.run = [back](const Tensors& in) { return back ? ifftshift(in[0]) : fftshift(in[0]); };
    row.reference = [back](const Tensors& in) {
      const std::vector<double> x = values_of(in[0]);
      std::vector<double> out(12);
      for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 4; ++j) out[(i + (back ? 2 : 1)) % 3 * 4 + (j + 2) % 4] = x[i * 4 + j];
      return make({3, 4}, kFloat64, out);
    };
    row.dtypes = all_types();
    row.ulps = 0;
    rows.push_back(row);
  }
  return rows;
}

}  // namespace tercel::test
