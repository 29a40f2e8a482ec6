// Conformance rows of searching; see Note [Conformance rows].
#pragma once

#include <algorithm>
#include <vector>

#include "tercel/ops/sort/search.h"
#include "tercel/ops/sort/sort.h"
#include "tests/ops/common/line_reference.h"

namespace tercel::test {

/** Insertion points of values [4, 9] in the lines of [4, 20], or in one line [20]. */
inline Row searchsorted_row(const std::string& name, bool right, bool shared) {
  Row row;
  row.name = name;
  row.inputs = {{shared ? Sizes{20} : Sizes{4, 20}}, {{4, 9}}};
  row.run = [right, shared](const std::vector<Tensor>& in) {
    const Tensor sorted = sort(in[0]).values;
    return shared ? bucketize(in[1], sorted, false, right) : searchsorted(sorted, in[1], false, right);
  };
  row.reference = [right, shared](const std::vector<Tensor>& in) {
    std::vector<double> lines = values_of(in[0]);
    const std::vector<double> values = values_of(in[1]);
    std::vector<double> out;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto begin = lines.begin() + (shared ? 0 : static_cast<std::ptrdiff_t>(i / 9) * 20);
      std::sort(begin, begin + 20);
      const auto at =
          right ? std::upper_bound(begin, begin + 20, values[i]) : std::lower_bound(begin, begin + 20, values[i]);
      out.push_back(static_cast<double>(at - begin));
    }
    return make({4, 9}, kFloat64, out);
  };
  row.dtypes = all_types();
  row.differentiable = false;
  row.ulps = 0;
  return row;
}

inline Row isin_row() {
  Row row;
  row.name = "isin";
  row.inputs = {{{6, 7}, -9, 9}, {{5}, -9, 9}};
  row.run = [](const std::vector<Tensor>& in) { return isin(in[0], in[1]); };
  row.reference = [](const std::vector<Tensor>& in) {
    const std::vector<double> tests = values_of(in[1]);
    std::vector<double> out;
    for (const double v : values_of(in[0])) out.push_back(std::find(tests.begin(), tests.end(), v) != tests.end());
    return make({6, 7}, kFloat64, out);
  };
  row.dtypes = all_types();
  row.differentiable = false;
  row.ulps = 0;
  return row;
}

inline std::vector<Row> search_rows() {
  return {
      searchsorted_row("searchsorted", false, false),
      searchsorted_row("searchsorted_right", true, false),
      searchsorted_row("bucketize", false, true),
      isin_row(),
  };
}

}  // namespace tercel::test
