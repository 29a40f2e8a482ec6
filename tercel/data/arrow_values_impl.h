// Labels, dense values and further columns of Arrow arrays. Private.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "tercel/data/arrow_columns_impl.h"
#include "tercel/data/arrow_elements_impl.h"
#include "tercel/data/decoded_rows_impl.h"

namespace tercel::data {

/** In place of missing values, which are errors of their rows. */
constexpr float kNoValue = std::numeric_limits<float>::quiet_NaN();

/** The row lacks a value; rows come in order. */
inline void add_missing(std::vector<BadCell>& bad, int64_t row) {
  if (bad.empty() || bad.back().row != row) bad.push_back({row, BadCell::Kind::Missing, 0});
}

inline void sort_bad(std::vector<BadCell>& bad) {
  std::sort(bad.begin(), bad.end(), [](const BadCell& a, const BadCell& b) { return a.row < b.row; });
}

// The arrays must outlive what is decoded from them. DataError for those that contradict the C data interface.

void decode_floats(const ArrowArray& array, const ArrowNumbers& numbers, const ColumnPlan::Floats& wanted,
                   std::optional<float> fill, FloatColumn& out, const ArrowPlace& place);
void decode_further(const ArrowArray& array, const ArrowNumbers& numbers, ColumnType type, FurtherColumn& out,
                    const ArrowPlace& place);

}  // namespace tercel::data
