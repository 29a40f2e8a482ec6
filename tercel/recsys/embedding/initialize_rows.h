// Initial values of embedding rows.
//
// Note [Initial rows]
// The value of a row's column is a function of (seed, name of the table, key, column): it depends neither on the order
// in which rows are made nor on threads, ranks, the number of rows or other tables. Under the table's seed (Note [Seeds
// of parts]), block `key` of stream `column / 4` gives four columns. The numbers are drawn in float32, whatever the
// dtype of the table, so that models of different dtypes begin with the same values.
#pragma once

#include <cstdint>
#include <string_view>

#include "tercel/core/tensor.h"
#include "tercel/nn/init.h"
#include "tercel/util/span.h"

namespace tercel::recsys {

/** Fills rows [n, dim], float32 or float64 with contiguous rows, with the values of the keys from first_key on. */
TERCEL_API void initialize_rows(const Tensor& rows, const nn::Init& init, uint64_t seed, std::string_view table,
                                int64_t first_key);
/**
 * The same for some rows of a weight [rows, dim]: row row_numbers[i] is that of keys[i]. The caller ensures that they
 * are rows of the weight, and different ones.
 */
TERCEL_API void initialize_rows(const Tensor& weight, const nn::Init& init, uint64_t seed, std::string_view table,
                                Span<int64_t> keys, Span<int64_t> row_numbers);
/** Fills some rows of a weight [rows, dim], float32 or float64 on the CPU, with a number; the rows are different ones.
 */
TERCEL_API void fill_rows(const Tensor& weight, Span<int64_t> row_numbers, double value);

}  // namespace tercel::recsys
