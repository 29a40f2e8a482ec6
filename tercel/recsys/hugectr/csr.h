// HugeCTR's CSR: builds row offsets and values row by row, in memory that is allocated once.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

#include "tercel/recsys/hugectr/allocators.h"
#include "tercel/recsys/hugectr/general_buffer2.h"
#include "tercel/recsys/hugectr/tensor2.h"
#include "tercel/util/export.h"

namespace tercel::recsys::hugectr {

namespace detail {
[[noreturn]] TERCEL_API void refuse_csr_row(int64_t num_rows);
[[noreturn]] TERCEL_API void refuse_csr_value(int64_t size, int64_t count, int64_t max_value_size);
[[noreturn]] TERCEL_API void refuse_csr_value_without_row(int64_t num_row_offsets, int64_t num_rows);
/** Throws ValueError for negative sizes, and for more values than an offset can count. */
TERCEL_API void check_csr_sizes(int64_t num_rows, int64_t max_value_size, uint64_t max_offset, ScalarType dtype);
}  // namespace detail

/**
 * Each row begins with new_row(); a last new_row() closes the array. Values of row r are then value[row_offset[r]] to
 * value[row_offset[r + 1] - 1]. What goes beyond the memory is an IndexError, "CSR out of bound", and changes nothing.
 * T is the type of values and of offsets.
 */
template <std::integral T, BufferAllocator A = HostAllocator>
class CSR {
  static_assert(A::kHostAccess, "rows are built on the host");

 public:
  /** Memory for num_rows rows of max_value_size values together. ValueError if T cannot count them; OutOfMemoryError.
   */
  CSR(int64_t num_rows, int64_t max_value_size) : num_rows_(num_rows), max_value_size_(max_value_size) {
    detail::check_csr_sizes(num_rows, max_value_size, static_cast<uint64_t>(std::numeric_limits<T>::max()),
                            scalar_type_of<T>());
    GeneralBuffer2<A> buffer;
    buffer.reserve({num_rows + 1}, &row_offset_tensor_);
    buffer.reserve({max_value_size}, &value_tensor_);
    buffer.allocate();
    row_offset_ptr_ = row_offset_tensor_.get_ptr();
    value_ptr_ = value_tensor_.get_ptr();
  }
  // Copies, and what a move leaves behind, would share the memory, but not the sizes.
  CSR(const CSR&) = delete;
  CSR& operator=(const CSR&) = delete;

  /** Begins a row, or closes the array after the last one. IndexError if it is closed. */
  void new_row() {
    check_row();
    row_offset_ptr_[size_of_row_offset_++] = static_cast<T>(size_of_value_);
  }
  /** Appends a value to the row. IndexError if there are max_value_size, before the first row, or after the last. */
  void push_back(T value) {
    if (size_of_row_offset_ == 0 || size_of_row_offset_ > num_rows_) [[unlikely]]
      detail::refuse_csr_value_without_row(size_of_row_offset_, num_rows_);
    check_values(1);
    value_ptr_[size_of_value_++] = value;
  }
  /** new_row() and push_back(), or neither. */
  void push_back_new_row(T value) {
    check_row();
    if (size_of_row_offset_ == num_rows_) [[unlikely]]
      detail::refuse_csr_value_without_row(num_rows_ + 1, num_rows_);
    check_values(1);
    new_row();
    value_ptr_[size_of_value_++] = value;
  }
  /** Counts `count` more values, which were written to get_value_ptr() + get_num_values(). IndexErrors of push_back().
   */
  void update_value_size(int64_t count) {
    if (size_of_row_offset_ == 0 || size_of_row_offset_ > num_rows_) [[unlikely]]
      detail::refuse_csr_value_without_row(size_of_row_offset_, num_rows_);
    check_values(count);
    size_of_value_ += count;
  }

  /** Remembers rows and values, for roll_back(). */
  void set_check_point() {
    check_point_row_ = size_of_row_offset_;
    check_point_value_ = size_of_value_;
  }
  /** Removes what was appended since set_check_point(), or since the start or reset(). */
  void roll_back() {
    size_of_row_offset_ = check_point_row_;
    size_of_value_ = check_point_value_;
  }
  /** Removes all rows and values. */
  void reset() {
    size_of_row_offset_ = size_of_value_ = 0;
    set_check_point();
  }

  /** Number of rows that there is memory for. */
  int64_t get_num_rows() const { return num_rows_; }
  /** Number of values that there is memory for. */
  int64_t get_max_value_size() const { return max_value_size_; }
  /** Number of values so far. */
  int64_t get_num_values() const { return size_of_value_; }
  /** Number of row offsets so far: of calls of new_row(). */
  int64_t get_num_row_offsets() const { return size_of_row_offset_; }
  /** [num_rows + 1], of which get_num_row_offsets() are set. */
  const Tensor2<T>& get_row_offset_tensor() const { return row_offset_tensor_; }
  /** [max_value_size], of which get_num_values() are set. */
  const Tensor2<T>& get_value_tensor() const { return value_tensor_; }
  T* get_row_offset_ptr() const { return row_offset_ptr_; }
  T* get_value_ptr() const { return value_ptr_; }

 private:
  void check_row() const {
    if (size_of_row_offset_ > num_rows_) [[unlikely]]
      detail::refuse_csr_row(num_rows_);
  }
  void check_values(int64_t count) const {
    if (count < 0 || count > max_value_size_ - size_of_value_) [[unlikely]]
      detail::refuse_csr_value(size_of_value_, count, max_value_size_);
  }

  int64_t num_rows_, max_value_size_;
  Tensor2<T> row_offset_tensor_, value_tensor_;
  T* row_offset_ptr_;
  T* value_ptr_;
  int64_t size_of_row_offset_ = 0, size_of_value_ = 0;
  int64_t check_point_row_ = 0, check_point_value_ = 0;
};

}  // namespace tercel::recsys::hugectr
