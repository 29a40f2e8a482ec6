// Stores that Python programs provide, such as fsspec's: python/tercel/data/filesystems.py makes them.
#include <nanobind/stl/string.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/src/convert.h"
#include "python/src/datasets.h"
#include "tercel/data/remote_store.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::python {

namespace {

/** Calls a function of Python with the GIL. An Exception of it becomes an IoError that names the URL; Ctrl-C stays. */
template <class Function>
auto with_python(const std::string& url, Function function) {
  const WithGil scope;
  std::string message;
  try {
    return function();
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    message = str_cat(
        {printable(url), ": ", Py_TYPE(error.value().ptr())->tp_name, ": ", printable(nb::str(error.value()).c_str())});
  }
  throw IoError(message);
}

/** A reference that may be dropped by any thread. */
class SharedObject {
 public:
  explicit SharedObject(nb::object object) : object_(object.release()) {}
  ~SharedObject() {
    if (interpreter_ends()) return;
    const WithGil scope;
    object_.dec_ref();
  }
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  nb::handle get() const { return object_; }

 private:
  nb::handle object_;
};

class PythonObject final : public data::RemoteObject {
 public:
  PythonObject(std::string url, nb::object object)
      : url_(std::move(url)),
        size_(nb::cast<int64_t>(object.attr("size"))),
        version_(nb::cast<uint64_t>(object.attr("version"))),
        object_(std::move(object)) {}

  int64_t size() const override { return size_; }
  uint64_t version() const override { return version_; }
  size_t read(void* out, size_t bytes, int64_t offset) override {
    return with_python(url_, [&] {
      const nb::object content = object_.get().attr("read")(bytes, offset);
      TERCEL_CHECK(PyBytes_Check(content.ptr()), IoError, printable(url_), ": expected bytes, found ",
                   Py_TYPE(content.ptr())->tp_name);
      const size_t found = std::min(bytes, static_cast<size_t>(PyBytes_GET_SIZE(content.ptr())));
      std::memcpy(out, PyBytes_AS_STRING(content.ptr()), found);
      return found;
    });
  }

 private:
  std::string url_;
  int64_t size_;
  uint64_t version_;
  SharedObject object_;
};

class PythonStore final : public data::RemoteStore {
 public:
  explicit PythonStore(nb::object store) : store_(std::move(store)) {}

  std::optional<FileInfo> info(const std::string& url) override {
    return with_python(url, [&]() -> std::optional<FileInfo> {
      const nb::object found = store_.get().attr("info")(to_str(url));
      if (found.is_none()) return std::nullopt;
      FileInfo info;
      info.kind = nb::cast<bool>(found[0]) ? FileKind::Directory : FileKind::Regular;
      info.size = nb::cast<int64_t>(found[1]);
      return info;
    });
  }

  std::vector<std::string> list(const std::string& url) override {
    return with_python(url, [&] {
      std::vector<std::string> names;
      for (const nb::handle name : store_.get().attr("list")(to_str(url))) names.push_back(nb::cast<std::string>(name));
      return names;
    });
  }

  std::unique_ptr<data::RemoteObject> open(const std::string& url) override {
    return with_python(
        url, [&] { return std::make_unique<PythonObject>(url, nb::object(store_.get().attr("open")(to_str(url)))); });
  }

  /** Threads that are left behind could not wait for the GIL of an interpreter that ends. */
  bool allows_threads() const override { return false; }

 private:
  SharedObject store_;
};

/** Lets Ctrl-C end a wait. */
void check_signals() {
  if (interpreter_ends()) return;
  const WithGil scope;
  if (PyErr_CheckSignals() != 0) raise_pending();
}

}  // namespace

void register_stores(nb::module_& m) {
  m.def("_register_store", [](const std::string& scheme, nb::object store) {
    data::register_remote_store(scheme, std::make_shared<PythonStore>(std::move(store)));
  });
  data::set_remote_wait_check(check_signals);
}

}  // namespace tercel::python
