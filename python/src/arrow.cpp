// Arrow's PyCapsule interface: columns of numbers from and for pyarrow, pandas, polars and DuckDB.
#include "tercel/io/arrow.h"

#include <nanobind/stl/string.h>

#include <cerrno>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "python/src/exchange.h"

namespace tercel::python {

namespace {

using io::ArrowArray;
using io::ArrowSchema;

template <class T>
constexpr const char* kName = "";
template <>
constexpr const char* kName<ArrowSchema> = "arrow_schema";
template <>
constexpr const char* kName<ArrowArray> = "arrow_array";
template <>
constexpr const char* kName<ArrowArrayStream> = "arrow_array_stream";

template <class T>
T* struct_of(nb::handle capsule) {
  auto* value = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), kName<T>));
  if (!value) raise_pending();
  return value;
}

/** Frees the struct, and releases it if it was not consumed. */
template <class T>
void drop_capsule(PyObject* capsule) {
  const std::unique_ptr<T> value(static_cast<T*>(PyCapsule_GetPointer(capsule, kName<T>)));
  if (value && value->release) value->release(value.get());
}

template <class T>
nb::object make_capsule() {
  auto value = std::make_unique<T>();
  const nb::object capsule = own(PyCapsule_New(value.get(), kName<T>, drop_capsule<T>));
  value.release();
  return capsule;
}

/** The capsules of a schema and an array that fill() makes. */
template <class F>
nb::object export_with(F&& fill) {
  const nb::object schema = make_capsule<ArrowSchema>(), array = make_capsule<ArrowArray>();
  fill(struct_of<ArrowSchema>(schema), struct_of<ArrowArray>(array));
  return nb::make_tuple(schema, array);
}

nb::object export_tensor(nb::handle tensor, const std::string& name) {
  return export_with([&](ArrowSchema* schema, ArrowArray* array) {
    io::to_arrow(to_tensor(tensor, "to_arrow"), name, schema, array);
  });
}

/** `valid` may have bools of some of the columns, false where a value is missing. */
nb::object export_columns(const nb::dict& columns, const nb::dict& valid) {
  std::vector<io::ArrowColumn> named;
  for (const auto& [name, tensor] : columns) {
    TERCEL_CHECK(PyUnicode_Check(name.ptr()) && is_tensor(tensor.ptr()), TypeError,
                 "expected a dict from names to tensors");
    io::ArrowColumn column{std::string(to_text(name.ptr())), to_tensor(tensor, "to_arrow"), {}};
    if (valid.contains(name)) column.valid = to_tensor(valid[name], "to_arrow: valid");
    named.push_back(std::move(column));
  }
  return export_with([&](ArrowSchema* schema, ArrowArray* array) { io::columns_to_arrow(named, schema, array); });
}

/** Wraps the array's release callback: Note [Foreign memory]. */
void guard(ArrowArray* array) {
  if (!array->release) return;
  array->private_data = new ArrowArray(*array);
  array->release = [](ArrowArray* self) {
    const std::unique_ptr<ArrowArray> original(static_cast<ArrowArray*>(self->private_data));
    self->release = nullptr;
    if (interpreter_ends()) return;
    const WithGil scope;
    original->release(original.get());
  };
}

/** (whether it is a struct array, [(name, values, which are valid or None)]). */
nb::object import_batch(ArrowSchema* schema, ArrowArray* array, const io::ArrowOptions& options) {
  guard(array);
  const bool is_struct = schema->release && schema->format && std::string_view(schema->format) == "+s";
  std::vector<io::ArrowColumn> columns;
  if (is_struct)
    columns = io::columns_from_arrow(schema, array, options);
  else
    columns.push_back(io::from_arrow(schema, array, options));
  nb::list out;
  for (io::ArrowColumn& c : columns)
    out.append(nb::make_tuple(nb::str(c.name.data(), c.name.size()), own(wrap(std::move(c.values))),
                              own(wrap(std::move(c.valid)))));
  return nb::make_tuple(is_struct, out);
}

nb::object import_array(nb::handle schema, nb::handle array, nb::handle copy, bool mask) {
  return import_batch(struct_of<ArrowSchema>(schema), struct_of<ArrowArray>(array),
                      {.copy = to_copy_mode(copy), .mask = mask});
}

/** An empty array of a schema, for a stream that ends before its first batch. */
struct EmptyArray {
  std::vector<EmptyArray> children;
  std::vector<ArrowArray> arrays;
  std::vector<ArrowArray*> pointers;
  const void* buffers[2] = {nullptr, nullptr};
};

void fill_empty(const ArrowSchema& schema, EmptyArray& store, ArrowArray& array) {
  const std::string_view format(schema.format ? schema.format : "");
  const auto n = static_cast<size_t>(std::max<int64_t>(schema.n_children, 0));
  store.children.resize(n);
  store.arrays.resize(n);
  for (size_t i = 0; i < n; ++i) {
    fill_empty(*schema.children[i], store.children[i], store.arrays[i]);
    store.pointers.push_back(&store.arrays[i]);
  }
  array = {};
  array.n_buffers = format.starts_with('+') ? 1 : 2;
  array.buffers = store.buffers;
  array.n_children = schema.n_children;
  array.children = store.pointers.data();
  array.release = [](ArrowArray* self) { self->release = nullptr; };
}

/** Schema and arrays, released unless they are consumed. */
template <class T>
struct Held {
  T value{};
  ~Held() {
    if (value.release) value.release(&value);
  }
};

/**
 * Whether a stream failed because a Python generator behind it was interrupted. pyarrow keeps only the text of the
 * exception, "... Python exception: [Traceback ...\n]KeyboardInterrupt\n".
 */
bool is_interrupt(std::string_view error) {
  constexpr std::string_view kBefore = "Python exception: ";
  const size_t begin = error.find(kBefore);
  if (begin == std::string_view::npos) return false;
  error.remove_prefix(begin + kBefore.size());
  while (error.ends_with('\n')) error.remove_suffix(1);
  error.remove_prefix(error.rfind('\n') + 1);  // of the traceback; npos + 1 is 0
  return error == "KeyboardInterrupt" || error.starts_with("KeyboardInterrupt: ");
}

[[noreturn]] void raise_interrupt() {
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  raise_pending();
}

/** The results of import_batch() as a list, at least one. */
nb::object import_stream(nb::handle capsule, nb::handle copy, bool mask) {
  auto* stream = struct_of<ArrowArrayStream>(capsule);
  const io::ArrowOptions options{.copy = to_copy_mode(copy), .mask = mask};
  TERCEL_CHECK(stream->release, RuntimeError, "from_arrow: expected a stream that has not been consumed");
  const auto check = [&](int status) {
    if (status == 0) return;
    const char* why = stream->get_last_error(stream);
    if (why && is_interrupt(why)) raise_interrupt();
    throw_error<RuntimeError>({"from_arrow: the stream failed: ", why ? why : "error ", why ? "" : str_cat({status})});
  };
  const auto get = [&](auto& held, auto* callback) {
    int status = 0;
    {
      const WithoutGil scope(true);  // a producer may wait for its own threads
      status = callback(stream, &held.value);
    }
    check(status);
  };
  nb::list batches;
  for (;;) {
    Held<ArrowSchema> schema;
    get(schema, stream->get_schema);
    Held<ArrowArray> array;
    get(array, stream->get_next);
    EmptyArray empty;
    if (!array.value.release) {
      if (nb::len(batches) > 0) return batches;
      fill_empty(schema.value, empty, array.value);
      batches.append(import_batch(&schema.value, &array.value, {.copy = io::CopyMode::Always, .mask = mask}));
      return batches;
    }
    batches.append(import_batch(&schema.value, &array.value, options));
  }
}

/**
 * A stream whose batches are released as Note [Foreign memory] says, by any thread. Unlike those of other programs, its
 * callbacks throw: KeyboardInterrupt.
 */
struct GuardedStream {
  ArrowArrayStream original;

  static GuardedStream& of(ArrowArrayStream* self) { return *static_cast<GuardedStream*>(self->private_data); }
  static int checked(ArrowArrayStream& stream, int status) {
    const char* const why = status != 0 && stream.get_last_error ? stream.get_last_error(&stream) : nullptr;
    if (why && is_interrupt(why)) {
      const WithGil scope;
      raise_interrupt();
    }
    return status;
  }
  static int get_schema(ArrowArrayStream* self, ArrowSchema* out) {
    ArrowArrayStream& stream = of(self).original;
    return checked(stream, stream.get_schema ? stream.get_schema(&stream, out) : EINVAL);
  }
  static int get_next(ArrowArrayStream* self, ArrowArray* out) {
    ArrowArrayStream& stream = of(self).original;
    const int status = checked(stream, stream.get_next ? stream.get_next(&stream, out) : EINVAL);
    if (status != 0) return status;
    try {
      guard(out);
    } catch (const std::bad_alloc&) {
      return ENOMEM;
    }
    return 0;
  }
  static const char* get_last_error(ArrowArrayStream* self) {
    ArrowArrayStream& stream = of(self).original;
    return stream.get_last_error ? stream.get_last_error(&stream) : nullptr;
  }
  static void release(ArrowArrayStream* self) {
    const std::unique_ptr<GuardedStream> guarded(&of(self));
    self->release = nullptr;
    if (interpreter_ends()) return;
    const WithGil scope;
    if (guarded->original.release) guarded->original.release(&guarded->original);
  }
};

}  // namespace

namespace {

/** A stream of one batch. */
struct BatchStream {
  ArrowSchema schema{};
  ArrowArray array{};

  BatchStream() = default;
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;
  ~BatchStream() {
    if (schema.release) schema.release(&schema);
    if (array.release) array.release(&array);
  }
  static BatchStream& of(ArrowArrayStream* self) { return *static_cast<BatchStream*>(self->private_data); }
  /** Hands the struct over; a second call gives one that is released. */
  template <class T>
  static int hand_over(T& from, T* out) {
    *out = from;
    from.release = nullptr;
    return 0;
  }
  static int get_schema(ArrowArrayStream* self, ArrowSchema* out) { return hand_over(of(self).schema, out); }
  static int get_next(ArrowArrayStream* self, ArrowArray* out) { return hand_over(of(self).array, out); }
  static const char* get_last_error(ArrowArrayStream* /*self*/) { return nullptr; }
  static void release(ArrowArrayStream* self) {
    delete &of(self);
    self->release = nullptr;
  }
};

/** A capsule of a stream of the batch of __arrow_c_array__(). */
nb::object stream_of_batch(nb::handle schema, nb::handle array) {
  auto* of = struct_of<ArrowSchema>(schema);
  auto* rows = struct_of<ArrowArray>(array);
  TERCEL_CHECK(of->release && rows->release, ValueError, "arrow: expected a batch that has not been consumed");
  nb::object capsule = make_capsule<ArrowArrayStream>();
  auto batch = std::make_unique<BatchStream>();
  batch->schema = *of;
  batch->array = *rows;
  of->release = nullptr;
  rows->release = nullptr;
  *struct_of<ArrowArrayStream>(capsule) = {BatchStream::get_schema, BatchStream::get_next, BatchStream::get_last_error,
                                           BatchStream::release, batch.release()};
  return capsule;
}

}  // namespace

void StreamRelease::operator()(ArrowArrayStream* stream) const {
  if (stream->release) stream->release(stream);
  delete stream;
}

OwnedStream take_stream(nb::handle capsule, std::string_view owner) {
  TERCEL_CHECK(PyCapsule_IsValid(capsule.ptr(), kName<ArrowArrayStream>), TypeError, owner,
               ": expected a capsule 'arrow_array_stream' of __arrow_c_stream__(), found ",
               PyCapsule_CheckExact(capsule.ptr()) ? "a capsule of another name" : Py_TYPE(capsule.ptr())->tp_name);
  auto* given = struct_of<ArrowArrayStream>(capsule);
  TERCEL_CHECK(given->release, ValueError, owner, ": expected a stream that has not been read: it can be read once");
  auto guarded = std::make_unique<GuardedStream>(GuardedStream{*given});
  OwnedStream stream(new ArrowArrayStream{GuardedStream::get_schema, GuardedStream::get_next,
                                          GuardedStream::get_last_error, GuardedStream::release, guarded.get()});
  guarded.release();
  given->release = nullptr;
  return stream;
}

void register_arrow(nb::module_& m) {
  m.def("_to_arrow", export_tensor);
  m.def("_columns_to_arrow", export_columns, nb::arg("columns"), nb::arg("valid") = nb::dict());
  m.def("_from_arrow", import_array, nb::arg("schema"), nb::arg("array"), nb::arg("copy").none(), nb::arg("mask"));
  m.def("_stream_of_batch", stream_of_batch, nb::arg("schema"), nb::arg("array"));
  m.def(
      "_is_interrupt", [](const std::string& error) { return is_interrupt(error); }, nb::arg("error"));
  m.def("_from_arrow_stream", import_stream, nb::arg("stream"), nb::arg("copy").none(), nb::arg("mask"));
}

}  // namespace tercel::python
