// Tensors from Python objects: nested lists, NumPy arrays, buffers.
#pragma once

#include <optional>

#include "python/src/convert.h"

namespace tercel::python {

/**
 * A tensor of the numbers in a nested sequence, an array, a buffer or a tensor, with the given dtype or the one
 * inferred from the numbers. `share`: over the object's own memory where the dtype allows it.
 */
Tensor tensor_from_data(PyObject* data, std::optional<ScalarType> dtype, bool share);

/**
 * A tensor over an exporter's memory; TypeError and ValueError with PyTorch's sentences where that cannot be.
 * `to_write`: to be used, and so with a warning if the memory is read-only.
 */
Tensor tensor_from_buffer(PyObject* exporter, bool to_write = true);
/** Whether the object is a numpy.ndarray. */
bool is_ndarray(PyObject* o);
/** Whether the object exports a buffer of numbers: an array, array.array, memoryview; bytes are text, not numbers. */
bool is_numeric_buffer(PyObject* o);

/** numpy.ndarray over the tensor's memory. */
PyObject* to_numpy(const Tensor& t, bool force);

}  // namespace tercel::python
