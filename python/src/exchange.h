// Tensors in files and in other libraries of the process: the layer tercel/io, for Python.
#pragma once

#include "python/src/convert.h"
#include "tercel/io/copy_mode.h"
#include "tercel/io/value.h"

namespace tercel::python {

/** None, True or False of an argument `copy`. */
io::CopyMode to_copy_mode(nb::handle copy);

/**
 * What an object holds, as a file can have it: tensors, numbers, texts, bytes, None, dtypes, devices, sizes, and lists,
 * tuples and dicts of these; what stands in two places is one value. TypeError that names any other type, ValueError
 * for what holds itself.
 */
io::Value to_value(PyObject* o);
/** The other way. What is one value is one object. */
nb::object from_value(const io::Value& value);

// The functions of tercel._C that python/tercel/{utils/dlpack,arrow,serialization,io,safetensors}.py are made of.
void register_dlpack(nb::module_& m);
void register_arrow(nb::module_& m);
void register_files(nb::module_& m);

}  // namespace tercel::python
