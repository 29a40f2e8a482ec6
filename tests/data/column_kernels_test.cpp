#include "tercel/data/column_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace tercel {
namespace {

constexpr KernelTable<KeyColumnsFn> kKeys = TERCEL_CPU_KERNELS(interleave_keys);
constexpr KernelTable<FloatColumnsFn> kFloats = TERCEL_CPU_KERNELS(interleave_floats);
constexpr int64_t kBegin = 3, kMargin = 2;

/** Columns of different values, and rows that are wider than they are many. */
template <class T>
struct Columns {
  Columns(int64_t count, int64_t num_rows) : rows(num_rows), stride(count + kMargin) {
    for (int64_t c = 0; c < count; ++c) {
      std::vector<T> column;
      for (int64_t r = 0; r < rows; ++r) column.push_back(static_cast<T>(1000 * c + r));
      columns.push_back(column);
    }
    for (const std::vector<T>& column : columns) pointers.push_back(column.data());
    out.assign(static_cast<size_t>(rows * stride), T{-1});
  }

  ColumnsLoop<T> loop() { return {pointers.data(), static_cast<int64_t>(columns.size()), out.data(), stride}; }
  T& at(int64_t column, int64_t row) { return columns[static_cast<size_t>(column)][static_cast<size_t>(row)]; }
  /** Rows before kBegin and values beside the columns are not written. */
  void expect_out(T add) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < stride; ++c)
        ASSERT_EQ(out[static_cast<size_t>(r * stride + c)],
                  r < kBegin || c >= stride - kMargin ? T{-1} : at(c, r) + add)
            << "row " << r << ", column " << c;
  }

  int64_t rows, stride;
  std::vector<std::vector<T>> columns;
  std::vector<const T*> pointers;
  std::vector<T> out;
};

/** Calls function(count, rows) with numbers below, at and above the widths of registers, once per instruction set. */
template <class Function>
void for_sizes(Function function) {
  const CpuIsa before = cpu_isa();
  for (int isa = 0; isa <= static_cast<int>(best_cpu_isa()); ++isa) {
    set_cpu_isa(static_cast<CpuIsa>(isa));
    for (const int64_t count : {1, 3, 4, 5, 7, 8, 9, 13, 16, 26})
      for (const int64_t rows : {1, 4, 7, 8, 9, 17}) {
        SCOPED_TRACE(testing::Message() << to_string(cpu_isa()) << ", " << count << " columns, " << rows << " rows");
        function(count, rows + kBegin);
      }
  }
  set_cpu_isa(before);
}

TEST(ColumnKernels, KeysBecomeRowsAndEachOneOutOfRangeIsFound) {
  for_sizes([](int64_t count, int64_t rows) {
    Columns<int64_t> columns(count, rows);
    const auto n = static_cast<size_t>(count);
    const std::vector<int64_t> add(n, 7);
    std::vector<uint64_t> first, range(n, static_cast<uint64_t>(rows - 1));
    for (int64_t c = 0; c < count; ++c) first.push_back(static_cast<uint64_t>(1000 * c + 7));
    const KeyColumnsLoop loop{columns.loop(), add.data(), first.data(), range.data()};
    ASSERT_TRUE(kKeys[kCpu](loop, kBegin, rows));
    columns.expect_out(7);
    for (int64_t c = 0; c < count; ++c)
      for (int64_t r = kBegin; r < rows; ++r)
        for (const int64_t bad : {1000 * c - 1, 1000 * c + rows, std::numeric_limits<int64_t>::min(),
                                  std::numeric_limits<int64_t>::max()}) {
          const int64_t good = std::exchange(columns.at(c, r), bad);
          ASSERT_FALSE(kKeys[kCpu](loop, kBegin, rows)) << "column " << c << ", row " << r << ": " << bad;
          columns.at(c, r) = good;
        }
  });
}

TEST(ColumnKernels, FloatsBecomeRowsAndEachOneThatIsNotFiniteIsFound) {
  for_sizes([](int64_t count, int64_t rows) {
    Columns<float> columns(count, rows);
    const ColumnsLoop<float> loop = columns.loop();
    ASSERT_TRUE(kFloats[kCpu](loop, kBegin, rows));
    columns.expect_out(0);
    for (int64_t c = 0; c < count; ++c)
      for (int64_t r = kBegin; r < rows; ++r)
        for (const float bad : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
          const float good = std::exchange(columns.at(c, r), bad);
          ASSERT_FALSE(kFloats[kCpu](loop, kBegin, rows)) << "column " << c << ", row " << r;
          columns.at(c, r) = good;
        }
  });
}

}  // namespace
}  // namespace tercel
