// Window sizes, strides and paddings: arguments that are one number for all dimensions or a list.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "tercel/util/span.h"

namespace tercel::nn {

/** A kernel's size, a stride, a padding: 2, {2, 3}, or a vector. */
class SizeList {
 public:
  SizeList() = default;
  SizeList(int64_t one) : values_{one} {}                                // NOLINT(google-explicit-constructor)
  SizeList(std::initializer_list<int64_t> values) : values_(values) {}   // NOLINT(google-explicit-constructor)
  SizeList(std::vector<int64_t> values) : values_(std::move(values)) {}  // NOLINT(google-explicit-constructor)
  SizeList(IntSpan values) : values_(values.begin(), values.end()) {}    // NOLINT(google-explicit-constructor)

  const int64_t* data() const { return values_.data(); }
  size_t size() const { return values_.size(); }
  const std::vector<int64_t>& values() const { return values_; }
  /** The number of dimension d. */
  int64_t operator[](size_t d) const { return values_[values_.size() == 1 ? 0 : d]; }

 private:
  std::vector<int64_t> values_;
};

}  // namespace tercel::nn
