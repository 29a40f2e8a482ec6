// Batches of a dataset: _BatchReader, from which python/tercel/data/batch_reader.py makes its reader.
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>

#include "python/src/convert.h"
#include "python/src/datasets.h"
#include "python/src/options.h"
#include "tercel/data/batch_reader.h"

namespace tercel::python {

namespace {

using data::BatchReader;
using data::ReaderPosition;

/** How long a wait goes on before Python looks for Ctrl-C. */
constexpr int64_t kPatienceMs = 50;

/** A reader that can be closed, and that one thread uses at a time. */
class ReaderObject {
 public:
  explicit ReaderObject(std::unique_ptr<BatchReader> reader) : reader_(std::move(reader)) {}
  ~ReaderObject() { drop(); }
  ReaderObject(const ReaderObject&) = delete;
  ReaderObject& operator=(const ReaderObject&) = delete;

  void close() {
    check_unused();
    drop();
  }
  bool is_closed() const { return reader_ == nullptr; }

  /** The reader for the length of a scope. Begins and ends with the GIL, which guards the flag. */
  class Use {
   public:
    explicit Use(ReaderObject& object) : object_(object) {
      object.check_unused();
      TERCEL_CHECK(object.reader_, ValueError, "reader: it is closed");
      object.in_use_ = true;
    }
    ~Use() { object_.in_use_ = false; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    BatchReader& operator*() const { return *object_.reader_; }
    BatchReader* operator->() const { return object_.reader_.get(); }

   private:
    ReaderObject& object_;
  };

 private:
  void check_unused() const {
    TERCEL_CHECK(!in_use_, RuntimeError,
                 "reader: another thread is using it (or was, when this process was forked): open a reader for each");
  }
  void drop() {
    std::unique_ptr<BatchReader> last = std::move(reader_);
    const WithoutGil scope(last != nullptr);
    last.reset();  // waits for the threads
  }

  std::unique_ptr<BatchReader> reader_;
  bool in_use_ = false;
};

/** Waits for the next batch, with an eye on Ctrl-C; false after the last one. */
bool next_batch(BatchReader& reader, data::Batch& batch) {
  while (!released([&] { return reader.ready_within(kPatienceMs); }))
    if (PyErr_CheckSignals() != 0) raise_pending();
  return reader.next(batch);
}

/** (name, slots, hotness, order, whether batches share the offsets, offsets, keys, weights or None). */
nb::object from_input(data::SparseBatch& input) {
  const bool shared = input.row_offsets.use_count() > 1 || input.row_offsets.storage().use_count() > 1;
  return nb::make_tuple(to_str(input.name), input.slot_num, input.hotness, to_str(to_string(input.order)), shared,
                        own(wrap(std::move(input.row_offsets))), own(wrap(std::move(input.keys))),
                        own(wrap(std::move(input.key_weights))));
}

nb::object from_batch(data::Batch& batch) {
  nb::list inputs, columns;
  for (data::SparseBatch& input : batch.sparse) inputs.append(from_input(input));
  for (data::RowColumn& column : batch.columns)
    columns.append(nb::make_tuple(to_str(column.name), own(wrap(std::move(column.values)))));
  return nb::make_tuple(batch.epoch, batch.row, batch.rows, batch.global_row, batch.global_rows,
                        own(wrap(std::move(batch.labels))), own(wrap(std::move(batch.dense))), inputs, columns);
}

void open_reader(ReaderObject* self, const data::Dataset& dataset, const std::string& part, const nb::dict& values) {
  data::ReaderOptions options;
  set_options(values, option_table<data::ReaderOptions>(), &options, "reader");
  const data::PartName name = to_part(part);
  new (self) ReaderObject(released([&] { return std::make_unique<BatchReader>(dataset, name, options); }));
}

}  // namespace

void register_batches(nb::module_& m) {
  using Use = ReaderObject::Use;
  nb::class_<ReaderObject>(m, "_BatchReader")
      .def("__init__", open_reader)
      .def("next",
           [](ReaderObject& self) -> nb::object {
             const Use reader(self);
             // Always a new one: tensors that Python has had belong to it.
             data::Batch batch;
             if (!next_batch(*reader, batch)) return nb::none();
             return from_batch(batch);
           })
      .def("position",
           [](ReaderObject& self) {
             const ReaderPosition position = Use(self)->position();
             return options_to_dict(option_table<ReaderPosition>(), &position);
           })
      .def("seek",
           [](ReaderObject& self, const nb::dict& values) {
             ReaderPosition position;
             set_options(values, option_table<ReaderPosition>(), &position, "position");
             const Use reader(self);
             released([&] { reader->seek(position); });
           })
      .def("rewind",
           [](ReaderObject& self) {
             const Use reader(self);
             released([&] { reader->rewind(); });
           })
      .def("add_epochs",
           [](ReaderObject& self, int64_t count) {
             const Use reader(self);
             released([&] { reader->add_epochs(count); });
           })
      .def("options",
           [](ReaderObject& self) {
             return options_to_dict(option_table<data::ReaderOptions>(), &Use(self)->options());
           })
      .def("epoch_rows", [](ReaderObject& self) { return Use(self)->epoch_rows(); })
      .def("epoch_batches", [](ReaderObject& self) { return Use(self)->epoch_batches(); })
      .def("close", &ReaderObject::close)
      .def("is_closed", &ReaderObject::is_closed);
}

}  // namespace tercel::python
