#include "tercel/recsys/hugectr/csr.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tercel/recsys/hugectr/sparse_tensor.h"
#include "tercel/util/philox.h"
#include "tests/support/errors.h"

namespace tercel::recsys::hugectr {
namespace {

using Values = std::vector<int64_t>;

template <class T>
Values row_offsets(const CSR<T>& csr) {
  return {csr.get_row_offset_ptr(), csr.get_row_offset_ptr() + csr.get_num_row_offsets()};
}
template <class T>
Values values(const CSR<T>& csr) {
  return {csr.get_value_ptr(), csr.get_value_ptr() + csr.get_num_values()};
}

template <class T>
void put(CSR<T>& csr, const std::vector<std::vector<T>>& rows) {
  for (const std::vector<T>& row : rows) {
    csr.new_row();
    for (const T value : row) csr.push_back(value);
  }
  csr.new_row();
}

TEST(CSR, RowOffsetsAndValues) {
  CSR<uint32_t> csr(3, 9);
  put(csr, {{4, 5, 1, 2}, {3, 5, 1}, {3, 2}});
  EXPECT_EQ(row_offsets(csr), (Values{0, 4, 7, 9}));
  EXPECT_EQ(values(csr), (Values{4, 5, 1, 2, 3, 5, 1, 3, 2}));
  EXPECT_EQ(csr.get_num_rows(), 3);
  EXPECT_EQ(csr.get_max_value_size(), 9);
  EXPECT_EQ(csr.get_row_offset_tensor().get_dimensions(), IntSpan({4}));
  EXPECT_EQ(csr.get_value_tensor().get_dimensions(), IntSpan({9}));
  EXPECT_EQ(csr.get_value_tensor().get_ptr(), csr.get_value_ptr());
  EXPECT_TRUE(csr.get_value_tensor().tensor().is_alias_of(csr.get_row_offset_tensor().tensor()));  // one allocation
  const SparseTensor<uint32_t> sparse({3, 4}, csr.get_value_tensor(), csr.get_row_offset_tensor(),
                                      std::make_shared<int64_t>(csr.get_num_values()));
  EXPECT_EQ(sparse.nnz(), 9);
}

TEST(CSR, RowsWithoutValuesAndWithOne) {
  CSR<int64_t> csr(4, 3);
  csr.new_row();
  csr.push_back_new_row(7);
  csr.push_back_new_row(8);
  csr.push_back(9);
  csr.new_row();
  csr.new_row();
  EXPECT_EQ(row_offsets(csr), (Values{0, 0, 1, 3, 3}));
  EXPECT_EQ(values(csr), (Values{7, 8, 9}));
  CSR<int64_t> none(0, 0);
  none.new_row();
  EXPECT_EQ(row_offsets(none), Values{0});
  EXPECT_THROW(none.new_row(), IndexError);
}

TEST(CSR, ValuesWrittenToItsMemory) {
  CSR<int32_t> csr(1, 4);
  csr.new_row();
  csr.push_back(1);
  int32_t* const next = csr.get_value_ptr() + csr.get_num_values();
  next[0] = 2;
  next[1] = 3;
  csr.update_value_size(2);
  csr.update_value_size(0);
  TERCEL_EXPECT_THROW(csr.update_value_size(2), IndexError,
                      "CSR out of bound: 2 more than 3 values, but there is memory for 4");
  TERCEL_EXPECT_THROW(csr.update_value_size(INT64_MAX), IndexError, "CSR out of bound: 9223372036854775807 more");
  TERCEL_EXPECT_THROW(csr.update_value_size(-1), IndexError,
                      "CSR out of bound: expected a number of values to add, but got -1");
  csr.new_row();
  EXPECT_EQ(values(csr), (Values{1, 2, 3}));
  EXPECT_EQ(row_offsets(csr), (Values{0, 3}));
  TERCEL_EXPECT_THROW(csr.update_value_size(1), IndexError, "CSR out of bound: a value after the last of 1 rows");
}

TEST(CSR, OutOfBoundChangesNothing) {
  CSR<int64_t> csr(2, 3);
  TERCEL_EXPECT_THROW(csr.push_back(1), IndexError, "CSR out of bound: a value before the first new_row()");
  TERCEL_EXPECT_THROW(csr.update_value_size(1), IndexError, "CSR out of bound: a value before the first new_row()");
  csr.new_row();
  for (int64_t value = 0; value < 3; ++value) csr.push_back(value);
  TERCEL_EXPECT_THROW(csr.push_back(3), IndexError,
                      "CSR out of bound: 1 more than 3 values, but there is memory for 3");
  TERCEL_EXPECT_THROW(csr.push_back_new_row(3), IndexError, "CSR out of bound: 1 more than 3 values");
  EXPECT_EQ(row_offsets(csr), Values{0});  // no row was begun either
  csr.new_row();
  TERCEL_EXPECT_THROW(csr.push_back_new_row(3), IndexError, "CSR out of bound: a value after the last of 2 rows");
  csr.new_row();
  TERCEL_EXPECT_THROW(csr.new_row(), IndexError,
                      "CSR out of bound: new_row() for row offset number 4, but 2 rows have 3");
  TERCEL_EXPECT_THROW(csr.push_back_new_row(3), IndexError, "CSR out of bound: new_row()");
  TERCEL_EXPECT_THROW(csr.push_back(3), IndexError, "CSR out of bound: a value after the last of 2 rows");
  EXPECT_EQ(row_offsets(csr), (Values{0, 3, 3}));
  EXPECT_EQ(values(csr), (Values{0, 1, 2}));
}

TEST(CSR, RollsBackABadRecord) {
  CSR<int64_t> csr(4, 8);
  csr.roll_back();  // to the start
  EXPECT_EQ(csr.get_num_row_offsets(), 0);
  csr.push_back_new_row(1);
  csr.set_check_point();
  csr.push_back_new_row(2);
  csr.push_back(3);
  csr.roll_back();
  EXPECT_EQ(row_offsets(csr), Values{0});
  EXPECT_EQ(values(csr), Values{1});
  csr.push_back_new_row(4);
  csr.new_row();
  EXPECT_EQ(row_offsets(csr), (Values{0, 1, 2}));
  EXPECT_EQ(values(csr), (Values{1, 4}));
  csr.set_check_point();
  csr.reset();
  EXPECT_EQ(csr.get_num_row_offsets(), 0);
  EXPECT_EQ(csr.get_num_values(), 0);
  csr.roll_back();  // not forward to a check point before reset()
  EXPECT_EQ(csr.get_num_row_offsets(), 0);
  put(csr, {{5}});
  EXPECT_EQ(values(csr), Values{5});
}

TEST(CSR, AnyCallsDoWhatListsDo) {
  struct State {
    Values offsets, values;
  };
  const Philox random{5, 0};
  uint64_t draws = 0;
  for (int64_t trial = 0; trial < 200; ++trial) {
    const auto below = [&](uint32_t n) { return static_cast<int64_t>(random(draws++).word[0] % n); };
    const int64_t num_rows = below(6), max_value_size = below(8);
    CSR<int64_t> csr(num_rows, max_value_size);
    State now, check_point;
    for (int64_t call = 0; call < 60; ++call) {
      const auto offsets = static_cast<int64_t>(now.offsets.size()), size = static_cast<int64_t>(now.values.size());
      const bool row_fits = offsets <= num_rows, in_row = offsets > 0 && row_fits, fits = size < max_value_size;
      switch (below(8)) {
        case 0:
        case 1:
          EXPECT_EQ(tercel::test::message_of([&] { csr.new_row(); }) == "no error", row_fits);
          if (row_fits) now.offsets.push_back(size);
          break;
        case 2:
        case 3:
        case 4:
          EXPECT_EQ(tercel::test::message_of([&] { csr.push_back(call); }) == "no error", in_row && fits);
          if (in_row && fits) now.values.push_back(call);
          break;
        case 5: {
          const bool both = offsets < num_rows && fits;
          EXPECT_EQ(tercel::test::message_of([&] { csr.push_back_new_row(call); }) == "no error", both);
          if (both) {
            now.offsets.push_back(size);
            now.values.push_back(call);
          }
          break;
        }
        case 6:
          csr.set_check_point();
          check_point = now;
          break;
        default:
          if (below(4) == 0) {
            csr.reset();
            now = check_point = {};
          } else {
            csr.roll_back();
            now = check_point;
          }
      }
      ASSERT_EQ(row_offsets(csr), now.offsets);
      ASSERT_EQ(values(csr), now.values);
    }
  }
}

TEST(CSR, SizesThatItCannotCount) {
  TERCEL_EXPECT_THROW((CSR<int32_t>(1, int64_t{1} << 31)), ValueError,
                      "CSR: row offsets of int32 count 2147483647 values at most, but max_value_size is 2147483648");
  TERCEL_EXPECT_THROW((CSR<int64_t>(-1, 2)), ValueError, "CSR: expected numbers of rows and values, but got -1 and 2");
  EXPECT_THROW((CSR<int64_t>(1, -2)), ValueError);
  EXPECT_THROW((CSR<int64_t>(INT64_MAX, 2)), ValueError);
}

}  // namespace
}  // namespace tercel::recsys::hugectr
