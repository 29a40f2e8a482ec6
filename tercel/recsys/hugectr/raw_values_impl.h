// Files of numbers without a header, as HugeCTR writes models. Private.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tercel/core/tensor.h"
#include "tercel/util/file_stream.h"

namespace tercel::recsys::hugectr {

/**
 * The numbers behind the first `header` bytes of a file, [count] of the dtype. DataError "PATH: expected N bytes, WHAT,
 * found M" for a file of another size.
 */
Tensor read_values(const std::string& path, ScalarType dtype, int64_t count, std::string_view what, int64_t header = 0);

/** DataError that names the file if a number of `values` is not finite; `what` says whose they are. */
void check_finite(const std::string& path, const Tensor& values, std::string_view what);

/** Writes all elements of a tensor as float32. */
void write_floats(FileWriter& out, const Tensor& values);

/** Writes rows [n] int64 of a matrix as float32, in parts, so that a large table needs no second copy. */
void write_rows(FileWriter& out, const Tensor& matrix, const Tensor& rows);

}  // namespace tercel::recsys::hugectr
