// Implementation of tercel.autograd.profiler: profiles, and ranges named by the program.
#include "tercel/util/profile.h"

#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <vector>

#include "python/src/python.h"

namespace tercel::python {

namespace {

struct Profile {
  std::vector<ProfileEvent> events;
};

/** A range from __enter__ to __exit__, on one thread. */
struct RecordFunction {
  std::optional<ProfileRange> range;
};

}  // namespace

void register_profile(nb::module_& m) {
  nb::class_<Profile>(m, "_Profile", "The events of a profile.")
      .def("events",
           [](const Profile& p) {
             nb::list all;
             for (const ProfileEvent& e : p.events) {
               const nb::object name = nb::steal(PyUnicode_DecodeUTF8(
                   e.name, static_cast<Py_ssize_t>(std::char_traits<char>::length(e.name)), "replace"));
               all.append(nb::make_tuple(name, static_cast<int>(e.kind), e.thread, e.depth, e.begin, e.end, e.self));
             }
             return all;
           })
      .def("chrome_trace", [](const Profile& p) { return chrome_trace(p.events); });
  nb::class_<RecordFunction>(m, "_RecordFunction", "A range with a name.")
      .def(nb::init<>())
      .def("begin",
           [](RecordFunction& self, const std::string& name) {
             self.range.reset();
             self.range.emplace(name.c_str(), RangeKind::Annotation);
           })
      .def("end", [](RecordFunction& self) { self.range.reset(); });
  m.def("_profiler_start", [] { start_profile(); });
  m.def("_profiler_stop", [] { return Profile{stop_profile()}; });
  m.def("_profiler_pause", pause_profile);
  m.def("_profiler_enabled", [] { return profiling(); });
}

}  // namespace tercel::python
