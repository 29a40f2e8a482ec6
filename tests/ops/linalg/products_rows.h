// Conformance rows of composite products and einsum; see Note [Conformance rows].
#pragma once

#include <cmath>
#include <map>
#include <vector>

#include "tercel/ops/linalg/einsum.h"
#include "tercel/ops/linalg/products.h"
#include "tests/ops/linalg/matmul_rows.h"

namespace tercel::test {

/** The sum of products that the terms name, by loops over all indices: terms "ij", "jk", output "ik". */
inline Tensor sum_of_products(const std::vector<Tensor>& in, const std::vector<std::string>& terms,
                              const std::string& output) {
  std::string letters = output;
  std::map<char, int64_t> size;
  for (size_t i = 0; i < in.size(); ++i) {
    for (size_t d = 0; d < terms[i].size(); ++d) {
      const char c = terms[i][d];
      if (letters.find(c) == std::string::npos) letters += c;
      size[c] = std::max(size.count(c) ? size[c] : 1, in[i].sizes()[d]);
    }
  }
  std::vector<std::vector<double>> values;
  for (const Tensor& t : in) values.push_back(values_of(t));
  Sizes sizes;
  for (const char c : output) sizes.push_back(size[c]);
  std::vector<double> out(static_cast<size_t>(numel_of(sizes)), 0.0);
  int64_t all = 1;
  for (const char c : letters) all *= size[c];
  std::map<char, int64_t> index;
  for (int64_t n = 0; n < all; ++n) {
    int64_t rest = n;
    for (size_t k = letters.size(); k-- > 0;) {
      index[letters[k]] = rest % size[letters[k]];
      rest /= size[letters[k]];
    }
    double product = 1;
    for (size_t i = 0; i < in.size(); ++i) {
      int64_t at = 0;
      for (size_t d = 0; d < terms[i].size(); ++d) {
        const int64_t extent = in[i].sizes()[d];
        at = at * extent + (extent == 1 ? 0 : index[terms[i][d]]);
      }
      product *= values[i][static_cast<size_t>(at)];
    }
    int64_t to = 0;
    for (const char c : output) to = to * size[c] + index[c];
    out[static_cast<size_t>(to)] += product;
  }
  return make(sizes, kFloat64, out);
}

/** A row of an op that is the sum of products of the terms. */
inline Row product_row(const std::string& name, const std::vector<Sizes>& inputs, std::vector<std::string> terms,
                       std::string output, Function run, double scale = 400) {
  Row row;
  row.name = name;
  for (const Sizes& sizes : inputs) row.inputs.push_back({sizes, -2, 2});
  row.run = std::move(run);
  row.reference = [terms = std::move(terms), output = std::move(output)](const std::vector<Tensor>& in) {
    return sum_of_products(in, terms, output);
  };
  allow_for_products(row, 1);
  row.scale = scale;
  return row;
}

/** A row of einsum() with an equation whose terms are its own reference. */
inline Row einsum_row(const std::string& name, const std::vector<Sizes>& inputs, const std::string& equation,
                      std::vector<std::string> terms, std::string output) {
  return product_row(name, inputs, std::move(terms), std::move(output),
                     [equation](const std::vector<Tensor>& in) { return einsum(equation, in); });
}

inline std::vector<Row> einsum_rows() {
  return {
      einsum_row("einsum_mm", {{3, 4}, {4, 5}}, "ij,jk->ik", {"ij", "jk"}, "ik"),
      einsum_row("einsum_implicit", {{3, 4}, {4, 5}}, "ij,jk", {"ij", "jk"}, "ik"),
      einsum_row("einsum_implicit_order", {{3, 4}, {4, 5}}, "bj,ja", {"bj", "ja"}, "ab"),
      einsum_row("einsum_bmm_turned", {{2, 3, 4}, {2, 4, 5}}, "bij,bjk->kbi", {"bij", "bjk"}, "kbi"),
      einsum_row("einsum_transpose", {{3, 4}}, "ij->ji", {"ij"}, "ji"),
      einsum_row("einsum_sum", {{3, 4}}, "ij->", {"ij"}, ""),
      einsum_row("einsum_rows", {{3, 4, 2}}, "ijk->j", {"ijk"}, "j"),
      einsum_row("einsum_trace", {{4, 4}}, "ii", {"ii"}, ""),
      einsum_row("einsum_diagonal", {{3, 4, 3}}, "iji->ji", {"iji"}, "ji"),
      einsum_row("einsum_diagonal_of_three", {{3, 3, 3}}, "iii->i", {"iii"}, "i"),
      einsum_row("einsum_diagonals", {{3, 3, 4}, {4, 4}}, "iij,jj->ij", {"iij", "jj"}, "ij"),
      einsum_row("einsum_outer", {{3}, {4}}, "i,j->ji", {"i", "j"}, "ji"),
      einsum_row("einsum_elementwise", {{3, 4}, {4, 3}}, "ij,ji->ij", {"ij", "ji"}, "ij"),
      einsum_row("einsum_summed_alone", {{3, 4}, {3, 5}}, "ij,ik->i", {"ij", "ik"}, "i"),
      einsum_row("einsum_ellipsis", {{2, 3, 4, 5}, {5, 6}}, "...ij,jk->...ik", {"abij", "jk"}, "abik"),
      einsum_row("einsum_ellipses", {{2, 3, 4}, {3, 4, 5}}, "...i,...ij->j...", {"abi", "bij"}, "jab"),
      einsum_row("einsum_ellipsis_implicit", {{3, 4}, {2, 4, 3}}, "i...,...i", {"ib", "abi"}, "ab"),
      einsum_row("einsum_ellipsis_summed", {{2, 3, 4}}, "...i->i", {"abi"}, "i"),
      einsum_row("einsum_size_1", {{1, 4}, {3, 4}}, "ij,ij->ij", {"ij", "ij"}, "ij"),
      einsum_row("einsum_size_1_summed", {{3, 1}, {4, 5}}, "ij,jk->ik", {"ij", "jk"}, "ik"),
      einsum_row("einsum_three", {{2, 3}, {3, 4}, {4, 2}}, "ij,jk,ki->", {"ij", "jk", "ki"}, ""),
      einsum_row("einsum_four", {{2, 3}, {3, 4}, {4, 5}, {5, 2}}, "ij,jk,kl,lm->im", {"ij", "jk", "kl", "lm"}, "im"),
      einsum_row("einsum_nine", {{2}, {2, 2}, {2, 2}, {2, 2}, {2, 2}, {2, 2}, {2, 2}, {2, 2}, {2}},
                 "a,ab,bc,cd,de,ef,fg,gh,h->", {"a", "ab", "bc", "cd", "de", "ef", "fg", "gh", "h"}, ""),
      einsum_row("einsum_bilinear", {{2, 3}, {5, 3, 4}, {2, 4}}, "bn,anm,bm->ba", {"bn", "anm", "bm"}, "ba"),
      product_row("einsum_lists", {{3, 4}, {4, 5}}, {"ij", "jk"}, "ki",
                  [](const std::vector<Tensor>& in) {
                    const std::vector<int64_t> lists[] = {{0, 30}, {30, 2}};
                    return einsum(in, lists, {2, 0});
                  }),
      product_row("einsum_lists_implicit", {{2, 3, 4}, {4, 5}}, {"aij", "jk"}, "aik",
                  [](const std::vector<Tensor>& in) {
                    const std::vector<int64_t> lists[] = {{kEllipsis, 0, 30}, {30, 51}};
                    return einsum(in, lists);
                  }),
  };
}

/** Covariances of the rows of x [3, 7], optionally divided by their standard deviations. */
inline Tensor covariance(const Tensor& x, bool normalized) {
  const std::vector<double> v = values_of(x);
  constexpr size_t kN = 7;
  std::vector<double> out, mean(3, 0.0);
  for (size_t i = 0; i < 3 * kN; ++i) mean[i / kN] += v[i] / kN;
  const auto entry = [&](size_t i, size_t j) {
    double sum = 0;
    for (size_t k = 0; k < kN; ++k) sum += (v[i * kN + k] - mean[i]) * (v[j * kN + k] - mean[j]);
    return sum / (kN - 1);
  };
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 3; ++j)
      out.push_back(normalized ? entry(i, j) / std::sqrt(entry(i, i) * entry(j, j)) : entry(i, j));
  return make({3, 3}, kFloat64, out);
}

inline Row covariance_row(const std::string& name, bool normalized, Function run) {
  Row row;
  row.name = name;
  row.inputs = {{{3, 7}}};
  row.run = std::move(run);
  row.reference = [normalized](const std::vector<Tensor>& in) { return covariance(in[0], normalized); };
  allow_for_products(row, 7);
  // corrcoef() clamps the diagonal to 1, where central differences see half the slope.
  if (normalized) row.gradcheck.absolute = 1e-5;
  return row;
}

inline std::vector<Row> products_rows() {
  using Tensors = std::vector<Tensor>;
  std::vector<Row> rows = {
      product_row("inner", {{2, 3, 4}, {5, 4}}, {"abk", "ck"}, "abc",
                  [](const Tensors& in) { return inner(in[0], in[1]); }),
      product_row("tensordot", {{2, 3, 4}, {3, 4, 5}}, {"abc", "bcd"}, "ad",
                  [](const Tensors& in) { return tensordot(in[0], in[1]); }),
      product_row("tensordot_0", {{2, 3}, {4}}, {"ab", "c"}, "abc",
                  [](const Tensors& in) { return tensordot(in[0], in[1], 0); }),
      product_row("tensordot_dims", {{2, 3, 4}, {4, 5, 2}}, {"abc", "cda"}, "bd",
                  [](const Tensors& in) {
                    return tensordot(in[0], in[1], {0, -1}, {2, 0});
                  }),
      product_row("tensordot_size_1", {{2, 1}, {4, 5}}, {"ab", "bd"}, "ad",
                  [](const Tensors& in) { return tensordot(in[0], in[1], 1); }),
      product_row("cross", {{2, 3}, {2, 3}}, {}, "", [](const Tensors& in) { return cross(in[0], in[1]); }),
      product_row("kron", {{2, 3}, {4}}, {}, "", [](const Tensors& in) { return kron(in[0], in[1]); }),
      product_row("bilinear", {{2, 3, 4}, {2, 3, 5}, {6, 4, 5}}, {"abn", "abm", "onm"}, "abo",
                  [](const Tensors& in) { return bilinear(in[0], in[1], in[2]); }),
      product_row("chain_matmul", {{2, 5}, {5, 3}, {3, 4}, {4, 2}}, {"ab", "bc", "cd", "de"}, "ae",
                  [](const Tensors& in) { return chain_matmul(in); }),
      product_row("multi_dot", {{5}, {5, 3}, {3, 4}, {4}}, {"b", "bc", "cd", "d"}, "",
                  [](const Tensors& in) { return linalg::multi_dot(in); }),
      product_row("multi_dot_of_ones", {{1, 3}, {3, 1}, {1, 4}}, {"ab", "bc", "cd"}, "ad",
                  [](const Tensors& in) { return linalg::multi_dot(in); }),
      product_row("matrix_power", {{2, 3, 3}}, {}, "", [](const Tensors& in) { return matrix_power(in[0], 3); }),
      product_row("vecdot", {{2, 3, 4}, {3, 4}}, {"abk", "bk"}, "ab",
                  [](const Tensors& in) { return linalg::vecdot(in[0], in[1]); }),
      product_row("mv", {{5, 7}, {7}}, {"ab", "b"}, "a", [](const Tensors& in) { return mv(in[0], in[1]); }),
      product_row("dot", {{19}, {19}}, {"a", "a"}, "", [](const Tensors& in) { return dot(in[0], in[1]); }),
      product_row("vdot", {{19}, {19}}, {"a", "a"}, "", [](const Tensors& in) { return vdot(in[0], in[1]); }),
      product_row("outer", {{4}, {5}}, {"a", "b"}, "ab", [](const Tensors& in) { return outer(in[0], in[1]); }),
      product_row("ger", {{4}, {5}}, {"a", "b"}, "ab", [](const Tensors& in) { return ger(in[0], in[1]); }),
      covariance_row("cov", false, [](const Tensors& in) { return cov(in[0]); }),
      covariance_row("corrcoef", true, [](const Tensors& in) { return corrcoef(in[0]); }),
  };
  for (Row& row : rows) {
    if (row.name == "cross")
      row.reference = [](const Tensors& in) {
        const std::vector<double> a = values_of(in[0]), b = values_of(in[1]);
        std::vector<double> out;
        for (size_t i = 0; i < 6; i += 3)
          for (size_t k = 0; k < 3; ++k) {
            const size_t x = i + (k + 1) % 3, y = i + (k + 2) % 3;
            out.push_back(a[x] * b[y] - a[y] * b[x]);
          }
        return make({2, 3}, kFloat64, out);
      };
    if (row.name == "kron")
      row.reference = [](const Tensors& in) {
        const std::vector<double> a = values_of(in[0]), b = values_of(in[1]);
        std::vector<double> out;
        for (size_t i = 0; i < a.size() * b.size(); ++i) out.push_back(a[i / 12 * 3 + i % 12 / 4] * b[i % 4]);
        return make({2, 12}, kFloat64, out);
      };
    if (row.name == "matrix_power")
      row.reference = [](const Tensors& in) {
        return matmul_reference(matmul_reference(in[0], in[0], {2, 3, 3}), in[0], {2, 3, 3});
      };
    if (row.name == "mv") row.out = [](const Tensor& out, const Tensors& in) { mv_out(out, in[0], in[1]); };
    if (row.name == "dot") row.out = [](const Tensor& out, const Tensors& in) { dot_out(out, in[0], in[1]); };
    if (row.name == "vdot") row.out = [](const Tensor& out, const Tensors& in) { vdot_out(out, in[0], in[1]); };
    if (row.name == "outer") row.out = [](const Tensor& out, const Tensors& in) { outer_out(out, in[0], in[1]); };
    if (row.name == "inner") row.out = [](const Tensor& out, const Tensors& in) { inner_out(out, in[0], in[1]); };
  }
  return rows;
}

}  // namespace tercel::test
