// The parts of the .npy format that .npz files share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tercel/core/tensor.h"
#include "tercel/io/elements_impl.h"
#include "tercel/util/file_stream.h"

namespace tercel::io {

struct NpyHeader {
  ScalarType dtype = ScalarType::Undefined;
  bool swapped = false;  ///< big-endian
  bool fortran = false;
  DimVector sizes;
  int64_t data = 0;    ///< offset of the first element
  int64_t nbytes = 0;  ///< of all elements
};

/** Everything before the elements, as NumPy writes it; `descr` is the dtype as a literal of Python: "'<f4'". */
std::string npy_header_of(std::string_view descr, bool fortran, IntSpan sizes);
/** The same of a dtype of ours. TypeError that starts with `name` for a dtype that NumPy lacks.
 */
std::string npy_header_text(ScalarType dtype, bool fortran, IntSpan sizes, std::string_view name);

/** Reads the header; checks that it describes a file of `bytes` exactly. */
NpyHeader read_npy_header(ByteReader& reader, int64_t bytes);
/** Reads one array with its header; allocates only after the header agrees with `bytes`. */
Tensor read_npy(ByteReader& reader, int64_t bytes);

}  // namespace tercel::io
