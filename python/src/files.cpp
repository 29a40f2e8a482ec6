// Files of tensors: .pt, .npy, .npz and safetensors, by path. File objects and argument names are handled in Python:
// tercel/serialization.py, tercel/io.py and tercel/safetensors.py.
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "python/src/exchange.h"
#include "tercel/io/npy.h"
#include "tercel/io/npz.h"
#include "tercel/io/pt.h"
#include "tercel/io/safetensors.h"

namespace tercel::python {

namespace {

/** The items of a dict from strings to tensors. */
std::vector<io::NamedTensor> to_named(nb::handle o, const char* what) {
  TERCEL_CHECK(PyDict_Check(o.ptr()), TypeError, what, ": expected a dict of tensors, not ", Py_TYPE(o.ptr())->tp_name);
  std::vector<io::NamedTensor> out;
  for (const auto& [key, value] : nb::borrow<nb::dict>(o)) {
    TERCEL_CHECK(PyUnicode_Check(key.ptr()), TypeError, what, ": expected a name of type str, not ",
                 Py_TYPE(key.ptr())->tp_name);
    std::string name(to_text(key.ptr()));
    const Tensor& tensor = to_tensor(value, str_cat({what, ": '", name, "'"}));
    out.push_back({std::move(name), tensor});
  }
  return out;
}

nb::dict to_dict(std::vector<io::NamedTensor> tensors) {
  nb::dict out;
  for (io::NamedTensor& t : tensors) out[to_str(t.name)] = own(wrap(std::move(t.tensor)));
  return out;
}

void register_pt(nb::module_& m) {
  m.def(
      "_save_pt",
      [](nb::handle path, nb::handle object) {
        const std::string file = to_path(path);
        const io::Value value = to_value(object.ptr());
        released([&] { io::save_pt(file, value); });
      },
      nb::arg("path"), nb::arg("object").none());
  m.def("_load_pt", [](nb::handle path, bool mmap) {
    const std::string file = to_path(path);
    return from_value(released([&] { return io::load_pt(file, {.mmap = mmap}); }));
  });
}

void register_numpy_files(nb::module_& m) {
  m.def("_save_npy", [](nb::handle path, nb::handle tensor) {
    const std::string file = to_path(path);
    const Tensor t = to_tensor(tensor, "save_npy");
    released([&] { io::save_npy(file, t); });
  });
  m.def("_load_npy", [](nb::handle path, bool mmap) {
    const std::string file = to_path(path);
    return own(wrap(released([&] { return io::load_npy(file, {.mmap = mmap}); })));
  });
  m.def("_save_npz", [](nb::handle path, nb::handle tensors, bool compressed) {
    const std::string file = to_path(path);
    const std::vector<io::NamedTensor> named = to_named(tensors, "save_npz");
    released([&] { io::save_npz(file, named, compressed); });
  });
  m.def("_load_npz", [](nb::handle path, int64_t max_inflated_bytes) {
    const std::string file = to_path(path);
    return to_dict(released([&] { return io::load_npz(file, {.max_inflated_bytes = max_inflated_bytes}); }));
  });
}

const io::TensorEntry& entry_of(const io::SafetensorsReader& reader, std::string_view name) {
  const io::TensorEntry* entry = reader.find(name);
  if (!entry) {
    PyErr_SetObject(PyExc_KeyError, to_str(name).ptr());
    raise_pending();
  }
  return *entry;
}

io::Metadata to_metadata(nb::handle o) {
  io::Metadata out;
  if (o.is_none()) return out;
  TERCEL_CHECK(PyDict_Check(o.ptr()), TypeError, "argument 'metadata' must be a dict of strings, not ",
               Py_TYPE(o.ptr())->tp_name);
  for (const auto& [key, value] : nb::borrow<nb::dict>(o)) {
    TERCEL_CHECK(PyUnicode_Check(key.ptr()) && PyUnicode_Check(value.ptr()), TypeError,
                 "argument 'metadata' must be a dict of strings");
    out.emplace_back(to_text(key.ptr()), to_text(value.ptr()));
  }
  return out;
}

void register_safetensors(nb::module_& m) {
  m.def(
      "_save_safetensors",
      [](nb::handle path, nb::handle tensors, nb::handle metadata) {
        const std::string file = to_path(path);
        const std::vector<io::NamedTensor> named = to_named(tensors, "save_file");
        const io::Metadata texts = to_metadata(metadata);
        released([&] { io::save_safetensors(file, named, texts); });
      },
      nb::arg("path"), nb::arg("tensors"), nb::arg("metadata").none());
  m.def("_load_safetensors", [](nb::handle path, bool mmap) {
    const std::string file = to_path(path);
    return to_dict(released([&] { return io::load_safetensors(file, {.mmap = mmap}); }));
  });
  using Reader = io::SafetensorsReader;
  nb::class_<Reader>(m, "_SafetensorsReader")
      .def("__init__",
           [](Reader* self, nb::handle path, bool mmap) {
             const std::string file = to_path(path);
             released([&] { new (self) Reader(file, {.mmap = mmap}); });
           })
      .def("keys",
           [](const Reader& reader) {
             nb::list names;
             for (const io::TensorEntry& entry : reader.entries()) names.append(to_str(entry.name));
             return names;
           })
      .def("metadata",
           [](const Reader& reader) {
             nb::dict out;
             for (const auto& [key, value] : reader.metadata()) out[to_str(key)] = to_str(value);
             return out;
           })
      .def("describe",
           [](const Reader& reader, const std::string& name) {
             const io::TensorEntry& entry = entry_of(reader, name);
             return nb::make_tuple(nb::steal(from_dtype(entry.dtype)), own(from_sizes(entry.sizes)));
           })
      .def("read", [](const Reader& reader, const std::string& name) {
        const io::TensorEntry& entry = entry_of(reader, name);
        return own(wrap(released([&] { return reader.read(entry); })));
      });
}

}  // namespace

void register_files(nb::module_& m) {
  register_pt(m);
  register_numpy_files(m);
  register_safetensors(m);
}

}  // namespace tercel::python
