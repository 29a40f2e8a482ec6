// tercel.device, layout, memory_format and Generator.
#include <nanobind/stl/string.h>

#include <string>

#include "python/src/convert.h"
#include "python/src/package_name.h"
#include "tercel/ops/factories/factories.h"

namespace tercel::python {

namespace {

PyTypeObject* g_device_type = nullptr;
PyTypeObject* g_layout_type = nullptr;
PyTypeObject* g_memory_format_type = nullptr;
PyTypeObject* g_generator_type = nullptr;
PyObject* g_layouts[kNumLayouts];
PyObject* g_cpu = nullptr;

template <class T>
PyTypeObject* type_of(const nb::class_<T>& c) {
  return reinterpret_cast<PyTypeObject*>(c.ptr());
}

/** The device as the user named it: a CPU may have an index, which its tensors do not store. */
Device named_device(PyObject* o) {
  if (is_ready(o, g_device_type)) return nb::inst_ptr<DeviceObject>(o)->device;
  if (PyUnicode_Check(o)) return parse_device(to_text(o));
  TERCEL_CHECK(PyLong_Check(o), TypeError, "expected a device, not ", Py_TYPE(o)->tp_name);
  const int64_t index = to_int(o);
  TERCEL_CHECK(index >= 0 && index < 128, RuntimeError, "Device index must not be negative");
  return {DeviceType::Cuda, static_cast<int8_t>(index)};
}

void init_device(DeviceObject* self, nb::handle type, nb::handle index) {
  Device d = named_device(type.ptr());
  if (!index.is_none()) {
    TERCEL_CHECK(d.index < 0, RuntimeError, "type (string) must not include an index because index was passed ",
                 "explicitly: ", to_string(d));
    const int64_t i = to_int(index.ptr());
    TERCEL_CHECK(i >= 0 && i < 128, RuntimeError, "Device index must not be negative");
    d.index = static_cast<int8_t>(i);
  }
  new (self) DeviceObject{d};
}

void register_devices(nb::module_& m) {
  nb::class_<DeviceObject> type(m, "device", nb::is_final(), "The device of a tensor's data.");
  type.def("__init__", init_device, nb::arg("type"), nb::arg("index") = nb::none())
      .def_prop_ro("type", [](const DeviceObject& d) { return std::string(to_string(d.device.type)); })
      .def_prop_ro("index",
                   [](const DeviceObject& d) -> nb::object {
                     if (d.device.index < 0) return nb::none();
                     return nb::int_(static_cast<int>(d.device.index));
                   })
      .def("__eq__",
           [](const DeviceObject& a, nb::handle b) {
             return is_ready(b.ptr(), g_device_type) && a.device == nb::inst_ptr<DeviceObject>(b)->device;
           })
      .def("__hash__",
           [](const DeviceObject& d) { return (static_cast<int>(d.device.type) << 8) + d.device.index + 1; })
      .def("__str__", [](const DeviceObject& d) { return to_string(d.device); })
      .def("__reduce__", [](nb::handle self) { return nb::make_tuple(self.type(), nb::make_tuple(nb::str(self))); })
      .def("__repr__", [](const DeviceObject& d) {
        std::string text = str_cat({"device(type='", to_string(d.device.type), "'"});
        if (d.device.index >= 0) text += str_cat({", index=", static_cast<int>(d.device.index)});
        return text + ")";
      });
  g_device_type = type_of(type);
  g_cpu = nb::cast(DeviceObject{kCpu}).release().ptr();
}

void register_layouts(nb::module_& m) {
  nb::class_<LayoutObject> layout(m, "layout", nb::is_final(), "How a tensor's elements are stored.");
  layout.def("__repr__",
             [](const LayoutObject& l) {
               return str_cat({package_name(), ".", l.name});
             })
      .def("__reduce__", [](const LayoutObject& l) { return std::string(l.name); });
  g_layout_type = type_of(layout);
  for (int i = 0; i < kNumLayouts; ++i) {
    const auto value = static_cast<Layout>(i);
    const char* name = to_string(value).data();  // a literal
    nb::object object = nb::cast(LayoutObject{value, name});
    m.attr(name) = object;
    g_layouts[i] = object.release().ptr();
  }
  // A layout that no tensor can have.
  m.attr("jagged") = LayoutObject{Layout::Opaque, "jagged"};
  nb::class_<MemoryFormatObject> format(m, "memory_format", nb::is_final(), "The order of dimensions in memory.");
  const auto name_of = [](const MemoryFormatObject& f) {
    const bool plain = f.format == MemoryFormat::Contiguous || f.format == MemoryFormat::Preserve;
    return str_cat({to_string(f.format), plain ? "_format" : ""});
  };
  format.def("__repr__", [name_of](const MemoryFormatObject& f) { return package_name() + "." + name_of(f); })
      .def("__reduce__", name_of);
  g_memory_format_type = type_of(format);
  m.attr("contiguous_format") = MemoryFormatObject{MemoryFormat::Contiguous};
  m.attr("preserve_format") = MemoryFormatObject{MemoryFormat::Preserve};
  m.attr("channels_last") = MemoryFormatObject{MemoryFormat::ChannelsLast};
  m.attr("channels_last_3d") = MemoryFormatObject{MemoryFormat::ChannelsLast3d};
}

/** Seed and position as a tensor of 16 bytes, as PyTorch keeps a state in bytes. */
Tensor state_of(const Generator& g) {
  const GeneratorState state = g.state();
  Tensor out = empty({16}, kUInt8);
  std::memcpy(out.data_ptr(), &state.seed, 8);
  std::memcpy(static_cast<char*>(out.data_ptr()) + 8, &state.offset, 8);
  return out;
}
void set_state(Generator& g, const Tensor& bytes) {
  TERCEL_CHECK(bytes.dtype() == kUInt8, TypeError, "RNG state must be a tercel.ByteTensor, but got ", describe(bytes));
  TERCEL_CHECK(bytes.numel() == 16 && bytes.is_contiguous(), RuntimeError, "RNG state is wrong size");
  GeneratorState state;
  std::memcpy(&state.seed, bytes.data_ptr(), 8);
  std::memcpy(&state.offset, static_cast<const char*>(bytes.data_ptr()) + 8, 8);
  g.set_state(state);
}

uint64_t to_seed(nb::handle o) {
  const nb::handle index = own(PyNumber_Index(o.ptr()));
  const long long value = PyLong_AsLongLong(index.ptr());
  if (value != -1 || !PyErr_Occurred()) return static_cast<uint64_t>(value);
  PyErr_Clear();
  const unsigned long long large = PyLong_AsUnsignedLongLong(index.ptr());
  if (large == static_cast<unsigned long long>(-1) && PyErr_Occurred()) {
    PyErr_Clear();
    throw_error<RuntimeError>({"Overflow when unpacking long"});
  }
  return large;
}

Generator& generator_of(nb::handle o) {
  TERCEL_CHECK(is_generator(o.ptr()), TypeError, "expected a tercel.Generator, not ", Py_TYPE(o.ptr())->tp_name);
  return to_generator(o.ptr());
}

const Tensor& expect_tensor(nb::handle o) {
  TERCEL_CHECK(is_tensor(o.ptr()), TypeError, "RNG state must be a tercel.ByteTensor, but got ",
               Py_TYPE(o.ptr())->tp_name);
  return tensor_of(o.ptr());
}

void register_generators(nb::module_& m) {
  nb::class_<GeneratorObject> type(m, "Generator", "A random number generator: a seed and a position in its sequence.");
  type.def(
          "__init__",
          [](GeneratorObject* self, nb::handle device) {
            if (!device.is_none()) {
              const Device d = to_device(device.ptr());
              TERCEL_CHECK(d.is_cpu(), RuntimeError, "Device type ", to_string(d.type),
                           " is not supported by Generator(): expected 'cpu'.");
            }
            new (self) GeneratorObject();
            self->own.set_seed(67280421310721ULL);
          },
          nb::arg("device") = nb::none())
      .def(
          "manual_seed",
          [](nb::object self, nb::handle seed) {
            generator_of(self).set_seed(to_seed(seed));
            return self;
          },
          nb::arg("seed"), "Restarts the generator with a seed; returns the generator.")
      .def(
          "initial_seed", [](GeneratorObject& g) { return g.get().state().seed; }, "The seed.")
      .def(
          "seed",
          [](GeneratorObject& g) {
            const nb::object bits = nb::module_::import_("secrets").attr("randbits")(64);
            g.get().set_seed(to_seed(bits));
            return bits;
          },
          "Seeds the generator from the system; returns the seed.")
      .def(
          "clone_state",
          [](GeneratorObject& g) {
            auto* copy = new GeneratorObject();
            copy->own.set_state(g.get().state());
            return nb::cast(copy, nb::rv_policy::take_ownership);
          },
          "A generator with the same seed and position.")
      .def(
          "get_state", [](GeneratorObject& g) { return nb::steal(wrap(state_of(g.get()))); },
          "Seed and position, as a tensor of bytes.")
      .def(
          "set_state",
          [](nb::object self, nb::handle state) {
            set_state(generator_of(self), expect_tensor(state));
            return self;
          },
          "Restores a state that get_state() returned.")
      .def_prop_ro(
          "device", [](const GeneratorObject&) { return nb::steal(from_device(kCpu)); }, "The CPU.");
  g_generator_type = type_of(type);
  m.attr("default_generator") = nb::cast(new GeneratorObject{Generator(), true}, nb::rv_policy::take_ownership);
}

}  // namespace

bool is_device_like(PyObject* o) {
  return is_ready(o, g_device_type) || PyUnicode_Check(o) || (PyLong_Check(o) && !PyBool_Check(o));
}
bool is_layout(PyObject* o) { return is_ready(o, g_layout_type); }
bool is_memory_format(PyObject* o) { return is_ready(o, g_memory_format_type); }
bool is_generator(PyObject* o) { return is_ready(o, g_generator_type); }

Device to_device(PyObject* o) {
  const Device device = named_device(o);
  return device.is_cpu() ? kCpu : device;
}
Layout to_layout(PyObject* o) { return nb::inst_ptr<LayoutObject>(o)->layout; }
MemoryFormat to_memory_format(PyObject* o) { return nb::inst_ptr<MemoryFormatObject>(o)->format; }
Generator& to_generator(PyObject* o) {
  return o == Py_None ? default_generator() : nb::inst_ptr<GeneratorObject>(o)->get();
}

PyObject* from_device(Device device) {
  if (device == kCpu) return Py_NewRef(g_cpu);
  return nb::cast(DeviceObject{device}).release().ptr();
}
PyObject* from_layout(Layout layout) { return Py_NewRef(g_layouts[static_cast<int>(layout)]); }

void register_device(nb::module_& m) {
  register_devices(m);
  register_layouts(m);
  register_generators(m);
}

}  // namespace tercel::python
