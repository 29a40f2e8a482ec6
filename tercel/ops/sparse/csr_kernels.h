// Products with matrices whose entries are stored by rows.
//
// Note [Products by rows]
// Entries of row r are offsets[r] to offsets[r + 1] - 1. Each element of a product is the sum of its terms in the order
// of the entries (with one dense column, in as many interleaved sums as a vector has lanes), so it depends neither on
// the number of threads nor on how rows are divided among them. Callers have checked the offsets; kernels check each
// column before they use it, since what the check of a constructor saw may have been changed.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"
#include "tercel/core/scalar_type.h"

namespace tercel {

/** A matrix; its dtype is float32, float64, int64 or complex. */
struct CsrLoop {
  const void* offsets;  ///< [rows + 1]
  const void* columns;  ///< [nnz]
  const void* values;   ///< [nnz]
  int64_t num_columns;
  int64_t nnz;
  bool wide;  ///< offsets and columns are int64, otherwise int32
  ScalarType dtype;
};

/** out[r, :] = sum over entries e of row r of values[e] * dense[columns[e], :] */
struct CsrProduct {
  CsrLoop matrix;
  const void* dense;  ///< [num_columns, n]
  void* out;          ///< [rows, n]
  int64_t n;
  bool stream;  ///< out does not fit into the caches
};
/** Computes rows [begin, end); returns the first row with a column outside the matrix, or -1. */
using CsrProductFn = int64_t(const CsrProduct& work, int64_t begin, int64_t end);

/** out[columns[e], k] += values[e] * dense[r, k] for the entries e of rows r */
struct CsrScatter {
  CsrLoop matrix;
  const void* dense;  ///< [rows, n]
  void* out;          ///< [num_columns, n]
  int64_t n;
};
/** Adds rows [begin, end), of the columns [first, last) of `dense`; returns what CsrProductFn does. */
using CsrScatterFn = int64_t(const CsrScatter& work, int64_t begin, int64_t end, int64_t first, int64_t last);

/** out[e] = sum over k of left[r, k] * right[columns[e], k] for the entries e of rows r */
struct CsrSample {
  CsrLoop matrix;     ///< without values
  const void* left;   ///< [rows, k]
  const void* right;  ///< [num_columns, k]
  void* out;          ///< [nnz]
  int64_t k;
};
/** Computes rows [begin, end); returns what CsrProductFn does. */
using CsrSampleFn = int64_t(const CsrSample& work, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(CsrProductFn, csr_product)
TERCEL_DECLARE_KERNELS(CsrScatterFn, csr_scatter)
TERCEL_DECLARE_KERNELS(CsrSampleFn, csr_sample)

}  // namespace tercel
