// Python bindings of tercel/io: tensors in files, and exchange with other libraries in the process.
#pragma once

#include <memory>
#include <string_view>

#include "python/src/convert.h"
#include "tercel/io/copy_mode.h"
#include "tercel/io/value.h"
#include "tercel/util/arrow_c.h"

namespace tercel::python {

/** None, True or False of an argument `copy`. */
io::CopyMode to_copy_mode(nb::handle copy);

/**
 * Converts an object for a file: tensors, numbers, strings, bytes, None, dtypes, devices, sizes, and lists, tuples and
 * dicts of these; objects that occur twice are one value. TypeError that names any other type, ValueError for objects
 * that contain themselves.
 */
io::Value to_value(PyObject* o);
/** Converts a value back. Values that occur twice are one object. */
nb::object from_value(const io::Value& value);

struct StreamRelease {
  void operator()(ArrowArrayStream* stream) const;
};
using OwnedStream = std::unique_ptr<ArrowArrayStream, StreamRelease>;

/**
 * Takes the stream out of a capsule of __arrow_c_stream__(); its callbacks may be called by any thread, without the
 * GIL. TypeError for another object, ValueError for a stream that was read.
 */
OwnedStream take_stream(nb::handle capsule, std::string_view owner);

// The functions of tercel._C that python/tercel/{utils/dlpack,arrow,serialization,io,safetensors}.py are made of.
void register_dlpack(nb::module_& m);
void register_arrow(nb::module_& m);
void register_files(nb::module_& m);

}  // namespace tercel::python
