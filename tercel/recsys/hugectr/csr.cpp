#include "tercel/recsys/hugectr/csr.h"

#include "tercel/util/error.h"

namespace tercel::recsys::hugectr::detail {

void refuse_csr_row(int64_t num_rows) {
  throw_error<IndexError>({"CSR out of bound: new_row() for row offset number ", num_rows + 2, ", but ", num_rows,
                           " rows have ", num_rows + 1});
}

void refuse_csr_value(int64_t size, int64_t count, int64_t max_value_size) {
  TERCEL_CHECK(count >= 0, IndexError, "CSR out of bound: expected a number of values to add, but got ", count);
  throw_error<IndexError>(
      {"CSR out of bound: ", count, " more than ", size, " values, but there is memory for ", max_value_size});
}

void refuse_csr_value_without_row(int64_t num_row_offsets, int64_t num_rows) {
  TERCEL_CHECK(num_row_offsets > 0, IndexError, "CSR out of bound: a value before the first new_row()");
  throw_error<IndexError>({"CSR out of bound: a value after the last of ", num_rows, " rows"});
}

void check_csr_sizes(int64_t num_rows, int64_t max_value_size, uint64_t max_offset, ScalarType dtype) {
  TERCEL_CHECK(num_rows >= 0 && num_rows < INT64_MAX && max_value_size >= 0, ValueError,
               "CSR: expected numbers of rows and values, but got ", num_rows, " and ", max_value_size);
  TERCEL_CHECK(static_cast<uint64_t>(max_value_size) <= max_offset, ValueError, "CSR: row offsets of ",
               to_string(dtype), " count ", max_offset, " values at most, but max_value_size is ", max_value_size);
}

}  // namespace tercel::recsys::hugectr::detail
